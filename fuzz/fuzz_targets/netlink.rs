//! What the kernel's routing socket says: understood or passed over.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| host::routing::checks::netlink(bytes));
