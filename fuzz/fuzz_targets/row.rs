//! A row of the catalogue: read and written back alike, or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::row(bytes));
