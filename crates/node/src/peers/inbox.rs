//! Bytes received over one connection, until they make a complete frame.

use bytes::Bytes;

/// The first bytes of a frame, or of another item of known length, that is not complete yet.
#[derive(Default)]
pub struct Inbox(Vec<u8>);

/// A frame of a control connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message of Noise.
    Message(Bytes),
    /// The code of a refusal, in clear.
    Refusal(u8),
}

/// A frame is longer than it may be at this stage.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl Inbox {
    /// The next `length` bytes: a slice of `input` if they arrived in one piece. Until all have arrived,
    /// `None`; `input` is then used up, and the next call must be for the same length.
    pub fn take(&mut self, input: &mut Bytes, length: usize) -> Option<Bytes> {
        if self.0.is_empty() && input.len() >= length {
            return Some(input.split_to(length));
        }
        self.0.reserve_exact(length.saturating_sub(self.0.len()));
        let missing = length.saturating_sub(self.0.len()).min(input.len());
        self.0.extend_from_slice(&input.split_to(missing));
        (self.0.len() == length).then(|| Bytes::from(std::mem::take(&mut self.0)))
    }

    /// How many bytes of the incomplete item have arrived.
    pub fn begun(&self) -> usize {
        self.0.len()
    }

    /// The next frame; `None` until it is complete. Its message has at most `max` bytes.
    pub fn frame(&mut self, input: &mut Bytes, max: usize) -> Result<Option<Frame>, TooLong> {
        let begun = self.0.len();
        let at = |i: usize| self.0.get(i).or_else(|| input.get(i.checked_sub(begun)?)).copied();
        let (Some(high), Some(low)) = (at(0), at(1)) else {
            self.0.extend_from_slice(&input.split_to(input.len()));
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length > max {
            return Err(TooLong);
        }
        // A refusal is a length of zero and a code of one byte.
        let whole = if length == 0 { 3 } else { 2 + length };
        Ok(self.take(input, whole).map(|it| match length {
            0 => Frame::Refusal(it[2]),
            _ => Frame::Message(it.slice(2..)),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_whole_however_they_are_split() {
        let stream = [0, 3, 7, 8, 9, 0, 1, 5, 0, 0, 4, 0, 2, 1, 1];
        let message = |bytes: &[u8]| Frame::Message(Bytes::copy_from_slice(bytes));
        let expected =
            vec![message(&[7, 8, 9]), message(&[5]), Frame::Refusal(4), message(&[1, 1])];
        for first in 0..stream.len() {
            for second in first..stream.len() {
                let (mut inbox, mut found) = (Inbox::default(), Vec::new());
                for piece in [&stream[..first], &stream[first..second], &stream[second..]] {
                    let mut piece = Bytes::copy_from_slice(piece);
                    while !piece.is_empty() {
                        found.extend(inbox.frame(&mut piece, 3).expect("short frames"));
                    }
                }
                assert_eq!(found, expected, "split at {first} and {second}");
            }
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_not_waited_for() {
        let mut input = Bytes::from_static(&[1, 0]);
        assert_eq!(Inbox::default().frame(&mut input, 255), Err(TooLong));
    }
}
