//! Encryption of a history at rest.
//!
//! *What this is:* ChaCha20 (RFC 8439) with a synthetic nonce: the nonce is a keyed hash of the
//! epoch, the position and the clear bytes, as in SIV (RFC 5297). *Why:* a position may be written
//! several times, because of a truncation, a failed write or a power cut, and a keystream must not
//! encipher two contents. A nonce that follows from the content needs no counter that could be lost
//! with the power; only equal content at the same position has an equal nonce, and then equal
//! ciphertext. *What it never does:* authenticate. Damage is found by CRCs, and the engine checks a
//! unit's bytes against its name.
//!
//! *Cost:* each byte is hashed once and enciphered once when it is written, and deciphered when it
//! is read.

use bytes::Bytes;
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit as _, StreamCipher as _};

/// Key derivation contexts: keys for other purposes differ.
const CIPHER_CONTEXT: &str = "hearsay 2026-12 history cipher";
const NONCE_CONTEXT: &str = "hearsay 2026-12 history nonces";
const CHECK_CONTEXT: &str = "hearsay 2026-12 history check of the key";

/// Enciphers records, or passes them through if there is no key.
pub(super) struct Cipher {
    keys: Option<Keys>,
}

struct Keys {
    cipher: [u8; 32],
    nonce: [u8; 32],
    check: [u8; 32],
}

impl Cipher {
    pub fn new(key: Option<[u8; 32]>) -> Self {
        let keys = key.map(|key| Keys {
            cipher: blake3::derive_key(CIPHER_CONTEXT, &key),
            nonce: blake3::derive_key(NONCE_CONTEXT, &key),
            check: blake3::derive_key(CHECK_CONTEXT, &key),
        });
        Self { keys }
    }

    /// Shows, together with `header`, which key a file was written with; zeros without a key.
    pub fn check(&self, header: &[u8]) -> [u8; 16] {
        let Some(keys) = &self.keys else { return [0; 16] };
        let hash = blake3::keyed_hash(&keys.check, header);
        let mut check = [0; 16];
        check.copy_from_slice(&hash.as_bytes()[..16]);
        check
    }

    /// Enciphers a record: its private fields in place, its bytes in a copy. Without a key, nothing
    /// changes and nothing is copied.
    pub fn seal(
        &self,
        epoch: &[u8; 16],
        position: u64,
        fields: &mut [u8],
        bytes: &Bytes,
    ) -> ([u8; 12], Bytes) {
        let Some(keys) = &self.keys else { return ([0; 12], bytes.clone()) };
        let mut hash = blake3::Hasher::new_keyed(&keys.nonce);
        // The fields before the bytes have a fixed length, so the hashed text is unambiguous.
        hash.update(epoch).update(&position.to_le_bytes()).update(fields).update(bytes);
        let mut nonce = [0; 12];
        nonce.copy_from_slice(&hash.finalize().as_bytes()[..12]);
        let mut body = bytes.to_vec();
        let mut stream = ChaCha20::new(&keys.cipher.into(), &nonce.into());
        stream.apply_keystream(fields);
        stream.apply_keystream(&mut body);
        (nonce, body.into())
    }

    /// Deciphers the private fields, and the bytes if they follow.
    pub fn apply(&self, nonce: &[u8; 12], record: &mut [u8]) {
        if let Some(keys) = &self.keys {
            ChaCha20::new(&keys.cipher.into(), nonce.into()).apply_keystream(record);
        }
    }
}

/// Does not show the keys.
impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.keys.is_some() { "Cipher(…)" } else { "Cipher(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_repeats_for_equal_content_at_one_position_only() {
        let cipher = Cipher::new(Some([1; 32]));
        let nonce = |epoch: u8, position, field: u8, bytes: &'static [u8]| {
            cipher.seal(&[epoch; 16], position, &mut [field; 40], &Bytes::from_static(bytes)).0
        };
        let all = [
            nonce(1, 1, 1, b"one"),
            nonce(2, 1, 1, b"one"),
            nonce(1, 2, 1, b"one"),
            nonce(1, 1, 2, b"one"),
            nonce(1, 1, 1, b"two"),
            nonce(1, 1, 1, b""),
            Cipher::new(Some([2; 32]))
                .seal(&[1; 16], 1, &mut [1; 40], &Bytes::from_static(b"one"))
                .0,
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one), "{at}");
        }
        assert_eq!(nonce(1, 1, 1, b"one"), all[0]);
    }

    #[test]
    fn a_sealed_record_is_as_long_as_before_and_opens_to_it() {
        let cipher = Cipher::new(Some([1; 32]));
        let bytes = Bytes::from(vec![5; 300]);
        let mut fields = [6; 40];
        let (nonce, body) = cipher.seal(&[1; 16], 9, &mut fields, &bytes);
        assert!(body.len() == 300 && body != bytes && fields != [6; 40]);
        let mut record = [&fields[..], &body].concat();
        cipher.apply(&nonce, &mut record);
        assert_eq!(record, [&[6; 40][..], &bytes].concat());
        let mut fields_alone = fields;
        cipher.apply(&nonce, &mut fields_alone);
        assert_eq!(fields_alone, [6; 40]);
    }
}
