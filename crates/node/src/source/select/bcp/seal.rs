//! Datagrams, sealed with the mesh key if there is one (XChaCha20-Poly1305): nobody else can read or make them.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use wire::peer::{Call, Envelope};

/// Seals and opens datagrams. Without a mesh key they go in clear.
pub struct Seal(Option<XChaCha20Poly1305>);

impl Seal {
    pub fn new(mesh_key: Option<&[u8; 32]>) -> Self {
        let key = |it: &[u8; 32]| blake3::derive_key("hearsay 2026-11 datagrams of routers", it);
        Self(mesh_key.map(|it| XChaCha20Poly1305::new(&key(it).into())))
    }

    /// The datagram; the nonce must be a new one.
    pub fn seal(&self, call: &Call, nonce: [u8; 24]) -> Vec<u8> {
        let mut out = Vec::with_capacity(Envelope::LENGTH_MAX);
        let clear = call.encode();
        let Some(cipher) = &self.0 else {
            Envelope::Open.write(&mut out);
            out.extend(clear);
            return out;
        };
        Envelope::Sealed { nonce }.write(&mut out);
        let payload = Payload { msg: &clear, aad: &out };
        let sealed = cipher.encrypt(XNonce::from_slice(&nonce), payload);
        out.extend(sealed.expect("a call is shorter than the longest text of the cipher"));
        out
    }

    /// What a datagram says; `None` if it is none of this mesh.
    pub fn open(&self, bytes: &[u8]) -> Option<Call> {
        let (envelope, call) = Envelope::read(bytes).ok()?;
        match (envelope, &self.0) {
            (Envelope::Open, None) => Call::decode(call).ok(),
            (Envelope::Sealed { nonce }, Some(cipher)) => {
                let aad = &bytes[..bytes.len() - call.len()];
                let payload = Payload { msg: call, aad };
                let clear = cipher.decrypt(XNonce::from_slice(&nonce), payload).ok()?;
                Call::decode(&clear).ok()
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::peer::{Found, Search};

    fn call() -> Call {
        let search = Search { boot: 1, sequence: 2 };
        Call::Found(Found { search, holder: [10, 0, 0, 7].into(), hops: 3 })
    }

    #[test]
    fn only_who_has_the_key_reads_and_writes() {
        let [open, ours, other] = [None, Some(&[1; 32]), Some(&[2; 32])].map(Seal::new);
        let (clear, sealed) = (open.seal(&call(), [0; 24]), ours.seal(&call(), [7; 24]));
        assert_eq!((open.open(&clear), ours.open(&sealed)), (Some(call()), Some(call())));
        for (seal, datagram) in [(&open, &sealed), (&ours, &clear), (&other, &sealed)] {
            assert_eq!(seal.open(datagram), None);
        }
        assert!(!sealed.windows(4).any(|it| it == [10, 0, 0, 7]));
    }

    #[test]
    fn no_bit_can_be_changed() {
        let seal = Seal::new(Some(&[1; 32]));
        let sealed = seal.seal(&call(), [7; 24]);
        assert!(sealed.len() <= Envelope::LENGTH_MAX);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(seal.open(&changed), None, "byte {at}");
            assert_eq!(seal.open(&sealed[..at]), None, "cut at {at}");
        }
    }
}
