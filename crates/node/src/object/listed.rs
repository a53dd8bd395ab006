//! Manifests from peers: each segment is checked and kept; its units may then arrive without a
//! want, or be requested.

use super::{Broken, Objects, Value};
use crate::catalogue;
use crate::catalogue::Signed;
use crate::chunks::{Unit, is_sealed_as};
use crate::context::Context;
use crate::identity::verify;
use crate::input::FetchId;
use crate::misbehaviour::Misbehaviour;
use crate::pursuits::Pursuit;
use crate::transfers::incoming::Incoming;
use crate::transfers::transfer::Transfer;
use crate::transfers::{Readers, unsolicited};
use content::Segment;
use std::rc::Rc;
use wire::peer::Request;
use wire::{ChunkId, NodeId, PublicKey, Signature};

impl Objects {
    /// A segment of a manifest has arrived.
    pub fn segment(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        (peer, request): (NodeId, Request),
        signature: Signature,
        bytes: &[u8],
    ) {
        let incoming = cx.transfers.get_mut(&id);
        let Some(incoming) = incoming else { return };
        // Everything that a peer could forge is checked before the segment has any effect.
        let segment = match check_segment(incoming, cx.sealer.is_some(), &signature, bytes) {
            Ok(segment) => Rc::new(segment),
            Err(why) => return cx.expel(peer, why),
        };
        if contradicts(incoming, &segment) {
            return match incoming.listing().is_some_and(|listing| listing.turned) {
                // The length came from another peer, asked before this one: it is unknown which of
                // them lied.
                true => self.broken(cx, id, Broken::False),
                false => cx.expel(peer, Misbehaviour::ManifestLength),
            };
        }
        // Another peer asked meanwhile would send the same segment again.
        self.says(Value::Accept(id, (peer, request)));
        if !cx.in_flight.has(id) {
            // While units are in flight, only their arrival shows that the route works.
            cx.pursuits.found_route(id);
        }
        self.add_listed(cx, id, segment, signature);
    }

    fn add_listed(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        segment: Rc<Segment>,
        signature: Signature,
    ) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        // The signature is kept, because peers of ours check it too.
        incoming.close_segment(&segment, Some(signature));
        let mut before = None;
        if let Some(listing) = incoming.listing() {
            listing.next += 1;
            listing.end = segment.end_offset();
            before = listing.last.replace(Rc::clone(&segment));
        }
        let (end, takes_up) = (segment.end_offset(), incoming.starts_late());
        let closing = segment.closing;
        // The segment is stored before its units arrive: after a restart the object can be filled.
        let signed = Signed { segment: Rc::clone(&segment), signature: Some(signature) };
        cx.write_segment(id, signed);
        // Overheard units are applied before readers request what is missing (decision 0028).
        if let Some(ear) = &mut cx.ear {
            ear.handle_listed(cx.now, before.as_deref(), &segment);
            self.hand_on_heard(cx);
            cx.take_back();
        }
        // A peer sends the first units of a small object unasked, but not where a transfer was
        // resumed.
        if segment.number == 0 && !takes_up {
            self.expect_unsolicited(cx, id, &segment);
        }
        if closing.is_some() {
            self.listed_whole(cx, id, end);
        } else if end > cx.config.object_bytes_max {
            // The length was not announced, and turns out to be too large to store.
            self.outgrow(cx, id);
        }
        match self.awaits_order(cx, id, &segment) {
            // Peers get the segment at once.
            true => cx.turns.all_ready(cx.transfers.peers(id, &cx.exchanges)),
            false => cx.turns.all_ready(cx.transfers.readers(id)),
        }
        let incoming = cx.transfers.get_mut(&id);
        // Without readers, no one wants units: the object itself must, to become complete.
        if incoming.is_some_and(|incoming| incoming.readers.is_empty()) {
            self.want_rest(cx, id);
        }
        cx.turns.dirty(id);
    }

    /// Whether an object's readers should wait a moment before they want units: its first segment
    /// has arrived, and overheard units may still be found behind a missed head.
    fn awaits_order(&mut self, cx: &mut Context, id: FetchId, segment: &Segment) -> bool {
        let is_first = segment.number == 0 && segment.closing.is_none();
        let is_needed = is_first && segment.entries.iter().any(|it| cx.is_missing(&it.id));
        let sparing = cx.pursuits.get(&id).is_some_and(Pursuit::is_sparing);
        let Some(ear) = &mut cx.ear else { return false };
        ear.awaits_order(cx.now, id, is_needed && sparing)
    }

    /// The first units of a small object follow its first segment without a want.
    // This request asked for no unsolicited units, because they may have been overheard.
    fn expect_unsolicited(&mut self, cx: &mut Context, id: FetchId, segment: &Segment) {
        if cx.pursuits.get(&id).is_some_and(Pursuit::is_sparing) {
            let mut units = unsolicited(segment).into_iter().peekable();
            let in_vain = units.peek().is_some() && units.all(|(name, _)| !cx.chunks.holds(&name));
            if let Some(ear) = cx.ear.as_mut().filter(|_| in_vain) {
                ear.hoped_in_vain();
            }
            return;
        }
        for (name, unit) in unsolicited(segment) {
            if cx.chunks.holds(&name) || cx.in_flight.contains(&name) {
                continue;
            }
            // They count as in flight, so that no want asks for them again.
            cx.in_flight.begin(name, id, unit);
            if let Some(ear) = &mut cx.ear {
                ear.want(cx.now, name, unit.length);
            }
            // The unit may have overtaken the manifest on the other connection.
            let early = cx.in_flight.unsolicited.take(&name);
            let Some(incoming) = cx.transfers.get_mut(&id) else { return };
            incoming.granted += u64::from(unit.length);
            self.count_unsolicited(cx, id, &name, unit);
            if let Some(bytes) = early {
                self.came_early(cx, name, bytes);
            }
        }
    }

    /// Unsolicited units count as coming from a peer, too.
    fn count_unsolicited(&mut self, cx: &mut Context, id: FetchId, name: &ChunkId, unit: Unit) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        let begins = unit.end - u64::from(unit.length);
        let leads = incoming.readers.iter_mut().filter(|it| it.leads && it.wanted_to == begins);
        let counting: Readers = leads
            .map(|reader| {
                reader.wanted_to = unit.end;
                reader.id
            })
            .collect();
        for reader in counting {
            self.count_from_peer(cx, reader, name, unit.length);
        }
    }

    /// The manifest is complete.
    fn listed_whole(&mut self, cx: &mut Context, id: FetchId, length: u64) {
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        incoming.announced = Some(length);
        let whole = Rc::new(incoming.so_far());
        if let Some(listing) = incoming.listing() {
            (listing.ended, listing.whole) = (true, Some(whole));
        }
        for reader in incoming.reader_ids() {
            self.says(Value::Ends(reader, length));
        }
    }
}

/// Checks a segment against what is known of the object.
fn check_segment(
    incoming: &Incoming,
    sealed: bool,
    signature: &Signature,
    bytes: &[u8],
) -> Result<Segment, Misbehaviour> {
    // An object that is cut here has a manifest of our own: no peer was asked for one.
    let listing = match &incoming.transfer {
        Transfer::Listing(listing) if !listing.ended => Some(listing),
        Transfer::Listing(_) | Transfer::Filling(_) => None,
        Transfer::Cutting(_) | Transfer::Closed(_) => {
            return Err(Misbehaviour::ManifestUnasked);
        }
    };
    // Only a broken or hostile peer sends what is not a segment.
    let segment = Segment::decode(bytes).map_err(|_| Misbehaviour::Segment)?;
    let digest = Segment::digest(bytes);
    // A peer sends each segment once and in order, and none after the closing one.
    let Some(listing) = listing.filter(|it| segment.number == u64::from(it.next)) else {
        return Err(Misbehaviour::SegmentTurn);
    };
    // Offsets must go on where the segment before ended, or readers would find gaps.
    if listing.last.as_ref().is_some_and(|last| segment.follows(last).is_err()) {
        return Err(Misbehaviour::SegmentOrder);
    }
    // A published object is certified by its name, any other by the signer of its record: a relay
    // can exchange no segment.
    let signed = wire::peer::segment_signed(&incoming.record, &digest);
    let signer = incoming.record_signature.as_ref().map(|record_signature| record_signature.signer);
    if let Some(root) = &incoming.root {
        if !catalogue::certifies(root, &segment, &digest) {
            return Err(Misbehaviour::UncertifiedSegment);
        }
    } else if !signer.is_some_and(|signer: PublicKey| verify(&signer, &signed, signature)) {
        return Err(Misbehaviour::SegmentSignature);
    }
    // The peer was not allowed to send this much of the manifest yet: it would fill our memory.
    if segment.first_offset > listing.manifest_credit {
        return Err(Misbehaviour::SegmentCredit);
    }
    // Routers with the mesh key seal all units: open ones here come from a router without it.
    if !is_sealed_as(&segment, sealed) {
        return Err(Misbehaviour::Sealing);
    }
    // Tiny units would cost more memory in tables than they have bytes.
    if has_undersized(&segment) {
        return Err(Misbehaviour::SmallUnits);
    }
    Ok(segment)
}

/// Whether the manifest's length differs from the announced one.
fn contradicts(incoming: &Incoming, segment: &Segment) -> bool {
    incoming.announced.is_some_and(|length| {
        segment.end_offset() > length
            || segment.closing.is_some_and(|closing| closing.length != length)
    })
}

/// Whether units are smaller than the profile allows. The last unit of an object may be.
fn has_undersized(segment: &Segment) -> bool {
    let last = segment.closing.is_some().then(|| segment.entries.len().saturating_sub(1));
    let small = |length| length < segment.profile.unit.minimum;
    segment.entries.iter().enumerate().any(|(at, entry)| small(entry.length) && Some(at) != last)
}
