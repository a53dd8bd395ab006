//! A message from a peer: everything that decodes must encode to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::peer::Message;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = Message::decode(bytes) {
        assert_eq!(message.encode().as_deref(), Some(bytes));
    }
});
