//! A row of the catalogue: any bytes are refused, or decode to a row that encodes to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::row(bytes));
