//! Objects that arrive from an origin: cut, named, listed, written, and finally closed.

use super::{ABANDONED_MAX, Objects, Part, Value, is_in_state};
use crate::catalogue::Signed;
use crate::context::Context;
use crate::http::{NotStored, Row};
use crate::input::{ExchangeId, FetchId};
use crate::named;
use crate::request::{Ask, Asker, UNASKED_BYTES};
use crate::transfers::cutting::{Cutting, Fresh};
use crate::transfers::incoming::Incoming;
use crate::transfers::transfer::Transfer;
use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use content::Segment;
use std::rc::Rc;
use std::time::Duration;
use store::Provenance;
use wire::RecordId;

/// After this time, cut units that peers wait for are listed even if they are few.
const LIST_AFTER: Duration = Duration::from_millis(20);
/// A segment closed because peers wait for it has at most this many units: one signature per 128
/// KiB.
const LISTED_UNITS: usize = 16;
/// The same limit in bytes, for units of 8 KiB.
const LISTED_BYTES: u64 = 128 * 1024;

/// Why an object breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// No more of it will come.
    Short,
    /// What has come cannot all be right.
    False,
}

/// A client that has waited for longer gets no rest of its object from the origin.
const WAITED_MAX: Duration = Duration::from_secs(40);

impl Objects {
    /// A file of this length is being published: it is stored like an origin's body, and gets its
    /// name at its end.
    pub fn begin_file(&mut self, cx: &mut Context, id: FetchId, bytes: u64) {
        let cutting = Cutting::new(cx.config.profile, cx.sealer.clone());
        let transfer = Transfer::Cutting(Box::new(cutting));
        let date = cx.date();
        let came = (date, cx.clock_right());
        let record = RecordId(cx.record_ids.draw());
        let mut incoming = Incoming::new(record, StatusCode::OK, HeaderMap::new(), came, transfer);
        incoming.announced = Some(bytes);
        incoming.record_signature = Some(named::VOUCHER);
        self.begin(cx, id, incoming);
        cx.turns.dirty(id);
    }

    /// Content of an object has arrived from its origin.
    pub fn take_in(&mut self, cx: &mut Context, id: FetchId, bytes: &Bytes) {
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        let before = incoming.received_bytes;
        incoming.received_bytes += bytes.len() as u64;
        if let Some(index) = &mut incoming.index {
            index.feed(bytes, &mut cx.promises);
        }
        let (end, limit) = (incoming.received_bytes, incoming.limit());
        let Some(cutting) = incoming.cutting() else { return };
        let fresh = cutting.take(bytes);
        for reader in &incoming.readers {
            match end <= limit {
                true => cx.turns.hand(reader.id, (before, bytes.clone())),
                false => cx.turns.ready(reader.id),
            }
        }
        for unit in fresh {
            self.keep(cx, id, unit);
        }
        let outgrown = |it: &Incoming| it.received_bytes > it.bytes_max;
        if cx.transfers.get(&id).is_some_and(outgrown) {
            self.outgrow(cx, id);
        }
        self.list_for_peers(cx, id);
        self.watch(cx, id);
        cx.turns.dirty(id);
    }

    /// An object of unannounced length has become larger than the store accepts.
    pub fn outgrow(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        if !incoming.memory_only {
            cx.report.not_stored.of(NotStored::BodySize).responses += 1;
            self.fail_storing(cx, id, &[]);
        }
    }

    /// A unit is complete: lists it, and writes it together with its neighbours.
    pub fn keep(&mut self, cx: &mut Context, id: FetchId, unit: Fresh) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        let full = incoming.cutting().and_then(|cutting| cutting.list(&unit));
        if let Some(segment) = full {
            self.add_segment(cx, id, Rc::new(segment));
        }
        self.enter(cx, id, unit, Provenance::Own);
    }

    /// A manifest made here has one more segment.
    fn add_segment(&mut self, cx: &mut Context, id: FetchId, segment: Rc<Segment>) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        // A published file needs no signature: its name certifies its segments.
        let signature =
            incoming.record_signature.as_ref().map(|record_signature| record_signature.signature);
        incoming.close_segment(&segment, signature);
        cx.write_segment(id, Signed { segment: Rc::clone(&segment), signature });
        self.says(Value::Listed(id, segment));
    }

    /// Closes the open segment for peers that read along, once it is worth a signature: after one
    /// unit at first, later after more. Fewer units wait a moment.
    pub fn list_for_peers(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        let closed = incoming.offsets.len() as u32;
        let announced = incoming.announced.unwrap_or(u64::MAX);
        let Some(cutting) = incoming.cutting() else { return };
        let open = cutting.open_units();
        // A small object is listed in one segment, so that all its units can follow without a want.
        // If an object fits into one segment, so is what follows its first unit: each message costs
        // nearly as much air as a packet of content.
        let rest = announced <= UNASKED_BYTES || (announced <= LISTED_BYTES && closed > 0);
        let worth = if rest { usize::MAX } else { LISTED_UNITS.min(1 << closed.min(8)) };
        if open == 0 || !cx.is_read_by_peers(id) {
            return;
        }
        if open >= worth {
            self.list_open(cx, id);
        } else if !self.to_list.iter().any(|(_, waiting)| *waiting == id) {
            self.to_list.push_back((cx.now + LIST_AFTER, id));
        }
    }

    /// Closes the open segment and sends it to peers.
    pub fn list_open(&mut self, cx: &mut Context, id: FetchId) {
        if !cx.is_read_by_peers(id) {
            return;
        }
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        let Some(segment) = incoming.cutting().and_then(Cutting::flush) else { return };
        self.add_segment(cx, id, Rc::new(segment));
        cx.turns.all_ready(cx.transfers.peers(id, &cx.exchanges));
    }

    /// The object is complete: closes its record.
    pub fn close(&mut self, cx: &mut Context, id: FetchId) {
        let Some(cutting) = cx.transfers.get_mut(&id).and_then(Incoming::cutting) else {
            return;
        };
        // What was left over is the last unit, however small.
        if let Some(unit) = cutting.end() {
            self.keep(cx, id, unit);
        }
        // The row will have the record: no request needs to join the transfer any more.
        self.says(Value::Retire(id));
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        let received = incoming.received_bytes;
        incoming.announced = Some(received);
        // Units go to the disk before the segment that lists them.
        let group = incoming.flush();
        let Some(last) = incoming.cutting().map(Cutting::close) else { return };
        // The record is set below, unless the store has failed.
        incoming.transfer = Transfer::Closed(None);
        cx.events.emit(|| is_in_state(id, incoming));
        cx.append(Some(id), group);
        self.add_segment(cx, id, Rc::new(last));
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        let record = incoming.so_far();
        let (readers, failed) = (incoming.reader_ids(), incoming.memory_only);
        for reader in &readers {
            self.says(Value::Ends(*reader, received));
        }
        if !failed {
            let record = Rc::new(record);
            let Some(incoming) = cx.transfers.get_mut(&id) else { return };
            incoming.transfer = Transfer::Closed(Some(Rc::clone(&record)));
            // A file being published has no label: `publish` enters it once it is on disk.
            let Some(label) = incoming.label.clone() else { return cx.turns.dirty(id) };
            if let Some(alias) = label.alias {
                cx.write_row(alias, Row::alias_of(label.key, record.id));
            }
            cx.put_record(label.key, label.uri, record);
        }
        cx.turns.all_ready(readers);
        cx.turns.dirty(id);
    }

    /// A closed object is completely on disk: its readers continue from the store.
    pub fn settle(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        let Some(record) = incoming.whole().cloned() else { return };
        // Units or segments are not on disk yet, or will never be.
        if incoming.memory_only || !incoming.closed.is_empty() || cx.chunks.is_writing_for(id) {
            return;
        }
        // A peer's object may have holes that are still to be filled.
        if !incoming.is_cut() {
            return self.settle_listed(cx, id, record);
        }
        let readers = incoming.reader_ids();
        self.says(Value::Written(id, Rc::clone(&record)));
        self.remove(cx, id);
        for reader in readers {
            self.says(Value::Closed(reader, Rc::clone(&record), false));
        }
    }

    /// An object ended too early, or is false: the incomplete body must not pass for complete (RFC 9111 §3.3). If a
    /// peer has listed all units, clients get those that are missing from the origin.
    pub fn broken(&mut self, cx: &mut Context, id: FetchId, why: Broken) {
        if self.cannot_fill(cx, id) {
            return;
        }
        // Who has waited for long gives up soon.
        let in_time = cx.pursuits.get(&id).is_some_and(|it| cx.now - it.moved < WAITED_MAX);
        let Some(incoming) = self.remove(cx, id) else { return };
        let has_rest =
            why == Broken::Short && in_time && !incoming.is_cut() && !incoming.memory_only;
        let record = incoming.whole().cloned().filter(|_| has_rest);
        let part = match why {
            Broken::Short => Part::Kept,
            Broken::False => Part::Dropped,
        };
        for reader in self.end_storing(cx, id, incoming, part) {
            let ask = cx.exchanges.get(&reader).map(|exchange| &exchange.ask);
            let has_origin = |ask: &Ask| ask.asker == Asker::Client && ask.named.is_none();
            match record.as_ref().filter(|_| ask.is_some_and(has_origin)) {
                Some(record) => {
                    self.says(Value::Closed(reader, Rc::clone(record), true));
                    cx.turns.ready(reader);
                }
                None => self.says(Value::Broken(reader)),
            }
        }
    }

    /// A reader has left an object under way, or has all of it.
    pub fn unread(&mut self, cx: &mut Context, id: FetchId, reader: ExchangeId, of_peer: bool) {
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        let received = incoming.received_bytes;
        incoming.readers.retain(|other| other.id != reader);
        if !incoming.is_cut() {
            return self.unread_listed(cx, id);
        }
        if incoming.is_ended() {
            return cx.turns.dirty(id);
        }
        if !incoming.readers.is_empty() {
            // The others may have waited for this one.
            return cx.turns.dirty(id);
        }
        // Nearly done: the rest costs less than fetching it all again.
        let left = incoming.announced.map(|length| length.saturating_sub(received));
        if left.is_some_and(|left| left <= ABANDONED_MAX) && !incoming.memory_only {
            self.orphan(cx, id);
            cx.turns.dirty(id);
        } else if of_peer && !incoming.memory_only {
            // The peer may return by another route and resume (docs/protocol.md, "Messages").
            if let Some(cutting) = incoming.cutting() {
                cutting.awaits_resume = true;
            }
            self.orphan(cx, id);
        } else {
            cx.turns.end(id);
        }
    }

    /// A transfer that an origin has completed ends with its last reader.
    pub fn forget_if_read(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get(&id) else { return };
        if matches!(incoming.transfer, Transfer::Closed(_))
            && incoming.label.is_some()
            && incoming.readers.is_empty()
            && let Some(incoming) = self.remove(cx, id)
        {
            self.end_storing(cx, id, incoming, Part::Dropped);
        }
    }
}
