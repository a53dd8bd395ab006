//! Header fields that the rules read: understood or passed over, and never out of bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::fields(bytes));
