//! The keys of wires and of TCP.

use super::ORIGIN;
use crate::scenario::key::{Slot, Spec};
use crate::scenario::traffic::Traffic;

/// The lowest rate of the uplink, in Mbit/s.
pub(in crate::scenario) const UPLINK_MBPS_MIN: f64 = 0.001;
/// Kinds of traffic that use TCP. In the lab the kernels' own TCP is used.
const BY_TCP: &[Traffic] =
    &[Traffic::Files, Traffic::Tcp, Traffic::Flows, Traffic::Fetches, Traffic::Pages];

/// The keys, in the order in which reports list them.
pub(super) static KEYS: [Spec; 18] = [
    Spec {
        name: "uplink_mbps",
        meaning: "rate of the gateway's uplink, in Mbit/s; from the mesh to the outside it may be another, uplink_up_mbps",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Number(UPLINK_MBPS_MIN..=100_000.0, |it| &mut it.uplink.mbps),
    },
    Spec {
        name: "uplink_up_mbps",
        meaning: "rate of the uplink from the mesh to the outside, in Mbit/s; 0: uplink_mbps",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Number(0.0..=100_000.0, |it| &mut it.uplink.up_mbps),
    },
    Spec {
        name: "uplink_delay_ms",
        meaning: "one-way delay of the uplink, in milliseconds",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Number(0.0..=60_000.0, |it| &mut it.uplink.delay_ms),
    },
    Spec {
        name: "uplink_loss",
        meaning: "probability that the uplink loses a packet, the same in both directions",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Number(0.0..=1.0, |it| &mut it.uplink.loss),
    },
    Spec {
        name: "uplink_queue",
        meaning: "length of the queue at each end of the uplink, in packets; 1000 full ones take 23 s at 512 kbit/s",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Whole(1..=100_000, |it| &mut it.uplink.queue),
    },
    Spec {
        name: "far",
        meaning: "machine at the outer end of the uplink: \"none\", or \"pair\" for a far end to which the gateway's requests go",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Word(|it| &mut it.uplink.far),
    },
    Spec {
        name: "uplink",
        meaning: "how content crosses the pair: \"ours\", or as Wanax published it, by \"mrc\", \"mrc-large\" or \"src\"",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Word(|it| &mut it.uplink.crossing),
    },
    Spec {
        name: "degree",
        meaning: "degree of the trees of \"mrc\" and \"mrc-large\": 2, 4 or 8; 0: 8",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Whole(0..=8, |it| &mut it.uplink.degree),
    },
    Spec {
        name: "smallest",
        meaning: "average length of the smallest chunks of a published scheme, in bytes, a power of two from 32 on; 0: as small as its trees have, or 1024",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Whole(0..=65_536, |it| &mut it.uplink.smallest),
    },
    Spec {
        name: "http",
        meaning: "what becomes of intercepted requests: \"cached\", or \"bypass\": they cross the pair as any TCP connection",
        layouts: &[],
        traffic: ORIGIN,
        slot: Slot::Word(|it| &mut it.uplink.http),
    },
    Spec {
        name: "mss",
        meaning: "payload of a full TCP segment without options, in bytes",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Whole(88..=2_264, |it| &mut it.tcp.mss),
    },
    Spec {
        name: "rto_min_s",
        meaning: "smallest retransmission timeout of TCP, in seconds",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Number(0.01..=60.0, |it| &mut it.tcp.rto_min_s),
    },
    Spec {
        name: "tcp_recovery",
        meaning: "loss recovery of TCP: \"standard\" (NewReno), \"reno\", \"sack\", or \"ns3\" for comparisons with ns-3",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.tcp.recovery),
    },
    Spec {
        name: "tcp_timestamps",
        meaning: "whether TCP's segments have timestamps, which take 12 bytes of each payload: true or false",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Flag(|it| &mut it.tcp.timestamps),
    },
    Spec {
        name: "initial_window",
        meaning: "segments that TCP sends before the first acknowledgement",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Whole(1..=64, |it| &mut it.tcp.initial_window),
    },
    Spec {
        name: "delayed_ack",
        meaning: "TCP acknowledges after this many segments, or after 0.2 s",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Whole(1..=16, |it| &mut it.tcp.delayed_ack),
    },
    Spec {
        name: "send_buffer",
        meaning: "size of a TCP socket's send buffer, in bytes",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Whole(1_000..=16_777_216, |it| &mut it.tcp.send_buffer),
    },
    Spec {
        name: "receive_buffer",
        meaning: "size of a TCP socket's receive buffer, in bytes",
        layouts: &[],
        traffic: BY_TCP,
        slot: Slot::Whole(1_000..=16_777_216, |it| &mut it.tcp.receive_buffer),
    },
];
