//! A datagram between routers, in clear: its call has one encoding.
#![no_main]

#[path = "../../crates/wire/tests/common/mod.rs"]
mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    common::peer::datagram(bytes);
});
