//! Requests units of a peer's object ahead of each reader: a window, in batches.

use super::{ABANDONED_MAX, AHEAD, Listed, Objects, Value};
use crate::chunks::Unit;
use crate::context::{Context, OVERHEARD_PART};
use crate::input::{ExchangeId, FetchId};
use crate::request::MANIFEST_CREDIT;
use crate::transfers::reader::Reader;
use wire::ChunkId;
use wire::peer::Want;

/// While other units are in flight, new ones are requested in batches of at least this many bytes.
const BATCH: u64 = AHEAD / 2;

/// A reader looks at most this many bytes ahead. It may look further than the window, because units
/// already held do not fill it.
const REACH: u64 = OVERHEARD_PART as u64 * AHEAD;

/// The range of an object in which a reader may want units.
struct Window {
    /// Where it begins, in bytes of the object.
    from: u64,
    /// Where it ends, in bytes of the object.
    to: u64,
    /// How much may be requested from a peer, in weighted bytes.
    open: u64,
}

impl Objects {
    /// Requests the units that a reader needs next and that are not held.
    pub fn want_for(&mut self, cx: &mut Context, fetch: FetchId, id: ExchangeId) {
        let Some(Window { mut from, to, mut open }) = self.window(cx, fetch, id) else {
            return self.extend_manifest_credit_for(cx, fetch, id, MANIFEST_CREDIT / 4);
        };
        let (mut missing, mut counted, mut ahead) = (Vec::new(), Vec::new(), Vec::new());
        // How far the window reaches depends on the weight of each unit, so it is filled step by
        // step.
        while from < to && open > 0 {
            let Some(incoming) = cx.transfers.get(&fetch) else { return };
            let until = to.min(from + open.min(BATCH));
            let (units, listed_to) = incoming.listed_between(&mut cx.manifests, from, until);
            // The segment that lists the next units has not arrived.
            if units.is_empty() {
                break;
            }
            from = listed_to;
            for (name, unit) in units {
                if cx.is_missing(&name) {
                    missing.push((name, unit));
                } else if !cx.in_flight.contains(&name) {
                    // A held unit costs no credit. A unit in flight does, even if another reader requested it.
                    continue;
                }
                let weight = cx.weight(&name, unit.length);
                open = open.saturating_sub(weight);
                ahead.push((unit.end, weight));
                counted.push((name, unit.length));
            }
        }
        let Some(reader) = reader_of(cx, fetch, id) else { return };
        reader.wants(from, ahead);
        let leads = reader.leads;
        self.want(cx, fetch, missing);
        // Bytes count as a peer's only for the reader that the transfer was begun for.
        if leads && !counted.is_empty() {
            counted.iter().for_each(|(name, _)| cx.in_flight.count_for(name, id));
            let bytes = counted.iter().map(|(_, length)| u64::from(*length)).sum();
            self.says(Value::FromPeer(id, bytes));
        }
        self.extend_manifest_credit(cx, fetch, from + MANIFEST_CREDIT, MANIFEST_CREDIT / 4);
    }

    /// The range in which a reader may want units now; `None` if too little to be worth a message.
    /// Units already held do not count: a window full of them would let little through per round
    /// trip.
    fn window(&mut self, cx: &mut Context, fetch: FetchId, id: ExchangeId) -> Option<Window> {
        let (position, end) = cx.exchanges.get(&id)?.reads()?;
        let is_crowded = cx.is_crowded();
        let incoming = cx.transfers.get_mut(&fetch)?;
        let known = incoming.frontier();
        if incoming.is_cut() {
            return None;
        }
        // Memory is full of units that wait for the disk: no more are asked for until some are
        // written.
        if is_crowded {
            self.ungranted = true;
            return None;
        }
        let reader = reader_of(cx, fetch, id)?;
        let from = reader.wanted_to.max(position);
        let open = AHEAD.saturating_sub(reader.wanted_ahead(position));
        let end = end.unwrap_or(u64::MAX);
        let to = (position + REACH).min(known).min(end);
        // A message for a few bytes is not worth its frame, unless nothing else is in flight.
        let lasts = to >= from + BATCH || to == end;
        let enough = open >= BATCH.min(end.saturating_sub(from));
        let worth = (lasts && enough) || !cx.in_flight.has(fetch);
        (worth && to > from && open > 0).then_some(Window { from, to, open })
    }

    /// Counts a unit, in flight or just arrived, as coming from a peer for this reader.
    pub fn count_from_peer(
        &mut self,
        cx: &mut Context,
        reader: ExchangeId,
        name: &ChunkId,
        length: u32,
    ) {
        self.says(Value::FromPeer(reader, u64::from(length)));
        cx.in_flight.count_for(name, reader);
    }

    /// Requests units from a transfer's peer, or from the next one if it has none now.
    pub fn want(&mut self, cx: &mut Context, id: FetchId, units: Listed) {
        let Some(incoming) = cx.transfers.get_mut(&id).filter(|_| !units.is_empty()) else {
            return;
        };
        // Nothing was owed until now: the peer's silence counts from this want.
        if !cx.in_flight.has(id) {
            cx.pursuits.came(id, cx.now);
        }
        let (mut wants, mut early) = (Vec::with_capacity(units.len()), Vec::new());
        for (name, unit) in units {
            incoming.granted += u64::from(unit.length);
            cx.in_flight.begin(name, id, unit);
            // The unit came before its listing: it is here already.
            if let Some(bytes) = cx.in_flight.unsolicited.take(&name) {
                early.push((name, bytes));
                continue;
            }
            if let Some(ear) = &mut cx.ear {
                cx.in_flight.overheard(&name, ear.expect(cx.now, name, unit.length));
                ear.set_aside(cx.now, cx.in_flight.heard_cost());
            }
            wants.extend(cx.in_flight.want_of(&name));
        }
        self.says(Value::Want(id, wants));
        for (name, bytes) in early {
            self.came_early(cx, name, bytes);
        }
    }

    /// No units are requested for a reader now, but it has advanced, so more of the manifest can be
    /// accepted. Where memory was full, units were requested one at a time as the reader came to
    /// them, and the router that cuts the object waits for this credit.
    fn extend_manifest_credit_for(
        &mut self,
        cx: &mut Context,
        fetch: FetchId,
        id: ExchangeId,
        worth: u64,
    ) {
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let Some((position, _)) = exchange.reads().filter(|_| !cx.is_crowded()) else { return };
        let Some(reader) = reader_of(cx, fetch, id) else { return };
        let manifest_credit = reader.wanted_to.max(position) + MANIFEST_CREDIT;
        self.extend_manifest_credit(cx, fetch, manifest_credit, worth);
    }

    /// Accepts more of a transfer's manifest. It is announced only if it exceeds the last
    /// announcement by more than `worth` bytes.
    pub fn extend_manifest_credit(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        manifest_credit: u64,
        worth: u64,
    ) {
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        let Some(listing) = incoming.listing().filter(|it| !it.ended) else { return };
        if manifest_credit > listing.manifest_credit.saturating_add(worth) {
            listing.manifest_credit = manifest_credit;
            self.says(Value::ManifestCredit(id, manifest_credit));
        }
    }

    /// Forwards a peer's wants: units not held here are requested upstream, all at once.
    pub fn forward(&mut self, cx: &mut Context, id: ExchangeId, fetch: FetchId, wants: &[Want]) {
        let Some(incoming) = cx.transfers.get(&fetch).filter(|it| !it.is_cut()) else { return };
        let missing =
            |want: &&Want| cx.is_missing(&want.name) && !incoming.lost.contains(&want.name);
        let units = wants.iter().filter(missing).map(|want| (want.name, Unit::wanted(want)));
        let units = units.collect();
        self.want(cx, fetch, units);
        for want in wants {
            cx.in_flight.wait_for(&want.name, id);
        }
    }

    /// Nothing of a transfer has arrived for a while: sends its readers' wants and manifest credit
    /// again, even small amounts.
    pub fn want_anew(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        for reader in incoming.reader_ids() {
            self.want_for(cx, id, reader);
            self.extend_manifest_credit_for(cx, id, reader, 0);
        }
    }

    /// Wakes a reader when a unit arrives, and requests the unit if it is not in flight. False if
    /// no peer can supply it.
    pub fn await_unit(
        &mut self,
        cx: &mut Context,
        waiter: ExchangeId,
        fetch: FetchId,
        name: ChunkId,
        unit: Unit,
    ) -> bool {
        if !cx.in_flight.contains(&name) {
            let incoming = cx.transfers.get(&fetch);
            if incoming.is_none_or(|it| it.is_cut() || it.lost.contains(&name)) {
                return false;
            }
            self.want(cx, fetch, vec![(name, unit)]);
            if !cx.in_flight.contains(&name) && cx.chunks.holds(&name) {
                // The unit had arrived before it was wanted.
                cx.turns.ready(waiter);
                return true;
            }
        }
        cx.in_flight.wait_for(&name, waiter)
    }

    /// Requests more for all readers, unless the order of overheard units is being awaited.
    pub fn want_ahead(&mut self, cx: &mut Context, id: FetchId) {
        if cx.ear.as_ref().is_some_and(|ear| ear.is_awaiting(id)) {
            return;
        }
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        for reader in incoming.reader_ids() {
            self.want_for(cx, id, reader);
        }
    }

    /// The last reader has left, but little remains: requests all of it.
    pub fn want_rest(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        let known = incoming.frontier();
        let from = incoming.announced.unwrap_or(known).saturating_sub(2 * ABANDONED_MAX);
        let (units, _) = incoming.listed_between(&mut cx.manifests, from.min(known), known);
        let missing = units.into_iter().filter(|(name, _)| cx.is_missing(name)).collect();
        self.want(cx, id, missing);
        self.extend_manifest_credit(cx, id, u64::MAX, 0);
    }
}

fn reader_of(cx: &mut Context, fetch: FetchId, id: ExchangeId) -> Option<&mut Reader> {
    cx.transfers.get_mut(&fetch)?.readers.iter_mut().find(|reader| reader.id == id)
}
