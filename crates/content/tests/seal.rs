//! Sealing: its properties, and frozen vectors, which `seal.py` beside this file prints.

use content::{Sealer, WrongKey, cipher, name};
use proptest::prelude::*;

/// The mesh secret of the vectors: bytes 0 to 31.
fn secret() -> [u8; 32] {
    std::array::from_fn(|at| at as u8)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sealed(sealer: &Sealer, plain: &[u8]) -> (content::Key, Vec<u8>) {
    let mut unit = plain.to_vec();
    let key = sealer.seal(&mut unit);
    (key, unit)
}

fn opened(sealer: &Sealer, key: &content::Key, sealed: &[u8]) -> Result<Vec<u8>, WrongKey> {
    let mut unit = sealed.to_vec();
    sealer.open(key, &mut unit).map(|()| unit)
}

#[test]
fn the_cipher_is_chacha_with_twelve_rounds() {
    // draft-strombergson-chacha-test-vectors-01: TC1 and TC2, 256-bit keys, 12 rounds, IV zero.
    let mut one = [0; 32];
    one[0] = 1;
    for (key, expected) in [
        ([0; 32], "9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f"),
        (one, "12056e595d56b0f6eef090f0cd25a20949248c2790525d0f930218ff0b4ddd10"),
    ] {
        let mut zeros = [0; 32];
        cipher(&key, &mut zeros);
        assert_eq!(hex(&zeros), expected);
    }
}

#[test]
fn what_sealing_gives_is_frozen() {
    let long: Vec<u8> = (0..5000).map(|at| (at % 251) as u8).collect();
    for (plain, key, ciphertext_name, begins) in [
        (
            &b"a"[..],
            "4a8607d03426138a06e37b8368b23c519c291f95cef49aabde6682058128f212",
            "542a1d6b133a93a2b22779029c14f78023ce6f98dd9780ba3c1f23535434d0a6",
            "46",
        ),
        (
            b"Nobody else may read this.",
            "f4cbc3e81de063497b7a5100408e5ae35a14ddcfc6bd76ac815ec70d627e9ec0",
            "c81efa557246b0ac698bbd6a29a19069b8b6e56dd6c7b7b77022ac475181eb7e",
            "df9da59df328d233d00c716cb0c99cd4aee7638e372087aefc31",
        ),
        (
            &long,
            "6cf21963879fd88320f8a9235796354df4393a829729174cb43ed75c4589852c",
            "1cf6c1f84e375f2e7384c205fd864c6ce97ca49112a18e8e1db46689e6cd50d9",
            "739e0bd0d73b4a9d40409c69e33c68315ef7206481fb0bbab0571cc9faa549e1",
        ),
    ] {
        let (found, unit) = sealed(&Sealer::new(&secret()), plain);
        assert_eq!(hex(&found), key);
        assert_eq!(name(&unit).to_string(), ciphertext_name);
        assert!(hex(&unit).starts_with(begins), "{}", hex(&unit[..32.min(unit.len())]));
    }
}

#[test]
fn the_secret_is_not_shown() {
    assert_eq!(format!("{:?}", Sealer::new(&secret())), "Sealer(…)");
}

proptest! {
    #[test]
    fn what_is_sealed_opens(
        plain in prop::collection::vec(any::<u8>(), 1..20_000), secret: [u8; 32],
    ) {
        let sealer = Sealer::new(&secret);
        let (key, unit) = sealed(&sealer, &plain);
        prop_assert_eq!(unit.len(), plain.len());
        prop_assert_eq!(opened(&sealer, &key, &unit), Ok(plain.clone()));
        // A reader with the key but without the secret can open it: this is how manifests are used.
        let mut read = unit.clone();
        cipher(&key, &mut read);
        prop_assert_eq!(&read, &plain);
        // It can also compute the sealed bytes of a name.
        cipher(&key, &mut read);
        prop_assert_eq!(read, unit);
    }

    #[test]
    fn nodes_of_one_mesh_seal_alike_and_others_differently(
        plain in prop::collection::vec(any::<u8>(), 32..2_000),
        secret: [u8; 32], other: [u8; 32],
    ) {
        prop_assume!(secret != other);
        let (key, unit) = sealed(&Sealer::new(&secret), &plain);
        prop_assert_eq!(sealed(&Sealer::new(&secret), &plain), (key, unit.clone()));
        let (other_key, other_unit) = sealed(&Sealer::new(&other), &plain);
        prop_assert!(key != other_key && unit != other_unit && unit != plain);
        prop_assert_eq!(opened(&Sealer::new(&other), &key, &unit), Err(WrongKey));
    }

    #[test]
    fn no_other_key_and_no_other_bytes_open(
        plain in prop::collection::vec(any::<u8>(), 1..2_000),
        at: prop::sample::Index, bit in 0..8,
    ) {
        let sealer = Sealer::new(&[7; 32]);
        let (key, mut unit) = sealed(&sealer, &plain);
        let mut wrong = key;
        wrong[at.index(32)] ^= 1_u8 << bit;
        prop_assert_eq!(opened(&sealer, &wrong, &unit), Err(WrongKey));
        let at = at.index(unit.len());
        unit[at] ^= 1_u8 << bit;
        prop_assert_eq!(opened(&sealer, &key, &unit), Err(WrongKey));
    }
}
