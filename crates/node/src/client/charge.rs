//! What requests of peers take of memory: charged as it changes, and looked at before more is taken.

use super::Client;
use super::supplies::Supplies;
use crate::context::Context;
use crate::exchanges::exchange::{Exchange, Source, State};
use crate::input::ExchangeId;
use crate::request::AHEAD_MIN;
use wire::NodeId;
use wire::peer::{Get, Outcome};

/// A request takes this much whatever it says: entries of tables, and messages that are made of it.
const REQUEST_COST: u64 = 8 * 1024;
/// A transfer takes this much as long as one is under way or may be needed: what an origin may always
/// send, and the unit that it is cut into.
const TRANSFER_COST: u64 = AHEAD_MIN;
/// A header field takes this much beside its name and value.
const FIELD_COST: usize = 128;
/// A request is kept twice: as it was asked, and for whom it is asked of next.
const COPIES: usize = 2;

/// What a request takes by what it says, in bytes.
pub fn size_of_ask(ask: &Get) -> u64 {
    let fields = ask.fields.iter().map(|(name, value)| FIELD_COST + name.len() + value.len());
    (COPIES * (ask.uri.len() + fields.sum::<usize>())) as u64
}

/// What a request takes when it comes, in bytes: all but what it says, and that.
pub fn cost_of_ask(size: u64) -> u64 {
    REQUEST_COST + TRANSFER_COST + size
}

impl Client {
    /// Whether a peer may have this much more memory. The peer that holds the most may have to give back:
    /// the latest of its requests, which has got the least.
    pub fn has_room_for(&mut self, cx: &mut Context, peer: NodeId, bytes: u64) -> bool {
        while self.supplies.is_short_of(cx, bytes) {
            let most = self.supplies.budget.who_gives_back(peer, bytes);
            let latest = most.and_then(|most| {
                let requests = self.supplies.of(most);
                requests.filter(|id| cx.exchanges.contains_key(id)).max()
            });
            let Some(latest) = latest else { return false };
            self.is_too_busy_for(cx, latest);
        }
        true
    }

    /// There is no memory for what a peer wants of a request: it is told to ask elsewhere.
    pub fn is_too_busy_for(&mut self, cx: &mut Context, id: ExchangeId) {
        cx.report.asks_short += 1;
        self.dismiss(cx, id, Outcome::Busy);
    }
}

impl Supplies {
    /// Whether less than this is free, and nothing that was read ahead is left to let go of.
    fn is_short_of(&mut self, cx: &mut Context, bytes: u64) -> bool {
        while self.budget.free() < bytes {
            if !self.forget_ahead(cx) {
                return true;
            }
        }
        false
    }

    /// Lets go of units that were read ahead for the request which has the most of them, but for the next one
    /// that it sends: they can be read again. False if there are none.
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

    /// Charges a request of a peer what it takes now.
    pub fn charge(&mut self, cx: &Context, id: ExchangeId) {
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let Some((peer, _)) = exchange.peer() else { return };
        self.budget.charge(id, peer, takes(exchange) + size_of_head(cx, exchange));
    }
}

/// What the head of a record takes that a request pins, in bytes.
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
        // What flows beside units that were asked for.
        State::ClientReader(client_reader) => {
            client_reader.ahead.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
        }
        _ => TRANSFER_COST,
    };
    REQUEST_COST + exchange.ask.trail.size + more
}
