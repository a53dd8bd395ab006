//! The data packets of one flow that wait for their acknowledgement.

use std::collections::VecDeque;
use std::net::IpAddr;

use wire::Instant;

use crate::header::before;

/// A cached data packet.
#[derive(Clone, Debug)]
pub(super) struct Entry<P> {
    /// Its first sequence number.
    pub(super) seq: u32,
    /// The one after its last; SYN and FIN count as one each.
    pub(super) end: u32,
    /// What it costs of the budget.
    pub(super) bytes: u32,
    /// The packet.
    pub(super) packet: P,
    /// The neighbour it was last sent to.
    pub(super) to: IpAddr,
    /// How many copies are between here and the MAC's verdict.
    pub(super) waiting: u8,
    /// When it last left for the MAC or, once none waits, the MAC.
    pub(super) at: Instant,
    /// Its rank among the packets of its flow that left the MAC.
    pub(super) order: u64,
    /// The neighbour was heard forwarding it since.
    pub(super) is_heard: bool,
    /// How often it was sent again from here.
    pub(super) resends: u8,
    /// How often the MAC has given it up in a row.
    pub(super) given_up: u8,
    /// It was sent again because the neighbour was not heard forwarding it, and still was not.
    pub(super) is_suspect: bool,
    /// The neighbour was not heard forwarding it, which was not believed.
    pub(super) is_doubted: bool,
    /// More than one copy has passed, so that no round trip is measured (Karn's rule).
    pub(super) is_repeated: bool,
}

impl<P> Entry<P> {
    /// A packet with these first sequence number and end, of which nothing has happened yet.
    pub(super) fn new((seq, end): (u32, u32), bytes: u32, packet: P, to: IpAddr) -> Self {
        Self {
            seq,
            end,
            bytes,
            packet,
            to,
            waiting: 0,
            at: Instant::ZERO,
            order: 0,
            is_heard: false,
            resends: 0,
            given_up: 0,
            is_suspect: false,
            is_doubted: false,
            is_repeated: false,
        }
    }

    /// Whether it has left the MAC, as far as is known.
    pub(super) fn has_left(&self) -> bool {
        self.waiting == 0
    }

    /// Whether it holds this sequence number.
    pub(super) fn holds(&self, seq: u32) -> bool {
        !before(seq, self.seq) && before(seq, self.end)
    }
}

/// Packets by sequence number. All lie within 2³⁰ of each other.
#[derive(Debug)]
pub(super) struct Cache<P> {
    entries: VecDeque<Entry<P>>,
    bytes: u32,
}

impl<P> Default for Cache<P> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), bytes: 0 }
    }
}

impl<P> Cache<P> {
    /// How many bytes the packets have.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// How many packets there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The packets in their order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry<P>> + ExactSizeIterator {
        self.entries.iter()
    }

    /// The packet at this place in the order.
    pub(super) fn get(&self, index: usize) -> Option<&Entry<P>> {
        self.entries.get(index)
    }

    /// The packet at this place in the order.
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Entry<P>> {
        self.entries.get_mut(index)
    }

    /// Where the packet with exactly these bytes is.
    pub(super) fn find(&self, seq: u32, end: u32) -> Option<usize> {
        let first = self.entries.partition_point(|it| before(it.seq, seq));
        let mut same = self.entries.range(first..).take_while(|it| it.seq == seq);
        same.position(|it| it.end == end).map(|offset| first + offset)
    }

    /// Where the first packet that holds a sequence number is.
    pub(super) fn holder(&self, seq: u32) -> Option<usize> {
        self.entries.iter().take_while(|it| !before(seq, it.seq)).position(|it| it.holds(seq))
    }

    /// Adds a packet. Those that it covers leave; returns how many.
    pub(super) fn insert(&mut self, entry: Entry<P>) -> u64 {
        let left = self.remove_within(entry.seq, entry.end, |_| ());
        self.bytes += entry.bytes;
        let place = self.entries.partition_point(|it| before(it.seq, entry.seq));
        self.entries.insert(place, entry);
        left
    }

    /// Takes out the packets that lie between two sequence numbers, shows each, and returns how many there were.
    pub(super) fn remove_within(
        &mut self,
        first: u32,
        after: u32,
        mut show: impl FnMut(&Entry<P>),
    ) -> u64 {
        let mut index = self.entries.partition_point(|it| before(it.seq, first));
        let mut count = 0;
        while let Some(it) = self.entries.get(index).filter(|it| before(it.seq, after)) {
            if before(after, it.end) {
                index += 1;
                continue;
            }
            show(it);
            self.remove(index);
            count += 1;
        }
        count
    }

    /// Takes out the packet at this place in the order.
    pub(super) fn remove(&mut self, index: usize) -> Option<Entry<P>> {
        let entry = self.entries.remove(index)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    /// Takes out the first packet if it ends at or before this sequence number.
    pub(super) fn pop_acked(&mut self, ack: u32) -> Option<Entry<P>> {
        let is_acked = self.entries.front().is_some_and(|it| !before(ack, it.end));
        if is_acked { self.remove(0) } else { None }
    }

    /// Takes out all packets, and returns how many there were.
    pub(super) fn clear(&mut self) -> u64 {
        let count = self.entries.len();
        self.entries.clear();
        self.bytes = 0;
        count as u64
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// Sequence numbers wrap within the tests.
    const BASE: u32 = u32::MAX - 99;

    fn entry(seq: u32, end: u32) -> Entry<()> {
        let range = (BASE.wrapping_add(seq), BASE.wrapping_add(end));
        Entry::new(range, end - seq, (), Ipv4Addr::LOCALHOST.into())
    }

    /// These packets, inserted in this order.
    fn cache(packets: &[(u32, u32)]) -> Cache<()> {
        let mut cache = Cache::default();
        packets.iter().for_each(|(seq, end)| assert_eq!(cache.insert(entry(*seq, *end)), 0));
        cache
    }

    fn held(cache: &Cache<()>) -> Vec<(u32, u32)> {
        let from = |number: u32| number.wrapping_sub(BASE);
        cache.iter().map(|it| (from(it.seq), from(it.end))).collect()
    }

    #[test]
    fn a_packet_is_found_by_both_its_ends() {
        let cache = cache(&[(150, 200), (0, 50), (50, 160), (50, 150)]);
        let find = |seq, end| cache.find(BASE.wrapping_add(seq), BASE.wrapping_add(end));
        let places: Vec<_> =
            held(&cache).into_iter().map(|(seq, end)| find(seq, end).unwrap()).collect();
        assert_eq!(places, [0, 1, 2, 3]);
        assert_eq!(held(&cache)[0], (0, 50));
        assert_eq!([find(0, 51), find(1, 50), find(200, 250)], [None; 3]);
    }

    #[test]
    fn the_first_packet_that_holds_a_number_is_its_holder() {
        let cache = cache(&[(10, 50), (50, 150), (100, 200)]);
        let holder = |seq| cache.holder(BASE.wrapping_add(seq));
        assert_eq!([9, 200, 201].map(holder), [None; 3]);
        assert_eq!([10, 49].map(holder), [Some(0); 2]);
        assert_eq!([50, 100, 149].map(holder), [Some(1); 3]);
        assert_eq!([150, 199].map(holder), [Some(2); 2]);
    }

    #[test]
    fn packets_that_a_new_one_covers_leave() {
        let mut cache = cache(&[(0, 50), (50, 100), (100, 150), (150, 200)]);
        assert_eq!(cache.insert(entry(50, 150)), 2);
        assert_eq!(held(&cache), [(0, 50), (50, 150), (150, 200)]);
        assert_eq!((cache.bytes(), cache.len()), (200, 3));
        assert_eq!(cache.insert(entry(60, 150)), 0, "it is covered, and covers none");
    }

    #[test]
    fn packets_between_two_numbers_leave_whole_and_are_shown() {
        let mut cache = cache(&[(0, 50), (50, 100), (100, 150), (150, 200)]);
        let mut shown = Vec::new();
        let (first, after) = (BASE.wrapping_add(1), BASE.wrapping_add(199));
        let count = cache.remove_within(first, after, |it| shown.push(it.seq.wrapping_sub(BASE)));
        assert_eq!((count, shown), (2, vec![50, 100]));
        assert_eq!((held(&cache), cache.bytes()), (vec![(0, 50), (150, 200)], 100));
    }

    #[test]
    fn an_acknowledged_packet_is_one_that_ends_there_or_before() {
        let mut cache = cache(&[(0, 50), (50, 150)]);
        let mut pop = |ack| cache.pop_acked(BASE.wrapping_add(ack)).is_some();
        assert_eq!(
            [49, 50, 51, 149, 150, 151].map(&mut pop),
            [false, true, false, false, true, false]
        );
        assert_eq!((cache.len(), cache.bytes(), cache.clear()), (0, 0, 0));
    }
}
