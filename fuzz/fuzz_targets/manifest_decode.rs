//! A manifest segment from the network: everything that decodes must encode to the same bytes.
#![no_main]

use content::Segment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(segment) = Segment::decode(bytes) {
        assert_eq!(segment.encode(), bytes);
    }
});
