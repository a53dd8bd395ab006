//! The buffer between the engine and one link's socket: credit to read, and bytes to write.

use super::READ_MAX;
use crate::output::LinkOutput;
use bytes::{Buf as _, Bytes};
use std::collections::VecDeque;
use std::time::Duration;
use wire::Instant;

/// Unread bytes below the read threshold are read after this long, since no more may arrive. It is
/// longer than Linux delays an acknowledgement. A sender that waits for an acknowledgement thus does
/// not wait for our read.
const GATHER: Duration = Duration::from_millis(50);

/// The engine's pending outputs for one link. Lengths are in bytes.
#[derive(Debug, Default)]
pub struct LinkBuffer {
    granted: u64,
    /// The read threshold: fewer bytes than this stay unread for up to [`GATHER`]. The engine sets the
    /// threshold before each read.
    gathers: u64,
    /// Until when bytes below the read threshold stay unread.
    gathering: Option<Instant>,
    queue: VecDeque<Bytes>,
    turns_bulk: bool,
    is_hung_up: bool,
}

impl LinkBuffer {
    /// Applies an output of the engine for this link. True if the driver must look at the socket.
    pub fn take(&mut self, output: LinkOutput) -> bool {
        match output {
            LinkOutput::Write(_, bytes) => self.queue.push_back(bytes),
            LinkOutput::Receive(_, bytes) => self.granted = self.granted.saturating_add(bytes),
            LinkOutput::BulkData(_) => self.turns_bulk = true,
            LinkOutput::Hangup(_) => self.is_hung_up = true,
            LinkOutput::ReadThreshold(_, bytes) => {
                // The threshold is for the next read: the socket needs no attention now.
                self.gathers = bytes;
                return false;
            }
            LinkOutput::Connect(..) => return false,
        }
        true
    }

    /// True once, when the link begins to carry units: the driver then prefers few and full packets.
    pub fn turns_bulk(&mut self) -> bool {
        std::mem::take(&mut self.turns_bulk)
    }

    /// Whether the engine has hung up. Queued bytes are still sent; the engine gets no more inputs of
    /// this link.
    pub fn is_hung_up(&self) -> bool {
        self.is_hung_up
    }

    /// Whether the engine has hung up and all queued bytes are written. The driver then shuts down the
    /// sending side, and reads and discards until the peer ends its side too. A socket that is closed
    /// with unread bytes resets the connection, and sent bytes can be lost. After a hang-up the driver
    /// reads nothing before this.
    pub fn is_parting(&self) -> bool {
        self.is_hung_up && self.is_written()
    }

    /// The most bytes to read at one time. Zero: the engine accepts no input of this link now, not even
    /// its end.
    pub fn most(&self) -> u64 {
        self.granted.min(READ_MAX as u64)
    }

    /// Fewer bytes than this are not worth a read while more may come.
    pub fn least(&self) -> u64 {
        self.gathers.min(self.granted)
    }

    /// Whether to leave `unread` bytes (zero is possible after a read) in the socket for now: they are
    /// fewer than [`least`](Self::least), and more may arrive. At the end of the stream, they are read
    /// at once.
    pub fn leaves(&mut self, now: Instant, unread: u64, is_ended: bool) -> bool {
        !is_ended && unread < self.least() && now < *self.gathering.get_or_insert(now + GATHER)
    }

    /// When unread bytes must be read even if they are below the threshold.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.gathering
    }

    /// This many bytes were read; zero if there was nothing to read.
    pub fn received(&mut self, bytes: u64) {
        self.gathering = None;
        if bytes > 0 {
            self.granted = self.granted.saturating_sub(bytes);
            self.gathers = 0;
        }
    }

    /// The bytes to write, in pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.queue.iter()
    }

    /// Whether there is nothing to write.
    pub fn is_written(&self) -> bool {
        self.queue.is_empty()
    }

    /// This many bytes were written.
    pub fn wrote(&mut self, mut bytes: usize) {
        while let Some(front) = self.queue.front_mut() {
            if front.len() > bytes {
                return front.advance(bytes);
            }
            bytes -= front.len();
            self.queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkId;

    const ID: LinkId = LinkId::dialled(0);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn no_more_is_read_than_was_granted() {
        let mut buffer = LinkBuffer::default();
        assert_eq!(buffer.most(), 0);
        let most = READ_MAX as u64;
        assert!(buffer.take(LinkOutput::Receive(ID, most + 7)));
        assert_eq!(buffer.most(), most);
        buffer.received(most);
        assert_eq!(buffer.most(), 7);
        assert!(buffer.take(LinkOutput::Receive(ID, u64::MAX)));
        assert_eq!(buffer.most(), most);
    }

    #[test]
    fn what_is_too_little_is_left_for_one_read_and_not_for_long() {
        let mut buffer = LinkBuffer::default();
        assert!(buffer.take(LinkOutput::Receive(ID, 2000)));
        assert!(
            !buffer.take(LinkOutput::ReadThreshold(ID, 3000)),
            "nothing is to be done for that"
        );
        assert_eq!((buffer.least(), buffer.poll_timeout()), (2000, None), "no more can come");
        assert!(!buffer.leaves(at(4), 2000, false) && !buffer.leaves(at(4), 1999, true));
        assert!(buffer.leaves(at(5), 0, false));
        assert!(buffer.leaves(at(30), 1999, false));
        let until = buffer.poll_timeout();
        assert_eq!(until, Some(at(55)), "what has come meanwhile makes it no longer");
        assert!(!buffer.leaves(at(55), 1, false));
        buffer.received(0);
        assert_eq!((buffer.least(), buffer.poll_timeout()), (2000, None));
        assert!(buffer.leaves(at(60), 1999, false));
        buffer.received(1);
        assert_eq!((buffer.least(), buffer.poll_timeout()), (0, None));
        assert!(!buffer.leaves(at(61), 0, false));
    }

    #[test]
    fn what_is_written_goes_out_in_order_however_it_is_taken() {
        let mut buffer = LinkBuffer::default();
        for piece in ["abc", "", "de", "f"] {
            assert!(buffer.take(LinkOutput::Write(ID, Bytes::from(piece))));
        }
        let left =
            |buffer: &LinkBuffer| buffer.pieces().map(|it| &it[..]).collect::<Vec<_>>().concat();
        for (taken, expected) in [(0, "abcdef"), (2, "cdef"), (1, "def"), (2, "f")] {
            buffer.wrote(taken);
            assert_eq!(left(&buffer), expected.as_bytes());
        }
        assert!(!buffer.is_written());
        buffer.wrote(1);
        assert!(buffer.is_written());
    }

    #[test]
    fn a_hang_up_leaves_what_was_written() {
        let mut buffer = LinkBuffer::default();
        assert!(buffer.take(LinkOutput::Write(ID, Bytes::from("bye"))));
        assert!(buffer.take(LinkOutput::BulkData(ID)) && buffer.take(LinkOutput::Hangup(ID)));
        assert!(buffer.is_hung_up() && !buffer.is_written() && !buffer.is_parting());
        buffer.wrote(3);
        assert!(buffer.is_parting());
        assert!(buffer.turns_bulk() && !buffer.turns_bulk());
    }
}
