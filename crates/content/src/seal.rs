//! Sealing: units as ciphertext that whoever has the manifest can read, and nobody else.
//!
//! *What this is:* [`Sealer`], which seals and opens units in place, and [`cipher`], which seals anew what
//! a manifest has a key for. A unit's key follows from its content and the mesh's secret (convergent
//! encryption), so that equal content is sealed alike by every node of a mesh: one name, stored once.
//! Sealed bytes are as many as before, and are named and verified like any others. *Who calls it:* `node`,
//! where an origin's content is cut and where a client gets bytes; `hearsay get`. *What it never does:*
//! keep bytes or keys, or know what a manifest is. *Where to start:* [`Sealer::seal`]. *Sources:* Douceur,
//! Adya, Bolosky, Simon, Theimer, "Reclaiming Space from Duplicate Files" (2002); Ditto §8; ChaCha
//! (Bernstein, 2008) as in RFC 8439, with 12 rounds. Reasons: `docs/decisions/0012-sealing.md`.
//!
//! *Cost:* sealing hashes each byte once and enciphers it once; so does opening.

use chacha20::ChaCha12;
use chacha20::cipher::{KeyIvInit as _, StreamCipher as _};
use thiserror::Error;

/// What opens one unit: of 32 bytes, and in a manifest beside the unit's name.
pub type Key = [u8; 32];

/// What this key is used for, and nothing else is.
const CONTEXT: &str = "hearsay 2026-11-22 keys of sealed units";

/// Seals and opens units in the name of one mesh.
#[derive(Clone)]
pub struct Sealer {
    secret: [u8; 32],
}

/// A key that a unit was not sealed with in this mesh: whoever listed it lies, or its bytes went bad.
///
/// Trying again does not help.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the key is not that of the unit")]
pub struct WrongKey;

impl Sealer {
    /// For all who know this secret. What is sealed with is derived from it: it may serve other ends too.
    pub fn new(mesh_secret: &[u8; 32]) -> Self {
        Self { secret: blake3::derive_key(CONTEXT, mesh_secret) }
    }

    /// Seals a unit in place; answers what opens it.
    pub fn seal(&self, unit: &mut [u8]) -> Key {
        let key = self.key_of(unit);
        cipher(&key, unit);
        key
    }

    /// Opens a sealed unit in place.
    ///
    /// # Errors
    ///
    /// [`WrongKey`] unless what comes out is what this key was made of; `unit` then holds nothing of use.
    pub fn open(&self, key: &Key, unit: &mut [u8]) -> Result<(), WrongKey> {
        cipher(key, unit);
        if self.key_of(unit) == *key { Ok(()) } else { Err(WrongKey) }
    }

    fn key_of(&self, plain: &[u8]) -> Key {
        *blake3::keyed_hash(&self.secret, plain).as_bytes()
    }
}

/// Without the secret.
impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(…)")
    }
}

/// Enciphers a unit in place, or deciphers it: that is the same. Nobody is asked whether the key is right.
pub fn cipher(key: &Key, unit: &mut [u8]) {
    // A key is used for one content alone, so one nonce does for all.
    ChaCha12::new(key.into(), &[0; 12].into()).apply_keystream(unit);
}
