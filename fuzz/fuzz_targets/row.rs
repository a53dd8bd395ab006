//! A row of the catalogue: it encodes to the same bytes, or is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::row(bytes));
