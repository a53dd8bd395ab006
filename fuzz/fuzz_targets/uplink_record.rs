//! Records of an uplink's pair, after a real handshake: neither end panics or sends without bound.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::uplink_record(bytes));
