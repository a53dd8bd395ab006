//! An end of an uplink's pair without an engine, which says what a test makes it say, and properties that must
//! hold for any bytes.

use crate::uplink::codec::Fields;
use crate::uplink::control::{Reader, Speaker};
use crate::uplink::messages::{Context, Skipped, decode, encode};
use crate::uplink::session::{self, Came, Session};
use crate::uplink::wanax::Listing;
use crate::uplink::{Guest, Message, PairKeys, Refused};
use bytes::Bytes;
use wire::{PublicKey, varint};

mod engines;

pub use engines::{published as uplink_published, records as uplink_record};

/// One end of a connection.
pub struct PairEnd {
    keys: PairKeys,
    session: Session,
    speaker: Speaker,
    reader: Reader,
}

/// What came from the other end.
#[derive(Debug)]
pub enum Heard {
    /// Nothing more.
    Nothing,
    /// The other end has proven this key.
    Known(PublicKey),
    /// It refuses.
    Refused(Refused),
    /// It broke the protocol.
    Broken,
    /// The messages of a record.
    Messages(Vec<Message>),
}

impl PairEnd {
    /// The end that dials the far end with this key.
    pub fn near(mut keys: PairKeys, far: &PublicKey) -> Self {
        let session = Session::near(&mut keys, far);
        Self { keys, session, speaker: Speaker::default(), reader: Reader::default() }
    }

    /// The end that is dialled.
    pub fn far(keys: PairKeys) -> Self {
        let (speaker, reader) = (Speaker::default(), Reader::default());
        Self { keys, session: Session::far(), speaker, reader }
    }

    /// Bytes have arrived.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.session.receive(bytes);
    }

    /// What came next.
    pub fn poll(&mut self) -> Heard {
        loop {
            let before = self.session.waiting();
            match self.session.poll(&mut self.keys) {
                Came::Nothing if self.session.waiting() < before => {}
                Came::Nothing => return Heard::Nothing,
                Came::Known(key) => return Heard::Known(key),
                Came::Refused(why) => return Heard::Refused(why),
                Came::Broken | Came::Unproven => return Heard::Broken,
                Came::Record(record) => {
                    return self.read(&record).map_or(Heard::Broken, Heard::Messages);
                }
            }
        }
    }

    fn read(&mut self, mut record: &[u8]) -> Option<Vec<Message>> {
        let length = usize::try_from(varint::read(&mut record)?).ok()?;
        let control = record.get(..length)?;
        let mut messages = Vec::new();
        if !control.is_empty() {
            self.reader.hear(control, |message| messages.push(message)).ok()?;
        }
        Some(messages)
    }

    /// Messages, encoded and compressed.
    pub fn control(&mut self, messages: &[Message]) -> Option<Vec<u8>> {
        self.speaker.say(messages.iter())
    }

    /// Far: accepts who is known.
    pub fn accept(&mut self) {
        self.session.accept();
    }

    /// Far: refuses.
    pub fn refuse(&mut self, why: Refused) {
        self.session.refuse(why);
    }

    /// Bytes of the handshake to send.
    pub fn take_outbox(&mut self) -> Option<Bytes> {
        self.session.take_outbox()
    }

    /// A record of messages and parts of payloads, each with its distance from the newest.
    pub fn say(&mut self, messages: &[Message], parts: &[(u64, &[u8])]) -> Option<Bytes> {
        let control = match messages.is_empty() {
            true => Vec::new(),
            false => self.control(messages)?,
        };
        self.say_control(&control, parts)
    }

    /// A record of encoded messages.
    pub fn say_encoded(&mut self, messages: &[u8]) -> Option<Bytes> {
        let control = self.speaker.compress(messages)?;
        self.say_control(&control, &[])
    }

    /// A record with this compressed control part.
    pub fn say_control(&mut self, control: &[u8], parts: &[(u64, &[u8])]) -> Option<Bytes> {
        let mut plain = Vec::new();
        varint::write(control.len() as u64, &mut plain);
        plain.extend_from_slice(control);
        for (back, bytes) in parts {
            varint::write(*back, &mut plain);
            varint::write(bytes.len() as u64, &mut plain);
            plain.extend_from_slice(bytes);
        }
        self.say_plain(&plain)
    }

    /// A record with this plain text; `None` if there is no session, or it is too long.
    pub fn say_plain(&mut self, plain: &[u8]) -> Option<Bytes> {
        self.session.seal(plain)
    }
}

/// What a near end begins with, as if it knew the far end with this key.
pub fn uplink_proven(beginning: &[u8], far: &PublicKey) -> Option<Vec<u8>> {
    session::proven(beginning, far)
}

/// Messages, encoded.
pub fn uplink_encoded(messages: &[Message]) -> Vec<u8> {
    let (mut cx, mut out) = (Context::default(), Vec::new());
    messages.iter().for_each(|message| encode(&mut cx, message, &mut out));
    out
}

/// Messages that decode are encoded again with the same meaning.
///
/// # Panics
/// If that does not hold.
pub fn uplink_messages(bytes: &[u8]) {
    let [mut cx, mut again, mut third] = [Context::default(); 3];
    let (mut fields, mut skipped) = (Fields(bytes), Skipped::default());
    while let Ok(message) = decode(&mut cx, &mut fields, &mut skipped) {
        let Some(message) = message else { continue };
        let mut encoded = Vec::new();
        encode(&mut again, &message, &mut encoded);
        let (mut rest, mut left) = (Fields(&encoded), Skipped::default());
        let decoded = decode(&mut third, &mut rest, &mut left);
        assert!(rest.0.is_empty(), "{} bytes more than the message", rest.0.len());
        assert_eq!(decoded.as_ref(), Ok(&Some(message)));
        assert_eq!(left, Skipped::default());
    }
}

/// A list of a root's chunks that decodes is encoded again to the same bytes.
///
/// # Panics
/// If that does not hold.
pub fn uplink_listing(bytes: &[u8]) {
    let Ok(listing) = Listing::decode(bytes) else { return };
    let mut encoded = Vec::new();
    listing.encode(&mut encoded);
    assert_eq!(encoded, bytes);
}

/// Any control stream is read or refused. The bytes are pieces, each after its length in two bytes.
pub fn uplink_control(bytes: &[u8]) {
    let mut reader = Reader::default();
    let mut count = 0;
    for piece in pieces(bytes) {
        if reader.hear(piece, |_| count += 1).is_err() {
            return;
        }
    }
}

/// Both ends survive any bytes instead of a handshake, however they are split. The first byte tells how.
pub fn uplink_handshake(bytes: &[u8]) {
    let Some((split, bytes)) = bytes.split_first() else { return };
    let size = usize::from(*split).max(1);
    let keys = || PairKeys::new(&[1; 32], &[2; 32]);
    let (mut guest, mut far_keys) = (Guest::default(), keys());
    for piece in bytes.chunks(size) {
        match guest.receive(piece, &mut far_keys) {
            Ok(None) => {}
            Ok(Some(key)) => panic!("{key} was not proven"),
            Err(_) => break,
        }
    }
    engines::handshake(bytes.chunks(size), keys());
}

/// Pieces that each follow their length in two bytes, big-endian; the last may be cut short.
fn pieces(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (piece, rest) = rest.split_at(length);
        bytes = rest;
        Some(piece)
    })
}
