//! Properties of peers' frames that hold for any input.

use wire::peer::{Call, Envelope, Introduction, Message, Received};

/// A message: what is known of it has one encoding. Returns whether it is accepted.
pub fn message(bytes: &[u8]) -> bool {
    let received = Message::receive(bytes);
    let exact = Message::decode(bytes).ok();
    match &received {
        Ok(Received::Message { message, skipped: false }) => {
            assert_eq!(message.encode().as_deref(), Some(bytes), "another encoding");
            assert_eq!(exact.as_ref(), Some(message));
        }
        Ok(Received::Message { message, skipped: true }) => {
            assert_eq!(exact, None, "something was skipped");
            let again = message.encode().expect("what is left is within the limits");
            assert_eq!(Message::decode(&again).as_ref(), Ok(message));
        }
        Ok(Received::UnknownType(_) | Received::NotUnderstood(_)) | Err(_) => {
            assert_eq!(exact, None, "it is understood after all");
        }
    }
    received.is_ok()
}

/// An introduction: what is known of it has one encoding. Returns whether it is accepted.
pub fn introduction(bytes: &[u8]) -> bool {
    let Ok((introduction, skipped)) = Introduction::receive(bytes) else {
        assert!(Introduction::decode(bytes).is_err());
        return false;
    };
    let again = introduction.encode().expect("it is within the limits");
    assert_eq!(again == bytes, !skipped, "another encoding");
    assert_eq!(Introduction::decode(&again), Ok(introduction));
    true
}

/// A datagram in clear: its call has one encoding. Returns whether it is accepted.
pub fn datagram(bytes: &[u8]) -> bool {
    let Ok((envelope, call)) = Envelope::read(bytes) else { return false };
    let mut again = Vec::new();
    envelope.write(&mut again);
    assert_eq!(again, bytes[..bytes.len() - call.len()]);
    let decoded = Call::decode(call);
    assert!(decoded.is_err() || decoded.is_ok_and(|it| it.encode() == call), "another encoding");
    envelope == Envelope::Open && decoded.is_ok()
}
