//! Manifest segments as the catalogue stores them, with their signatures.

use content::{Root, Segment};
use std::rc::Rc;
use wire::Signature;

/// A segment and its signature; `None` if this router made the segment itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Signed {
    pub segment: Rc<Segment>,
    pub signature: Option<Signature>,
}

/// The number of the segment that covers a position; `offsets` has the beginning of each segment.
pub fn segment_number(offsets: &[u64], position: u64) -> u32 {
    offsets.partition_point(|offset| *offset <= position).saturating_sub(1) as u32
}

/// Decodes a stored segment, with or without a signature; `None` if the bytes are malformed.
pub fn stored_segment(bytes: &[u8]) -> Option<Rc<Segment>> {
    Signed::decode(bytes).map(|signed| signed.segment)
}

impl Signed {
    /// The form that the catalogue stores: without a signature, the segment; else a byte 1, the
    /// signature and the segment. A segment never begins with a byte 1.
    pub fn encode(&self) -> Vec<u8> {
        let segment = self.segment.encode();
        match &self.signature {
            None => segment,
            Some(signature) => [&[1], &signature.as_bytes()[..], &segment].concat(),
        }
    }

    /// Reads a segment that [`encode`](Self::encode) wrote; `None` if the bytes are malformed.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (signature, bytes) = match bytes.split_first() {
            Some((1, rest)) => {
                let (signature, rest) = rest.split_first_chunk()?;
                (Some(Signature(*signature)), rest)
            }
            _ => (None, bytes),
        };
        let segment = Rc::new(Segment::decode(bytes).ok()?);
        Some(Self { segment, signature })
    }
}

/// Decodes a stored segment; `None` unless the root of its object certifies it.
pub fn certifies_kept(root: &Root, bytes: &[u8]) -> Option<Rc<Segment>> {
    let segment = Signed::decode(bytes)?.segment;
    let digest = Segment::digest(&segment.encode());
    certifies(root, &segment, &digest).then_some(segment)
}

/// Whether the root of an object certifies a segment.
pub fn certifies(root: &Root, segment: &Segment, digest: &[u8; 32]) -> bool {
    let number = usize::try_from(segment.number).unwrap_or(usize::MAX);
    let is_last = number.checked_add(1) == Some(root.segments.len());
    root.segments.get(number) == Some(digest) && segment.closing.is_some() == is_last
}
