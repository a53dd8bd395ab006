//! The check of a body against the digest that it must have.

use sha2::{Digest as _, Sha256, Sha512};
use std::fmt;
use wire::Digest;

/// Hashes a body as it arrives.
pub struct Check {
    expected: Digest,
    so_far: Hasher,
}

enum Hasher {
    Sha256(Sha256),
    Sha512(Box<Sha512>),
}

impl Check {
    /// Nothing of the body has arrived.
    pub fn new(expected: Digest) -> Self {
        let so_far = match expected {
            Digest::Sha256(_) => Hasher::Sha256(Sha256::new()),
            Digest::Sha512(_) => Hasher::Sha512(Box::default()),
        };
        Self { expected, so_far }
    }

    /// The digest that the body must have.
    pub fn expected(&self) -> Digest {
        self.expected
    }

    /// Takes the next bytes of the body.
    pub fn take(&mut self, bytes: &[u8]) {
        match &mut self.so_far {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// The body has ended: its digest, if that is the expected one.
    pub fn verified(self) -> Option<Digest> {
        let is = match self.so_far {
            Hasher::Sha256(hasher) => Digest::Sha256(hasher.finalize().into()),
            Hasher::Sha512(hasher) => Digest::Sha512((*hasher).finalize().into()),
        };
        (is == self.expected).then_some(is)
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Check").field(&self.expected).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4's own example, "abc".
    const SHA256: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const SHA512: &str = "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                          2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";

    #[test]
    fn a_body_is_verified_in_any_pieces() {
        for text in [SHA256, SHA512] {
            let expected: Digest = text.parse().expect("a digest");
            for pieces in [&["abc"][..], &["a", "", "bc"]] {
                let mut check = Check::new(expected);
                pieces.iter().for_each(|piece| check.take(piece.as_bytes()));
                assert_eq!(check.verified(), Some(expected));
            }
            let mut check = Check::new(expected);
            check.take(b"abd");
            assert_eq!(check.verified(), None);
        }
    }
}
