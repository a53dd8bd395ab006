//! The keys of routers' link planes.

use super::super::key::{Slot, Spec};

pub(in super::super) static KEYS: [Spec; 4] = [
    Spec {
        name: "pace",
        meaning: "pacing of packets under IP: \"off\", \"wine\" as published, or \"on\", Hearsay's",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.plane.pacing),
    },
    Spec {
        name: "interlay",
        meaning: "routers that pace; if empty, all",
        layouts: &[],
        traffic: &[],
        slot: Slot::Movers(|it| &mut it.plane.interlay),
    },
    Spec {
        name: "recover",
        meaning: "recovery of lost TCP packets under IP: \"off\", \"inpcm\" as published, or \"on\", Hearsay's",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.plane.recovering),
    },
    Spec {
        name: "recover_at",
        meaning: "routers that recover; if empty, all",
        layouts: &[],
        traffic: &[],
        slot: Slot::Movers(|it| &mut it.plane.recover_at),
    },
];
