//! A segment file with any bytes: the store opens it, reads it and remains usable.
#![no_main]

#[path = "../../crates/store/tests/common/segment.rs"]
mod segment;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| segment::open_segment(bytes));
