//! Holes in stored objects, filled by a peer: units that eviction or decay took are wanted of it by name.
//! Where no peer can, the origin is asked for the range (`repair`).

use super::Node;
use crate::exchange::{Source, State};
use crate::fetch::{self, Fetch};
use crate::http::{Audience, Record};
use crate::input::{ExchangeId, FetchId};
use crate::source::Goal;
use crate::storing::Storing;
use std::rc::Rc;

impl Node {
    /// A client's reader has come to a unit that is gone: has it filled; false if no peer can.
    pub(super) fn fill(&mut self, reader: ExchangeId) -> bool {
        self.reopen(reader).is_some() && self.wait_for_unit(reader)
    }

    /// Turns the reader of a closed record into one of a transfer that fills its holes.
    pub(super) fn reopen(&mut self, reader: ExchangeId) -> Option<FetchId> {
        let exchange = self.exchanges.get(&reader)?;
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
        let fetch = match self.reopened(&record) {
            Some(fetch) => fetch,
            None => self.begin_filling(reader, &record)?,
        };
        let storing = self.fetches.get_mut(&fetch)?.storing()?;
        storing.readers.push(reader);
        match &mut self.exchanges.get_mut(&reader)?.state {
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

    /// The transfer that fills the holes of a record, if there is one.
    fn reopened(&mut self, record: &Record) -> Option<FetchId> {
        self.fetches.iter_mut().find_map(|(id, fetch)| {
            let storing = fetch.storing()?;
            (storing.record == record.id && storing.is_reopened()).then_some(*id)
        })
    }

    fn begin_filling(&mut self, reader: ExchangeId, record: &Rc<Record>) -> Option<FetchId> {
        let ask = self.exchanges.get(&reader)?.ask.clone();
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
        let storing = self.fetches.get_mut(&id).and_then(Fetch::storing);
        let Some(record) = storing.filter(|it| it.is_reopened()).and_then(|it| it.whole.clone())
        else {
            return false;
        };
        let Some(fetch) = self.remove_fetch(id) else { return true };
        for reader in self.drop_storing(id, fetch) {
            self.read_closed(reader, &record);
            match self.exchanges.get_mut(&reader).map(|exchange| &mut exchange.state) {
                Some(State::Serving(serving)) => serving.unfillable = true,
                Some(State::Supplying(supplying)) => supplying.unfillable = true,
                _ => {}
            }
            self.cx.turns.ready(reader);
        }
        true
    }
}
