//! Received data that is not yet read, in order or after a gap.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};

use super::seq::{ahead, before, earlier, later};

/// Largest number of pieces, in order and out of order together, however small they are.
const PIECES_MAX: usize = 4096;

/// Bytes of one sequence, in the pieces in which they arrived.
#[derive(Clone, Debug)]
pub struct ReceiveBuffer {
    capacity: u32,
    next: u32,
    len: u32,
    ready: VecDeque<Bytes>,
    /// Pieces after a gap, by sequence number; no two overlap, and none begins at `next`.
    early: Vec<(u32, Bytes)>,
}

/// Where a piece fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was the next one, and none waited after it.
    Next,
    /// It filled a gap before other pieces.
    FilledGap,
    /// It lies after a gap, or was dropped.
    Early,
}

impl ReceiveBuffer {
    /// An empty buffer that expects the byte with this sequence number.
    pub fn new(capacity: u32, next: u32) -> Self {
        Self { capacity, next, len: 0, ready: VecDeque::new(), early: Vec::new() }
    }

    /// Sequence number of the next missing byte.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Skips a sequence number that has no byte: that of a FIN.
    pub fn skip(&mut self) {
        self.next = self.next.wrapping_add(1);
    }

    /// How many bytes can be read.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The window: how many bytes after `next` fit.
    pub fn room(&self) -> u32 {
        self.capacity - self.len
    }

    /// Takes a piece that lies inside the window: it begins at `next` or later, and fits.
    pub fn insert(&mut self, seq: u32, piece: Bytes) -> Arrival {
        if seq != self.next || self.ready.len() >= PIECES_MAX {
            self.keep(seq, piece);
            return Arrival::Early;
        }
        self.append(piece);
        if self.early.is_empty() {
            return Arrival::Next;
        }
        self.join();
        Arrival::FilledGap
    }

    /// The first data of this range that has arrived before.
    pub fn known(&self, seq: u32, len: u32) -> Option<(u32, u32)> {
        let end = seq.wrapping_add(len);
        if before(seq, self.next) {
            return Some((seq, earlier(end, self.next))).filter(|_| len > 0);
        }
        let first = self.early.iter().find(|it| before(seq, end_of(it)) && before(it.0, end))?;
        let start = later(seq, first.0);
        let (_, after) = self.block_at(start)?;
        Some((start, earlier(end, after)))
    }

    /// The block of pieces after a gap that holds the byte with this sequence number, as far as they follow on
    /// each other.
    pub fn block_at(&self, seq: u32) -> Option<(u32, u32)> {
        let after = self.early.partition_point(|it| !before(seq, it.0));
        let (mut first, mut last) = (after.checked_sub(1)?, after - 1);
        if !before(seq, end_of(&self.early[first])) {
            return None;
        }
        while first > 0 && end_of(&self.early[first - 1]) == self.early[first].0 {
            first -= 1;
        }
        while last + 1 < self.early.len() && end_of(&self.early[last]) == self.early[last + 1].0 {
            last += 1;
        }
        Some((self.early[first].0, end_of(&self.early[last])))
    }

    fn append(&mut self, piece: Bytes) {
        self.next = self.next.wrapping_add(piece.len() as u32);
        self.len += piece.len() as u32;
        self.ready.push_back(piece);
    }

    /// Stores those bytes of a piece after a gap that are not stored yet.
    fn keep(&mut self, mut seq: u32, mut piece: Bytes) {
        let mut place = self.early.partition_point(|(other, _)| before(*other, seq));
        if let Some((other, kept)) = self.early[..place].last() {
            let known = ahead(seq, other.wrapping_add(kept.len() as u32));
            piece.advance(piece.len().min(known as usize));
            seq = seq.wrapping_add(known);
        }
        while !piece.is_empty() && self.early.len() < PIECES_MAX && seq != self.next {
            let Some((other, known)) = self.early.get(place).map(|it| (it.0, it.1.len())) else {
                self.early.push((seq, piece));
                return;
            };
            let gap = ahead(seq, other) as usize;
            if gap > 0 {
                let part = piece.split_to(piece.len().min(gap));
                self.early.insert(place, (seq, part));
                place += 1;
            }
            seq = other.wrapping_add(known as u32);
            piece.advance(piece.len().min(known));
            place += 1;
        }
    }

    /// Moves pieces that now follow in order to the readable ones.
    fn join(&mut self) {
        let mut joined = 0;
        while let Some((seq, piece)) = self.early.get_mut(joined)
            && !before(self.next, *seq)
        {
            let known = ahead(*seq, self.next) as usize;
            let mut piece = std::mem::take(piece);
            if known < piece.len() {
                piece.advance(known);
                self.append(piece);
            }
            joined += 1;
        }
        self.early.drain(..joined);
    }

    /// The next bytes, at most `max`.
    pub fn read(&mut self, max: usize) -> Option<Bytes> {
        let front = self.ready.front_mut().filter(|_| max > 0)?;
        let piece = if front.len() <= max { self.ready.pop_front()? } else { front.split_to(max) };
        self.len -= piece.len() as u32;
        Some(piece)
    }

    /// Drops all data.
    pub fn clear(&mut self) {
        *self = Self::new(self.capacity, self.next);
    }

    /// Number of pieces, for tests of the limit.
    #[cfg(test)]
    pub fn pieces(&self) -> usize {
        self.ready.len() + self.early.len()
    }
}

/// The sequence number after a piece.
fn end_of((seq, piece): &(u32, Bytes)) -> u32 {
    seq.wrapping_add(piece.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(buffer: &mut ReceiveBuffer) -> Vec<u8> {
        std::iter::from_fn(|| buffer.read(7)).flatten().collect()
    }

    #[test]
    fn a_gap_holds_back_what_is_behind_it() {
        let mut buffer = ReceiveBuffer::new(100, u32::MAX);
        assert_eq!(buffer.insert(2, Bytes::from_static(b"def")), Arrival::Early);
        assert_eq!((buffer.len(), buffer.next()), (0, u32::MAX));
        assert_eq!(buffer.insert(u32::MAX, Bytes::from_static(b"abc")), Arrival::FilledGap);
        assert_eq!((buffer.len(), buffer.next(), buffer.room()), (6, 5, 94));
        assert_eq!(buffer.insert(5, Bytes::from_static(b"g")), Arrival::Next);
        assert_eq!(all(&mut buffer), b"abcdefg");
        assert_eq!(buffer.room(), 100);
    }

    #[test]
    fn tiny_pieces_are_limited_and_never_make_a_hole() {
        let mut buffer = ReceiveBuffer::new(1 << 20, 0);
        for seq in 0..3 * PIECES_MAX as u32 {
            buffer.insert(2 * seq, Bytes::from_static(b"x"));
        }
        assert!(buffer.pieces() <= 2 * PIECES_MAX);
        let mut buffer = ReceiveBuffer::new(1 << 20, 0);
        for seq in 0..3 * PIECES_MAX as u32 {
            buffer.insert(seq, Bytes::from_static(b"x"));
        }
        assert_eq!((buffer.next(), buffer.len()), (PIECES_MAX as u32, PIECES_MAX as u32));
        buffer.read(1);
        assert_eq!(buffer.insert(buffer.next(), Bytes::from_static(b"x")), Arrival::FilledGap);
    }

    proptest! {
        /// The reader gets what was sent, in any order of arriving and overlapping pieces.
        #[test]
        fn pieces_in_any_order_give_the_sequence(
            start: u32,
            pieces in prop::collection::vec((0..60u32, 1..20u32), 1..100),
        ) {
            let sent: Vec<u8> = (0..80).collect();
            let mut buffer = ReceiveBuffer::new(80, start);
            let mut known = [false; 80];
            for (from, len) in pieces {
                let first = ahead(start, buffer.next()).max(from);
                if first < from + len {
                    let range = first as usize..(from + len) as usize;
                    let twice = range.clone().find(|at| known[*at]).map(|first| {
                        let end = (first..range.end).find(|at| !known[*at]).unwrap_or(range.end);
                        [first, end].map(|at| start.wrapping_add(at as u32)).into()
                    });
                    let seq = start.wrapping_add(first);
                    prop_assert_eq!(buffer.known(seq, range.len() as u32), twice);
                    known[range.clone()].fill(true);
                    buffer.insert(start.wrapping_add(first), Bytes::copy_from_slice(&sent[range]));
                }
                prop_assert!(buffer.pieces() <= 80);
                let early: usize = buffer.early.iter().map(|(_, piece)| piece.len()).sum();
                prop_assert_eq!(early + buffer.len() as usize, known.iter().filter(|it| **it).count());
            }
            let ready = known.iter().take_while(|it| **it).count();
            prop_assert_eq!(all(&mut buffer), &sent[..ready]);
        }
    }
}
