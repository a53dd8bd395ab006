//! What babeld's local socket says: understood or passed over, however it is split.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| host::routing::checks::babeld(bytes));
