//! What lies between the engine and the socket of one link: what may be read, and what is to be written.

use super::READ_MAX;
use crate::output::LinkOutput;
use bytes::{Buf as _, Bytes};
use std::collections::VecDeque;
use std::time::Duration;
use wire::Instant;

/// What is too little to be worth reading is read after so long, for no more may come. Longer than Linux
/// keeps an acknowledgement back, so that a sender who waits for one is not kept waiting by us.
const GATHER: Duration = Duration::from_millis(50);

/// What the engine wants of one link. Lengths are in bytes.
#[derive(Debug, Default)]
pub struct LinkBuffer {
    granted: u64,
    /// Less than this is left unread for a while; said anew for each read.
    gathers: u64,
    /// Until when what is too little is left unread.
    gathering: Option<Instant>,
    queue: VecDeque<Bytes>,
    turns_bulk: bool,
    is_hung_up: bool,
}

impl LinkBuffer {
    /// Takes in what the engine says of this link. Whether there may be something to do at the socket.
    pub fn take(&mut self, output: LinkOutput) -> bool {
        match output {
            LinkOutput::Write(_, bytes) => self.queue.push_back(bytes),
            LinkOutput::Receive(_, bytes) => self.granted = self.granted.saturating_add(bytes),
            LinkOutput::BulkData(_) => self.turns_bulk = true,
            LinkOutput::Hangup(_) => self.is_hung_up = true,
            LinkOutput::ReadThreshold(_, bytes) => {
                // This is about what has not come.
                self.gathers = bytes;
                return false;
            }
            LinkOutput::Connect(..) => return false,
        }
        true
    }

    /// Whether units pass by this link from now on, so that a driver wants full packets, and few; said once.
    pub fn turns_bulk(&mut self) -> bool {
        std::mem::take(&mut self.turns_bulk)
    }

    /// Whether the engine has hung up: what is written is still to be sent, and nothing is told any more.
    pub fn is_hung_up(&self) -> bool {
        self.is_hung_up
    }

    /// Whether all was written after a hang-up. Then the socket is to say that no more comes, and what still comes is
    /// read and thrown away until the other side ends too: a socket that is closed while it has unread bytes takes
    /// back what it sent. Before that nothing is read.
    pub fn is_parting(&self) -> bool {
        self.is_hung_up && self.is_written()
    }

    /// As much may be read at one time; nothing, if the engine takes nothing now, not even the end.
    pub fn most(&self) -> u64 {
        self.granted.min(READ_MAX as u64)
    }

    /// Less than this is not worth reading, while more may come.
    pub fn least(&self) -> u64 {
        self.gathers.min(self.granted)
    }

    /// So much lies unread, which may be nothing after a read. Whether that is left there for now: it is less
    /// than [`least`](Self::least), and more may come. The end is read at once, and what came before it.
    pub fn leaves(&mut self, now: Instant, unread: u64, is_ended: bool) -> bool {
        !is_ended && unread < self.least() && now < *self.gathering.get_or_insert(now + GATHER)
    }

    /// When what was left is to be read, however little it is.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.gathering
    }

    /// So much was read, or there was nothing to read.
    pub fn received(&mut self, bytes: u64) {
        self.gathering = None;
        if bytes > 0 {
            self.granted = self.granted.saturating_sub(bytes);
            self.gathers = 0;
        }
    }

    /// What is to be written, piece by piece.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.queue.iter()
    }

    /// Whether nothing is to be written.
    pub fn is_written(&self) -> bool {
        self.queue.is_empty()
    }

    /// So many bytes were written.
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
