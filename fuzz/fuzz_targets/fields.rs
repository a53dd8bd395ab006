//! Header fields: any bytes are parsed or ignored, and never read out of bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::fields(bytes));
