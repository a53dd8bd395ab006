//! The kernel's routing socket: any bytes are parsed or ignored.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| host::routing::checks::netlink(bytes));
