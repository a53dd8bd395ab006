//! The keys of flows that are listed one by one.

use super::LISTED;
use crate::scenario::key::{Slot, Spec};

/// The keys, in the order in which reports list them.
pub(super) static KEYS: [Spec; 2] = [
    Spec {
        name: "between",
        meaning: "flows as FROM:TO:KIND:START:END; KIND is tcp, cbr@MBITS, vbr@MBITS or ssh; without it, tcp, from the beginning, to the end of the run",
        layouts: &[],
        traffic: LISTED,
        slot: Slot::Flows(|it| &mut it.load.between),
    },
    Spec {
        name: "datagram_bytes",
        meaning: "payload of a full packet of cbr and vbr, in bytes",
        layouts: &[],
        traffic: LISTED,
        slot: Slot::Whole(16..=1_472, |it| &mut it.load.datagram_bytes),
    },
];
