//! Objects while they come: their heads, their manifests so far, and who reads them.
//!
//! *What this is:* the machine that owns transfers: from an origin, which are cut and named, and from peers, which list
//! them. *Still in the node:* whatever of it needs an exchange, in `node/`.

pub mod cutting;
pub mod fetch;
pub mod storing;

use crate::catalogue::Signed;
use crate::chunks::Unit;
use crate::context::Context;
use crate::hasher::Map;
use crate::http::Record;
use crate::input::{ExchangeId, FetchId};
use crate::output::{Output, StoreOutput};
use content::Segment;
use cutting::Fresh;
use fetch::Fetch;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use store::{Change, Provenance};
use storing::Inflow;
use wire::{ChunkId, Instant, ObjectKey, RecordId};

/// Transfers that nobody waits for have so long …
const ORPHAN_PATIENCE: Duration = Duration::from_secs(60);
/// … and are so many, at most.
const ORPHANS_MAX: usize = 32;

/// Units of a manifest, and where each stands.
pub type Listed = Vec<(ChunkId, Unit)>;

/// See the module.
#[derive(Default)]
pub struct Objects {
    pub fetches: Map<FetchId, Fetch>,
    /// Which fetch of an object others may join.
    pub joinable: Map<ObjectKey, FetchId>,
    /// Transfers that peers read, and when each counts as pausing.
    pub pauses: BTreeSet<(Instant, FetchId)>,
    /// Transfers whose open segment of the manifest is to be closed for peers, and when.
    pub to_list: VecDeque<(Instant, FetchId)>,
    /// Transfers may be waiting for memory.
    pub ungranted: bool,
    /// Transfers that nobody waited for when this was noted, and until when they may go on.
    pub orphans: VecDeque<(Instant, FetchId)>,
}

impl Objects {
    /// The transfer that fills the holes of a record, if there is one.
    pub fn reopened(&mut self, record: &Record) -> Option<FetchId> {
        self.fetches.iter_mut().find_map(|(id, fetch)| {
            let storing = fetch.storing()?;
            (storing.record == record.id && storing.is_reopened()).then_some(*id)
        })
    }

    /// When nothing more is on its way, what is collected is written.
    pub fn rest(&mut self, cx: &mut Context, id: FetchId) {
        if cx.is_flying(id) {
            return;
        }
        let Some(storing) = self.fetches.get_mut(&id).and_then(Fetch::storing) else { return };
        if storing.listed().is_some() && !storing.failed {
            let group = storing.flush();
            cx.append(Some(id), group);
        }
    }

    /// A unit of an object is here, and named: has it written with its neighbours.
    pub fn enter(&mut self, cx: &mut Context, id: FetchId, unit: Fresh, from: Provenance) {
        let full_memory = cx.chunks.pinned_bytes() > cx.pinned_max();
        let named = (unit.id, &unit.bytes);
        let fresh = cx.chunks.enter(id, named, from, &mut cx.tickets, &mut cx.out);
        let Some(storing) = self.fetches.get_mut(&id).and_then(Fetch::storing) else { return };
        let parent_end = unit.parent_end;
        let group = match fresh {
            true if storing.failed => {
                storing.unstored.push_back((unit.end, unit.id));
                Vec::new()
            }
            true => storing.collect((unit.id, unit.bytes), parent_end),
            false if storing.failed && cx.chunks.is_pinned(&unit.id) => {
                storing.unstored.push_back((unit.end, unit.id));
                Vec::new()
            }
            false if parent_end => storing.flush(),
            false => Vec::new(),
        };
        // Neighbours are worth waiting for only while there is memory.
        let group = if group.is_empty() && full_memory { storing.flush() } else { group };
        cx.append(Some(id), group);
    }

    /// Lets go of all that a transfer had kept; answers who still reads.
    pub fn drop_storing(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        mut fetch: Fetch,
    ) -> Vec<ExchangeId> {
        let published = fetch.ask.named.is_some_and(|name| cx.published.has(&name));
        let Some(storing) = fetch.storing() else { return Vec::new() };
        let (group, readers) = (storing.flush(), std::mem::take(&mut storing.readers));
        for (_, unit) in &storing.unstored {
            cx.chunks.release(unit);
        }
        // The record of one that a peer lists is kept by no row before it is finished.
        let closed = matches!(storing.inflow, Inflow::Cut(_)) || storing.is_reopened();
        let kept = closed && storing.whole.is_some() && !storing.failed;
        let record = storing.record;
        if !kept && !published && !self.is_of_use(cx, record, fetch.ask.key) {
            // Those that wait would come behind it.
            cx.segments.write(&mut cx.tickets, &mut cx.out);
            let drop = Change::DropSegments { record };
            cx.out.push_back(Output::Store(StoreOutput::Change(cx.tickets.draw(), vec![drop])));
        }
        // Another transfer may have met the same units, and count on their being written.
        cx.append(Some(id), group);
        readers
    }

    /// Whether another transfer or the catalogue has the same record, and so its segments.
    pub fn is_of_use(&mut self, cx: &mut Context, record: RecordId, key: ObjectKey) -> bool {
        let row = cx.rows.get(&key);
        row.is_some_and(|row| row.records.iter().any(|kept| kept.id == record))
            || self
                .fetches
                .values_mut()
                .any(|other| other.storing().is_some_and(|storing| storing.record == record))
    }

    /// Nobody waits for a transfer: it may go on for a while.
    pub fn orphan(&mut self, cx: &mut Context, id: FetchId) {
        self.orphans.retain(|(_, other)| *other != id);
        self.orphans.push_back((cx.now + ORPHAN_PATIENCE, id));
        if self.orphans.len() > ORPHANS_MAX
            && let Some((_, oldest)) = self.orphans.pop_front()
        {
            self.end_orphan(cx, oldest);
        }
    }

    /// A transfer that nobody waited for has had its time; somebody may have joined it since.
    pub fn end_orphan(&mut self, cx: &mut Context, id: FetchId) {
        let Some(fetch) = self.fetches.get(&id) else { return };
        let unread = match &fetch.state {
            // The manifest of a listed object may be whole long before its units are here.
            fetch::State::Storing(storing) => {
                let comes = !storing.ended || matches!(storing.inflow, Inflow::Listed(_));
                storing.readers.is_empty() && comes
            }
            fetch::State::Asking => fetch.waiters.is_empty(),
            _ => false,
        };
        if unread {
            cx.turns.end(id);
        }
    }

    /// Writes a segment of a manifest; until the catalogue has it, the transfer keeps it.
    pub fn write_segment(&mut self, cx: &mut Context, id: FetchId, signed: Signed) {
        let Some(storing) = self.fetches.get_mut(&id).and_then(Fetch::storing) else { return };
        let (number, last) = (signed.segment.number as u32, signed.segment.closing.is_some());
        let record = storing.record;
        let bytes = signed.encode();
        cx.manifests.put(record, Rc::new(signed));
        if storing.failed {
            return;
        }
        let change = Change::PutSegment { record, number, bytes };
        cx.segments.put((id, number), change, last, &mut cx.tickets, &mut cx.out);
        cx.dirty();
    }

    /// Nobody may join any more; answers who waits.
    pub fn retire(&mut self, id: FetchId) -> Vec<ExchangeId> {
        let Some(fetch) = self.fetches.get_mut(&id) else { return Vec::new() };
        let key = fetch.ask.key;
        let waiters = std::mem::take(&mut fetch.waiters);
        fetch.joined.clear();
        if self.joinable.get(&key) == Some(&id) {
            self.joinable.remove(&key);
        }
        waiters
    }

    /// All readers of an object may be able to go on.
    pub fn readers_ready(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(storing) = self.fetches.get_mut(&id).and_then(Fetch::storing) {
            cx.turns.all_ready(storing.readers.iter().copied());
        }
    }

    /// The units that a growing object lists in a range, as far as their segments are in memory, and
    /// where the last of them ends.
    pub fn listed_between(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        from: u64,
        to: u64,
    ) -> (Listed, u64) {
        let (mut units, mut at) = (Vec::new(), from);
        while at < to {
            let Some(segment) = self.listed_segment(cx, id, at) else { break };
            let mut end = segment.first_offset;
            for entry in &segment.entries {
                end += u64::from(entry.length);
                if end > at && end - u64::from(entry.length) < to {
                    units.push((entry.id, Unit::listed(entry, end)));
                }
            }
            let covered = units.last().map_or(at, |(_, unit)| unit.end);
            if covered <= at {
                break;
            }
            at = covered;
        }
        (units, at)
    }

    pub fn listed_segment(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        position: u64,
    ) -> Option<Rc<Segment>> {
        let storing = self.fetches.get_mut(&id)?.storing()?;
        let (number, segment) = storing.segment_at(position);
        let record = storing.record;
        segment.or_else(|| cx.manifests.get(record, number))
    }
}
