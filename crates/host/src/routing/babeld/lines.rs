//! Splits a stream of bytes into lines of limited length.

/// The greatest length of a line in bytes; babeld's longest lines have a third of it.
const LINE_MAX: usize = 1024;

/// The beginning of an incomplete line.
#[derive(Debug, Default)]
pub struct Lines(Vec<u8>);

/// A line exceeds the limit: the program is not babeld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl Lines {
    /// Calls `take` with each complete line, without its end.
    pub fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(&str)) -> Result<(), TooLong> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.0.extend_from_slice(piece);
            if self.0.len() > LINE_MAX {
                return Err(TooLong);
            }
            if self.0.ends_with(b"\n") {
                take(String::from_utf8_lossy(&self.0).trim_end());
                self.0.clear();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(pieces: &[&[u8]]) -> Result<Vec<String>, TooLong> {
        let (mut lines, mut taken) = (Lines::default(), Vec::new());
        for piece in pieces {
            lines.feed(piece, |line| taken.push(line.to_owned()))?;
        }
        Ok(taken)
    }

    #[test]
    fn a_line_that_does_not_end_is_refused() {
        assert_eq!(lines(&[&[b'x'; LINE_MAX]]), Ok(vec![]));
        assert_eq!(lines(&[&[b'x'; LINE_MAX], b"y"]), Err(TooLong));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_bytes_come(bytes in "[a-z \n\r\u{fe}]{0,200}", at in 0usize..400) {
            let bytes = bytes.as_bytes();
            let (first, rest) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(lines(&[first, rest]), lines(&[bytes]));
        }
    }
}
