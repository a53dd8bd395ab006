//! Reads chunk frames from a data connection.

use super::inbox::Inbox;
use bytes::Bytes;
use wire::peer::ChunkHead;

/// Reads chunk frames; holds at most one, of at most [`ChunkHead::TOTAL_MAX`] bytes.
#[derive(Default)]
pub struct ChunkReader {
    inbox: Inbox,
    head: Option<ChunkHead>,
}

/// The bytes are not a chunk frame.
#[derive(Debug, PartialEq, Eq)]
pub struct NoFrame;

impl ChunkReader {
    /// How many bytes of the current frame have not arrived yet; zero until its head is complete.
    pub fn lacks(&self) -> usize {
        self.head.map_or(0, |head| (head.length as usize).saturating_sub(self.inbox.begun()))
    }

    /// The next complete frame. If there is none, `None`; `input` is then used up.
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<(ChunkHead, Bytes)>, NoFrame> {
        let head = match self.head {
            Some(head) => head,
            None => {
                let Some(bytes) = self.inbox.take(input, ChunkHead::LENGTH) else {
                    return Ok(None);
                };
                let bytes = bytes[..].try_into().map_err(|_| NoFrame)?;
                let head = ChunkHead::decode(bytes).map_err(|_| NoFrame)?;
                self.head = Some(head);
                head
            }
        };
        let buffer = input.len();
        let Some(bytes) = self.inbox.take(input, head.length as usize) else { return Ok(None) };
        self.head = None;
        // A unit may be kept for long: a small one must not keep a large buffer alive.
        let is_large_part = bytes.len() * 2 > buffer;
        let bytes = if is_large_part { bytes } else { Bytes::copy_from_slice(&bytes) };
        Ok(Some((head, bytes)))
    }
}
