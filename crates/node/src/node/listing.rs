//! Segments of manifests, as peers tell them: what of them is believed, and what follows unasked.

use super::named::certifies;
use super::unseal::is_sealed_as;
use crate::mesh::{Unit, verify};
use crate::storing::Storing;
use crate::supplying::UNASKED_BYTES;
use content::Segment;
use wire::{ChunkId, PublicKey, Signature};

/// The units that follow a first segment unasked.
pub(super) fn unasked(segment: &Segment) -> Vec<(ChunkId, Unit)> {
    let mut end = segment.first_offset;
    let mut units = Vec::new();
    for entry in &segment.entries {
        end += u64::from(entry.length);
        if end > UNASKED_BYTES {
            break;
        }
        units.push((entry.id, Unit::listed(entry, end)));
    }
    units
}

/// Holds a segment against what is known of the object.
pub(super) fn check_segment(
    storing: &mut Storing,
    sealed: bool,
    signature: &Signature,
    bytes: &[u8],
) -> Result<Segment, &'static str> {
    let (record, announced, ended) = (storing.record, storing.announced, storing.ended);
    let signer = storing.voucher.as_ref().map(|voucher| voucher.signer);
    let root = storing.root.clone();
    let Some(listed) = storing.listed() else { return Err("a manifest that nobody asked for") };
    let segment = Segment::decode(bytes).map_err(|_| "a segment that is none")?;
    let digest = Segment::digest(bytes);
    if ended || segment.number != u64::from(listed.next) {
        return Err("a segment out of turn");
    }
    if listed.last.as_ref().is_some_and(|last| segment.follows(last).is_err()) {
        return Err("a segment that does not follow the one before");
    }
    let signed = wire::peer::segment_signed(&record, &digest);
    if let Some(root) = root {
        if !certifies(&root, &segment, &digest) {
            return Err("a segment that the object's name does not certify");
        }
    } else if !signer.is_some_and(|signer: PublicKey| verify(&signer, &signed, signature)) {
        return Err("a segment is not signed by who signed the record");
    }
    let end = segment.end_offset();
    if segment.first_offset > listed.cover {
        return Err("a segment that nobody gave credit for");
    }
    if !is_sealed_as(&segment, sealed) {
        return Err("units that are not sealed as those of this mesh");
    }
    if has_crumbs(&segment) {
        return Err("units that are smaller than any that is cut");
    }
    let other = announced.is_some_and(|length| {
        end > length || segment.closing.is_some_and(|closing| closing.length != length)
    });
    if other { Err("a manifest of another length than was announced") } else { Ok(segment) }
}

/// Whether units are smaller than the profile cuts them; the last of an object may be.
fn has_crumbs(segment: &Segment) -> bool {
    let last = segment.closing.is_some().then(|| segment.entries.len().saturating_sub(1));
    let small = |length| length < segment.profile.unit.minimum;
    segment.entries.iter().enumerate().any(|(at, entry)| small(entry.length) && Some(at) != last)
}
