//! Amounts of bytes as people write them: `16MiB`, `1.5 GB`, `4096`.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// An amount of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Size {
    /// This many MiB.
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }
}

/// Why a text is not an amount of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a size: expected something like 16MiB, 1.5GB or 4096 (bytes)")]
pub struct SizeError;

/// Units, and the bytes in each. A single letter is a binary unit, as in nginx and systemd.
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

/// More digits than this after the point are less than a byte, or a mistake.
const FRACTION_DIGITS_MAX: usize = 9;

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let end = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim().to_ascii_lowercase();
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(SizeError)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if fraction.is_empty() || fraction.len() > FRACTION_DIGITS_MAX {
            return Err(SizeError);
        }
        let whole: u128 = whole.parse().map_err(|_| SizeError)?;
        let parts: u128 = fraction.parse().map_err(|_| SizeError)?;
        let scale = 10_u128.pow(fraction.len() as u32);
        let bytes = whole.checked_mul(scale).ok_or(SizeError)?.checked_add(parts);
        let bytes =
            bytes.and_then(|it| it.checked_mul(u128::from(*unit))).ok_or(SizeError)? / scale;
        u64::try_from(bytes).map(Self).map_err(|_| SizeError)
    }
}

/// The exact amount: the text parses to the same number of bytes.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |unit: u64| self.0 >= unit && self.0.is_multiple_of(unit);
        match [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
            .into_iter()
            .find(|(bits, _)| exact(1 << bits))
        {
            Some((bits, name)) => write!(f, "{}{name}", self.0 >> bits),
            None => write!(f, "{}", self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size like \"16MiB\" or a number of bytes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
        text.parse().map_err(|error| E::custom(format_args!("{text:?} is {error}")))
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
        Ok(Size(bytes))
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
        u64::try_from(bytes).map(Size).map_err(|_| E::custom("a size cannot be below zero"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Size>().map(|size| size.0);
        assert_eq!(read("16MiB"), Ok(16 << 20));
        assert_eq!(read("16 mib"), Ok(16 << 20));
        assert_eq!(read("16M"), Ok(16 << 20));
        assert_eq!(read("16MB"), Ok(16_000_000));
        assert_eq!(read("1.5GiB"), Ok(3 << 29));
        assert_eq!(read("4096"), Ok(4096));
        assert_eq!(read("0.5k"), Ok(512));
        for bad in ["", "MiB", "-1", "1.MiB", ".5k", "1.2.3k", "16Mbit", "1e3", "99999999TiB"] {
            assert_eq!(read(bad), Err(SizeError), "{bad}");
        }
    }

    #[test]
    fn a_size_reads_back_what_it_shows() {
        for bytes in [0, 1, 1023, 1024, 1_000_000, 16 << 20, 3 << 29, 1 << 40, u64::MAX] {
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
        assert_eq!(Size::mib(16).to_string(), "16MiB");
        assert_eq!(Size(1 << 30).to_string(), "1GiB");
    }
}
