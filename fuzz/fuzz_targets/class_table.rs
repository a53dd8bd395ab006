//! A table of content classes: it is read, or refused with a line.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    classes::testing::table(bytes);
});
