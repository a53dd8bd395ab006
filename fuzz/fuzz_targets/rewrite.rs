//! An index whose links are rewritten: the result is the same, however it is divided, and memory is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    classes::testing::rewrite(bytes);
});
