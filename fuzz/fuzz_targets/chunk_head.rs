//! Frames sent in clear (a preamble or the head of a chunk): everything that decodes must encode to
//! the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::peer::{ChunkHead, Preamble};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(bytes) = bytes.try_into()
        && let Ok(preamble) = Preamble::decode(bytes)
    {
        assert_eq!(preamble.encode(), *bytes);
    }
    if let Ok(bytes) = bytes.try_into()
        && let Ok(head) = ChunkHead::decode(bytes)
    {
        assert_eq!(head.encode(), *bytes);
        assert!(head.length > 0 && head.offset + head.length <= head.total);
    }
});
