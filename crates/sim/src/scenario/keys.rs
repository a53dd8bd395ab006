//! Every key of a scenario, its limits, and its meaning.

use std::ops::RangeInclusive;

use super::key::{Layout, Slot, Spec};
use super::traffic::Traffic;

mod flows;
mod link_plane;
mod wired;

pub(super) use wired::UPLINK_MBPS_MIN;

/// Largest coordinate; no radio mesh is wider.
pub(super) const METRES_MAX: f64 = 1_000_000.0;
/// Allowed numbers of files.
pub(super) const FILES: RangeInclusive<u64> = 1..=1_000;
/// Longest interval between requests: one day.
const STAGGER_S_MAX: f64 = 86_400.0;

/// Allowed speeds in m/s: slower is as good as at rest, and no mesh follows a faster router.
const SPEEDS: RangeInclusive<f64> = 0.01..=1_000.0;

/// Keys that do not apply to a chain, whose layout is fixed.
const NO_CHAIN: &[Layout] = &[Layout::Placed, Layout::Random];
const FILES_ONLY: &[Traffic] = &[Traffic::Files];
/// Transfers of an origin's files.
const ORIGIN: &[Traffic] = &[Traffic::Files, Traffic::Pages];
const PAGES: &[Traffic] = &[Traffic::Pages];
const TRANSFERS: &[Traffic] = &[Traffic::Files, Traffic::Fetches];
const FLOWS: &[Traffic] = &[Traffic::Tcp, Traffic::Udp];
/// Flows that are listed one by one.
const LISTED: &[Traffic] = &[Traffic::Flows];
const STAGGERED: &[Traffic] = &[Traffic::Files, Traffic::Tcp, Traffic::Udp];
const TIMED: &[Traffic] =
    &[Traffic::Tcp, Traffic::Udp, Traffic::Flows, Traffic::Fetches, Traffic::Pages];
/// Traffic from the origin or the gateway to some routers.
const RECEIVED: &[Traffic] =
    &[Traffic::Files, Traffic::Tcp, Traffic::Udp, Traffic::Fetches, Traffic::Pages];
/// Every key, in the order in which reports list them.
pub(super) fn all() -> impl Iterator<Item = &'static Spec> + Clone {
    let listed = flows::KEYS.iter().chain(&link_plane::KEYS);
    KEYS.iter().chain(listed).chain(&wired::KEYS)
}

/// Every key but those of [`flows`] and [`wired`].
static KEYS: [Spec; 75] = [
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
        meaning: "number of routers, placed at random by the seed so that all are connected",
        layouts: &[Layout::Random],
        traffic: &[],
        slot: Slot::Whole(2..=1000, |it| &mut it.nodes),
    },
    Spec {
        name: "area_m",
        meaning: "side of the square that they are placed in, in metres",
        layouts: &[Layout::Random],
        traffic: &[],
        slot: Slot::Number(1.0..=METRES_MAX, |it| &mut it.area_m),
    },
    Spec {
        name: "clients",
        meaning: "number of receivers among them, drawn by the seed, unless `receivers` names them",
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
        name: "gateway_x",
        meaning: "place near the gateway: the nearest router has the uplink, unless `gateway` names one; x as a share of area_m",
        layouts: &[Layout::Random],
        traffic: &[],
        slot: Slot::Number(0.0..=1.0, |it| &mut it.gateway_x),
    },
    Spec {
        name: "gateway_y",
        meaning: "the same place: y as a share of area_m",
        layouts: &[Layout::Random],
        traffic: &[],
        slot: Slot::Number(0.0..=1.0, |it| &mut it.gateway_y),
    },
    Spec {
        name: "receivers",
        meaning: "routers whose clients request files, or that flows and fetches go to, in this order",
        layouts: &[],
        traffic: RECEIVED,
        slot: Slot::Routers(|it| &mut it.receivers),
    },
    Spec {
        name: "traffic",
        meaning: "kind of traffic: \"files\" or \"pages\" of the origin; from the gateway, flows of \"tcp\" or \"udp\", or \"fetches\"; or \"flows\" between any routers",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.traffic),
    },
    Spec {
        name: "seconds",
        meaning: "duration of a run, in seconds",
        layouts: &[],
        traffic: TIMED,
        slot: Slot::Number(0.1..=86_400.0, |it| &mut it.load.seconds),
    },
    Spec {
        name: "flows",
        meaning: "flows to each receiver",
        layouts: &[],
        traffic: FLOWS,
        slot: Slot::Whole(1..=1_000, |it| &mut it.load.flows),
    },
    Spec {
        name: "offered_mbps",
        meaning: "rate of each UDP flow's payload, in Mbit/s; 0: more than the air carries",
        layouts: &[],
        traffic: &[Traffic::Udp],
        slot: Slot::Number(0.0..=1_000.0, |it| &mut it.load.offered_mbps),
    },
    Spec {
        name: "think_s",
        meaning: "mean think time from the end of a fetch to the next, exponentially distributed, in seconds",
        layouts: &[],
        traffic: &[Traffic::Fetches],
        slot: Slot::Number(0.0..=86_400.0, |it| &mut it.load.think_s),
    },
    Spec {
        name: "requests",
        meaning: "requests as ROUTER:FILE; if empty, each of `receivers` requests each of `files`",
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
        meaning: "number of different files",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Whole(FILES, |it| &mut it.files),
    },
    Spec {
        name: "changed",
        meaning: "share of each file's pieces of 64 bytes that differ from the file before; 1: files have nothing in common",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Number(0.0..=1.0, |it| &mut it.changed),
    },
    Spec {
        name: "readers",
        meaning: "number of clients behind each receiver that read pages",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Whole(1..=100, |it| &mut it.readers),
    },
    Spec {
        name: "bytes_min",
        meaning: "smallest size of a file, in bytes; sizes are uniformly distributed",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Whole(1..=1_000_000_000, |it| &mut it.bytes_min),
    },
    Spec {
        name: "bytes_max",
        meaning: "largest size of a file, in bytes",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Whole(1..=1_000_000_000, |it| &mut it.bytes_max),
    },
    Spec {
        name: "zipf",
        meaning: "Zipf's exponent theta: the file of rank n is requested n^-theta times as often as the first",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Number(0.0..=4.0, |it| &mut it.zipf),
    },
    Spec {
        name: "alike_m",
        meaning: "side of the squares of ground in which popularity is the same, in metres; from one square to the next it shifts by one rank",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Number(1.0..=METRES_MAX, |it| &mut it.alike_m),
    },
    Spec {
        name: "page_files",
        meaning: "mean number of files in a page, geometrically distributed; a client requests one after the other",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Number(1.0..=1_000.0, |it| &mut it.page_files),
    },
    Spec {
        name: "think_mean_s",
        meaning: "mean think time from the end of a page to the next, log-normally distributed, in seconds",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Number(0.001..=86_400.0, |it| &mut it.think_mean_s),
    },
    Spec {
        name: "think_sigma",
        meaning: "standard deviation of the logarithm of the think time",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Number(0.0..=4.0, |it| &mut it.think_sigma),
    },
    Spec {
        name: "max_age_s",
        meaning: "how long files stay fresh, in seconds",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Whole(0..=31_536_000, |it| &mut it.max_age_s),
    },
    Spec {
        name: "store_kb",
        meaning: "size of each router's store, in KB of content; the least recently requested file is evicted first",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Whole(256..=1_048_576, |it| &mut it.store_kb),
    },
    Spec {
        name: "access_mbps",
        meaning: "rate of the wire that a router's clients share, in Mbit/s",
        layouts: &[],
        traffic: PAGES,
        slot: Slot::Number(0.001..=100_000.0, |it| &mut it.access_mbps),
    },
    Spec {
        name: "rounds",
        meaning: "number of rounds: all requests are repeated in each",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Whole(1..=1_000, |it| &mut it.rounds),
    },
    Spec {
        name: "order",
        meaning: "order of the requests: \"listed\", or \"random\" by the seed",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Word(|it| &mut it.order),
    },
    Spec {
        name: "stagger_s",
        meaning: "seconds from the start of one transfer or flow to the start of the next; 0: each transfer starts when the one before has ended, flows start together",
        layouts: &[],
        traffic: STAGGERED,
        slot: Slot::Number(0.0..=STAGGER_S_MAX, |it| &mut it.load.stagger_s),
    },
    Spec {
        name: "routing",
        meaning: "source of routes: \"static\", the scenario's; \"babel\", those that babeld computes",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Word(|it| &mut it.routing),
    },
    Spec {
        name: "congestion",
        meaning: "in real time: TCP's congestion control, \"reno\", or \"cubic\" or \"bbr\" where the kernel allows them",
        layouts: &[],
        traffic: FILES_ONLY,
        slot: Slot::Word(|it| &mut it.congestion),
    },
    Spec {
        name: "paper",
        meaning: "run routers as a paper describes them: \"meshcache\" or \"ditto\", which sets the next seven keys and the scheme; \"wine\" or \"inpcm\", which sets `pace`, `recover` and `tcp_recovery`; \"wanax\", which sets `uplink` and `http`; or \"none\"",
        layouts: &[],
        traffic: &[],
        slot: Slot::Paper,
    },
    Spec {
        name: "units",
        meaning: "size of units: \"8KiB\" on average, or \"32KiB\" at most",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Word(|it| &mut it.variant.units),
    },
    Spec {
        name: "streams",
        meaning: "overhearing: parts of a unit from several streams are \"joined\"; or streams stay \"alone\", and bytes after a missed head are lost",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Word(|it| &mut it.variant.streams),
    },
    Spec {
        name: "halves",
        meaning: "overhearing: units overheard in part are \"repaired\", so that a peer sends only the rest, or \"dropped\"",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Word(|it| &mut it.variant.halves),
    },
    Spec {
        name: "heads",
        meaning: "overhearing: missed heads of units are \"guessed\" from the units around them, or \"needed\"",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Word(|it| &mut it.variant.heads),
    },
    Spec {
        name: "cancel",
        meaning: "overhearing: a unit overheard before the asked peer sends it is cancelled there: \"on\" or \"off\"",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Word(|it| &mut it.variant.cancel),
    },
    Spec {
        name: "locate",
        meaning: "searches: the request says which router was found, \"ours\"; or the routers on the way are told before, and remember it for 300 s, \"paper\"",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Word(|it| &mut it.variant.locate),
    },
    Spec {
        name: "search_timeout_ms",
        meaning: "searches: how long answers are awaited; or \"adaptive\", what would have been best for the latest searches",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Timeout(|it| &mut it.variant.search_timeout),
    },
    Spec {
        name: "liars",
        meaning: "share of the routers other than the gateway, drawn by the seed, that lie off the way to the gateway: in answers to searches, in hints, and in what they then send",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Number(0.0..=1.0, |it| &mut it.liars),
    },
    Spec {
        name: "metric",
        meaning: "metric of routes that the scenario does not fix: \"hops\" or \"etx\"",
        layouts: &[Layout::Placed, Layout::Random],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.metric),
    },
    Spec {
        name: "mobility",
        meaning: "in virtual time: \"none\", or \"waypoint\": routers move to random places, drawn by the seed",
        layouts: NO_CHAIN,
        traffic: &[],
        slot: Slot::Word(|it| &mut it.changing.mobility),
    },
    Spec {
        name: "movers",
        meaning: "the routers that move; if empty, all but the gateway",
        layouts: NO_CHAIN,
        traffic: &[],
        slot: Slot::Movers(|it| &mut it.changing.movers),
    },
    Spec {
        name: "walk_m",
        meaning: "side of the square that they move in, which begins at [0, 0], in metres; 0: area_m",
        layouts: NO_CHAIN,
        traffic: &[],
        slot: Slot::Number(0.0..=METRES_MAX, |it| &mut it.changing.walk_m),
    },
    Spec {
        name: "speed_min_m_s",
        meaning: "their lowest speed, in m/s; speeds are uniformly distributed",
        layouts: NO_CHAIN,
        traffic: &[],
        slot: Slot::Number(SPEEDS, |it| &mut it.changing.speed_min_m_s),
    },
    Spec {
        name: "speed_max_m_s",
        meaning: "their highest speed, in m/s",
        layouts: NO_CHAIN,
        traffic: &[],
        slot: Slot::Number(SPEEDS, |it| &mut it.changing.speed_max_m_s),
    },
    Spec {
        name: "pause_s",
        meaning: "how long they rest at each place, in seconds",
        layouts: NO_CHAIN,
        traffic: &[],
        slot: Slot::Number(0.0..=86_400.0, |it| &mut it.changing.pause_s),
    },
    Spec {
        name: "cuts",
        meaning: "in virtual time: links to cut, as ROUTER@SECONDS or ROUTER:ROUTER@SECONDS",
        layouts: &[],
        traffic: &[],
        slot: Slot::Cuts(|it| &mut it.changing.cuts),
    },
    Spec {
        name: "routes_every_s",
        meaning: "how often routes are computed again where links change, in seconds",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.1..=3_600.0, |it| &mut it.changing.routes_every_s),
    },
    Spec {
        name: "range_m",
        meaning: "farthest distance at which frames are received, in metres",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(1.0..=METRES_MAX, |it| &mut it.range_m),
    },
    Spec {
        name: "carrier_sense_m",
        meaning: "farthest distance at which carriers are sensed and interfere, in metres",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(1.0..=METRES_MAX, |it| &mut it.carrier_sense_m),
    },
    Spec {
        name: "propagation",
        meaning: "how signal power falls with distance: \"two-ray\" ground reflection, or \"log-distance\"",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.spreading),
    },
    Spec {
        name: "path_exponent",
        meaning: "exponent of log-distance path loss: 2 in free space, about 3 among houses",
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
        meaning: "random fading of each frame at each receiver: \"none\" or \"rayleigh\"",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.fading),
    },
    Spec {
        name: "receiver",
        meaning: "what holds an idle receiver: \"lock\", the first signal it senses, or \"nolock\", the first it can decode",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.receiver),
    },
    Spec {
        name: "reception",
        meaning: "what decides whether a frame is received: \"capture\", 10 dB above all else, or \"bit-error\" rates",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.reception),
    },
    Spec {
        name: "dcf",
        meaning: "rules of the DCF: \"standard\" (802.11), or \"ns3\" for comparisons with ns-3",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.dcf),
    },
    Spec {
        name: "per",
        meaning: "probability that a link of any length loses a frame, in addition to other losses",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=1.0, |it| &mut it.per),
    },
    Spec {
        name: "per_scope",
        meaning: "frames that `per` applies to: \"all\" or \"data\"; if it is above 0, `loss` applies to the same",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.per_scope),
    },
    Spec {
        name: "loss",
        meaning: "probability that a link of length range_m loses a data frame",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=1.0, |it| &mut it.loss),
    },
    Spec {
        name: "loss_exponent",
        meaning: "exponent of loss by distance: a link of length d loses the share loss * (d / range_m) ^ loss_exponent",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=16.0, |it| &mut it.loss_exponent),
    },
    Spec {
        name: "broadcast_loss_share",
        meaning: "share of a link's loss that broadcasts at the basic rate suffer",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=1.0, |it| &mut it.broadcast_loss_share),
    },
    Spec {
        name: "loss_above_mac",
        meaning: "probability that a router loses a packet that its MAC has received for it and acknowledged; others still overhear it",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=0.99, |it| &mut it.loss_above_mac),
    },
    Spec {
        name: "overhear_m",
        meaning: "distance from which frames for others are never heard, in metres; 0: as far and as well as a router's own",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=METRES_MAX, |it| &mut it.overhear_m),
    },
    Spec {
        name: "overhear_exponent",
        meaning: "exponent: at distance d a frame for others is lost with probability (d / overhear_m) ^ overhear_exponent",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=16.0, |it| &mut it.overhear_exponent),
    },
    Spec {
        name: "overhear_spell_ms",
        meaning: "with overhear_m: mean time in which a router hears either all or nothing of another, before that is drawn again; 0: drawn for each frame",
        layouts: &[],
        traffic: &[],
        slot: Slot::Number(0.0..=60_000.0, |it| &mut it.overhear_spell_ms),
    },
    Spec {
        name: "phy",
        meaning: "kind of 802.11: \"b\", \"b-short\" (preambles), \"a\" or \"g\"",
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
        meaning: "RTS and CTS before data frames: false, true, or only before frames longer than this many bytes",
        layouts: &[],
        traffic: &[],
        slot: Slot::Threshold(|it| &mut it.rts),
    },
    Spec {
        name: "queue_frames",
        meaning: "length of a router's interface queue, in frames",
        layouts: &[],
        traffic: &[],
        slot: Slot::Whole(1..=10_000, |it| &mut it.queue_frames),
    },
];
