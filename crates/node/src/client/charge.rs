//! What requests of peers take of memory: charged as it changes, and looked at before more is taken.

use super::Client;
use crate::context::Context;
use crate::exchanges::exchange::{Exchange, Source, State};
use crate::exchanges::supplying::requests_of;
use crate::input::ExchangeId;
use crate::request::AHEAD_MIN;
use wire::NodeId;
use wire::peer::{Ask, Outcome};

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
pub fn size_of_ask(ask: &Ask) -> u64 {
    let fields = ask.fields.iter().map(|(name, value)| FIELD_COST + name.len() + value.len());
    (COPIES * (ask.uri.len() + fields.sum::<usize>())) as u64
}

impl Client {
    /// Whether there is memory for one more request of a peer, of this size.
    pub fn has_room_for_ask(&mut self, cx: &mut Context, peer: NodeId, size: u64) -> bool {
        self.has_room_for(cx, peer, REQUEST_COST + TRANSFER_COST + size)
    }

    /// Whether a peer may have this much more memory. The peer that holds the most may have to give back:
    /// the latest of its requests, which has got the least.
    pub fn has_room_for(&mut self, cx: &mut Context, peer: NodeId, bytes: u64) -> bool {
        while self.budget.free() < bytes {
            if self.forget_ahead(cx) {
                continue;
            }
            let most = self.budget.who_gives_back(peer, bytes);
            let latest = most.and_then(|most| {
                let requests = requests_of(&self.supplied, most);
                requests.filter(|id| cx.exchanges.contains_key(id)).max()
            });
            let Some(latest) = latest else { return false };
            self.is_too_busy_for(cx, latest);
        }
        true
    }

    /// Whether there is memory for what a peer wants of a request that goes on. Wants of the only peer that
    /// holds any of the account wait there in any case: they are limited by their count, and it has nobody
    /// to make room for.
    pub fn has_room_for_wants(&mut self, cx: &mut Context, peer: NodeId, bytes: u64) -> bool {
        self.has_room_for(cx, peer, bytes) || self.budget.holds_alone(peer)
    }

    /// Lets go of units that were read ahead for the request which has the most of them, but for the next one
    /// that it sends: they can be read again. False if there are none.
    fn forget_ahead(&mut self, cx: &mut Context) -> bool {
        let ahead = |id: &ExchangeId| match &cx.exchanges.get(id)?.state {
            State::Supplying(supplying) if supplying.ahead.len() > 1 => {
                Some((supplying.ahead.len(), *id))
            }
            _ => None,
        };
        let Some((_, id)) = self.supplied.values().filter_map(ahead).max() else {
            return false;
        };
        if let Some(State::Supplying(supplying)) = cx.exchanges.get_mut(&id).map(|it| &mut it.state)
        {
            supplying.ahead.truncate(1);
        }
        self.charge(cx, id);
        true
    }

    /// Charges a request of a peer what it takes now.
    pub fn charge(&mut self, cx: &mut Context, id: ExchangeId) {
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let Some((peer, _)) = exchange.peer() else { return };
        self.budget.charge(id, peer, takes(exchange) + self.size_of_head(cx, exchange));
    }

    /// What the head of a record takes that a request pins, in bytes.
    fn size_of_head(&self, cx: &Context, exchange: &Exchange) -> u64 {
        let headers = match exchange.source() {
            Some(Source::Closed(record)) => &record.headers,
            Some(Source::Growing(fetch)) => match cx.growing.get(fetch) {
                Some(storing) => &storing.headers,
                _ => return 0,
            },
            None => return 0,
        };
        let fields = headers.iter();
        fields.map(|(name, value)| (FIELD_COST + name.as_str().len() + value.len()) as u64).sum()
    }

    /// There is no memory for what a peer wants of a request: it is told to ask elsewhere.
    pub fn is_too_busy_for(&mut self, cx: &mut Context, id: ExchangeId) {
        cx.report.asks_short += 1;
        self.end_supply(cx, id, Outcome::Busy);
        self.leave(cx, id);
    }
}

fn takes(exchange: &Exchange) -> u64 {
    let more = match &exchange.state {
        State::Supplying(supplying) => {
            let transfer = match supplying.source {
                Source::Growing(_) => TRANSFER_COST,
                Source::Closed(_) => 0,
            };
            transfer + supplying.wants.bytes() + supplying.read_bytes()
        }
        // What flows beside units that were asked for.
        State::Serving(serving) => {
            serving.ahead.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
        }
        _ => TRANSFER_COST,
    };
    REQUEST_COST + exchange.ask.trail.size + more
}
