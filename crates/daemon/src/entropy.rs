//! The operating system's randomness; everything random in the engine is derived from it.

use std::fs::File;
use std::io::Read;

/// Unpredictable bytes.
///
/// # Panics
/// If `/dev/urandom` cannot be read: nothing could be named or keyed safely then.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .expect("/dev/urandom can be read");
    bytes
}
