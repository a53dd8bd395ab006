//! Identities: an Ed25519 key, its signatures, and its short id.

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use wire::{NodeId, PublicKey, Signature};

/// This node's identity.
pub struct Identity(SigningKey);

impl Identity {
    /// The identity with this seed.
    pub fn new(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Its public key.
    pub fn key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Signs bytes. They must state their purpose, because the same key signs connection keys and
    /// records.
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        Signature(self.0.sign(bytes).to_bytes())
    }
}

/// The short id of an identity.
pub fn node_id(key: &PublicKey) -> NodeId {
    let hash = blake3::hash(key.as_bytes());
    let mut id = [0; NodeId::LEN];
    id.copy_from_slice(&hash.as_bytes()[..NodeId::LEN]);
    NodeId(id)
}

/// Whether a signature is valid under this key. Strict: weak keys, and signatures that only some
/// implementations accept, are refused.
pub fn verify(key: &PublicKey, bytes: &[u8], signature: &Signature) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(signature.as_bytes());
    VerifyingKey::from_bytes(key.as_bytes())
        .is_ok_and(|key| key.verify_strict(bytes, &signature).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_signer_and_only_what_was_signed() {
        let (one, other) = (Identity::new(&[1; 32]), Identity::new(&[2; 32]));
        let signature = one.sign(b"this");
        assert!(verify(&one.key(), b"this", &signature));
        assert!(!verify(&one.key(), b"that", &signature));
        assert!(!verify(&other.key(), b"this", &signature));
        assert_ne!(node_id(&one.key()), node_id(&other.key()));
    }

    #[test]
    fn a_weak_key_signs_nothing() {
        // The neutral element: a lax check accepts some signature for any message under it.
        let mut weak = [0; 32];
        weak[0] = 1;
        let mut signature = [0; 64];
        signature[0] = 1;
        assert!(!verify(&PublicKey(weak), b"anything", &Signature(signature)));
    }
}
