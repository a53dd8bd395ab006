//! A path of the mirror: it leads to a host within reach, or is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    classes::testing::mirror(bytes);
});
