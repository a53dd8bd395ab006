//! The messages of a control connection.
//!
//! # Bytes of a message
//!
//! | type | bytes after it |
//! |---|---|
//! | 1 hello | the [`Hello`] |
//! | 2 token | 16 |
//! | 3 ping, 4 pong | number |
//! | 5 get | the [`Get`] |
//! | 6 head | request; the [`Head`] |
//! | 7 segment | request; signature, 64; length; the segment |
//! | 8 opaque | request; the [`Opaque`] |
//! | 9 bytes | request; offset; length; the bytes |
//! | 10 end | request; the [`Outcome`] |
//! | 11 credit | request; bytes; offset |
//! | 12 want | request; their number; each [`Want`] |
//! | 13 dont have | request; their number; names, 32 each |
//! | 14 cancel | request |
//! | 15 have, 16 withdraw | their number; short names of published objects, 8 each |
//! | 17 cancel want | request; their number; names, 32 each |
//!
//! The type is one byte. A field without a stated size is a varint. Bytes after these are skipped.

use super::codec::{self, FrameError, Part, Reader, Unknown, at_most, check_list, sound};
use super::codec::{write_bytes, write_list};
use super::copies::{Copies, Reach};
use super::get::{Get, Want};
use super::introduction::Hello;
use super::outcome::Outcome;
use super::response::{Head, Opaque};
use crate::varint;
use crate::{ChunkId, Hint, Signature, Token};

/// The number of a request on its control connection. The asker chooses it, counting up; no number
/// is used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request(pub u32);

/// One message: a byte for the type, then its fields.
///
/// *Usage* describes the fields (their bytes: at the head of this file), *effects* what the
/// receiver does, *side effects* what else changes for the two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The sender's state has changed since its introduction.
    ///
    /// *Usage:* the whole hello, not only the change. *Effects:* replaces the hello that the
    /// receiver knew. *Side effects:* none.
    Hello(Hello),
    /// Opens one more data connection towards the sender.
    ///
    /// *Usage:* the token. *Effects:* the receiver may dial. *Side effects:* the sender must
    /// remember the token until it is used.
    Token(Token),
    /// Asks for a [`Message::Pong`] with the same number.
    ///
    /// *Usage:* a number that the sender chose. *Effects:* the receiver answers. *Side effects:*
    /// none.
    Ping(u64),
    /// Answers a [`Message::Ping`].
    ///
    /// *Usage:* the ping's number. *Effects:* the sender is alive. *Side effects:* none.
    Pong(u64),
    /// Asks for an object.
    ///
    /// *Usage:* the request, with its number. *Effects:* the receiver answers with a
    /// [`Message::Head`] or a [`Message::Opaque`], or with a [`Message::End`] alone. *Side
    /// effects:* the number is in use until the end or a [`Message::Cancel`].
    Get(Box<Get>),
    /// The head of the response: what is known of the object before its bytes.
    ///
    /// *Usage:* the request, and the record's head. *Effects:* the asker knows the response's
    /// fields; segments may follow. *Side effects:* none.
    Head(Request, Box<Head>),
    /// The next segment of the object's manifest, as `content` encodes it, and its signature.
    ///
    /// *Usage:* the request; the signature over [`segment_signed`](super::segment_signed); 0 to
    /// [`Message::SEGMENT_MAX`] bytes. *Effects:* the asker knows the names of units, and can
    /// request them. *Side effects:* after the first segment, its first units may follow
    /// unrequested.
    Segment(Request, Box<Signature>, Vec<u8>),
    /// The head of a response that no node stores; [`Message::Bytes`] follow.
    ///
    /// *Usage:* the request, and the head. *Effects:* the asker knows the response's fields. *Side
    /// effects:* none.
    Opaque(Request, Box<Opaque>),
    /// Bytes of the response from this offset on that belong to no unit; at most
    /// [`Message::BYTES_MAX`].
    ///
    /// *Usage:* the request, the offset, the bytes; their end fits 64 bits. *Effects:* the receiver
    /// passes them on to the client. *Side effects:* they use up the same amount of credit.
    Bytes(Request, u64, Vec<u8>),
    /// The response has ended; no other message of this request follows.
    ///
    /// *Usage:* the request, and how it ended. *Effects:* the asker knows that anything not sent
    /// yet will not be sent. *Side effects:* the request's number is no longer valid.
    End(Request, Outcome),
    /// Adds credit: this number of further bytes may be sent in [`Message::Bytes`], and segments of
    /// the manifest that begin before this offset of the object.
    ///
    /// *Usage:* the request; bytes, added to the remaining credit; the offset, which is ignored if
    /// it is lower than the last one. *Effects:* the receiver may send more. *Side effects:* none.
    Credit(Request, u32, u64),
    /// Requests units, or the missing ranges of units, over the data connection.
    ///
    /// *Usage:* the request, and at most [`Message::WANTS_MAX`] units. *Effects:* the receiver
    /// sends each in chunk frames, or names it in a [`Message::DontHave`]. *Side effects:* none.
    Want(Request, Vec<Want>),
    /// Requested units that the sender cannot supply, or can no longer supply.
    ///
    /// *Usage:* the request, and at most [`Message::WANTS_MAX`] names. *Effects:* the asker looks
    /// for them elsewhere. *Side effects:* the requests for these units are forgotten.
    DontHave(Request, Vec<ChunkId>),
    /// The asker wants nothing more of this request.
    ///
    /// *Usage:* the request. *Effects:* the receiver stops working for it. *Side effects:* messages
    /// already under way still arrive, and the asker ignores them.
    Cancel(Request),
    /// Published objects that the sender holds, or knows a holder of.
    ///
    /// *Usage:* at most [`Message::HELD_MAX`] short names. *Effects:* the receiver may send requests for
    /// objects with these short names to the sender. *Side effects:* none; the message is valid until a
    /// [`Message::Withdraw`], or until the connection ends.
    Have(Vec<Hint>),
    /// Published objects that the sender no longer holds, and knows no holder of.
    ///
    /// *Usage:* at most [`Message::HELD_MAX`] short names. *Effects:* withdraws a [`Message::Have`].
    /// *Side effects:* none.
    Withdraw(Vec<Hint>),
    /// Takes back the requests for units that the sender has meanwhile received elsewhere, usually
    /// by overhearing.
    ///
    /// *Usage:* the request, and at most [`Message::WANTS_MAX`] names. *Effects:* the receiver
    /// forgets those of these requests that it has not answered yet; it ignores names that were not
    /// requested. *Side effects:* frames already under way still arrive, and the sender ignores
    /// them; a forgotten request is answered neither with chunk frames nor with a
    /// [`Message::DontHave`].
    CancelWant(Request, Vec<ChunkId>),
    /// How far other routers are from the one that this is about.
    ///
    /// *Usage:* the whole of it. *Effects:* replaces what the receiver knew, and is passed on towards the gateway.
    /// *Side effects:* none.
    Reach(Box<Reach>),
    /// What a router has stored and evicted.
    ///
    /// *Usage:* only what the receiver does not know. *Effects:* the receiver may name the router to others that ask
    /// for such an object, and passes the message on towards the gateway. *Side effects:* none.
    Copies(Copies),
}

/// What a peer sent, by the rules for what this version does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message {
        /// The message.
        message: Message,
        /// Whether a part of it is not known, and was skipped.
        skipped: bool,
    },
    /// A message of a type that is not known. It is skipped.
    UnknownType(u8),
    /// A request that requires what is not known. It is answered with [`Outcome::NotUnderstood`].
    NotUnderstood(Request),
}

impl Message {
    /// The most bytes of a response in one message.
    pub const BYTES_MAX: usize = 16 * 1024;
    /// The longest segment of a manifest, in bytes.
    pub const SEGMENT_MAX: usize = 32 * 1024;
    /// The most units in one [`Message::Want`], [`Message::DontHave`] or [`Message::CancelWant`].
    pub const WANTS_MAX: usize = 256;
    /// The most objects in one [`Message::Have`] or [`Message::Withdraw`].
    pub const HELD_MAX: usize = 256;
    /// The most header fields in one list.
    pub const FIELDS_MAX: usize = 256;
    /// The longest `Cache-Status`, in bytes.
    pub const STATUS_LINE_MAX: usize = 4 * 1024;
    /// The longest encoded message, in bytes: with its tag it fits a Noise message.
    pub const LENGTH_MAX: usize = 65_535 - 16;

    /// Its encoding; `None` if it breaks a limit.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        codec::encode(self, Self::LENGTH_MAX)
    }

    /// Reads exactly one message, of which this version knows everything.
    ///
    /// # Errors
    ///
    /// Any input that is not the encoding of a message within the limits.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        codec::decode(bytes, Self::LENGTH_MAX)
    }

    /// Reads a message that may be of a later version.
    ///
    /// # Errors
    ///
    /// Any input whose known part is not the encoding of a message within the limits.
    pub fn receive(bytes: &[u8]) -> Result<Received, FrameError> {
        match bytes.first() {
            None => return Err(FrameError::Malformed),
            Some(kind) if !Self::KINDS.contains(kind) => {
                at_most(bytes.len(), Self::LENGTH_MAX)?;
                return Ok(Received::UnknownType(*kind));
            }
            Some(_) => {}
        }
        let (message, unknown) = codec::receive::<Self>(bytes, Self::LENGTH_MAX)?;
        Ok(match (unknown, message.request()) {
            (Unknown::Required, Some(request)) => Received::NotUnderstood(request),
            _ => Received::Message { message, skipped: unknown != Unknown::Nothing },
        })
    }

    /// The types that are known.
    const KINDS: std::ops::RangeInclusive<u8> = 1..=19;

    fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => 1,
            Self::Token(_) => 2,
            Self::Ping(_) => 3,
            Self::Pong(_) => 4,
            Self::Get(_) => 5,
            Self::Head(..) => 6,
            Self::Segment(..) => 7,
            Self::Opaque(..) => 8,
            Self::Bytes(..) => 9,
            Self::End(..) => 10,
            Self::Credit(..) => 11,
            Self::Want(..) => 12,
            Self::DontHave(..) => 13,
            Self::Cancel(_) => 14,
            Self::Have(_) => 15,
            Self::Withdraw(_) => 16,
            Self::CancelWant(..) => 17,
            Self::Reach(_) => 18,
            Self::Copies(_) => 19,
        }
    }

    /// The request that it belongs to; `None` for messages about the connection or the peer.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        match self {
            Self::Hello(_)
            | Self::Token(_)
            | Self::Ping(_)
            | Self::Pong(_)
            | Self::Have(_)
            | Self::Withdraw(_)
            | Self::Reach(_)
            | Self::Copies(_) => None,
            Self::Get(get) => Some(get.request),
            Self::Head(request, _)
            | Self::Segment(request, ..)
            | Self::Opaque(request, _)
            | Self::Bytes(request, ..)
            | Self::End(request, _)
            | Self::Credit(request, ..)
            | Self::Want(request, _)
            | Self::DontHave(request, _)
            | Self::CancelWant(request, _)
            | Self::Cancel(request) => Some(*request),
        }
    }
}

impl Part for Message {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.kind());
        // `Get::write` writes the number itself.
        if let Some(request) = self.request().filter(|_| !matches!(self, Self::Get(_))) {
            request.write(out);
        }
        match self {
            Self::Hello(hello) => hello.write(out),
            Self::Token(token) => out.extend_from_slice(&token.0),
            Self::Ping(number) | Self::Pong(number) => varint::write(*number, out),
            Self::Get(get) => get.write(out),
            Self::Head(_, head) => head.write(out),
            Self::Segment(_, signature, segment) => {
                out.extend_from_slice(&signature.0);
                write_bytes(segment, out);
            }
            Self::Opaque(_, opaque) => opaque.write(out),
            Self::Bytes(_, offset, bytes) => {
                varint::write(*offset, out);
                write_bytes(bytes, out);
            }
            Self::End(_, outcome) => outcome.write(out),
            Self::Credit(_, bytes, manifest_credit) => {
                varint::write((*bytes).into(), out);
                varint::write(*manifest_credit, out);
            }
            Self::Want(_, wants) => write_list(wants, out),
            Self::DontHave(_, names) | Self::CancelWant(_, names) => write_list(names, out),
            Self::Cancel(_) => {}
            Self::Have(names) | Self::Withdraw(names) => write_list(names, out),
            Self::Reach(reach) => reach.write(out),
            Self::Copies(copies) => copies.write(out),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        Ok(match reader.byte()? {
            1 => Self::Hello(Hello::read(reader)?),
            2 => Self::Token(Token(reader.array()?)),
            3 => Self::Ping(reader.number()?),
            4 => Self::Pong(reader.number()?),
            5 => Self::Get(Box::new(Get::read(reader)?)),
            6 => Self::Head(Request::read(reader)?, Box::new(Head::read(reader)?)),
            7 => Self::Segment(
                Request::read(reader)?,
                Box::new(Signature(reader.array()?)),
                reader.bytes()?,
            ),
            8 => Self::Opaque(Request::read(reader)?, Box::new(Opaque::read(reader)?)),
            9 => Self::Bytes(Request::read(reader)?, reader.number()?, reader.bytes()?),
            10 => Self::End(Request::read(reader)?, Outcome::read(reader)?),
            11 => Self::Credit(Request::read(reader)?, reader.number()?, reader.number()?),
            12 => Self::Want(Request::read(reader)?, reader.list()?),
            13 => Self::DontHave(Request::read(reader)?, reader.list()?),
            14 => Self::Cancel(Request::read(reader)?),
            15 => Self::Have(reader.list()?),
            16 => Self::Withdraw(reader.list()?),
            17 => Self::CancelWant(Request::read(reader)?, reader.list()?),
            18 => Self::Reach(Box::new(Reach::read(reader)?)),
            19 => Self::Copies(Copies::read(reader)?),
            _ => return Err(FrameError::Malformed),
        })
    }

    fn check(&self) -> Result<(), FrameError> {
        match self {
            Self::Hello(hello) => hello.check(),
            Self::Get(get) => get.check(),
            Self::Head(_, head) => head.check(),
            Self::Segment(_, _, segment) => at_most(segment.len(), Self::SEGMENT_MAX),
            Self::Opaque(_, opaque) => opaque.check(),
            Self::End(_, outcome) => outcome.check(),
            Self::Bytes(_, offset, bytes) => {
                at_most(bytes.len(), Self::BYTES_MAX)?;
                sound(offset.checked_add(bytes.len() as u64).is_some())
            }
            Self::Want(_, wants) => check_list(wants),
            Self::DontHave(_, names) | Self::CancelWant(_, names) => check_list(names),
            Self::Have(names) | Self::Withdraw(names) => check_list(names),
            Self::Reach(reach) => reach.check(),
            Self::Copies(copies) => copies.check(),
            Self::Token(_) | Self::Ping(_) | Self::Pong(_) | Self::Credit(..) | Self::Cancel(_) => {
                Ok(())
            }
        }
    }
}

impl Part for Request {
    fn write(&self, out: &mut Vec<u8>) {
        varint::write(self.0.into(), out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        reader.number().map(Self)
    }

    fn check(&self) -> Result<(), FrameError> {
        Ok(())
    }
}
