//! Sealing: encryption of units, which only nodes with the manifest can read.
//!
//! *What this is:* [`Sealer`], which seals and opens units in place, and [`cipher`], which seals a
//! unit again with the key in its manifest. A unit's key is derived from its content and the mesh's
//! secret (convergent encryption). All nodes of a mesh therefore seal equal content to equal bytes,
//! which have one name and are stored once. A sealed unit has the same length as before, and is
//! named and verified like any other. *Who calls it:* `node`, when it cuts an origin's content and
//! when it serves a client; `hearsay get`. *What it never does:* store bytes or keys, or parse
//! manifests. *Where to start:* [`Sealer::seal`]. *Sources:* Douceur, Adya, Bolosky, Simon,
//! Theimer, "Reclaiming Space from Duplicate Files" (2002); Ditto §8; ChaCha (Bernstein, 2008) as
//! in RFC 8439, with 12 rounds. Reasons: `docs/decisions/0012-sealing.md`.
//!
//! *Cost:* sealing hashes each byte once and encrypts it once; opening costs the same.

use chacha20::ChaCha12;
use chacha20::cipher::{KeyIvInit as _, StreamCipher as _};
use thiserror::Error;

/// The key of one unit: 32 bytes, listed in a manifest beside the unit's name.
pub type Key = [u8; 32];

/// The key derivation context: keys for other purposes differ.
const CONTEXT: &str = "hearsay 2026-11-22 keys of sealed units";

/// Seals and opens units of one mesh.
#[derive(Clone)]
pub struct Sealer {
    secret: [u8; 32],
}

/// The key does not match the unit: the node that listed it lied, or the unit's bytes are damaged.
///
/// Trying again does not help.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the key is not that of the unit")]
pub struct WrongKey;

impl Sealer {
    /// A sealer for the nodes that know this secret. Its key is derived from the secret, which may
    /// therefore have other uses.
    pub fn new(mesh_secret: &[u8; 32]) -> Self {
        Self { secret: blake3::derive_key(CONTEXT, mesh_secret) }
    }

    /// Seals a unit in place; returns its key.
    pub fn seal(&self, unit: &mut [u8]) -> Key {
        let key = self.key_of(unit);
        cipher(&key, unit);
        key
    }

    /// Opens a sealed unit in place.
    ///
    /// # Errors
    ///
    /// [`WrongKey`] unless the opened bytes yield this key; the content of `unit` is then useless.
    pub fn open(&self, key: &Key, unit: &mut [u8]) -> Result<(), WrongKey> {
        cipher(key, unit);
        if self.key_of(unit) == *key { Ok(()) } else { Err(WrongKey) }
    }

    fn key_of(&self, plain: &[u8]) -> Key {
        *blake3::keyed_hash(&self.secret, plain).as_bytes()
    }
}

/// Does not show the secret.
impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(…)")
    }
}

/// Encrypts or decrypts a unit in place; the two operations are the same. The key is not checked.
pub fn cipher(key: &Key, unit: &mut [u8]) {
    // A key is used for one content only, so the nonce can be constant.
    ChaCha12::new(key.into(), &[0; 12].into()).apply_keystream(unit);
}
