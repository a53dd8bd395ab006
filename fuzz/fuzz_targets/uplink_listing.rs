//! Lists of a root's chunks: what decodes is encoded again to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::uplink_listing(bytes));
