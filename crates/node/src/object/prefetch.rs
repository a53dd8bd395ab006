//! What readers here want of an object that a peer lists: a window of units ahead of each, in batches.

use super::{ABANDONED_MAX, AHEAD, Listed, Objects, Value};
use crate::chunks::Unit;
use crate::context::{Context, OVERHEARD_PART};
use crate::input::{ExchangeId, FetchId};
use crate::request::MANIFEST_CREDIT;
use crate::transfers::reader::Reader;
use wire::ChunkId;
use wire::peer::Want;

/// Units are wanted in batches of so many bytes, at least, while others are on their way.
const BATCH: u64 = AHEAD / 2;

/// Units are looked at so far ahead of a reader, in bytes of the object: where most are here, few are missing.
const REACH: u64 = OVERHEARD_PART as u64 * AHEAD;

/// What a reader may want of an object.
struct Window {
    /// From where on, in bytes of the object.
    from: u64,
    /// Up to where.
    to: u64,
    /// How much may be asked of a peer, in weight of units.
    open: u64,
}

impl Objects {
    /// Wants what a reader needs next and is not here.
    pub fn want_for(&mut self, cx: &mut Context, fetch: FetchId, id: ExchangeId) {
        let Some(Window { mut from, to, mut open }) = self.window(cx, fetch, id) else {
            return self.extend_manifest_credit_for(cx, fetch, id, MANIFEST_CREDIT / 4);
        };
        let (mut missing, mut counted, mut ahead) = (Vec::new(), Vec::new(), Vec::new());
        while from < to && open > 0 {
            let Some(incoming) = cx.transfers.get(&fetch) else { return };
            let until = to.min(from + open.min(BATCH));
            let (units, listed_to) = incoming.listed_between(&mut cx.manifests, from, until);
            if units.is_empty() {
                break;
            }
            from = listed_to;
            for (name, unit) in units {
                if cx.is_missing(&name) {
                    missing.push((name, unit));
                } else if !cx.in_flight.contains(&name) {
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
        if leads && !counted.is_empty() {
            counted.iter().for_each(|(name, _)| cx.in_flight.count_for(name, id));
            let bytes = counted.iter().map(|(_, length)| u64::from(*length)).sum();
            self.says(Value::FromPeer(id, bytes));
        }
        self.extend_manifest_credit(cx, fetch, from + MANIFEST_CREDIT, MANIFEST_CREDIT / 4);
    }

    /// What of an object a reader may want now; nothing if it is not worth it yet. Units that are here do not count: a
    /// window that they filled would let only a little come in each round trip.
    fn window(&mut self, cx: &mut Context, fetch: FetchId, id: ExchangeId) -> Option<Window> {
        let (position, end) = cx.exchanges.get(&id)?.reads()?;
        let is_crowded = cx.is_crowded();
        let incoming = cx.transfers.get_mut(&fetch)?;
        let known = incoming.frontier();
        if incoming.is_cut() {
            return None;
        }
        if is_crowded {
            self.ungranted = true;
            return None;
        }
        let reader = reader_of(cx, fetch, id)?;
        let from = reader.wanted_to.max(position);
        let open = AHEAD.saturating_sub(reader.wanted_ahead(position));
        let end = end.unwrap_or(u64::MAX);
        let to = (position + REACH).min(known).min(end);
        let lasts = to >= from + BATCH || to == end;
        let enough = open >= BATCH.min(end.saturating_sub(from));
        let worth = (lasts && enough) || !cx.in_flight.has(fetch);
        (worth && to > from && open > 0).then_some(Window { from, to, open })
    }

    /// A reader counts a unit that is on its way, or has just come, as a peer's.
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

    /// Asks the peer of a transfer for units; if there is none now, the next one is asked.
    pub fn want(&mut self, cx: &mut Context, id: FetchId, units: Listed) {
        let Some(incoming) = cx.transfers.get_mut(&id).filter(|_| !units.is_empty()) else {
            return;
        };
        if !cx.in_flight.has(id) {
            cx.pursuits.came(id, cx.now);
        }
        let (mut wants, mut early) = (Vec::with_capacity(units.len()), Vec::new());
        for (name, unit) in units {
            incoming.granted += u64::from(unit.length);
            cx.in_flight.begin(name, id, unit);
            if let Some(bytes) = cx.in_flight.early.take(&name) {
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

    /// Nothing is to be wanted for a reader now, but what it has passed makes more of the manifest welcome:
    /// where memory was full, units were wanted one by one, as it came to them. The router that cuts waits for this.
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

    /// More of a transfer's manifest is welcome; it is said if it is worth a message, being more by so many
    /// bytes than was said before.
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

    /// Wants of a peer that are not here go on to the next one, all at once.
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

    /// Nothing of a transfer has come for a while: what its readers want and welcome is looked at anew, and said
    /// even if it is little.
    pub fn want_anew(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        for reader in incoming.reader_ids() {
            self.want_for(cx, id, reader);
            self.extend_manifest_credit_for(cx, id, reader, 0);
        }
    }

    /// Has somebody woken when a unit is here, and wants it if nobody did; false if it cannot be had
    /// from a peer.
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
                // It had come before.
                cx.turns.ready(waiter);
                return true;
            }
        }
        cx.in_flight.wait_for(&name, waiter)
    }

    /// Readers want more, if there is memory and none waits for the order of what was heard.
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

    /// Nobody reads any more, but little remains: all of it is wanted.
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
