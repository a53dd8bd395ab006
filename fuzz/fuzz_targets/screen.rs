//! Raw HTTP from either side: the verdict is the same, however the bytes are divided.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::screen(bytes));
