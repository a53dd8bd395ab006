//! A link interference matrix: it is read, or refused with a line; what was read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    plan::testing::matrix_text(bytes);
});
