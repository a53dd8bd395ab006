//! A capture file of either format: it gives the same records, read at once or in pieces.
#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
#[allow(dead_code, reason = "each target uses a part")]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    common::checks::file(bytes);
});
