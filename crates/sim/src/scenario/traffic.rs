//! What moves through the mesh.

use std::time::Duration;

use super::choice::Choice;

/// What moves through the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Clients ask for files of the origin, one after the other: [`Workload`](super::Workload).
    Files,
    /// Each receiver gets as much as TCP brings from the gateway.
    Tcp,
    /// Each receiver gets UDP packets from the gateway at a constant rate.
    Udp,
    /// Each receiver fetches a file from the gateway over TCP, thinks, and fetches again.
    Fetches,
}

impl Choice for Traffic {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Files, "files"),
        (Self::Tcp, "tcp"),
        (Self::Udp, "udp"),
        (Self::Fetches, "fetches"),
    ];
}

/// How much of it, where it goes on until the time is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// How long a run lasts.
    pub lasts: Duration,
    /// Flows to each receiver.
    pub flows: usize,
    /// From the start of a flow to the start of the next.
    pub stagger: Duration,
    /// Payload bits a second that each flow of UDP offers.
    pub offered_bps: u64,
    /// Mean time from the end of a fetch to the next; exponential.
    pub think: Duration,
}
