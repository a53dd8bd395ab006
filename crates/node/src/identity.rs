//! Identities: an Ed25519 key, what it signs, and its short name.

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use wire::{NodeId, PublicKey, Signature};

/// Our own identity.
pub struct Identity(SigningKey);

impl Identity {
    /// The one that this seed makes.
    pub fn new(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// What others know it by.
    pub fn key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Signs something. What is signed must say what it is for: the same key signs the keys of
    /// connections and records.
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        Signature(self.0.sign(bytes).to_bytes())
    }
}

/// The short name of an identity.
pub fn node_id(key: &PublicKey) -> NodeId {
    let hash = blake3::hash(key.as_bytes());
    let mut id = [0; NodeId::LEN];
    id.copy_from_slice(&hash.as_bytes()[..NodeId::LEN]);
    NodeId(id)
}

/// Whether a signature is this identity's. Strict: weak keys and signatures that only some
/// implementations take are refused.
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
        // The neutral element: any message has a signature under it, where one is lax.
        let mut weak = [0; 32];
        weak[0] = 1;
        let mut signature = [0; 64];
        signature[0] = 1;
        assert!(!verify(&PublicKey(weak), b"anything", &Signature(signature)));
    }
}
