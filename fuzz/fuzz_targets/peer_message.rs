//! A message from a peer: what is known of it has one encoding, and the rest is skipped.
#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    common::peer::message(bytes);
});
