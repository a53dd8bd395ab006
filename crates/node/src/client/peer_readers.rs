//! Peers' requests: which exchange each of them is, and the memory that they take.

use super::budget::Budget;
use crate::context::Context;
use crate::exchanges::exchange::{Source, State};
use crate::exchanges::peer_reader::PeerReader;
use crate::input::ExchangeId;
use std::collections::BTreeMap;
use wire::peer::{ChunkHead, Message, Outcome, Request};
use wire::{ChunkId, NodeId, RecordId};

/// Peers' requests; see the module.
pub struct PeerReaders {
    /// The exchange of each peer's request.
    pub requests: BTreeMap<(NodeId, Request), ExchangeId>,
    /// The memory that peers' requests take.
    pub budget: Budget,
    /// The request that last had a turn to send units.
    pub last_turn: ExchangeId,
}

impl PeerReaders {
    /// No requests yet; `memory_bytes` is the budget of the whole node.
    pub fn new(memory_bytes: u64) -> Self {
        Self {
            requests: BTreeMap::new(),
            budget: Budget::new(memory_bytes),
            last_turn: ExchangeId(0),
        }
    }

    /// The exchange of a peer's request.
    pub fn get(&self, peer: NodeId, request: Request) -> Option<ExchangeId> {
        self.requests.get(&(peer, request)).copied()
    }

    /// The exchanges of all requests of a peer.
    pub fn of(&self, peer: NodeId) -> impl Iterator<Item = ExchangeId> {
        let all = (peer, Request(0))..=(peer, Request(u32::MAX));
        self.requests.range(all).map(|(_, id)| *id)
    }

    /// How many bytes may be read for a request, at most `most`; `None` if it must wait. Reading
    /// takes at most half of what is free, so that the next requests and wants find room. Each peer
    /// may always have one unit read, so that it makes progress as long as it takes what it asked
    /// for.
    pub fn room_to_read(&self, cx: &Context, id: ExchangeId, most: u64) -> Option<u64> {
        let (peer, _) = cx.exchanges.get(&id)?.peer()?;
        let room = (self.budget.free() / 2).min(most);
        let unit = u64::from(ChunkHead::TOTAL_MAX);
        if room >= unit {
            return Some(room);
        }
        let has_read = |id| cx.exchanges.peer_reader(id).is_some_and(|it| it.read_bytes() > 0);
        (!self.of(peer).any(has_read)).then_some(unit)
    }

    /// The first request that waits for memory and may read now.
    pub fn can_read_now(&mut self, cx: &Context) -> Option<ExchangeId> {
        if !self.budget.has_more() {
            return None;
        }
        let may = |id: &ExchangeId| self.room_to_read(cx, *id, u64::MAX).is_some();
        let next = self.budget.waiting().find(may);
        match next {
            Some(next) => self.budget.goes_on(next),
            None => self.budget.was_looked_at(),
        }
        next
    }

    /// How many units a peer wants, over all its requests.
    pub fn wants_of(&self, cx: &Context, peer: NodeId) -> usize {
        let wants = |id| cx.exchanges.peer_reader(id).map_or(0, |it| it.wants.len());
        self.of(peer).map(wants).sum()
    }

    /// From now on the exchange serves a peer from this source.
    pub fn begin(&self, cx: &mut Context, id: ExchangeId, source: Source, record: RecordId) {
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return };
        let Some((peer, _)) = exchange.peer() else { return };
        cx.mesh.iter_mut().for_each(|mesh| mesh.gives(cx.now, &exchange.ask));
        let peer_reader = PeerReader::new(peer, &exchange.ask.peer_hops, source, record, cx.now);
        exchange.state = State::PeerReader(Box::new(peer_reader));
        cx.turns.ready(id);
    }

    /// Tells a peer that the unit it wants first cannot be had here.
    pub fn lose_first(&self, cx: &mut Context, id: ExchangeId) {
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return };
        let Some((peer, request)) = exchange.peer() else { return };
        let State::PeerReader(peer_reader) = &mut exchange.state else { return };
        let Some(name) = peer_reader.wants.front().map(|want| want.name) else { return };
        peer_reader.wants.pop_front();
        cx.say(peer, Message::DontHave(request, vec![name]));
    }

    /// A unit could not be read at the length that the peer claims: tells the peer that it cannot
    /// be had.
    pub fn lose_unread(&self, cx: &mut Context, id: ExchangeId, unread: Option<(ChunkId, u32)>) {
        let Some(peer_reader) = cx.exchanges.peer_reader(id) else { return };
        let first = peer_reader.wants.front().map(|want| (want.name, want.length));
        if unread.is_some() && unread == first {
            self.lose_first(cx, id);
        }
    }

    /// Tells a peer that its response has ended; false if the exchange is a client's.
    pub fn end(&self, cx: &mut Context, id: ExchangeId, outcome: Outcome) -> bool {
        let Some((peer, request)) = cx.exchanges.get(&id).and_then(|it| it.peer()) else {
            return false;
        };
        cx.say(peer, Message::End(request, outcome));
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::context::tests::context;
    use crate::exchanges::exchange::Exchange;
    use crate::input::FetchId;
    use crate::request::Asker;
    use crate::request::tests::ask;

    const UNIT: u64 = ChunkHead::TOTAL_MAX as u64;

    pub(in crate::client) fn peer(number: u8) -> NodeId {
        NodeId([number; 16])
    }

    /// A peer's request that gets an object under way.
    pub(in crate::client) fn begin(
        readers: &mut PeerReaders,
        cx: &mut Context,
        (peer, id): (NodeId, u32),
    ) -> ExchangeId {
        let (id, request) = (ExchangeId(id.into()), Request(id));
        let mut ask = ask("http://o.test/a");
        ask.asker = Asker::Peer(peer, request);
        let (source, record) = (Source::Incoming(FetchId(1)), RecordId([0; 16]));
        let reader = PeerReader::new(peer, &ask.peer_hops, source, record, cx.now);
        let state = State::PeerReader(Box::new(reader));
        cx.exchanges.insert(id, Exchange { ask, credit: 0, state });
        readers.requests.insert((peer, request), id);
        id
    }

    #[test]
    fn a_read_takes_half_of_what_is_free_and_a_peer_has_one_unit_in_any_case() {
        let (mut cx, mut readers) = (context(), PeerReaders::new(4 * 5 * UNIT));
        let id = begin(&mut readers, &mut cx, (peer(1), 1));
        let other = begin(&mut readers, &mut cx, (peer(1), 2));
        let alone = begin(&mut readers, &mut cx, (peer(2), 3));
        cx.exchanges.supplying_mut(other).expect("it was begun").reserved = 1;
        readers.budget.charge(other, peer(1), UNIT);
        assert_eq!(readers.room_to_read(&cx, id, u64::MAX), Some(2 * UNIT));
        assert_eq!(readers.room_to_read(&cx, id, UNIT + 1), Some(UNIT + 1));
        readers.budget.charge(other, peer(1), 3 * UNIT);
        assert_eq!(readers.room_to_read(&cx, id, u64::MAX), Some(UNIT));
        // Now half of what is free is less than a unit, and one request of this peer has read.
        readers.budget.charge(other, peer(1), 3 * UNIT + 1);
        assert_eq!(readers.room_to_read(&cx, id, u64::MAX), None);
        assert_eq!(readers.room_to_read(&cx, alone, u64::MAX), Some(UNIT));
        cx.exchanges.supplying_mut(other).expect("it was begun").reserved = 0;
        assert_eq!(readers.room_to_read(&cx, id, u64::MAX), Some(UNIT));
    }

    #[test]
    fn memory_that_was_given_back_is_for_the_oldest_that_waits_and_may_read() {
        let (mut cx, mut readers) = (context(), PeerReaders::new(4 * 2 * UNIT));
        let waiting = [(1, 1), (2, 2), (3, 3)]
            .map(|(number, id)| begin(&mut readers, &mut cx, (peer(number), id)));
        waiting.iter().for_each(|id| readers.budget.wait(*id));
        assert_eq!(readers.can_read_now(&cx), None, "nothing was given back");
        // All memory is taken, and the first has read a unit that its peer has not taken.
        cx.exchanges.supplying_mut(waiting[0]).expect("it was begun").reserved = UNIT;
        readers.budget.charge(waiting[0], peer(1), 2 * UNIT);
        readers.budget.charge(ExchangeId(9), peer(9), 1);
        readers.budget.end(ExchangeId(9));
        let next: Vec<_> = std::iter::from_fn(|| readers.can_read_now(&cx)).collect();
        assert_eq!(next, waiting[1..]);
        assert!(!readers.budget.has_more(), "they were all looked at");
        assert_eq!(readers.budget.waiting().collect::<Vec<_>>(), waiting[..1]);
    }
}
