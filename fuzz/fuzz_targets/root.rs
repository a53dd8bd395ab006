//! The root of a published object, from the network: everything that decodes must encode to the
//! same text.
#![no_main]

use content::Root;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some(root) = Root::decode(text)
    {
        assert_eq!(root.encode(), text);
        assert_eq!(root.name(), Root::name_of(text));
    }
});
