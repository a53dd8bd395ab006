//! Each frame has one encoding.

use proptest::prelude::*;
use proptest::sample::Index;
use wire::peer::{Call, ChunkHead, Introduction, Message, Preamble, Received};

use super::any;

/// Damage to an encoded frame.
#[derive(Clone, Debug)]
enum Damage {
    Replace(Index, u8),
    Flip(Index, u8),
    Insert(Index, u8),
    Remove(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        any::<Index>().prop_map(Damage::Remove),
    ]
}

fn spoil(bytes: &mut Vec<u8>, damage: &Damage) {
    match damage {
        // Most fields of interest are at the beginning of a long frame.
        Damage::Replace(at, byte) => {
            let at = at.index(bytes.len().min(100));
            bytes[at] = *byte;
        }
        Damage::Flip(at, bit) => {
            let at = at.index(bytes.len().min(100));
            bytes[at] ^= 1 << bit;
        }
        Damage::Insert(at, byte) => bytes.insert(at.index(bytes.len() + 1), *byte),
        Damage::Remove(at) => {
            bytes.remove(at.index(bytes.len()));
        }
    }
}

/// Lengths of strict prefixes: all of a short frame, some of a long one.
fn ends(length: usize) -> impl Iterator<Item = usize> {
    (0..length).filter(move |end| *end < 300 || length - end < 20 || end % 997 == 0)
}

proptest! {
    #[test]
    fn messages_come_back(message in any::message()) {
        // Several lists of the greatest length exceed the length of a message together.
        let Some(bytes) = message.encode() else {
            prop_assert!(matches!(message, Message::Want(..)), "{message:?}");
            return Ok(());
        };
        prop_assert_eq!(Message::decode(&bytes), Ok(message.clone()));
        for end in ends(bytes.len()) {
            prop_assert!(Message::receive(&bytes[..end]).is_err(), "cut at {end}");
        }
        let skipped = bytes.len() < Message::LENGTH_MAX;
        let trailing = [&bytes[..], &[0]].concat();
        prop_assert!(Message::decode(&trailing).is_err());
        if skipped {
            let expected = Received::Message { message, skipped };
            prop_assert_eq!(Message::receive(&trailing), Ok(expected));
        }
    }

    #[test]
    fn what_is_received_whole_is_what_is_decoded(message in any::message(), damage in damage()) {
        let Some(mut bytes) = message.encode() else { return Ok(()) };
        spoil(&mut bytes, &damage);
        let received = Message::receive(&bytes);
        match Message::decode(&bytes) {
            Ok(message) => {
                prop_assert_eq!(received, Ok(Received::Message { message, skipped: false }));
            }
            Err(_) => {
                let whole = matches!(received, Ok(Received::Message { skipped: false, .. }));
                prop_assert!(!whole, "{received:?}");
            }
        }
    }

    #[test]
    fn what_is_accepted_is_spelled_so(message in any::message(), damage in damage()) {
        let Some(mut bytes) = message.encode() else { return Ok(()) };
        spoil(&mut bytes, &damage);
        if let Ok(other) = Message::decode(&bytes) {
            prop_assert_eq!(other.encode(), Some(bytes));
        }
    }

    #[test]
    fn any_bytes_are_refused_or_spelled_so(
        kind in 0..20_u8,
        rest in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let bytes = [&[kind], &rest[..]].concat();
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert_eq!(message.encode(), Some(bytes));
        }
    }

    #[test]
    fn introductions_come_back(introduction in any::introduction(), damage in damage()) {
        let mut bytes = introduction.encode().expect("within the limits");
        prop_assert!(bytes.len() <= Introduction::LENGTH_MAX);
        prop_assert_eq!(Introduction::decode(&bytes), Ok(introduction));
        for end in 0..bytes.len() {
            prop_assert!(Introduction::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
        spoil(&mut bytes, &damage);
        if let Ok(other) = Introduction::decode(&bytes) {
            prop_assert_eq!(other.encode(), Some(bytes));
        }
    }

    #[test]
    fn calls_come_back(call in any::call(), damage in damage()) {
        let mut bytes = call.encode();
        prop_assert_eq!(Call::decode(&bytes), Ok(call));
        for end in 0..bytes.len() {
            prop_assert!(Call::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
        spoil(&mut bytes, &damage);
        if let Ok(other) = Call::decode(&bytes) {
            prop_assert_eq!(other.encode(), bytes);
        }
    }

    #[test]
    fn preambles_come_back(preamble in any::preamble(), at in any::<Index>(), byte in any::<u8>()) {
        let mut bytes = preamble.encode();
        prop_assert_eq!(Preamble::decode(&bytes), Ok(preamble));
        bytes[at.index(Preamble::LENGTH)] = byte;
        if let Ok(other) = Preamble::decode(&bytes) {
            prop_assert_eq!(other.encode(), bytes);
        }
    }

    #[test]
    fn heads_of_chunks_come_back(head in any::chunk_head(), at in any::<Index>(), byte in any::<u8>()) {
        let mut bytes = head.encode();
        prop_assert_eq!(ChunkHead::decode(&bytes), Ok(head));
        bytes[at.index(ChunkHead::LENGTH)] = byte;
        if let Ok(other) = ChunkHead::decode(&bytes) {
            prop_assert_eq!(other.encode(), bytes);
        }
    }
}
