//! The kinds of traffic.

use std::time::Duration;

use super::choice::Choice;

/// The kind of traffic in the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Clients request files of the origin: [`Workload`](super::Workload).
    Files,
    /// A TCP flow from the gateway to each receiver, as fast as TCP allows.
    Tcp,
    /// A UDP flow from the gateway to each receiver at a constant rate.
    Udp,
    /// Each receiver fetches a file from the gateway over TCP, thinks, and fetches again.
    Fetches,
    /// Clients read pages of the origin's files: [`Browsing`](super::Browsing).
    Pages,
}

impl Traffic {
    /// Whether clients behind routers request files of the origin.
    pub fn is_of_origin(self) -> bool {
        match self {
            Self::Files | Self::Pages => true,
            Self::Tcp | Self::Udp | Self::Fetches => false,
        }
    }
}

impl Choice for Traffic {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Files, "files"),
        (Self::Tcp, "tcp"),
        (Self::Udp, "udp"),
        (Self::Fetches, "fetches"),
        (Self::Pages, "pages"),
    ];
}

/// The flows or fetches of traffic that lasts until the run ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Duration of a run.
    pub lasts: Duration,
    /// Flows to each receiver.
    pub flows: usize,
    /// Time from the start of a flow to the start of the next.
    pub stagger: Duration,
    /// Rate of each UDP flow, in bits of payload per second.
    pub offered_bps: u64,
    /// Mean think time from the end of a fetch to the next; the distribution is exponential.
    pub think: Duration,
}
