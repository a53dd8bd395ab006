//! babeld's local socket: any bytes are parsed or ignored, with the same result however they are
//! divided.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| host::routing::checks::babeld(bytes));
