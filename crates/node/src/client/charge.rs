//! How much memory each request of a peer takes. It is charged as it changes, and checked before
//! more is taken.

use super::Client;
use super::peer_readers::PeerReaders;
use crate::context::Context;
use crate::exchanges::exchange::{Exchange, Source, State};
use crate::input::ExchangeId;
use crate::request::AHEAD_MIN;
use wire::NodeId;
use wire::peer::{Get, Outcome};

/// What every request takes, in bytes: table entries, and messages made from it.
const REQUEST_COST: u64 = 8 * 1024;
/// What a transfer takes, in bytes, while one runs or may be needed: what an origin may always
/// send, and the unit being cut.
const TRANSFER_COST: u64 = AHEAD_MIN;
/// What a header field takes beyond its name and value, in bytes.
const FIELD_COST: usize = 128;
/// A request is kept twice: as it was received, and as it is sent on.
const COPIES: usize = 2;

/// What a request's own text takes, in bytes.
pub fn size_of_ask(ask: &Get) -> u64 {
    let fields = ask.fields.iter().map(|(name, value)| FIELD_COST + name.len() + value.len());
    (COPIES * (ask.uri.len() + fields.sum::<usize>())) as u64
}

/// What a new request takes, in bytes, if its text takes `size`.
pub fn cost_of_ask(size: u64) -> u64 {
    REQUEST_COST + TRANSFER_COST + size
}

impl Client {
    /// Frees memory until this many more bytes of a peer fit; false if they do not. The peer that holds
    /// the most may have to give memory back: its latest request ends, because least of it has been
    /// served.
    pub fn has_room_for(&mut self, cx: &mut Context, peer: NodeId, bytes: u64) -> bool {
        while self.peer_readers.is_short_of(cx, bytes) {
            let most = self.peer_readers.budget.who_gives_back(peer, bytes);
            let latest = most.and_then(|most| {
                let requests = self.peer_readers.of(most);
                requests.filter(|id| cx.exchanges.contains_key(id)).max()
            });
            let Some(latest) = latest else { return false };
            self.is_too_busy_for(cx, latest);
        }
        true
    }

    /// Ends a peer's request for lack of memory: the peer has to ask elsewhere.
    pub fn is_too_busy_for(&mut self, cx: &mut Context, id: ExchangeId) {
        cx.report.asks_short += 1;
        self.dismiss(cx, id, Outcome::Busy);
    }
}

impl PeerReaders {
    /// Whether fewer bytes than this are free, even after dropping what was read ahead.
    fn is_short_of(&mut self, cx: &mut Context, bytes: u64) -> bool {
        while self.budget.free() < bytes {
            if !self.forget_ahead(cx) {
                return true;
            }
        }
        false
    }

    /// Drops what was read ahead for the request that holds most of it, except the unit that is
    /// sent next. It can be read again. False if there is nothing to drop.
    fn forget_ahead(&mut self, cx: &mut Context) -> bool {
        let ahead = |id: &ExchangeId| {
            let count = cx.exchanges.peer_reader(*id)?.ahead.len();
            (count > 1).then_some((count, *id))
        };
        let Some((_, id)) = self.requests.values().filter_map(ahead).max() else {
            return false;
        };
        if let Some(peer_reader) = cx.exchanges.supplying_mut(id) {
            peer_reader.ahead.truncate(1);
        }
        self.charge(cx, id);
        true
    }

    /// Charges a peer's request what it takes now.
    pub fn charge(&mut self, cx: &Context, id: ExchangeId) {
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let Some((peer, _)) = exchange.peer() else { return };
        self.budget.charge(id, peer, takes(exchange) + size_of_head(cx, exchange));
    }
}

/// What the header fields of the record that a request reads take, in bytes.
fn size_of_head(cx: &Context, exchange: &Exchange) -> u64 {
    let headers = match exchange.source() {
        Some(Source::Closed(record)) => &record.headers,
        Some(Source::Incoming(fetch)) => match cx.transfers.get(fetch) {
            Some(incoming) => &incoming.headers,
            _ => return 0,
        },
        None => return 0,
    };
    let fields = headers.iter();
    fields.map(|(name, value)| (FIELD_COST + name.as_str().len() + value.len()) as u64).sum()
}

fn takes(exchange: &Exchange) -> u64 {
    let more = match &exchange.state {
        State::PeerReader(peer_reader) => {
            let transfer = match peer_reader.source {
                Source::Incoming(_) => TRANSFER_COST,
                Source::Closed(_) => 0,
            };
            transfer + peer_reader.wants.bytes() + peer_reader.read_bytes()
        }
        // Loose bytes for a peer that also has units requested.
        State::ClientReader(client_reader) => {
            client_reader.ahead.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
        }
        _ => TRANSFER_COST,
    };
    REQUEST_COST + exchange.ask.peer_hops.size + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::peer_readers::tests::{begin, peer};
    use crate::context::tests::context;

    /// The bytes that a request for an object takes which is still arriving.
    const TAKEN: u64 = REQUEST_COST + TRANSFER_COST;

    fn units_ahead(cx: &Context, id: ExchangeId) -> usize {
        cx.exchanges.peer_reader(id).expect("it goes on").ahead.len()
    }

    #[test]
    fn units_read_ahead_go_first_except_the_one_that_is_sent_next() {
        let (mut cx, mut client) = (context(), Client::new(4 * (2 * TAKEN + 10_000)));
        let read_ahead = [(1, 2), (2, 3)].map(|(id, units)| {
            let id = begin(&mut client.peer_readers, &mut cx, (peer(1), id));
            let reader = cx.exchanges.supplying_mut(id).expect("it was begun");
            let unit = |number: u8| (content::name(&[number]), vec![number; 1000].into());
            reader.ahead = (0..units).map(unit).collect();
            client.peer_readers.charge(&cx, id);
            id
        });
        // Of 10,000 bytes, 5,000 are taken by what was read ahead.
        let mut left = |bytes| {
            let has_room = client.has_room_for(&mut cx, peer(2), bytes);
            (has_room, read_ahead.map(|id| units_ahead(&cx, id)))
        };
        assert_eq!(left(5_000), (true, [2, 3]));
        assert_eq!(left(5_001), (true, [2, 1]), "the request that holds most gives first");
        assert_eq!(left(7_001), (true, [1, 1]));
        assert_eq!(left(8_000), (true, [1, 1]));
        // This peer holds the most itself, and nothing is left that could be read again.
        assert!(!client.has_room_for(&mut cx, peer(1), 8_001));
        assert_eq!(read_ahead.map(|id| units_ahead(&cx, id)), [1, 1]);
    }

    #[test]
    fn the_latest_request_of_the_peer_that_holds_most_ends() {
        let (mut cx, mut client) = (context(), Client::new(4 * (3 * TAKEN + 10)));
        let ids = [(1, 1), (1, 2), (2, 3)].map(|(number, id)| {
            let id = begin(&mut client.peer_readers, &mut cx, (peer(number), id));
            client.peer_readers.charge(&cx, id);
            id
        });
        assert!(client.has_room_for(&mut cx, peer(3), 10));
        assert_eq!(cx.report.asks_short, 0);
        assert!(client.has_room_for(&mut cx, peer(3), 11));
        assert_eq!(ids.map(|id| cx.exchanges.contains_key(&id)), [true, false, true]);
        assert_eq!(cx.report.asks_short, 1);
        // Neither gives anything back to a third that would then hold more.
        assert!(!client.has_room_for(&mut cx, peer(3), TAKEN + 11));
        assert_eq!(cx.report.asks_short, 1);
    }
}
