//! The beginning of a response.
//!
//! # Bytes of a head
//!
//! | bytes | field |
//! |---|---|
//! | 1 | flags: bit 0 confirmed, 1 length; the others zero |
//! | 16 | record |
//! | varint | status |
//! | varint, … | fields: their number, then each |
//! | varint, … | selecting fields: their number, then each |
//! | 32 | signer |
//! | 64 | signature |
//! | varint | age |
//! | varint | if length: the object's length |
//! | varint, … | the status line's length, the status line |
//!
//! # Bytes of an opaque head
//!
//! | bytes | field |
//! |---|---|
//! | 1 | flags: bit 0 length; the others zero |
//! | varint | status |
//! | varint, … | fields: their number, then each |
//! | varint | if length: the response's length |
//! | varint, … | the status line's length, the status line |
//!
//! # What is signed
//!
//! | what | bytes |
//! |---|---|
//! | a head | `hearsay 2026 head of a record` and a zero byte; the object's key, 32; record, 16; status; fields; selecting fields: as above |
//! | a segment | `hearsay 2026 segment of a manifest` and a zero byte; record, 16; digest, 32 |

use super::codec::{
    FrameError, Part, Reader, check_line, check_list, sound, write_bytes, write_list,
};
use super::field::{Field, Selecting};
use super::message::Message;
use crate::varint;
use crate::{ObjectKey, PublicKey, RecordId, Signature};

/// The context of a head's signature. No context is a prefix of another, so a signature on one kind
/// of data is never valid for another kind.
const HEAD_CONTEXT: &[u8] = b"hearsay 2026 head of a record\0";
/// The context of a segment's signature.
const SEGMENT_CONTEXT: &[u8] = b"hearsay 2026 segment of a manifest\0";

const HEAD_CONFIRMED: u8 = 1;
const HEAD_LENGTH: u8 = 1 << 1;
const OPAQUE_LENGTH: u8 = 1;

/// A record without its manifest, signed by the node that dialled the origin (docs/protocol.md,
/// "What is signed").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The stale record of the asker is still valid, with these fields; no segments follow.
    pub confirmed: bool,
    /// The version of the object.
    pub record: RecordId,
    /// The status of the response: 100 to 999.
    pub status: u16,
    /// The end-to-end fields of the response; at most [`Message::FIELDS_MAX`].
    pub fields: Vec<Field>,
    /// The request fields that select this response (RFC 9111 §4.1); at most
    /// [`Message::FIELDS_MAX`].
    pub selecting: Vec<Selecting>,
    /// The key of the node that signed.
    pub signer: PublicKey,
    /// The signature over [`Head::signed`].
    pub signature: Signature,
    /// The age of the response when this is sent, in seconds. It is not signed, because it grows.
    pub age: u32,
    /// The object's length in bytes, if it is known.
    pub length: Option<u64>,
    /// `Cache-Status` (RFC 9211) of all caches so far, the one nearest to the origin first; at most
    /// [`Message::STATUS_LINE_MAX`] bytes, without control characters.
    pub status_line: String,
}

/// The head of a response that must not be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// The status of the response: 100 to 999.
    pub status: u16,
    /// The end-to-end fields of the response; at most [`Message::FIELDS_MAX`].
    pub fields: Vec<Field>,
    /// The response's length in bytes, if it is known.
    pub length: Option<u64>,
    /// `Cache-Status` (RFC 9211) of all caches so far, the one nearest to the origin first; at most
    /// [`Message::STATUS_LINE_MAX`] bytes, without control characters.
    pub status_line: String,
}

impl Head {
    /// The bytes that are signed: the object's key, and all fields that do not change on the way.
    #[must_use]
    pub fn signed(&self, key: &ObjectKey) -> Vec<u8> {
        let mut out = HEAD_CONTEXT.to_vec();
        out.extend_from_slice(&key.0);
        out.extend_from_slice(&self.record.0);
        varint::write(self.status.into(), &mut out);
        write_list(&self.fields, &mut out);
        write_list(&self.selecting, &mut out);
        out
    }
}

/// The bytes that are signed for a segment of a manifest. The digest covers the segments before it
/// too.
#[must_use]
pub fn segment_signed(record: &RecordId, digest: &[u8; 32]) -> Vec<u8> {
    [SEGMENT_CONTEXT, &record.0, digest].concat()
}

impl Part for Head {
    fn write(&self, out: &mut Vec<u8>) {
        let confirmed = if self.confirmed { HEAD_CONFIRMED } else { 0 };
        let length = if self.length.is_some() { HEAD_LENGTH } else { 0 };
        out.push(confirmed | length);
        out.extend_from_slice(&self.record.0);
        varint::write(self.status.into(), out);
        write_list(&self.fields, out);
        write_list(&self.selecting, out);
        out.extend_from_slice(&self.signer.0);
        out.extend_from_slice(&self.signature.0);
        varint::write(self.age.into(), out);
        if let Some(length) = self.length {
            varint::write(length, out);
        }
        write_bytes(self.status_line.as_bytes(), out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let flags = reader.flags(HEAD_CONFIRMED | HEAD_LENGTH)?;
        Ok(Self {
            confirmed: flags & HEAD_CONFIRMED != 0,
            record: RecordId(reader.array()?),
            status: reader.number()?,
            fields: reader.list()?,
            selecting: reader.list()?,
            signer: PublicKey(reader.array()?),
            signature: Signature(reader.array()?),
            age: reader.number()?,
            length: reader.option(flags & HEAD_LENGTH != 0, Reader::number)?,
            status_line: reader.text()?,
        })
    }

    fn check(&self) -> Result<(), FrameError> {
        check_status(self.status)?;
        check_list(&self.fields)?;
        check_list(&self.selecting)?;
        check_line(&self.status_line, Message::STATUS_LINE_MAX)
    }
}

impl Part for Opaque {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(if self.length.is_some() { OPAQUE_LENGTH } else { 0 });
        varint::write(self.status.into(), out);
        write_list(&self.fields, out);
        if let Some(length) = self.length {
            varint::write(length, out);
        }
        write_bytes(self.status_line.as_bytes(), out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let flags = reader.flags(OPAQUE_LENGTH)?;
        Ok(Self {
            status: reader.number()?,
            fields: reader.list()?,
            length: reader.option(flags & OPAQUE_LENGTH != 0, Reader::number)?,
            status_line: reader.text()?,
        })
    }

    fn check(&self) -> Result<(), FrameError> {
        check_status(self.status)?;
        check_list(&self.fields)?;
        check_line(&self.status_line, Message::STATUS_LINE_MAX)
    }
}

fn check_status(status: u16) -> Result<(), FrameError> {
    sound((100..=999).contains(&status))
}
