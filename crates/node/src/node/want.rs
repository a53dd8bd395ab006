//! What readers here want of an object that a peer lists: a window of units ahead of each, in batches.

use super::{AHEAD, Node};
use crate::chunks::Unit;
use crate::client::exchange::State;
use crate::context::OVERHEARD_PART;
use crate::input::{ExchangeId, FetchId};
use crate::object::Listed;
use crate::object::fetch::Fetch;
use crate::object::storing::Storing;
use crate::request::COVER;
use crate::source::Pursuit;
use wire::ChunkId;

/// Units are wanted in batches of so many bytes, at least, while others are on their way.
const BATCH: u64 = AHEAD / 2;

/// Units are looked at so far ahead of a reader, in bytes of the object: where most are here, few are missing.
const REACH: u64 = OVERHEARD_PART as u64 * AHEAD;

/// What a reader may want of an object.
struct Window {
    fetch: FetchId,
    /// From where on, in bytes of the object.
    from: u64,
    /// Up to where.
    to: u64,
    /// How much may be asked of a peer, in weight of units.
    open: u64,
}

impl Node {
    /// Wants what a reader needs next and is not here.
    pub(super) fn want_for(&mut self, id: ExchangeId) {
        let Some(Window { fetch, mut from, to, mut open }) = self.window(id) else {
            return self.welcome_for(id, COVER / 4);
        };
        let (mut missing, mut counted, mut ahead) = (Vec::new(), Vec::new(), Vec::new());
        while from < to && open > 0 {
            let (units, listed_to) = self.object.listed_between(
                &mut self.cx,
                fetch,
                from,
                to.min(from + open.min(BATCH)),
            );
            if units.is_empty() {
                break;
            }
            from = listed_to;
            for (name, unit) in units {
                if self.cx.is_missing(&name) {
                    missing.push((name, unit));
                } else if !self.cx.is_unit_flying(&name) {
                    continue;
                }
                let weight = self.cx.weight(&name, unit.length);
                open = open.saturating_sub(weight);
                ahead.push((unit.end, weight));
                counted.push((name, unit.length));
            }
        }
        let asked = self.source.get(fetch).and_then(Pursuit::peer);
        let mut leads = false;
        self.client.with_serving(id, |serving| {
            serving.wanted_to = from;
            serving.wanted.extend(ahead);
            leads = serving.leads;
            serving.asked = asked.or(serving.asked);
        });
        self.want(fetch, missing);
        for (name, length) in counted.into_iter().filter(|_| leads) {
            self.client.count_from_peer(&mut self.cx, id, &name, length);
        }
        self.welcome(fetch, from + COVER, COVER / 4);
    }

    /// What of an object a reader may want now; nothing if it is not worth it yet. Units that are here do not count: a
    /// window that they filled would let only a little come in each round trip.
    fn window(&mut self, id: ExchangeId) -> Option<Window> {
        let exchange = self.client.exchanges.get_mut(&id)?;
        let State::Serving(serving) = &mut exchange.state else { return None };
        let (fetch_id, position) = (serving.source.growing()?, serving.position()?);
        let from = serving.wanted_to.max(position);
        let open = AHEAD.saturating_sub(serving.wanted_ahead(position));
        let end = serving.end().unwrap_or(u64::MAX);
        let fetch = self.object.fetches.get_mut(&fetch_id)?;
        let known = fetch.frontier();
        fetch.storing()?.listed()?;
        if self.cx.is_crowded() {
            self.object.ungranted = true;
            return None;
        }
        let to = (position + REACH).min(known).min(end);
        let lasts = to >= from + BATCH || to == end;
        let enough = open >= BATCH.min(end.saturating_sub(from));
        let worth = (lasts && enough) || !self.cx.is_flying(fetch_id);
        (worth && to > from && open > 0).then_some(Window { fetch: fetch_id, from, to, open })
    }

    /// Asks the peer of a transfer for units; if there is none now, the next one is asked.
    pub(super) fn want(&mut self, id: FetchId, units: Listed) {
        let Some(fetch) = self.object.fetches.get_mut(&id).filter(|_| !units.is_empty()) else {
            return;
        };
        if !self.cx.flights.has(id) {
            self.source.came(id, self.cx.now);
        }
        let (mut wants, mut early) = (Vec::with_capacity(units.len()), Vec::new());
        for (name, unit) in units {
            fetch.granted += u64::from(unit.length);
            self.cx.flights.begin(name, id, unit);
            if let Some(bytes) = self.cx.flights.early.take(&name) {
                early.push((name, bytes));
                continue;
            }
            if let Some(ear) = &mut self.cx.ear {
                self.cx.flights.overheard(&name, ear.expect(self.cx.now, name, unit.length));
                ear.set_aside(self.cx.now, self.cx.flights.heard_cost());
            }
            wants.extend(self.cx.flights.want_of(&name));
        }
        self.source.want(&mut self.cx, id, &wants);
        for (name, bytes) in early {
            self.came_early(name, bytes);
        }
    }

    /// Nothing is to be wanted for a reader now, but what it has passed makes more of the manifest welcome:
    /// where memory was full, units were wanted one by one, as it came to them. Whoever cuts waits for this.
    fn welcome_for(&mut self, id: ExchangeId, worth: u64) {
        let Some(exchange) = self.client.exchanges.get(&id) else { return };
        let State::Serving(serving) = &exchange.state else { return };
        let (fetch, position) = (serving.source.growing(), serving.position());
        let wanted_to = serving.wanted_to;
        if let (Some(fetch), Some(position)) = (fetch, position.filter(|_| !self.cx.is_crowded())) {
            self.welcome(fetch, wanted_to.max(position) + COVER, worth);
        }
    }

    /// More of a transfer's manifest is welcome; it is said if it is worth a message, being more by so many
    /// bytes than was said before.
    pub(super) fn welcome(&mut self, id: FetchId, cover: u64, worth: u64) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let Some(storing) = fetch.storing() else { return };
        if storing.ended {
            return;
        }
        let Some(listed) = storing.listed() else { return };
        if cover > listed.cover.saturating_add(worth) {
            listed.cover = cover;
            self.source.welcome(&mut self.cx, id, cover);
        }
    }

    /// Nothing of a transfer has come for a while: what its readers want and welcome is looked at anew, and said
    /// even if it is little.
    pub(super) fn want_anew(&mut self, id: FetchId) {
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        for reader in storing.readers.clone() {
            self.want_for(reader);
            self.welcome_for(reader, 0);
        }
    }

    /// Somebody waits for a unit that is missing: whether it is, or can be, on its way.
    pub(super) fn wait_for_unit(&mut self, id: ExchangeId) -> bool {
        let Some(exchange) = self.client.exchanges.get(&id) else { return false };
        let State::Serving(serving) = &exchange.state else { return false };
        let (Some(fetch), Some(cursor)) = (serving.source.growing(), &serving.cursor) else {
            return false;
        };
        let entry = cursor.segment.entries[cursor.entry];
        let end = cursor.offset + u64::from(entry.length);
        self.await_unit(id, fetch, entry.id, Unit::listed(&entry, end))
    }

    /// Has somebody woken when a unit is here, and wants it if nobody did; false if it cannot be had
    /// from a peer.
    pub(super) fn await_unit(
        &mut self,
        waiter: ExchangeId,
        fetch: FetchId,
        name: ChunkId,
        unit: Unit,
    ) -> bool {
        if !self.cx.is_unit_flying(&name) {
            let storing = self.object.fetches.get_mut(&fetch).and_then(Fetch::storing);
            let Some(listed) = storing.and_then(Storing::listed) else { return false };
            if listed.lost.contains(&name) {
                return false;
            }
            self.want(fetch, vec![(name, unit)]);
            if !self.cx.is_unit_flying(&name) && self.cx.chunks.holds(&name) {
                // It had come before.
                self.cx.turns.ready(waiter);
                return true;
            }
        }
        self.cx.flights.wait_for(&name, waiter)
    }

    /// Whoever reads along wants more, if there is memory, and nobody waits for the order of what was heard.
    pub(super) fn want_ahead(&mut self, id: FetchId) {
        if self.cx.ear.as_ref().is_some_and(|ear| ear.is_awaiting(id)) {
            return;
        }
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        for reader in storing.readers.clone() {
            self.want_for(reader);
        }
    }

    /// Nobody reads any more, but little remains: all of it is wanted.
    pub(super) fn want_rest(&mut self, id: FetchId) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let known = fetch.frontier();
        let Some(storing) = fetch.storing() else { return };
        let from = storing.announced.unwrap_or(known).saturating_sub(2 * super::ABANDONED_MAX);
        let (units, _) = self.object.listed_between(&mut self.cx, id, from.min(known), known);
        let missing = units.into_iter().filter(|(name, _)| self.cx.is_missing(name)).collect();
        self.want(id, missing);
        self.welcome(id, u64::MAX, 0);
    }
}
