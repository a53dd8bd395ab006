//! Numbers, strings and lists in the pair's messages.

use wire::varint;

/// The bytes are not a message, or not one within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Takes fields off the front of a message.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// A number.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        varint::read(&mut self.0).ok_or(Malformed)
    }

    /// A number that is at most `max`.
    pub fn up_to(&mut self, max: usize) -> Result<usize, Malformed> {
        let number = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        if number <= max { Ok(number) } else { Err(Malformed) }
    }

    /// A number of at most 32 bits.
    pub fn short(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed)
    }

    /// A number that may be negative.
    pub fn signed(&mut self) -> Result<i64, Malformed> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A number, as its distance from `base`.
    pub fn relative(&mut self, base: u64) -> Result<u64, Malformed> {
        base.checked_add_signed(self.signed()?).ok_or(Malformed)
    }

    /// This many bytes.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A field of a fixed size.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.bytes(N)?.try_into().map_err(|_| Malformed)
    }

    /// Bytes, preceded by their number, which is at most `max`.
    pub fn string(&mut self, max: usize) -> Result<&'a [u8], Malformed> {
        let length = self.up_to(max)?;
        self.bytes(length)
    }

    /// Text, preceded by its number of bytes.
    pub fn text(&mut self, max: usize) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.string(max)?).map_err(|_| Malformed)
    }
}

/// Appends fields to a message.
pub struct Writer<'a>(pub &'a mut Vec<u8>);

impl Writer<'_> {
    pub fn number(&mut self, number: u64) {
        varint::write(number, self.0);
    }

    pub fn signed(&mut self, number: i64) {
        self.number((number << 1) as u64 ^ (number >> 63) as u64);
    }

    pub fn relative(&mut self, base: u64, number: u64) {
        self.signed(number.wrapping_sub(base) as i64);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub fn string(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_numbers_read_back() {
        for number in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            Writer(&mut bytes).signed(number);
            assert_eq!(Fields(&bytes).signed(), Ok(number));
        }
    }

    #[test]
    fn a_distance_leads_back_or_is_refused() {
        let mut bytes = Vec::new();
        Writer(&mut bytes).relative(1000, 3);
        assert_eq!(Fields(&bytes).relative(1000), Ok(3));
        assert_eq!(Fields(&bytes).relative(5), Err(Malformed), "below zero");
    }

    #[test]
    fn nothing_longer_than_its_bound_or_its_message_is_taken() {
        assert_eq!(Fields(&[5, 1, 2]).string(9), Err(Malformed));
        assert_eq!(Fields(&[5, 1, 2, 3, 4, 5]).string(4), Err(Malformed));
        assert_eq!(Fields(&[1, 0xff]).text(9), Err(Malformed));
    }
}
