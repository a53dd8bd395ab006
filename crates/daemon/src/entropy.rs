//! The operating system's randomness; everything random in the engine is derived from it.

use rustix::rand::{GetRandomFlags, getrandom};

/// Unpredictable bytes.
///
/// # Panics
/// If the kernel gives none: nothing could be named or keyed safely then.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // So few come in one piece, once the kernel's pool is seeded.
    let count = getrandom(&mut bytes, GetRandomFlags::empty()).expect("the kernel has randomness");
    assert_eq!(count, N, "the kernel gives randomness in one piece");
    bytes
}
