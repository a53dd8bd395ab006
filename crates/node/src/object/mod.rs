//! Objects under way: their heads, their manifests so far, and their readers.
//!
//! *What it owns:* transfers (`incoming`, which every machine may read): from origins, which are
//! cut and named here; from peers, which send a manifest; of files being published; and repairs of
//! stored objects. *Values in:* an object begins, which exchanges read it and what they lack,
//! bytes, units, segments. *Values out:* [`Value`]. *What it never does:* judge a response, or
//! choose a peer or origin to ask. *Where to start:* `ingest.rs` for origins, `listed.rs` for
//! peers.

mod credit;
mod heard;
mod holes;
mod ingest;
mod listed;
mod persist;
mod prefetch;
mod repair;
mod tail;
mod units;

pub use ingest::Broken;

use crate::chunks::Unit;
use crate::context::Context;
use crate::events::Event;
use crate::hasher::Map;
use crate::http::Record;
use crate::input::{ExchangeId, FetchId};
use crate::pursuits::Quest;
use crate::timer::{self, Timer};
use crate::transfers::Readers;
use crate::transfers::cutting::Fresh;
use crate::transfers::incoming::{Incoming, Label};
use crate::transfers::reader::{Joins, Reader};
use crate::transfers::transfer::Transfer;
use bytes::Bytes;
use content::Segment;
use repair::Repairing;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use store::Provenance;
use wire::peer::{Request, Want};
use wire::{ChunkId, Instant, NodeId, RecordId};

/// An origin may be this many bytes ahead of the fastest reader.
const AHEAD: u64 = 256 * 1024;
/// A transfer whose readers have left continues if at most this many bytes remain.
const ABANDONED_MAX: u64 = 1024 * 1024;
/// A transfer without readers may run for this long …
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);
/// … and at most this many of them run at a time.
const ORPHANS_MAX: usize = 32;

/// Units of a manifest, each with its place in the object.
type Listed = Vec<(ChunkId, Unit)>;

/// What this machine tells the others.
#[derive(Debug)]
pub enum Value {
    /// Send this request, for the holes of a stored object.
    Seek(FetchId, Quest),
    /// Ask another peer or the origin.
    AskNext(FetchId),
    /// Request these units from the supplier.
    Want(FetchId, Vec<Want>),
    /// Request all units in flight once more.
    WantAgain(FetchId),
    /// Accept the manifest up to this offset in bytes.
    ManifestCredit(FetchId, u64),
    /// The peer may send this many more loose bytes, which are in no unit.
    Credit(FetchId, u32),
    /// The origin may send this many more bytes. True: its silence counts from now on.
    Grant(FetchId, u64, bool),
    /// This peer's answer to that request was accepted: answers from others are ignored.
    Accept(FetchId, (NodeId, Request)),
    /// Ask the gateway itself instead of the peer that this request went to.
    TurnToGateway(FetchId, (NodeId, Request)),
    /// This peer has sent something useful.
    Delivered(FetchId, NodeId),
    /// The peer that was asked last has sent all of an object.
    Helped(FetchId),
    /// The peer that was asked last cannot be used.
    Disregard(FetchId),
    /// No other request may join this one any more.
    Retire(FetchId),
    /// A request has ended and is removed.
    Over(FetchId),
    /// For a reader: the object ends at this offset.
    Ends(ExchangeId, u64),
    /// A reader continues from the store. True: peers cannot fill its holes.
    Closed(ExchangeId, Rc<Record>, bool),
    /// A reader gets no more bytes.
    Broken(ExchangeId),
    /// The rest of what a reader reads cannot be had: the stored record is removed.
    Unmendable(ExchangeId),
    /// The unit that a reader needs cannot be had.
    Lacks(ExchangeId),
    /// A reader of a stored record has a transfer again, which fills holes.
    Reopened(ExchangeId, FetchId),
    /// A reader waits for this request to the origin, which fills a hole.
    Mends(ExchangeId, FetchId),
    /// These units of a hole have arrived for a reader. True: they are the last.
    Mended(ExchangeId, Vec<(ChunkId, Bytes)>, bool),
    /// This many of the bytes that a reader will get come from a peer.
    FromPeer(ExchangeId, u64),
    /// This many of the bytes that these readers count as a peer's were overheard. The second
    /// number: those in units that a peer completed.
    NotFromPeer(Vec<ExchangeId>, u64, u64),
    /// A manifest has another segment.
    Listed(FetchId, Rc<Segment>),
    /// The store did not take all of an object.
    Refused(FetchId),
    /// All of an object is on disk.
    Written(FetchId, Rc<Record>),
    /// A record was taken out of its row.
    Forgotten(RecordId),
}

/// The machine; see the module.
#[derive(Default)]
pub struct Objects {
    /// Holes that are being fetched from origins.
    repairs: Map<FetchId, Repairing>,
    /// Transfers that peers read, and when each counts as pausing.
    pauses: BTreeSet<(Instant, FetchId)>,
    /// Transfers with an open segment that will be closed for peers, and when.
    to_list: VecDeque<(Instant, FetchId)>,
    /// Transfers may be waiting for memory.
    ungranted: bool,
    /// Transfers that had no reader when this was noted, and how long they may run.
    orphans: VecDeque<(Instant, FetchId)>,
    values: VecDeque<Value>,
}

impl Objects {
    /// Takes the next value.
    pub fn poll(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    fn says(&mut self, value: Value) {
        self.values.push_back(value);
    }

    /// The next time at which this machine has something to do, and which timer that is.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        timer::earliest([
            (Timer::Orphan, self.orphans.front().map(|(until, _)| *until)),
            (Timer::Segment, self.to_list.front().map(|(at, _)| *at)),
            (Timer::Pause, self.pauses.first().map(|(at, _)| *at)),
        ])
    }

    /// Handles all timers that are due.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        while let Some(id) = pop_due(&mut self.orphans, cx.now) {
            self.end_orphan(cx, id);
        }
        while let Some(record) = cx.parts.pop_due(cx.now) {
            cx.segments.drop_all(record, &mut cx.ids, &mut cx.out);
        }
        while let Some(id) = pop_due(&mut self.to_list, cx.now) {
            self.list_open(cx, id);
        }
        while self.pauses.first().is_some_and(|(at, _)| *at <= cx.now) {
            self.pauses.pop_first().into_iter().for_each(|(_, id)| self.paused(cx, id));
        }
    }

    /// A transfer's turn: writes, grants credit, requests units or ends, as far as this is possible now.
    pub fn advance(&mut self, cx: &mut Context, id: FetchId) {
        let is_in_flight = cx.in_flight.has(id);
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        let passed = incoming.pass(&cx.exchanges, &mut cx.chunks);
        if !is_in_flight && !incoming.is_cut() && !incoming.memory_only {
            // Nothing is in flight, so the collected group will not grow: write it.
            let group = incoming.flush();
            cx.append(Some(id), group);
        }
        if passed > 0 {
            self.says(Value::Credit(id, u32::try_from(passed).unwrap_or(u32::MAX)));
        }
        self.forget_if_read(cx, id);
        self.settle(cx, id);
        self.grant_ahead(cx, id);
    }

    /// An object begins.
    pub fn begin(&mut self, cx: &mut Context, id: FetchId, incoming: Incoming) {
        cx.events.emit(|| is_in_state(id, &incoming));
        cx.transfers.insert(id, incoming);
    }

    /// An exchange begins to read an object under way.
    pub fn join(&mut self, cx: &mut Context, id: FetchId, reader: Reader, joins: Joins) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            // The object's last reader had just left, and the object was finished or dropped.
            return self.says(Value::Broken(reader.id));
        };
        incoming.readers.push(reader);
        match joins {
            Joins::Client { head_alone } => {
                if let Some(listing) = incoming.listing() {
                    listing.wanted_here |= !head_alone;
                }
            }
            Joins::Peer { manifest_credit } => {
                self.extend_manifest_credit(cx, id, manifest_credit, 0);
                self.list_for_peers(cx, id);
                self.watch(cx, id);
                cx.turns.dirty(id);
            }
            Joins::Flow => {}
        }
    }

    /// Content of an origin's response has arrived; false if it belongs to no object or repair.
    pub fn handle_body(&mut self, cx: &mut Context, id: FetchId, bytes: &Bytes) -> bool {
        let (grows, mends) = (cx.transfers.contains_key(&id), self.repairs.contains_key(&id));
        if grows {
            self.take_in(cx, id, bytes);
        } else if mends {
            self.repair_body(cx, id, bytes);
        }
        grows || mends
    }

    /// A response has ended, completely or not; false if it belongs to no object or repair.
    pub fn handle_end(&mut self, cx: &mut Context, id: FetchId, well: bool) -> bool {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            let mends = self.repairs.contains_key(&id);
            if mends {
                self.give_up(cx, id);
            }
            return mends;
        };
        let came = incoming.received_bytes;
        match well && incoming.announced.is_none_or(|length| length == came) {
            true if incoming.verify(&mut cx.promises) => self.close(cx, id),
            // Another body than was promised is as good as broken off.
            true => {
                cx.report.digests_false += 1;
                self.broken(cx, id, Broken::False);
            }
            false => self.broken(cx, id, if well { Broken::False } else { Broken::Short }),
        }
        true
    }

    /// Whether a transfer or repair has no reader that wants more; false for unknown ones.
    pub fn is_unwanted(&self, cx: &Context, id: FetchId) -> bool {
        let incoming = cx.transfers.get(&id);
        incoming.is_some_and(|it| it.readers.is_empty()) || self.repairs.contains_key(&id)
    }

    /// An object has ended.
    fn remove(&mut self, cx: &mut Context, id: FetchId) -> Option<Incoming> {
        let incoming = cx.transfers.remove(&id)?;
        cx.events.emit(|| has_ended(id, &incoming));
        self.says(Value::Over(id));
        Some(incoming)
    }

    /// A transfer or repair is cancelled.
    pub fn cancel(&mut self, cx: &mut Context, id: FetchId) {
        self.repairs.remove(&id);
        if let Some(incoming) = cx.transfers.remove(&id) {
            cx.events.emit(|| has_ended(id, &incoming));
            for reader in self.end_storing(cx, id, incoming, Part::Kept) {
                self.says(Value::Broken(reader));
            }
        }
    }

    /// A unit has arrived and is named: it is written together with its neighbours.
    fn enter(&mut self, cx: &mut Context, id: FetchId, unit: Fresh, from: Provenance) {
        let full_memory = cx.chunks.pinned_bytes() > cx.pinned_max();
        let named = (unit.id, &unit.bytes);
        let fresh = cx.chunks.enter(id, named, from, &mut cx.ids, &mut cx.out);
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        let parent_end = unit.parent_end;
        let group = match fresh {
            true if incoming.memory_only => {
                incoming.unstored.push_back((unit.end, unit.id));
                Vec::new()
            }
            true => incoming.collect((unit.id, unit.bytes), parent_end),
            false if incoming.memory_only && cx.chunks.is_pinned(&unit.id) => {
                incoming.unstored.push_back((unit.end, unit.id));
                Vec::new()
            }
            false if parent_end => incoming.flush(),
            false => Vec::new(),
        };
        // If memory is short, the unit is written without waiting for its neighbours.
        let group = if group.is_empty() && full_memory { incoming.flush() } else { group };
        cx.append(Some(id), group);
    }

    /// A transfer stores no more: drops what it has stored, unless that is to be kept and its rest could be asked for later.
    /// Returns the exchanges that still read it.
    fn end_storing(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        mut incoming: Incoming,
        part: Part,
    ) -> Readers {
        let named = incoming.label.as_ref().and_then(|label| label.named);
        let published = named.is_some_and(|name| cx.published.has(&name));
        let (group, readers) = (incoming.flush(), incoming.reader_ids());
        let incoming = match part == Part::Kept && cx.store_works() {
            true => match cx.parts.put(cx.now, incoming) {
                Ok(()) => {
                    cx.append(Some(id), group);
                    return readers;
                }
                Err(incoming) => *incoming,
            },
            false => incoming,
        };
        for (_, unit) in &incoming.unstored {
            cx.chunks.release(unit);
        }
        let kept = incoming.in_row().is_some() && !incoming.memory_only;
        let record = incoming.record;
        if !kept && !published && !is_of_use(cx, record, incoming.label.as_ref()) {
            cx.segments.drop_all(record, &mut cx.ids, &mut cx.out);
        }
        // Another transfer may contain the same units and rely on their being written.
        cx.append(Some(id), group);
        readers
    }

    /// A transfer has no reader: it may run for a while.
    pub fn orphan(&mut self, cx: &mut Context, id: FetchId) {
        self.orphans.retain(|(_, other)| *other != id);
        self.orphans.push_back((cx.now + ORPHAN_TIMEOUT, id));
        if self.orphans.len() > ORPHANS_MAX
            && let Some((_, oldest)) = self.orphans.pop_front()
        {
            self.end_orphan(cx, oldest);
        }
    }

    /// The time of a transfer without readers is over; a reader may have joined since.
    fn end_orphan(&mut self, cx: &mut Context, id: FetchId) {
        let is_unread = cx.transfers.get(&id).is_none_or(|incoming| {
            // A peer's manifest may be complete long before its units are.
            let comes = !matches!(incoming.transfer, Transfer::Closed(_));
            incoming.readers.is_empty() && comes
        });
        if is_unread {
            cx.turns.end(id);
        }
    }
}

/// What becomes of the part of an object that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Kept,
    Dropped,
}

/// A transfer has begun, or is in another state.
fn is_in_state(id: FetchId, incoming: &Incoming) -> Event {
    Event::Transfer { fetch: id, record: incoming.record, state: incoming.transfer.state() }
}

/// A transfer is over.
fn has_ended(id: FetchId, incoming: &Incoming) -> Event {
    let stored = incoming.is_ended() && !incoming.memory_only;
    Event::TransferEnds { fetch: id, bytes: incoming.received_bytes, stored }
}

/// Whether another transfer or the catalogue needs the same record's segments.
fn is_of_use(cx: &mut Context, record: RecordId, label: Option<&Label>) -> bool {
    let row = label.and_then(|label| cx.rows.get(&label.key));
    let is_kept = row.is_some_and(|row| row.records.iter().any(|kept| kept.id == record));
    is_kept || cx.transfers.has(record)
}

/// Takes the first entry if it is due.
fn pop_due(queue: &mut VecDeque<(Instant, FetchId)>, now: Instant) -> Option<FetchId> {
    let is_due = queue.front().is_some_and(|(at, _)| *at <= now);
    if is_due { queue.pop_front().map(|(_, id)| id) } else { None }
}

#[cfg(test)]
mod tests;
