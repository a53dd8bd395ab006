//! Four numbers that two units probably share if they have most of their bytes in common.
//!
//! *Source:* super-features by maxima of transformed rolling hashes (Shilane et al., "WAN Optimized
//! Replication of Backup Datasets Using Stream-Informed Delta Compression", FAST 2012).

use super::Name;

/// The features of a unit; zero if it is too short to have one.
pub type Features = [u32; 4];

/// Odd constants, one for each feature: the fractions of the roots of 2, 3, 5 and 7.
const TRANSFORMS: [u64; 4] =
    [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];
/// One hash of this many counts, as its bits say.
const SAMPLE: u64 = 15;
/// The rolling hash has this many bytes in its upper half.
const WARM: usize = 32;

/// Computes the features of a unit.
pub fn of(unit: &[u8]) -> Features {
    let mut maxima = [0u64; 4];
    let mut hash = 0u64;
    for (at, byte) in unit.iter().enumerate() {
        hash = content::roll(hash, *byte);
        if at >= WARM && (hash >> 40) & SAMPLE == 0 {
            let mixed = hash ^ (hash >> 29);
            for (maximum, transform) in maxima.iter_mut().zip(TRANSFORMS) {
                *maximum = (*maximum).max(mixed.wrapping_mul(transform));
            }
        }
    }
    maxima.map(|maximum| (maximum >> 32) as u32)
}

/// The key of a name in tables.
pub fn key_of(name: &Name) -> u64 {
    let mut key = [0; 8];
    key.copy_from_slice(&name[..8]);
    u64::from_le_bytes(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u8) -> Vec<u8> {
        let mut bytes = vec![0; 8000];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
        bytes
    }

    fn shared(a: &[u8], b: &[u8]) -> usize {
        of(a).iter().zip(of(b)).filter(|(a, b)| *a == b).count()
    }

    #[test]
    fn what_is_alike_shares_features_and_what_is_not_shares_none() {
        let old = noise(1);
        let mut new = old.clone();
        new[3000..3010].fill(7);
        new.splice(100..100, [1, 2, 3]);
        assert!(shared(&old, &new) >= 2, "{}", shared(&old, &new));
        assert_eq!(shared(&old, &noise(2)), 0);
        assert_eq!(of(b"short"), [0; 4]);
    }
}
