//! Digests of whole files, as package indexes promise them.

use crate::id::{ParseIdError, parse_hex};
use std::fmt;
use std::str::FromStr;

/// The SHA-2 digest (FIPS 180-4) of a file. Its text is `sha256:` or `sha512:` and lower-case hexadecimal digits, as in
/// the OCI image specification.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Digest {
    /// SHA-256.
    Sha256([u8; 32]),
    /// SHA-512.
    Sha512([u8; 64]),
}

impl Digest {
    /// The algorithm's name in text, in lower case without a hyphen.
    pub const fn algorithm(&self) -> &'static str {
        match self {
            Self::Sha256(_) => "sha256",
            Self::Sha512(_) => "sha512",
        }
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Sha256(bytes) => bytes,
            Self::Sha512(bytes) => bytes,
        }
    }

    /// The digest with these hexadecimal digits; their number names the algorithm.
    ///
    /// # Errors
    ///
    /// Any other text, also with upper-case digits.
    pub fn from_hex(text: &str) -> Result<Self, ParseIdError> {
        let (mut short, mut long) = ([0; 32], [0; 64]);
        match text.len() {
            64 => parse_hex(text, &mut short).map(|()| Self::Sha256(short)),
            128 => parse_hex(text, &mut long).map(|()| Self::Sha512(long)),
            _ => Err(ParseIdError),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.algorithm())?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let (algorithm, digits) = text.split_once(':').ok_or(ParseIdError)?;
        let digest = Self::from_hex(digits)?;
        if digest.algorithm() == algorithm { Ok(digest) } else { Err(ParseIdError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_its_text() {
        for digest in [Digest::Sha256([0xa7; 32]), Digest::Sha512([0x0c; 64])] {
            assert_eq!(digest.to_string().parse(), Ok(digest));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let good = Digest::Sha256([0xab; 32]).to_string();
        let bad = [
            good.to_uppercase(),
            good.replace("sha256", "sha512"),
            good.replace(':', ""),
            good[..good.len() - 1].to_owned(),
            format!("{good}0"),
        ];
        for text in bad {
            assert_eq!(text.parse::<Digest>(), Err(ParseIdError), "{text}");
        }
    }
}
