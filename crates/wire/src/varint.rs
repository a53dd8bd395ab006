//! Unsigned integers of variable length: seven bits per byte, lowest first (LEB128).
//!
//! *What this is:* the only variable-length number of our formats. *Who calls it:*
//! [`peer`](crate::peer), and `content` for manifests. *What it never does:* accept two encodings
//! of one number. Otherwise one manifest could have two encodings, and so two digests. *Where to
//! start:* [`read`].

/// The longest encoding of a 64-bit number, in bytes.
pub const LONGEST: usize = 10;

/// Appends the number.
pub fn write(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number of bytes that `write` would append.
pub fn length(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Takes a number off the front. `None`, with the input untouched, if it is truncated, not in its
/// shortest encoding, or above 64 bits.
pub fn read(input: &mut &[u8]) -> Option<u64> {
    let last = input.iter().take(LONGEST).position(|&byte| byte < 0x80)?;
    let (bytes, rest) = input.split_at_checked(last + 1)?;
    let top = *bytes.last()?;
    let superfluous = top == 0 && bytes.len() > 1;
    let too_big = bytes.len() == LONGEST && top > 1;
    if superfluous || too_big {
        return None;
    }
    *input = rest;
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 7 | u64::from(byte & 0x7f)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_reads_back_as_it_was_written() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX / 2, u64::MAX] {
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            assert_eq!(bytes.len(), length(value));
            assert_eq!(read(&mut &bytes[..]), Some(value));
            assert_eq!(read(&mut &bytes[..bytes.len() - 1]), None, "cut short");
        }
    }

    #[test]
    fn other_encodings_are_refused() {
        assert_eq!(read(&mut &[0x80, 0x00][..]), None, "zero in two bytes");
        assert_eq!(read(&mut &[0xff; 11][..]), None, "no end");
        let mut above = [0xff; 10];
        above[9] = 0x02;
        assert_eq!(read(&mut &above[..]), None, "above 64 bits");
    }
}
