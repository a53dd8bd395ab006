//! Hands each value of a machine to the machine that it is for. Nothing is decided here.

use super::{Node, way};
use crate::events::Event;
use crate::input::{FetchError, FetchId};
use crate::{client, object, source};

impl Node {
    pub(super) fn client_says(&mut self, value: client::Value) {
        way::enter("client says something");
        use client::Value;
        let cx = &mut self.cx;
        match value {
            Value::Seek(id, quest) => self.source.begin(cx, id, quest),
            // The object must be in its table before the waiting requests begin to read it.
            Value::Begin(id, incoming) => {
                self.object.begin(cx, id, *incoming);
                self.client.begun(cx, id);
            }
            Value::GoesOn(id) => self.object.goes_on(cx, id),
            Value::Broken(id) => self.object.broken(cx, id, object::Broken::Short),
            Value::Grant(id, bytes, waits) => self.source.grant(cx, id, bytes, waits),
            Value::Accept(id, asked) => self.source.accept(cx, id, asked),
            Value::Disregard(id) => self.source.disregard(cx, id),
            Value::TurnToGateway(id, asked) => self.source.turn_to_gateway(cx, id, asked),
            Value::Done(id) => self.source.done(cx, id),
            Value::Orphan(id) => self.object.orphan(cx, id),
            Value::Over(id) => self.over(id),
            Value::Join(id, reader, joins) => self.object.join(cx, id, reader, joins),
            Value::Left(id, reader, of_peer) => self.object.unread(cx, id, reader, of_peer),
            Value::Missing(reader, unit) => self.object.find(cx, reader, unit),
            Value::Forward(reader, id, wants) => self.object.forward(cx, reader, id, &wants),
            Value::ManifestCredit(id, manifest_credit) => {
                self.object.extend_manifest_credit(cx, id, manifest_credit, 0)
            }
            Value::Misled(id) => self.object.fail_storing(cx, id, &[]),
            Value::Forgotten(record) => self.publish.handle_forgotten(cx, record),
        }
    }

    pub(super) fn object_says(&mut self, value: object::Value) {
        way::enter("object says something");
        use object::Value;
        let cx = &mut self.cx;
        match value {
            Value::Seek(id, quest) => self.source.begin(cx, id, quest),
            Value::AskNext(id) => self.source.ask_next(cx, id),
            Value::Want(id, wants) => self.source.want(cx, id, &wants),
            Value::WantAgain(id) => self.source.want_again(cx, id),
            Value::ManifestCredit(id, manifest_credit) => {
                self.source.extend_manifest_credit(cx, id, manifest_credit)
            }
            Value::Credit(id, bytes) => self.source.credit(cx, id, bytes),
            Value::Grant(id, bytes, waits) => self.source.grant(cx, id, bytes, waits),
            Value::Accept(id, asked) => self.source.accept(cx, id, asked),
            Value::TurnToGateway(id, asked) => self.source.turn_to_gateway(cx, id, asked),
            Value::Delivered(id, peer) => self.source.delivered(cx, id, peer),
            Value::Helped(id) => {
                let holder = cx.pursuits.get(&id).and_then(|pursuit| pursuit.holder(cx));
                holder.into_iter().for_each(|at| self.source.select.helped(cx.now, id, at));
            }
            Value::Disregard(id) => self.source.disregard(cx, id),
            // Requests that waited read the object by now; later ones must not join it.
            Value::Retire(id) => _ = self.client.misses.retire(id),
            // The miss ends with its object: no request may join it any more.
            Value::Over(id) => {
                self.client.misses.forget(id);
                self.over(id);
            }
            Value::Ends(reader, length) => cx.exchanges.object_ends(reader, length),
            Value::Closed(reader, record, unfillable) => {
                cx.exchanges.read_closed(reader, &record, unfillable);
            }
            Value::Broken(reader) => self.client.abort(cx, reader),
            Value::Unmendable(reader) => self.client.abandon(cx, reader),
            Value::Lacks(reader) => self.client.lacks(cx, reader),
            // The request reads another source now: what it holds is charged to the peer anew.
            Value::Reopened(reader, id) => {
                cx.exchanges.reopen(reader, id);
                self.client.peer_readers.charge(cx, reader);
            }
            // The reader waits until the origin has sent the missing range.
            Value::Mends(reader, id) => cx.exchanges.with_serving(reader, |client_reader| {
                client_reader.waits = true;
                client_reader.repair = Some(id);
            }),
            Value::Mended(reader, units, all) => {
                cx.exchanges.mended(reader, units, all);
                cx.turns.ready(reader);
            }
            Value::FromPeer(reader, bytes) => {
                cx.exchanges.with_serving(reader, |client_reader| client_reader.from_peer += bytes);
            }
            Value::NotFromPeer(readers, bytes, mended) => {
                cx.exchanges.not_from_peer(&readers, bytes, mended);
            }
            Value::Listed(id, segment) => self.publish.handle_listed(cx, id, &segment),
            Value::Refused(id) => self.publish.handle_refused(id),
            Value::Written(id, record) => self.publish.handle_written(cx, id, &record),
            Value::Forgotten(record) => self.publish.handle_forgotten(cx, record),
        }
    }

    pub(super) fn source_says(&mut self, value: source::Value) {
        way::enter("source says something");
        use source::Value;
        match value {
            Value::Ended(id, result) => {
                if let Err(why) = result {
                    self.cx.events.emit(|| Event::GiveUp { fetch: id, why: why.into() });
                }
                self.ends(id, result);
            }
            Value::AllCame(id) => self.object.all_came(&mut self.cx, id),
            Value::Lost(id) => self.object.supplier_lost(&mut self.cx, id),
            Value::CannotFill(id) => _ = self.object.cannot_fill(&mut self.cx, id),
            // Either the response is passed on or it is an object: the other one ignores this.
            Value::Granted(id, bytes) => {
                self.client.misses.handle_granted(id, bytes);
                self.object.handle_granted(&mut self.cx, id, bytes);
            }
            Value::BrokenOff(id) => self.object.handle_broken_off(&mut self.cx, id),
            Value::Broken(id) => self.object.broken(&mut self.cx, id, object::Broken::Short),
            Value::Stalled(id) => self.object.want_anew(&mut self.cx, id),
        }
    }

    /// A response has ended, completely or with an error.
    pub(super) fn ends(&mut self, id: FetchId, result: Result<(), FetchError>) {
        // With an object or a repair, only that ends; without, the request itself has failed or is
        // complete.
        if self.object.handle_end(&mut self.cx, id, result.is_ok()) {
            return;
        }
        // The peer that was asked before the origin may still answer.
        if !self.client.misses.is_asking(id) || !self.source.falls_back_from_race(&mut self.cx, id)
        {
            self.client.handle_end(&mut self.cx, id, result);
        }
    }

    /// A transfer has ended.
    pub(super) fn over(&mut self, id: FetchId) {
        self.publish.handle_ended(&mut self.cx, id);
        self.source.end(&mut self.cx, id);
        if let Some(ear) = &mut self.cx.ear {
            ear.unwant(self.cx.now, &self.cx.in_flight.wants_of(id));
        }
        // Readers of other transfers may have waited for its units.
        let waiters = self.cx.in_flight.remove_all(id);
        self.cx.turns.all_ready(waiters);
    }
}
