//! The control stream of an uplink's pair: any bytes are read or refused, within bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::uplink_control(bytes));
