//! What link planes exchange with the MAC: frames, where they go, and what became of them.

use std::net::IpAddr;

use crate::Interlay;

/// What goes over the air to a neighbour: a packet, and the header of the interlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<P> {
    /// The last interlay node that the packet passed (WINE, section 2.3); routers without pacing leave it.
    pub interlay: Option<Interlay>,
    /// The packet.
    pub packet: P,
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The neighbour that routing has chosen.
    pub hop: IpAddr,
    /// Another neighbour that leads to the destination, if routing has one.
    pub other: Option<IpAddr>,
}

/// What the MAC says of a frame that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How it ended.
    pub outcome: Outcome,
    /// How often it was sent.
    pub tries: u8,
}

/// How a frame ended at the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The neighbour has acknowledged it.
    Acked,
    /// No try was acknowledged. The neighbour may have it all the same.
    GivenUp,
    /// The MAC's queue was full.
    QueueFull,
}
