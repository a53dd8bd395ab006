//! Records between ends that use a published scheme: neither panics, nor sends without end.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::uplink_published(bytes));
