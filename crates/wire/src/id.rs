//! Names: fixed-size identifiers, shown and parsed as lower-case hexadecimal.

use std::fmt;
use std::str::FromStr;

/// The text is not an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseIdError;

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an identifier: expected its exact number of hexadecimal digits")
    }
}

impl std::error::Error for ParseIdError {}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl $name {
            /// Its size in bytes.
            pub const LEN: usize = $bytes;

            /// Its bytes.
            pub fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let mut bytes = [0; $bytes];
                parse_hex(text, &mut bytes)?;
                Ok(Self(bytes))
            }
        }
    };
}

identifier! {
    /// The name of a chunk: BLAKE3 of its stored bytes.
    ChunkId, 32
}

identifier! {
    /// One version of an object: a number that the router that fetched it from the origin drew at
    /// random.
    RecordId, 16
}

identifier! {
    /// The key of an object in a request: keyed BLAKE3 of its canonical URI.
    ObjectKey, 32
}

identifier! {
    /// The name of a published object, which certifies the object's content (`content::Root`).
    Oid, 32
}

identifier! {
    /// A short name of a published object: the first bytes of BLAKE3, keyed by the secret of the mesh, of its
    /// [`Oid`]. Two objects may share one.
    Hint, 8
}

identifier! {
    /// The id of a node: the first bytes of BLAKE3 of its [`PublicKey`].
    NodeId, 16
}

identifier! {
    /// The identity of a node: an Ed25519 key.
    PublicKey, 32
}

identifier! {
    /// An Ed25519 signature.
    Signature, 64
}

identifier! {
    /// Opens one data connection, once only.
    Token, 16
}

pub(crate) fn parse_hex(text: &str, bytes: &mut [u8]) -> Result<(), ParseIdError> {
    let digit = |c: u8| (c as char).to_digit(16).ok_or(ParseIdError);
    if text.len() != bytes.len() * 2 {
        return Err(ParseIdError);
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return Err(ParseIdError) };
        *byte = (digit(*high)? * 16 + digit(*low)?) as u8;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_reads_back_what_it_shows() {
        let id = RecordId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 254, 255, 160]);
        assert_eq!(id.to_string(), "000102030405060708090a0b0cfeffa0");
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn what_is_no_identifier_is_refused() {
        for text in ["", "00", "g00102030405060708090a0b0cfeffa0", "é"] {
            assert_eq!(text.parse::<RecordId>(), Err(ParseIdError));
        }
    }
}
