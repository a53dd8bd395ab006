//! Manifests that peers send: each segment is checked, kept, and tells which units may come or be asked for.

use super::Node;
use crate::catalogue;
use crate::catalogue::Signed;
use crate::chunks::{Unit, is_sealed_as};
use crate::input::FetchId;
use crate::object::fetch::Fetch;
use crate::object::storing::Storing;
use crate::peers::verify;
use crate::request::UNASKED_BYTES;
use crate::source::Pursuit;
use bytes::Bytes;
use content::Segment;
use std::rc::Rc;
use store::Provenance;
use wire::peer::Request;
use wire::{ChunkId, NodeId, PublicKey, Signature};

impl Node {
    /// A segment of a manifest.
    pub(super) fn segment(
        &mut self,
        peer: NodeId,
        request: Request,
        signature: Signature,
        bytes: &[u8],
    ) {
        let Some(id) = self.source.asked(peer, request) else { return };
        let storing = self.object.fetches.get_mut(&id).and_then(Fetch::storing);
        let Some(storing) = storing else { return };
        let segment = match check_segment(storing, self.cx.sealer.is_some(), &signature, bytes) {
            Ok(segment) => Rc::new(segment),
            Err(why) => return self.cx.expel(peer, why),
        };
        if contradicts(storing, &segment) {
            return match storing.listed().is_some_and(|listed| listed.turned) {
                // It is the word of the one that was asked before.
                true => self.broken(id),
                false => self.cx.expel(peer, "a manifest of another length than was announced"),
            };
        }
        // Another one that was asked meanwhile would tell the same segment again.
        self.source.heed(&mut self.cx, id, (peer, request));
        if !self.cx.is_flying(id) {
            // Else only units show that the way is good.
            self.source.get_mut(id).into_iter().for_each(Pursuit::found_way);
        }
        self.add_listed(id, segment, signature);
    }

    fn add_listed(&mut self, id: FetchId, segment: Rc<Segment>, signature: Signature) {
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        storing.close_segment(&segment, Some(signature));
        let mut before = None;
        if let Some(listed) = storing.listed() {
            listed.next += 1;
            listed.end = segment.end_offset();
            before = listed.last.replace(Rc::clone(&segment));
        }
        let (end, takes_up) = (segment.end_offset(), storing.is_hollow());
        let closing = segment.closing;
        self.object.write_segment(
            &mut self.cx,
            id,
            Signed { segment: Rc::clone(&segment), signature: Some(signature) },
        );
        if let Some(ear) = &mut self.cx.ear {
            ear.handle_listed(self.cx.now, before.as_deref(), &segment);
            self.hand_on_heard();
            self.cx.take_back();
        }
        if segment.number == 0 && !takes_up {
            self.expect_unasked(id, &segment);
        }
        if closing.is_some() {
            self.listed_whole(id, end);
        } else if end > self.cx.config.object_bytes_max {
            self.outgrow(id);
        }
        match self.awaits_order(id, &segment) {
            // Peers are told of it at once.
            true => self.peers_ready(id),
            false => self.object.readers_ready(&mut self.cx, id),
        }
        let storing = self.object.fetches.get_mut(&id).and_then(Fetch::storing);
        if storing.is_some_and(|storing| storing.readers.is_empty()) {
            self.want_rest(id);
        }
        self.cx.turns.dirty(id);
    }

    /// Whether readers of an object should want nothing for a moment: its first segment has come, and what was heard
    /// of it may lie behind a missed head.
    fn awaits_order(&mut self, id: FetchId, segment: &Segment) -> bool {
        let is_first = segment.number == 0 && segment.closing.is_none();
        let is_needed = is_first && segment.entries.iter().any(|it| self.cx.is_missing(&it.id));
        let sparing = self.source.get(id).is_some_and(Pursuit::is_sparing);
        let Some(ear) = &mut self.cx.ear else { return false };
        ear.awaits_order(self.cx.now, id, is_needed && sparing)
    }

    /// The first units of a small object follow its first segment unasked.
    fn expect_unasked(&mut self, id: FetchId, segment: &Segment) {
        if self.source.get(id).is_some_and(Pursuit::is_sparing) {
            let mut units = unasked(segment).into_iter().peekable();
            let in_vain =
                units.peek().is_some() && units.all(|(name, _)| !self.cx.chunks.holds(&name));
            if let Some(ear) = self.cx.ear.as_mut().filter(|_| in_vain) {
                ear.hoped_in_vain();
            }
            return;
        }
        for (name, unit) in unasked(segment) {
            if self.cx.chunks.holds(&name) || self.cx.flights.contains(&name) {
                continue;
            }
            self.cx.flights.begin(name, id, unit);
            if let Some(ear) = &mut self.cx.ear {
                ear.want(self.cx.now, name, unit.length);
            }
            let early = self.cx.flights.early.take(&name);
            let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
            fetch.granted += u64::from(unit.length);
            self.count_unasked(id, &name, unit);
            if let Some(bytes) = early {
                self.came_early(name, bytes);
            }
        }
    }

    /// A unit that is wanted has come before, and is true.
    pub(super) fn came_early(&mut self, name: ChunkId, bytes: Bytes) {
        let flight = self.cx.flights.remove(&name);
        if let Some(flight) = flight {
            self.unit_is_here(name, flight, bytes, Provenance::Own);
        }
    }

    /// What comes unasked comes from a peer, too.
    fn count_unasked(&mut self, id: FetchId, name: &ChunkId, unit: Unit) {
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        for reader in storing.readers.clone() {
            let mut counts = false;
            self.client.with_serving(reader, |serving| {
                counts = serving.leads && serving.wanted_to + u64::from(unit.length) == unit.end;
                serving.wanted_to = if counts { unit.end } else { serving.wanted_to };
            });
            if counts {
                self.client.count_from_peer(&mut self.cx, reader, name, unit.length);
            }
        }
    }

    /// The manifest is whole.
    fn listed_whole(&mut self, id: FetchId, length: u64) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let requested = fetch.requested;
        let Some(storing) = fetch.storing() else { return };
        storing.ended = true;
        storing.announced = Some(length);
        storing.whole = Some(Rc::new(storing.so_far(requested)));
        for reader in storing.readers.clone() {
            self.client.object_ends(reader, length);
        }
    }
}

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
fn check_segment(
    storing: &mut Storing,
    sealed: bool,
    signature: &Signature,
    bytes: &[u8],
) -> Result<Segment, &'static str> {
    let (record, ended) = (storing.record, storing.ended);
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
        if !catalogue::certifies(&root, &segment, &digest) {
            return Err("a segment that the object's name does not certify");
        }
    } else if !signer.is_some_and(|signer: PublicKey| verify(&signer, &signed, signature)) {
        return Err("a segment is not signed by who signed the record");
    }
    if segment.first_offset > listed.cover {
        return Err("a segment that nobody gave credit for");
    }
    if !is_sealed_as(&segment, sealed) {
        return Err("units that are not sealed as those of this mesh");
    }
    if has_crumbs(&segment) {
        return Err("units that are smaller than any that is cut");
    }
    Ok(segment)
}

/// Whether a manifest is of another length than was announced.
fn contradicts(storing: &Storing, segment: &Segment) -> bool {
    storing.announced.is_some_and(|length| {
        segment.end_offset() > length
            || segment.closing.is_some_and(|closing| closing.length != length)
    })
}

/// Whether units are smaller than the profile cuts them; the last of an object may be.
fn has_crumbs(segment: &Segment) -> bool {
    let last = segment.closing.is_some().then(|| segment.entries.len().saturating_sub(1));
    let small = |length| length < segment.profile.unit.minimum;
    segment.entries.iter().enumerate().any(|(at, entry)| small(entry.length) && Some(at) != last)
}
