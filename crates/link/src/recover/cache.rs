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
