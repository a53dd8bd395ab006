//! Segments of manifests as the catalogue keeps them.

use content::{Root, Segment};
use std::rc::Rc;
use wire::Signature;

/// A segment, and what vouches for it; nothing, if we do.
#[derive(Clone, Debug, PartialEq)]
pub struct Signed {
    pub segment: Rc<Segment>,
    pub signature: Option<Signature>,
}

/// Which segment covers a position, by where each begins.
pub fn segment_number(offsets: &[u64], position: u64) -> u32 {
    offsets.partition_point(|offset| *offset <= position).saturating_sub(1) as u32
}

/// A segment of a manifest as the catalogue keeps it, with or without a signature; `None` for other bytes.
pub fn stored_segment(bytes: &[u8]) -> Option<Rc<Segment>> {
    Signed::decode(bytes).map(|signed| signed.segment)
}

impl Signed {
    /// As the catalogue keeps it: the segment, or a one, the signature and the segment. A segment never
    /// begins with a one.
    pub fn encode(&self) -> Vec<u8> {
        let segment = self.segment.encode();
        match &self.signature {
            None => segment,
            Some(signature) => [&[1], &signature.as_bytes()[..], &segment].concat(),
        }
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` for anything else.
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

/// A segment as the catalogue keeps it, if the root of its object certifies it.
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
