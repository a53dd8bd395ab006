//! The keys of routers' link planes.

use super::super::key::{Slot, Spec};

pub(in super::super) static KEYS: [Spec; 8] = [
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
        name: "thin_acks",
        meaning: "with pace \"on\": of a flow's waiting ACKs only the newest goes",
        layouts: &[],
        traffic: &[],
        slot: Slot::Flag(|it| &mut it.plane.thin_acks),
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
    Spec {
        name: "recover_timer",
        meaning: "what recovery's timer goes by: \"preset\", that of `recover`; \"esrto\" with β 1.5, or β from \"contention\" or the \"sender\"'s timeout; \"tcp\", as TCP's; or \"off\"",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.plane.timer),
    },
    Spec {
        name: "recover_notice",
        meaning: "what a router does that hears of a packet sent again: \"preset\", as `recover` says, \"evict\" it, or \"double\" its timeout",
        layouts: &[],
        traffic: &[],
        slot: Slot::Word(|it| &mut it.plane.on_notice),
    },
    Spec {
        name: "recover_kb",
        meaning: "memory of a router for packets that may be sent again, in KiB; 0: as `recover` says",
        layouts: &[],
        traffic: &[],
        slot: Slot::Whole(0..=1_048_576, |it| &mut it.plane.recover_kb),
    },
];
