//! A captured frame of any link type: it gives segments or refusals, and no bytes from outside the frame.
#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
#[allow(dead_code, reason = "each target uses a part")]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    common::checks::frame(bytes);
});
