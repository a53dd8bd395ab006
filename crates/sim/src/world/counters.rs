//! The counters of a world.

use crate::net::{Body, Packet};

/// Lost packets, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// All transmissions on a hop failed.
    pub retries: u64,
    /// The queue was full at the first station of the route.
    pub queue_source: u64,
    /// The queue was full at a later station.
    pub queue_relays: u64,
    /// The queue of a wire was full.
    pub wires: u64,
    /// There was no route to the destination.
    pub no_route: u64,
    /// A station lost it above its MAC, which had acknowledged it (`loss_above_mac`).
    pub above_mac: u64,
}

/// Counters, which only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Lost packets.
    pub drops: Drops,
    /// Number of events: steps of the loop, frames that stations received, packets that the medium has
    /// finished, and packets that machines received.
    pub events: u64,
    /// How often routes changed.
    pub reroutes: u64,
    /// IP packets that were on the air at least once, counted at each hop.
    pub packets_sent: u64,
    /// Of these, those with a UDP datagram.
    pub datagrams_sent: u64,
}

impl Counters {
    /// Counts a packet that the medium has finished after this many transmissions: one that found the queue
    /// full was never on the air.
    pub(super) fn count(&mut self, packet: &Packet, tries: u8) {
        let is_datagram = tries > 0 && matches!(packet.body, Body::Udp(_));
        self.packets_sent += u64::from(tries > 0);
        self.datagrams_sent += u64::from(is_datagram);
    }
}
