//! Any bytes instead of the handshake of an uplink's pair.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::uplink_handshake(bytes));
