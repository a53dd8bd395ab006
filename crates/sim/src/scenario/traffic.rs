//! The kinds of traffic.

use std::time::Duration;

use super::choice::Choice;
use super::flows::FlowWish;

/// The kind of traffic in the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Clients request files of the origin: [`Workload`](super::Workload).
    Files,
    /// A TCP flow from the gateway to each receiver, as fast as TCP allows.
    Tcp,
    /// A UDP flow from the gateway to each receiver at a constant rate.
    Udp,
    /// Flows between any routers, listed one by one: [`ListedFlow`](super::ListedFlow).
    Flows,
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
            Self::Tcp | Self::Udp | Self::Flows | Self::Fetches => false,
        }
    }
}

impl Choice for Traffic {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Files, "files"),
        (Self::Tcp, "tcp"),
        (Self::Udp, "udp"),
        (Self::Flows, "flows"),
        (Self::Fetches, "fetches"),
        (Self::Pages, "pages"),
    ];
}

/// The values of the keys about flows, fetches and their times.
#[derive(Clone, Debug)]
pub(super) struct LoadKeys {
    pub seconds: f64,
    pub flows: u64,
    pub between: Vec<FlowWish>,
    pub datagram_bytes: u64,
    pub offered_mbps: f64,
    pub think_s: f64,
    pub stagger_s: f64,
}

impl Default for LoadKeys {
    fn default() -> Self {
        Self {
            seconds: 30.0,
            flows: 1,
            between: Vec::new(),
            datagram_bytes: 1460,
            offered_mbps: 0.0,
            think_s: 1.0,
            stagger_s: 0.0,
        }
    }
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
    /// Payload of a full packet of a listed flow over UDP, in bytes.
    pub datagram_bytes: usize,
    /// Mean think time from the end of a fetch to the next; the distribution is exponential.
    pub think: Duration,
}
