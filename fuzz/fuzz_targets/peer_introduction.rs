//! An introduction from a peer: everything that decodes must encode to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::peer::Introduction;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(introduction) = Introduction::decode(bytes) {
        assert_eq!(introduction.encode().as_deref(), Some(bytes));
    }
});
