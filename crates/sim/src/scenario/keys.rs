//! Every key of a scenario: within which limits it may be changed, and what it means.

use std::ops::RangeInclusive;

use super::key::{Layout, Slot, Spec};
use super::traffic::Traffic;

/// Farther apart is no mesh.
pub(super) const METRES_MAX: f64 = 1_000_000.0;
/// How many files there may be.
pub(super) const FILES: RangeInclusive<u64> = 1..=1_000;
/// A day.
const STAGGER_S_MAX: f64 = 86_400.0;

const FILES_ONLY: &[Traffic] = &[Traffic::Files];
const TRANSFERS: &[Traffic] = &[Traffic::Files, Traffic::Fetches];
const FLOWS: &[Traffic] = &[Traffic::Tcp, Traffic::Udp];
const STAGGERED: &[Traffic] = &[Traffic::Files, Traffic::Tcp, Traffic::Udp];
const TIMED: &[Traffic] = &[Traffic::Tcp, Traffic::Udp, Traffic::Fetches];
/// The lab's machines have their kernels' TCP.
const BY_TCP: &[Traffic] = &[Traffic::Files, Traffic::Tcp, Traffic::Fetches];

/// Every key, in the order in which reports list them.
pub(super) static KEYS: [Spec; 47] = [
    Spec {
        name: "hops",
        meaning: "links from the gateway to the last router of a chain",
        layouts: &[Layout::Chain],
        traffic: &[],
        slot: Slot::Whole(1..=999, |it| &mut it.hops),
    },
    Spec {
        name: "spacing_m",
        meaning: "distance between neighbours of a chain, in metres",
        layouts: &[Layout::Chain],
        traffic: &[],
        slot: Slot::Number(1.0..=10_000.0, |it| &mut it.spacing_m),
    },
    Spec {
        name: "nodes",
        meaning: "routers that stand at random, by the seed, so that all are connected",
        layouts: &[Layout::Random],
        traffic: &[],
        slot: Slot::Whole(2..=1000, |it| &mut it.nodes),
    },
    Spec {
        name: "area_m",
        meaning: "side of the square that they stand on, in metres",
        layouts: &[Layout::Random],
        traffic: &[],
        slot: Slot::Number(1.0..=METRES_MAX, |it| &mut it.area_m),
    },
    Spec {
        name: "clients",
        meaning: "how many of them are receivers, by the seed, unless `receivers` names them",
        layouts: &[Layout::Random],
        traffic: &[],
        slot: Slot::Whole(1..=999, |it| &mut it.clients),
    },
    Spec {
        name: "gateway",
        meaning: "the router that has the uplink",
        layouts: &[Layout::Placed, Layout::Random],
        traffic: &[],
        slot: Slot::Router(|it| &mut it.gateway),
    },
    Spec {
        name: "receivers",
        meaning: "routers whose clients ask for files, or to which flows and fetches go, in their order",
        layouts: &[],
        traffic: &[],
        slot: Slot::Routers(|it| &mut it.receivers),
    },
    Spec {
        name: "traffic",
        meaning: "\"files\" of the origin; flows of \"tcp\" or \"udp\", or \"fetches\", from the gateway",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.traffic),
    },
    Spec {
        name: "seconds",
        meaning: "how long a run lasts, in seconds",
        layouts: &[],
        traffic: TIMED,
        slot: Slot::Number(0.1..=86_400.0, |it| &mut it.seconds),
    },
    Spec {
        name: "flows",
        meaning: "flows to each receiver",
        layouts: &[],
        traffic: FLOWS,
        slot: Slot::Whole(1..=1_000, |it| &mut it.flows),
    },
    Spec {
        name: "offered_mbps",
        meaning: "payload that a flow of UDP offers, in Mbit/s; 0: more than the air takes",
        layouts: &[],
        traffic: &[Traffic::Udp],
        slot: Slot::Number(0.0..=1_000.0, |it| &mut it.offered_mbps),
    },
    Spec {
        name: "think_s",
        meaning: "mean time from the end of a fetch to the next, exponential, in seconds",
        layouts: &[],
        traffic: &[Traffic::Fetches],
        slot: Slot::Number(0.0..=86_400.0, |it| &mut it.think_s),
    },
    Spec {
        name: "requests",
        meaning: "who asks for which file, ROUTER:FILE; none: each of `receivers` for each of `files`",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Requests(|it| &mut it.requests),
    },
    Spec {
        name: "bytes",
        meaning: "size of each file, in bytes",
        layouts: &[],
        traffic: TRANSFERS,
        slot: Slot::Whole(1..=1_000_000_000, |it| &mut it.bytes),
    },
    Spec {
        name: "files",
        meaning: "how many different files there are",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Whole(FILES, |it| &mut it.files),
    },
    Spec {
        name: "rounds",
        meaning: "how many times all that is asked for",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Whole(1..=1_000, |it| &mut it.rounds),
    },
    Spec {
        name: "order",
        meaning: "of the requests: \"listed\", or \"random\" by the seed",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Word(|it| &mut it.order),
    },
    Spec {
        name: "stagger_s",
        meaning: "seconds from the start of a file or flow to that of the next; 0: files one after the other, flows all at once",
        layouts: &[],
        traffic: STAGGERED,
        slot: Slot::Number(0.0..=STAGGER_S_MAX, |it| &mut it.stagger_s),
    },
    Spec {
        name: "routing",
        meaning: "\"static\": the scenario's routes; \"babel\": those that babeld finds",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Word(|it| &mut it.routing),
    },
    Spec {
        name: "metric",
        meaning: "what makes routes short that the scenario does not give: \"hops\" or \"etx\"",
        layouts: &[Layout::Placed, Layout::Random],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.metric),
    },
    Spec {
        name: "range_m",
        meaning: "frames can be received up to here, in metres",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(1.0..=METRES_MAX, |it| &mut it.range_m),
    },
    Spec {
        name: "carrier_sense_m",
        meaning: "carriers are sensed and disturb up to here, in metres",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(1.0..=METRES_MAX, |it| &mut it.carrier_sense_m),
    },
    Spec {
        name: "propagation",
        meaning: "how signals weaken: \"two-ray\" ground reflection, or \"log-distance\"",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.spreading),
    },
    Spec {
        name: "path_exponent",
        meaning: "of log-distance path loss: 2 in free space, 3 or so among houses",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(1.0..=8.0, |it| &mut it.path_exponent),
    },
    Spec {
        name: "shadowing_db",
        meaning: "standard deviation of shadowing under log-distance path loss, in dB",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=20.0, |it| &mut it.shadowing_db),
    },
    Spec {
        name: "fading",
        meaning: "of each frame at each receiver: \"none\" or \"rayleigh\"",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.fading),
    },
    Spec {
        name: "receiver",
        meaning: "what holds an idle one: \"lock\", the first signal it senses, or \"nolock\", the first it can decode",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.receiver),
    },
    Spec {
        name: "reception",
        meaning: "what decides: \"capture\", 10 dB above all else, or \"bit-error\" rates",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.reception),
    },
    Spec {
        name: "dcf",
        meaning: "whose reading of 802.11: \"standard\", or \"ns3\" for comparisons with it",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.dcf),
    },
    Spec {
        name: "per",
        meaning: "probability that a link of any length loses a frame, beside all else",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=1.0, |it| &mut it.per),
    },
    Spec {
        name: "per_scope",
        meaning: "what `per` strikes: \"all\" frames or \"data\" frames; where it is above 0 `loss` strikes the same",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.per_scope),
    },
    Spec {
        name: "loss",
        meaning: "probability that a link as long as range_m loses a data frame",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=1.0, |it| &mut it.loss),
    },
    Spec {
        name: "loss_exponent",
        meaning: "a link of length d loses loss * (d / range_m) ^ loss_exponent",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=16.0, |it| &mut it.loss_exponent),
    },
    Spec {
        name: "broadcast_loss_share",
        meaning: "of a link's loss, what broadcasts at the basic rate suffer of it",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=1.0, |it| &mut it.broadcast_loss_share),
    },
    Spec {
        name: "phy",
        meaning: "of 802.11: \"b\", \"b-short\" (preambles), \"a\" or \"g\"",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.phy),
    },
    Spec {
        name: "data_mbps",
        meaning: "rate of data frames, in Mbit/s",
        layouts: &[],
        traffic: &[],
        slot: Slot::Rate(|it| &mut it.data),
    },
    Spec {
        name: "basic_mbps",
        meaning: "rate of broadcasts and acknowledgements, in Mbit/s",
        layouts: &[],
        traffic: &[],
        slot: Slot::Rate(|it| &mut it.basic),
    },
    Spec {
        name: "rts",
        meaning: "announce data frames by RTS and CTS: false, true, or those longer than so many bytes",
        layouts: &[],
        traffic: &[],
        slot: Slot::Threshold(|it| &mut it.rts),
    },
    Spec {
        name: "queue_frames",
        meaning: "frames that may wait in a router's interface",
        layouts: &[],
        traffic: &[],
        slot: Slot::Whole(1..=10_000, |it| &mut it.queue_frames),
    },
    Spec {
        name: "uplink_mbps",
        meaning: "rate of the gateway's uplink each way, in Mbit/s",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Number(0.001..=100_000.0, |it| &mut it.uplink_mbps),
    },
    Spec {
        name: "uplink_delay_ms",
        meaning: "delay of the uplink one way, in milliseconds",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Number(0.0..=60_000.0, |it| &mut it.uplink_delay_ms),
    },
    Spec {
        name: "mss",
        meaning: "payload of a full TCP segment, in bytes",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Whole(88..=2_264, |it| &mut it.mss),
    },
    Spec {
        name: "rto_min_s",
        meaning: "least retransmission timeout of TCP, in seconds",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Number(0.01..=60.0, |it| &mut it.rto_min_s),
    },
    Spec {
        name: "initial_window",
        meaning: "segments that TCP sends before the first acknowledgement",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Whole(1..=64, |it| &mut it.initial_window),
    },
    Spec {
        name: "delayed_ack",
        meaning: "segments for which TCP sends one acknowledgement, or after 0.2 s",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Whole(1..=16, |it| &mut it.delayed_ack),
    },
    Spec {
        name: "send_buffer",
        meaning: "of a TCP socket, in bytes",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Whole(1_000..=16_777_216, |it| &mut it.send_buffer),
    },
    Spec {
        name: "receive_buffer",
        meaning: "of a TCP socket, in bytes",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Whole(1_000..=16_777_216, |it| &mut it.receive_buffer),
    },
];
