//! Data that is written but not yet acknowledged, in the pieces in which it was written.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

/// Largest number of pieces, however small they are.
const PIECES_MAX: usize = 4096;

/// A queue of bytes that begins with the first unacknowledged byte.
#[derive(Clone, Debug, Default)]
pub struct SendBuffer {
    capacity: usize,
    len: usize,
    pieces: VecDeque<Bytes>,
    /// Index and start of the piece that was found last. The next slice usually begins there.
    found: (usize, usize),
}

impl SendBuffer {
    /// An empty one.
    pub fn new(capacity: u32) -> Self {
        Self { capacity: capacity as usize, ..Self::default() }
    }

    /// Number of bytes in the buffer.
    pub fn len(&self) -> u32 {
        self.len as u32
    }

    /// How many more bytes fit.
    pub fn room(&self) -> usize {
        if self.pieces.len() < PIECES_MAX { self.capacity - self.len } else { 0 }
    }

    /// Takes as many bytes off the front of `data` as fit, and returns their number.
    pub fn push(&mut self, data: &mut Bytes) -> usize {
        let taken = data.len().min(self.room());
        if taken > 0 {
            self.pieces.push_back(data.split_to(taken));
            self.len += taken;
        }
        taken
    }

    /// `len` bytes from `offset` on, which must be in the buffer. They are copied only if they span pieces.
    pub fn slice(&mut self, offset: u32, len: u32) -> Bytes {
        let (offset, len) = (offset as usize, len as usize);
        let (mut index, mut start) = self.found;
        if offset < start {
            (index, start) = (0, 0);
        }
        while start + self.pieces[index].len() <= offset {
            start += self.pieces[index].len();
            index += 1;
        }
        self.found = (index, start);
        let (piece, from) = (&self.pieces[index], offset - start);
        if from + len <= piece.len() {
            return piece.slice(from..from + len);
        }
        let mut whole = BytesMut::with_capacity(len);
        whole.extend_from_slice(&piece[from..]);
        for piece in self.pieces.range(index + 1..) {
            let more = piece.len().min(len - whole.len());
            whole.extend_from_slice(&piece[..more]);
            if whole.len() == len {
                break;
            }
        }
        whole.freeze()
    }

    /// Removes the first `count` bytes, which are acknowledged. There must be as many.
    pub fn discard(&mut self, count: u32) {
        let mut left = count as usize;
        self.len -= left;
        let (mut index, mut start) = self.found;
        while let Some(front) = self.pieces.front_mut() {
            if left < front.len() {
                front.advance(left);
                // This piece now begins later, and all pieces behind it move forward.
                start = if index == 0 { 0 } else { start - left };
                break;
            }
            left -= front.len();
            (index, start) = if index == 0 { (0, 0) } else { (index - 1, start - front.len()) };
            self.pieces.pop_front();
        }
        self.found = (index, start);
    }

    /// Drops all data.
    pub fn clear(&mut self) {
        *self = Self { capacity: self.capacity, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_are_given_out_without_copying_unless_a_slice_spans_them() {
        let mut buffer = SendBuffer::new(10);
        let mut first = Bytes::from_static(b"hello ");
        let place = first.as_ptr();
        assert_eq!(buffer.push(&mut first), 6);
        let mut second = Bytes::from_static(b"world");
        assert_eq!((buffer.push(&mut second), &second[..]), (4, &b"d"[..]));
        assert_eq!(buffer.slice(0, 4).as_ptr(), place);
        assert_eq!(buffer.slice(3, 5), &b"lo wo"[..]);
        buffer.discard(7);
        assert_eq!((buffer.len(), buffer.room()), (3, 7));
        assert_eq!(buffer.slice(0, 3), &b"orl"[..]);
    }

    #[test]
    fn tiny_pieces_are_limited_too() {
        let mut buffer = SendBuffer::new(1 << 20);
        while buffer.push(&mut Bytes::from_static(b"x")) > 0 {}
        assert_eq!(buffer.len() as usize, PIECES_MAX);
        buffer.discard(1);
        assert_eq!(buffer.push(&mut Bytes::from_static(b"x")), 1);
    }

    proptest! {
        /// Behaves like a plain vector of bytes.
        #[test]
        fn a_buffer_is_a_row_of_bytes(steps in prop::collection::vec((0..3, 0..40u32, 0..40u32), 1..200)) {
            let mut buffer = SendBuffer::new(100);
            let mut plain = Vec::new();
            let mut written = 0u8;
            for (what, a, b) in steps {
                let len = plain.len() as u32;
                match what {
                    0 => {
                        let piece: Vec<u8> = (0..a).map(|i| written.wrapping_add(i as u8)).collect();
                        let taken = buffer.push(&mut Bytes::from(piece.clone()));
                        prop_assert_eq!(taken, piece.len().min(100 - plain.len()));
                        plain.extend_from_slice(&piece[..taken]);
                        written = written.wrapping_add(taken as u8);
                    }
                    1 if len > 0 => {
                        let from = a % len;
                        let count = 1 + b % (len - from);
                        let range = from as usize..(from + count) as usize;
                        prop_assert_eq!(&buffer.slice(from, count)[..], &plain[range]);
                    }
                    _ => {
                        buffer.discard(a.min(len));
                        plain.drain(..a.min(len) as usize);
                    }
                }
                prop_assert_eq!(buffer.len() as usize, plain.len());
            }
        }
    }
}
