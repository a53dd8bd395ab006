//! Whatever a segment file says, the store opens, reads and goes on.
#![no_main]

#[path = "../../crates/store/tests/common/segment.rs"]
mod segment;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| segment::open_segment(bytes));
