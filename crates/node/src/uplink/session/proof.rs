//! What a near end shows before a far end does any work for it: that it knows the far end's public key.
//!
//! *Source:* WireGuard's `mac1` (Donenfeld, "WireGuard: Next Generation Kernel Network Tunnel", NDSS 2017, §5.4.4). It
//! covers no date, since a router without a clock boots in 1970: who records a proof and repeats it gains a place at the
//! door until its handshake fails, and no more.

use wire::PublicKey;

/// The bytes of a proof.
pub const LEN: usize = 16;

/// Proves to the far end with this key that this beginning was made for it.
pub fn of(far: &PublicKey, preamble: &[u8], first: &[u8]) -> [u8; LEN] {
    let key = blake3::derive_key("hearsay 2026 proof to an uplink's far end", far.as_bytes());
    let mut hasher = blake3::Hasher::new_keyed(&key);
    hasher.update(preamble).update(first);
    let mut proof = [0; LEN];
    hasher.finalize_xof().fill(&mut proof);
    proof
}

/// Whether this proves that the beginning was made for the far end with this key.
pub fn proves(proof: &[u8; LEN], far: &PublicKey, preamble: &[u8], first: &[u8]) -> bool {
    let expected = of(far, preamble, first);
    // All bytes are compared, so that the time tells nothing.
    expected.iter().zip(proof).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: PublicKey = PublicKey([2; 32]);

    #[test]
    fn a_proof_is_for_one_key_and_one_beginning() {
        let proof = of(&FAR, b"preamble", b"first");
        assert!(proves(&proof, &FAR, b"preamble", b"first"));
        assert!(!proves(&proof, &PublicKey([3; 32]), b"preamble", b"first"));
        assert!(!proves(&proof, &FAR, b"preambl3", b"first"));
        assert!(!proves(&proof, &FAR, b"preamble", b"firs7"));
        for at in 0..LEN {
            let mut other = proof;
            other[at] ^= 0x80;
            assert!(!proves(&other, &FAR, b"preamble", b"first"), "byte {at}");
        }
    }

    #[test]
    fn a_proof_keeps_its_bytes() {
        let proof = of(&FAR, b"HSUP\x03\0\0\0", &[0, 1, 9]);
        assert_eq!(u128::from_be_bytes(proof), 0x0c19_ff4d_94c9_14f2_99aa_1703_c2eb_1d29);
    }
}
