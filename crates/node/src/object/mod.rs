//! Objects while they come: their heads, their manifests so far, and who reads them.
//!
//! *What this is:* the machine that owns transfers (`incoming`, which all may read): from origins, which are cut and
//! named, from peers, which list them, and of files; and holes of stored objects. *Values in:* an object begins, who
//! reads it and what they lack, bytes, units and segments. *Values out:* [`Value`]. *What it never does:* judge a
//! response, or choose whom to ask. *Where to start:* `ingest.rs` for origins, `listed.rs` for peers.

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

use crate::chunks::Unit;
use crate::context::Context;
use crate::events::Event;
use crate::hasher::Map;
use crate::http::Record;
use crate::input::{ExchangeId, FetchId};
use crate::output::{Output, StoreOutput};
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
use store::{Change, Provenance};
use wire::peer::{Request, Want};
use wire::{ChunkId, Instant, NodeId, RecordId};

/// An origin may be ahead of the fastest reader by this many bytes.
const AHEAD: u64 = 256 * 1024;
/// An abandoned transfer goes on if at most this many bytes remain.
const ABANDONED_MAX: u64 = 1024 * 1024;
/// Transfers that nobody waits for have so long …
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);
/// … and are so many, at most.
const ORPHANS_MAX: usize = 32;

/// Units of a manifest, and where each stands.
type Listed = Vec<(ChunkId, Unit)>;

/// What the machine says.
#[derive(Debug)]
pub enum Value {
    /// This is to be asked of others, for the holes of a stored object.
    Seek(FetchId, Quest),
    /// Somebody else is to be asked.
    AskNext(FetchId),
    /// These units are wanted of who gives them.
    Want(FetchId, Vec<Want>),
    /// All that is on its way is wanted once more.
    WantAgain(FetchId),
    /// More of a manifest is welcome, up to there.
    ManifestCredit(FetchId, u64),
    /// The peer may send so many bytes more that are in no unit.
    Credit(FetchId, u32),
    /// The origin may send this many bytes more. True: its silence counts from now on.
    Grant(FetchId, u64, bool),
    /// This peer was believed by that request: nobody else is listened to.
    Heed(FetchId, (NodeId, Request)),
    /// The gateway itself is to be asked, and not who was by that request.
    TurnToGateway(FetchId, (NodeId, Request)),
    /// This peer gives something.
    Shows(FetchId, NodeId),
    /// Nobody may join any more.
    Retire(FetchId),
    /// It is over, and gone.
    Over(FetchId),
    /// The object turned out to end here, for a reader.
    Ends(ExchangeId, u64),
    /// A reader goes on from the store. True: holes in it cannot be filled by peers.
    Closed(ExchangeId, Rc<Record>, bool),
    /// A reader gets no more.
    Broken(ExchangeId),
    /// What a reader reads cannot be had: it is as if it had never been stored.
    Unmendable(ExchangeId),
    /// The unit that a reader has come to cannot be had.
    Lacks(ExchangeId),
    /// A reader's closed record has a transfer again, which fills its holes.
    Reopened(ExchangeId, FetchId),
    /// A reader waits for a hole that the origin is to fill by this request.
    Mends(ExchangeId, FetchId),
    /// These units of the hole have come for a reader. True: these were the last.
    Mended(ExchangeId, Vec<(ChunkId, Bytes)>, bool),
    /// So many bytes that a reader is to get come from a peer.
    FromPeer(ExchangeId, u64),
    /// Of these, so many do not, for these readers, and so many were added to what was overheard.
    NotFromPeer(Vec<ExchangeId>, u64, u64),
    /// The manifest of what comes has another segment.
    Listed(FetchId, Rc<Segment>),
    /// The store did not take all of what comes.
    Refused(FetchId),
    /// The disk has all of it.
    Written(FetchId, Rc<Record>),
    /// A record was taken out of its row.
    Forgotten(RecordId),
}

/// See the module.
#[derive(Default)]
pub struct Objects {
    /// Holes that are on their way from origins.
    repairs: Map<FetchId, Repairing>,
    /// Transfers that peers read, and when each counts as pausing.
    pauses: BTreeSet<(Instant, FetchId)>,
    /// Transfers whose open segment of the manifest is to be closed for peers, and when.
    to_list: VecDeque<(Instant, FetchId)>,
    /// Transfers may be waiting for memory.
    ungranted: bool,
    /// Transfers that nobody waited for when this was noted, and until when they may go on.
    orphans: VecDeque<(Instant, FetchId)>,
    values: VecDeque<Value>,
}

impl Objects {
    /// Gives out one value.
    pub fn poll(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    fn says(&mut self, value: Value) {
        self.values.push_back(value);
    }

    /// When it wants to be woken, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        timer::earliest([
            (Timer::Orphan, self.orphans.front().map(|(until, _)| *until)),
            (Timer::Segment, self.to_list.front().map(|(at, _)| *at)),
            (Timer::Pause, self.pauses.first().map(|(at, _)| *at)),
        ])
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        while let Some(id) = pop_due(&mut self.orphans, cx.now) {
            self.end_orphan(cx, id);
        }
        while let Some(id) = pop_due(&mut self.to_list, cx.now) {
            self.list_open(cx, id);
        }
        while self.pauses.first().is_some_and(|(at, _)| *at <= cx.now) {
            self.pauses.pop_first().into_iter().for_each(|(_, id)| self.paused(cx, id));
        }
    }

    /// A transfer does what there is to do.
    pub fn advance(&mut self, cx: &mut Context, id: FetchId) {
        let is_flying = cx.in_flight.has(id);
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        let passed = incoming.pass(&cx.exchanges, &mut cx.chunks);
        if !is_flying && !incoming.is_cut() && !incoming.memory_only {
            // When nothing more is on its way, what is collected is written.
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

    /// An object begins to come.
    pub fn begin(&mut self, cx: &mut Context, id: FetchId, incoming: Incoming) {
        cx.events.emit(|| is_in_state(id, &incoming));
        cx.transfers.insert(id, incoming);
    }

    /// Somebody reads an object while it comes.
    pub fn join(&mut self, cx: &mut Context, id: FetchId, reader: Reader, joins: Joins) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            // Its last reader left just before, and it has been finished or dropped.
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

    /// Content of an origin's response has come; false if it is of nothing here.
    pub fn handle_body(&mut self, cx: &mut Context, id: FetchId, bytes: &Bytes) -> bool {
        let (grows, mends) = (cx.transfers.contains_key(&id), self.repairs.contains_key(&id));
        if grows {
            self.take_in(cx, id, bytes);
        } else if mends {
            self.repair_body(cx, id, bytes);
        }
        grows || mends
    }

    /// A response has ended, well or not; false if it is of nothing here.
    pub fn handle_end(&mut self, cx: &mut Context, id: FetchId, well: bool) -> bool {
        let Some(incoming) = cx.transfers.get(&id) else {
            let mends = self.repairs.contains_key(&id);
            if mends {
                self.give_up(cx, id);
            }
            return mends;
        };
        let came = incoming.received_bytes;
        match well && incoming.announced.is_none_or(|length| length == came) {
            true => self.close(cx, id),
            false => self.broken(cx, id),
        }
        true
    }

    /// Whether nobody wants anything more of one; nothing is said of what is not here.
    pub fn is_unwanted(&self, cx: &Context, id: FetchId) -> bool {
        let incoming = cx.transfers.get(&id);
        incoming.is_some_and(|it| it.readers.is_empty()) || self.repairs.contains_key(&id)
    }

    /// An object is over.
    fn remove(&mut self, cx: &mut Context, id: FetchId) -> Option<Incoming> {
        let incoming = cx.transfers.remove(&id)?;
        cx.events.emit(|| has_ended(id, &incoming));
        self.says(Value::Over(id));
        Some(incoming)
    }

    /// Nothing more of one is wanted.
    pub fn cancel(&mut self, cx: &mut Context, id: FetchId) {
        self.repairs.remove(&id);
        if let Some(incoming) = cx.transfers.remove(&id) {
            cx.events.emit(|| has_ended(id, &incoming));
            for reader in self.drop_storing(cx, id, incoming) {
                self.says(Value::Broken(reader));
            }
        }
    }

    /// A unit of an object is here, and named: has it written with its neighbours.
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
        // Neighbours are worth waiting for only while there is memory.
        let group = if group.is_empty() && full_memory { incoming.flush() } else { group };
        cx.append(Some(id), group);
    }

    /// Lets go of all that a transfer had kept; answers who still reads.
    fn drop_storing(&mut self, cx: &mut Context, id: FetchId, mut incoming: Incoming) -> Readers {
        let named = incoming.label.as_ref().and_then(|label| label.named);
        let published = named.is_some_and(|name| cx.published.has(&name));
        let (group, readers) = (incoming.flush(), incoming.reader_ids());
        for (_, unit) in &incoming.unstored {
            cx.chunks.release(unit);
        }
        let kept = incoming.in_row().is_some() && !incoming.memory_only;
        let record = incoming.record;
        if !kept && !published && !is_of_use(cx, record, incoming.label.as_ref()) {
            // Those that wait would come behind it.
            cx.segments.write(&mut cx.ids, &mut cx.out);
            let drop = Change::DropSegments { record };
            cx.out.push_back(Output::Store(StoreOutput::Change(cx.ids.draw(), vec![drop])));
        }
        // Another transfer may have met the same units, and count on their being written.
        cx.append(Some(id), group);
        readers
    }

    /// Nobody waits for a transfer: it may go on for a while.
    pub fn orphan(&mut self, cx: &mut Context, id: FetchId) {
        self.orphans.retain(|(_, other)| *other != id);
        self.orphans.push_back((cx.now + ORPHAN_TIMEOUT, id));
        if self.orphans.len() > ORPHANS_MAX
            && let Some((_, oldest)) = self.orphans.pop_front()
        {
            self.end_orphan(cx, oldest);
        }
    }

    /// A transfer that nobody waited for has had its time; somebody may have joined it since.
    fn end_orphan(&mut self, cx: &mut Context, id: FetchId) {
        let is_unread = cx.transfers.get(&id).is_none_or(|incoming| {
            // The manifest of a listed object may be whole long before its units are here.
            let comes = !matches!(incoming.transfer, Transfer::Closed(_));
            incoming.readers.is_empty() && comes
        });
        if is_unread {
            cx.turns.end(id);
        }
    }
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

/// Whether another transfer or the catalogue has the same record, and so its segments.
fn is_of_use(cx: &mut Context, record: RecordId, label: Option<&Label>) -> bool {
    let row = label.and_then(|label| cx.rows.get(&label.key));
    let is_kept = row.is_some_and(|row| row.records.iter().any(|kept| kept.id == record));
    is_kept || cx.transfers.has(record)
}

/// Takes out the first one whose time has come.
fn pop_due(queue: &mut VecDeque<(Instant, FetchId)>, now: Instant) -> Option<FetchId> {
    let is_due = queue.front().is_some_and(|(at, _)| *at <= now);
    if is_due { queue.pop_front().map(|(_, id)| id) } else { None }
}
