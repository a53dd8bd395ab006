//! An index that promises digests, plain or compressed: memory is bounded, and a broken one is given up.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    classes::testing::index(bytes);
});
