//! Packets that wait, each at a place that does not change while it waits.

use std::collections::VecDeque;
use std::net::IpAddr;

use wire::Instant;

use crate::table::Key;

/// A packet that waits.
#[derive(Debug)]
pub(super) struct Waiting<P> {
    pub(super) packet: P,
    /// The neighbour at the MAC that it goes to.
    pub(super) next: IpAddr,
    pub(super) bytes: u32,
    pub(super) since: Instant,
    /// The interlay node whose rate it obeys.
    pub(super) neighbour: Option<Key>,
    /// Its destination in the table, if there was room.
    pub(super) destination: Option<Key>,
    /// Its flow, if a newer ACK may replace it.
    pub(super) flow: Option<Key>,
}

/// A queue: first in, first out.
#[derive(Debug)]
pub(super) struct Queue<P> {
    packets: VecDeque<Waiting<P>>,
    /// How many have left: the place of the first packet.
    left: u64,
}

impl<P> Queue<P> {
    pub(super) fn new() -> Self {
        Self { packets: VecDeque::new(), left: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds a packet, and says at which place it is.
    pub(super) fn push(&mut self, packet: Waiting<P>) -> u64 {
        self.packets.push_back(packet);
        self.left + self.packets.len() as u64 - 1
    }

    /// The length of the first packet.
    pub(super) fn first_bytes(&self) -> Option<u32> {
        self.packets.front().map(|it| it.bytes)
    }

    /// Takes the first packet, and says at which place it was.
    pub(super) fn pop(&mut self) -> Option<(u64, Waiting<P>)> {
        let packet = self.packets.pop_front()?;
        self.left += 1;
        Some((self.left - 1, packet))
    }

    /// The packet at a place, if it is still there.
    pub(super) fn at(&mut self, place: u64) -> Option<&mut Waiting<P>> {
        let index = usize::try_from(place.checked_sub(self.left)?).ok()?;
        self.packets.get_mut(index)
    }
}
