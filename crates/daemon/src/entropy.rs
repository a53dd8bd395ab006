//! Random bytes from the operating system. They seed everything random in the engine.

use rustix::rand::{GetRandomFlags, getrandom};

/// Unpredictable bytes.
///
/// # Panics
/// If the kernel gives none: no name or key would be safe without them.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Once its pool is seeded, the kernel returns up to 256 bytes in one call (getrandom(2)).
    let count = getrandom(&mut bytes, GetRandomFlags::empty()).expect("the kernel has randomness");
    assert_eq!(count, N, "the kernel gives randomness in one piece");
    bytes
}
