//! Units of objects that arrive from peers or were overheard, and how an object from a peer's
//! manifest ends.

use super::{ABANDONED_MAX, Objects, Part, Value};
use crate::chunks::{Flight, Unit};
use crate::context::Context;
use crate::events::Stale;
use crate::http::Record;
use crate::input::FetchId;
use crate::misbehaviour::Misbehaviour;
use crate::pursuits::Pursuit;
use crate::stock::name_of;
use crate::transfers::cutting::Fresh;
use crate::transfers::reader::Reader;
use crate::transfers::transfer::Tail;
use bytes::Bytes;
use std::rc::Rc;
use store::Provenance;
use wire::peer::ChunkHead;
use wire::{ChunkId, NodeId};

/// For one transfer, at most this many units that a peer does not have are remembered.
const LOST_MAX: usize = 4096;

impl Objects {
    /// The peer asked last knows the record: units in flight are requested from it.
    pub fn goes_on(&mut self, cx: &mut Context, id: FetchId) {
        if !cx.in_flight.has(id) {
            // While units are in flight, only their arrival shows that the route works.
            cx.pursuits.found_route(id);
        }
        if let Some(incoming) = cx.transfers.get_mut(&id).filter(|it| !it.is_cut()) {
            cx.pursuits.is_answering(id);
            if let Some(listing) = incoming.listing() {
                listing.turned = true;
            }
        }
        self.says(Value::WantAgain(id));
        cx.turns.all_ready(cx.transfers.readers(id));
    }

    /// An object's supplier is lost: another is asked. If all of it is listed and nothing is in
    /// flight, what is held is stored instead.
    pub fn supplier_lost(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        if let Some(listing) = incoming.listing() {
            // The next supplier may list more of the object, or begin its loose bytes elsewhere.
            listing.tail = Tail::default();
        }
        // Units that one peer lacks another may have.
        incoming.lost.clear();
        let whole = incoming.whole().cloned();
        cx.in_flight.drop_parts(id);
        match whole.filter(|_| !cx.in_flight.has(id)) {
            Some(record) => self.finish_listed(cx, id, &record),
            None => self.says(Value::AskNext(id)),
        }
    }

    /// Bytes of a unit have arrived.
    pub fn unit_part(&mut self, cx: &mut Context, peer: NodeId, head: ChunkHead, bytes: Bytes) {
        let length = bytes.len() as u64;
        cx.report.peer_units_in_bytes += length;
        let of = cx.in_flight.get_mut(&head.name).map(|flight| flight.fetch);
        if let Some(pursuit) = of.and_then(|id| cx.pursuits.get(&id)) {
            cx.account.fetched_from_peer(&pursuit.quest.ask, length);
        }
        self.unit_bytes(cx, peer, &head.name, head.total, head.offset, bytes);
    }

    pub fn unit_bytes(
        &mut self,
        cx: &mut Context,
        peer: NodeId,
        name: &ChunkId,
        total: u32,
        offset: u32,
        bytes: Bytes,
    ) {
        if !cx.in_flight.contains(name) {
            if cx.chunks.holds(name) {
                // The unit has arrived from another source meanwhile.
                return cx.events.stale(Stale::Chunk);
            }
            // The unit may have overtaken the manifest, which comes by another connection.
            let whole = bytes.len() as u32 == total;
            return match whole && content::name(&bytes) == *name {
                true => cx.in_flight.unsolicited.keep(*name, bytes),
                false if whole => cx.expel(peer, Misbehaviour::FalseUnit),
                false => cx.events.stale(Stale::Chunk),
            };
        }
        // Whole units are welcome from any peer, since their name certifies them; parts only from
        // the one asked.
        let of = cx.in_flight.get_mut(name).map(|flight| flight.fetch);
        let giving = of.and_then(|id| cx.pursuits.get(&id)?.giving());
        let asked = giving.is_some_and(|(supplier, _)| supplier == peer);
        if !asked && (bytes.len() as u32) < total {
            // Parts are joined only if they come from one peer.
            return cx.events.stale(Stale::Chunk);
        }
        let arrived = cx.in_flight.arrive(name, total, offset, bytes);
        let Some((flight, whole)) = arrived else { return };
        if content::name(&whole) != *name {
            // Some of its bytes were overheard: they may be the false ones, so the peer is not
            // blamed.
            if flight.heard_bytes() > 0 {
                let Some(ear) = &mut cx.ear else { return };
                ear.misheard(cx.now, &mut cx.in_flight, *name, flight);
                return self.hand_on_heard(cx);
            }
            cx.report.units_false += 1;
            cx.in_flight.begin(*name, flight.fetch, flight.unit);
            if let Some(again) = cx.in_flight.get_mut(name) {
                (again.waiters, again.counted) = (flight.waiters, flight.counted);
            }
            return cx.expel(peer, Misbehaviour::FalseUnit);
        }
        cx.pursuits.found_route(flight.fetch);
        self.says(Value::Delivered(flight.fetch, peer));
        if let Some(ear) = &mut cx.ear {
            ear.repaired(&flight);
            self.hand_on_heard(cx);
        }
        self.unit_is_here(cx, *name, flight, whole, Provenance::Own);
    }

    /// A unit in flight has arrived and is verified.
    pub fn unit_is_here(
        &mut self,
        cx: &mut Context,
        name: ChunkId,
        flight: Flight,
        whole: Bytes,
        from: Provenance,
    ) {
        let id = flight.fetch;
        if let Some(incoming) = cx.transfers.get_mut(&id) {
            incoming.received_bytes += whole.len() as u64;
        }
        cx.pursuits.came(id, cx.now);
        if let Some(ear) = &mut cx.ear {
            ear.cancel(cx.now, name, whole.len() as u32);
        }
        let Unit { parent_end, end, .. } = flight.unit;
        self.enter(cx, id, Fresh { id: name, bytes: whole, key: None, end, parent_end }, from);
        cx.turns.all_ready(flight.waiters);
        cx.turns.dirty(id);
    }

    /// A wanted unit had already arrived unsolicited, and is verified.
    pub fn came_early(&mut self, cx: &mut Context, name: ChunkId, bytes: Bytes) {
        let flight = cx.in_flight.remove(&name);
        if let Some(flight) = flight {
            self.unit_is_here(cx, name, flight, bytes, Provenance::Own);
        }
    }

    /// A peer does not have units that it was asked for.
    pub fn units_lost(&mut self, cx: &mut Context, id: FetchId, names: &[ChunkId]) {
        let mut waiters = Vec::new();
        for name in names {
            if cx.in_flight.get_mut(name).is_none_or(|flight| flight.fetch != id) {
                continue;
            }
            cx.report.wants_lost += 1;
            cx.pursuits.came(id, cx.now);
            let incoming = cx.transfers.get_mut(&id);
            if let Some(incoming) = incoming.filter(|it| it.lost.len() < LOST_MAX) {
                incoming.lost.insert(*name);
            }
            let lost = cx.in_flight.remove(name);
            if let (Some(ear), Some(flight)) = (&mut cx.ear, &lost) {
                ear.unwant(cx.now, &[flight.unit.want(*name)]);
            }
            waiters.extend(lost.map(|flight| flight.waiters));
        }
        cx.turns.all_ready(waiters.concat());
        cx.turns.dirty(id);
        // A router off the way is to have all that it gave the record of.
        if cx.pursuits.get(&id).is_some_and(|pursuit| pursuit.towards.is_some()) {
            self.says(Value::Disregard(id));
        }
    }

    /// A peer's object ends once its readers here have requested all they need and nothing is in
    /// flight: they continue from the store. Readers of peers may want more.
    pub fn settle_listed(&mut self, cx: &mut Context, id: FetchId, record: Rc<Record>) {
        let in_flight = cx.in_flight.has(id);
        let Some(incoming) = cx.transfers.get(&id) else { return };
        let has_all = |reader: &Reader| {
            let wanted = reader.wanted_to >= record.length;
            let exchange = cx.exchanges.get(&reader.id);
            exchange.is_none_or(|it| it.has_all() || (wanted && !it.may_want()))
        };
        if !in_flight && incoming.readers.iter().all(has_all) {
            self.finish_listed(cx, id, &record);
        }
    }

    /// A reader has left a peer's object.
    pub fn unread_listed(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        let received = incoming.received_bytes;
        if !incoming.readers.is_empty() {
            return cx.turns.dirty(id);
        }
        // A transfer that fills holes, or lacks its beginning, is of no use without readers.
        if incoming.is_filling() || incoming.starts_late() {
            return cx.turns.end(id);
        }
        let left = incoming.announced.map(|length| length.saturating_sub(received));
        // If little is missing, it is fetched to the end: the whole object can be stored then.
        let little = left.is_some_and(|left| left <= ABANDONED_MAX) && !incoming.memory_only;
        // Only if units were wanted from here and a peer has answered can the rest be expected.
        let here = incoming.listing().is_some_and(|listing| listing.wanted_here)
            && cx.pursuits.get(&id).is_some_and(Pursuit::is_answered);
        let whole = incoming.whole().cloned().filter(|_| !cx.in_flight.has(id));
        match whole {
            // The object is stored if more than its head has arrived.
            Some(record)
                if cx.begins_here(&record) && !(little && here && received < record.length) =>
            {
                self.finish_listed(cx, id, &record);
            }
            _ if little && here => {
                self.orphan(cx, id);
                self.want_rest(cx, id);
                cx.turns.dirty(id);
            }
            _ => cx.turns.end(id),
        }
    }

    /// A peer's object is as complete as it will be: its record is stored.
    pub fn finish_listed(&mut self, cx: &mut Context, id: FetchId, record: &Rc<Record>) {
        // Said before the object is removed, which ends the request.
        if cx.transfers.get(&id).is_some_and(|it| it.received_bytes >= record.length) {
            self.says(Value::Helped(id));
        }
        let Some(mut incoming) = self.remove(cx, id) else { return };
        let label = incoming.label.clone();
        let named = label.as_ref().and_then(|label| label.named);
        let published = named.is_some_and(|name| cx.published.has(&name));
        let (failed, starts_late) = (incoming.memory_only, incoming.starts_late());
        let reopened = incoming.is_filling();
        // Without its beginning, or without the store, the record must not enter a row.
        if failed || starts_late {
            for reader in self.end_storing(cx, id, incoming, Part::Dropped) {
                self.says(Value::Closed(reader, Rc::clone(record), false));
                cx.turns.ready(reader);
            }
            return;
        }
        // The last units are written before the record, which must not list what is not there.
        let group = incoming.flush();
        let readers = incoming.reader_ids();
        cx.append(Some(id), group);
        // A repaired or published record is in its row already.
        if let Some(label) = label.filter(|_| !reopened && !published) {
            cx.put_record(label.key, label.uri, Rc::clone(record));
            let off_the_way = cx.pursuits.get(&id).is_some_and(|it| it.towards.is_some());
            if let Some(mesh) = cx.mesh.as_mut().filter(|_| off_the_way) {
                mesh.copies.kept(cx.now, name_of(&label.key));
            }
        }
        for reader in readers {
            self.says(Value::Closed(reader, Rc::clone(record), false));
            cx.turns.ready(reader);
        }
    }
}
