//! What is asked of others: what comes of it, and looking after it.

use super::Node;
use crate::client::exchange::State;
use crate::http::selects;
use crate::input::{ExchangeId, FetchId};
use crate::object::fetch::{self, Fetch};
use crate::object::storing::Tail;
use crate::source::{Pursuit, Value};
use std::time::Duration;

/// Who joined a request that has no head after so long, of a peer that says nothing, goes to the gateway,
/// alone (protocol: No loops).
const JOINED_PATIENCE: Duration = Duration::from_secs(2);
/// While the peer sends other things the air is full, and one more copy would fill it more; but nobody
/// waits longer than this.
const JOINED_MAX: Duration = Duration::from_secs(10);

impl Node {
    pub(super) fn source_says(&mut self, value: Value) {
        match value {
            Value::Ended(id, result) => self.end(id, result),
            Value::AllCame(id) => self.all_came(id),
            Value::Lost(id) => self.giver_lost(id),
            Value::CannotFill(id) => _ = self.cannot_fill(id),
            Value::Stalled(id) => self.want_anew(id),
        }
    }

    /// Who gave an object is gone: it goes on by another way; if nothing of it is on its way, what is here is kept
    /// first.
    fn giver_lost(&mut self, id: FetchId) {
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        if let Some(listed) = storing.listed() {
            // Whoever is asked next lists more of it, or begins its bytes elsewhere.
            listed.tail = Tail::default();
            // What one does not have another may.
            listed.lost.clear();
        }
        let whole = storing.whole.clone();
        self.cx.flights.drop_parts(id);
        match whole.filter(|_| !self.cx.is_flying(id)) {
            Some(record) => self.finish_listed(id, &record),
            None => self.source.ask_next(&mut self.cx, id),
        }
    }

    /// Nothing more of a transfer is wanted.
    pub(super) fn remove_fetch(&mut self, id: FetchId) -> Option<Fetch> {
        let fetch = self.object.fetches.remove(&id)?;
        self.publish.handle_ended(&mut self.cx, id);
        self.source.end(&mut self.cx, id);
        if let Some(ear) = &mut self.cx.ear {
            ear.unwant(self.cx.now, &self.cx.flights.wants_of(id));
        }
        // Others may have waited for units that were asked for by this one.
        let waiters = self.cx.flights.remove_all(id);
        self.cx.turns.all_ready(waiters);
        Some(fetch)
    }

    /// Looks whether what was asked of others comes on.
    pub(super) fn look_after(&mut self) {
        let ids = self.source.at_peers();
        for id in &ids {
            self.look_after_joined(*id);
            let open = match self.object.fetches.get(id).map(|fetch| &fetch.state) {
                Some(fetch::State::Storing(storing)) => {
                    !self.cx.is_flying(*id) && !storing.ended && !storing.is_loose()
                }
                _ => false,
            };
            self.source.look_after(&mut self.cx, *id, open);
        }
        self.end_idle();
        self.grant_anew();
        let bodies = self.look_after_bodies();
        let supplies = !self.client.supplied.is_empty();
        if !ids.is_empty() || supplies || bodies {
            self.source.look_again(self.cx.now);
        }
    }

    /// Who joined a request that has no head yet does not wait for ever.
    fn look_after_joined(&mut self, id: FetchId) {
        let Some((mesh, fetch)) = self.cx.mesh.as_ref().zip(self.object.fetches.get_mut(&id))
        else {
            return;
        };
        let gave =
            self.source.get(id).and_then(Pursuit::peer).and_then(|peer| mesh.peers.gave(peer));
        let silent = gave.is_none_or(|gave| self.cx.now - gave > JOINED_PATIENCE);
        let patience = if silent { JOINED_PATIENCE } else { JOINED_MAX };
        let due = |(at, _): &(_, _)| self.cx.now - *at > patience;
        let count = fetch.joined.iter().take_while(|it| due(it)).count();
        let impatient: Vec<ExchangeId> = fetch.joined.drain(..count).map(|(_, id)| id).collect();
        fetch.waiters.retain(|waiter| !impatient.contains(waiter));
        let old = fetch.old.clone();
        for waiter in impatient {
            let Some(exchange) = self.client.exchanges.get_mut(&waiter) else { continue };
            if matches!(exchange.state, State::Waiting(fetch) if fetch == id) {
                exchange.ask.alone = true;
                exchange.ask.trail.to_gateway = true;
                let old = old.clone().filter(|old| selects(old, &exchange.ask.headers));
                self.miss(waiter, old, "uri-miss");
            }
        }
    }
}
