//! The table of packets between their input and their `Done`.

use crate::output::{Destination, Station};

/// The key of a packet in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketId(u32);

/// A packet of the network layer.
#[derive(Clone, Debug)]
pub struct Packet<F> {
    pub from: Station,
    pub to: Destination,
    pub bytes: u32,
    pub payload: F,
}

/// All packets that are not yet done.
#[derive(Clone, Debug)]
pub struct Packets<F> {
    places: Vec<Option<Packet<F>>>,
    free: Vec<PacketId>,
}

impl<F> Packets<F> {
    pub fn with_capacity(packets: usize) -> Self {
        Self { places: Vec::with_capacity(packets), free: Vec::with_capacity(packets) }
    }

    pub fn insert(&mut self, packet: Packet<F>) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.places[id.0 as usize] = Some(packet);
            return id;
        }
        let id = u32::try_from(self.places.len()).expect("queues bound the packets");
        self.places.push(Some(packet));
        PacketId(id)
    }

    pub fn get(&self, id: PacketId) -> &Packet<F> {
        self.places[id.0 as usize].as_ref().expect("ids are given back once, by remove")
    }

    pub fn remove(&mut self, id: PacketId) -> Packet<F> {
        self.free.push(id);
        self.places[id.0 as usize].take().expect("ids are given back once, by remove")
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.places.capacity() + self.free.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let packet =
            |payload| Packet { from: Station(0), to: Destination::Broadcast, bytes: 1, payload };
        let mut packets = Packets::with_capacity(2);
        let (a, b) = (packets.insert(packet('a')), packets.insert(packet('b')));
        assert_eq!((packets.get(a).payload, packets.remove(b).payload), ('a', 'b'));
        let c = packets.insert(packet('c'));
        assert_eq!((c, packets.get(c).payload), (b, 'c'));
    }
}
