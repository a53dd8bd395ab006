//! Holes in stored objects, filled by a peer: units that eviction or decay took are wanted of it by name.
//! Where no peer can, the origin is asked for the range (`repair`).

use super::Node;
use crate::client::exchange::{Source, State};
use crate::http::{Audience, Record};
use crate::input::{ExchangeId, FetchId};
use crate::object::fetch::{self, Fetch};
use crate::object::storing::Storing;
use crate::source::Goal;
use std::rc::Rc;

impl Node {
    /// A client's reader has come to a unit that is gone: has it filled; false if no peer can.
    pub(super) fn fill(&mut self, reader: ExchangeId) -> bool {
        self.reopen(reader).is_some() && self.wait_for_unit(reader)
    }

    /// Turns the reader of a closed record into one of a transfer that fills its holes.
    pub(super) fn reopen(&mut self, reader: ExchangeId) -> Option<FetchId> {
        let exchange = self.client.exchanges.get(&reader)?;
        let (source, unfillable) = match &exchange.state {
            State::Serving(serving) => (&serving.source, serving.unfillable),
            State::Supplying(supplying) => (&supplying.source, supplying.unfillable),
            _ => return None,
        };
        let Source::Closed(record) = source else { return None };
        let record = Rc::clone(record);
        let stays = exchange.ask.audience != Audience::Everyone;
        if unfillable || !self.has_sources(&exchange.ask) || stays {
            return None;
        }
        let fetch = match self.object.reopened(&record) {
            Some(fetch) => fetch,
            None => self.begin_filling(reader, &record)?,
        };
        let storing = self.object.fetches.get_mut(&fetch)?.storing()?;
        storing.readers.push(reader);
        match &mut self.client.exchanges.get_mut(&reader)?.state {
            State::Serving(serving) => {
                serving.source = Source::Growing(fetch);
                serving.wanted_to = serving.position().unwrap_or_default();
                serving.wanted.clear();
            }
            State::Supplying(supplying) => supplying.source = Source::Growing(fetch),
            _ => {}
        }
        Some(fetch)
    }

    fn begin_filling(&mut self, reader: ExchangeId, record: &Rc<Record>) -> Option<FetchId> {
        let ask = self.client.exchanges.get(&reader)?.ask.clone();
        let headers = ask.headers.clone();
        let fetch = Fetch {
            unstorable: Some("repair"),
            state: fetch::State::Storing(Box::new(Storing::reopened(record))),
            ..Fetch::new(Rc::new(ask), self.cx.date(), "partial", Vec::new())
        };
        Some(self.start(fetch, headers, Goal::Holes))
    }

    /// No peer can fill the holes of a record: its readers turn to the origin. False if that is not what
    /// the transfer was for.
    pub(super) fn cannot_fill(&mut self, id: FetchId) -> bool {
        let storing = self.object.fetches.get_mut(&id).and_then(Fetch::storing);
        let Some(record) = storing.filter(|it| it.is_reopened()).and_then(|it| it.whole.clone())
        else {
            return false;
        };
        let Some(fetch) = self.remove_fetch(id) else { return true };
        for reader in self.object.drop_storing(&mut self.cx, id, fetch) {
            self.client.read_closed(reader, &record);
            match self.client.exchanges.get_mut(&reader).map(|exchange| &mut exchange.state) {
                Some(State::Serving(serving)) => serving.unfillable = true,
                Some(State::Supplying(supplying)) => supplying.unfillable = true,
                _ => {}
            }
            self.cx.turns.ready(reader);
        }
        true
    }
}
