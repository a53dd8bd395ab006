//! Bytes that wait to be written to one connection.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Bytes reserved at a time in the buffer for copied bytes; the head of a chunk frame takes 50.
const OWN_ROOM: usize = 2048;

/// A queue of bytes. Content is queued by reference; small writes are collected in one buffer.
#[derive(Default)]
pub struct Outbox {
    queue: VecDeque<Bytes>,
    own: BytesMut,
    bytes: usize,
}

impl Outbox {
    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Appends without copying.
    pub fn push(&mut self, bytes: Bytes) {
        if !self.own.is_empty() {
            self.queue.push_back(self.own.split().freeze());
        }
        self.bytes += bytes.len();
        self.queue.push_back(bytes);
    }

    /// Appends what `write` appends to the buffer that it is given.
    pub fn append<T>(&mut self, write: impl FnOnce(&mut BytesMut) -> T) -> T {
        if self.own.capacity() == 0 {
            self.own.reserve(OWN_ROOM);
        }
        let before = self.own.len();
        let result = write(&mut self.own);
        self.bytes += self.own.len() - before;
        result
    }

    /// Takes the next bytes, at most `room` of them.
    pub fn pop(&mut self, room: u64) -> Option<Bytes> {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        if room == 0 || self.bytes == 0 {
            return None;
        }
        let next = match self.queue.front_mut() {
            Some(front) if front.len() > room => front.split_to(room),
            Some(_) => self.queue.pop_front().unwrap_or_default(),
            None => {
                let length = self.own.len().min(room);
                self.own.split_to(length).freeze()
            }
        };
        self.bytes -= next.len();
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_room_too() {
        let mut outbox = Outbox::default();
        outbox.append(|out| out.extend_from_slice(b"ab"));
        outbox.append(|out| out.extend_from_slice(b"cd"));
        outbox.push(Bytes::from_static(b"efg"));
        outbox.append(|out| out.extend_from_slice(b"h"));
        let mut written = Vec::new();
        assert_eq!(outbox.pop(0), None);
        for room in [3, 1, 1, 9, 9, 9] {
            let next = outbox.pop(room);
            assert!(next.as_ref().is_none_or(|it| (1..=room).contains(&(it.len() as u64))));
            written.extend(next.unwrap_or_default());
        }
        assert_eq!(written, b"abcdefgh");
        assert_eq!(outbox.len(), 0);
    }
}
