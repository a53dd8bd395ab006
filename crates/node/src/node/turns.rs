//! The loop at the end of each input: it handles values of machines, events of peers, readers,
//! transfers, and peers' requests that waited for memory, until nothing can go on.

use super::{Node, way};
use crate::exchanges::exchange::{Exchange, Source};
use crate::input::{ExchangeId, FetchId};
use crate::output::{OriginOutput, Output};
use crate::publish;
use crate::turns::{Fresh, TURNS_MAX, Turn, VALUES_MAX};

impl Node {
    /// Gives turns to all that can go on.
    pub(super) fn take_turns(&mut self) {
        let crowded = self.cx.is_crowded();
        if let Some(mesh) = &mut self.cx.mesh {
            mesh.peers.accept_chunks(!crowded);
        }
        let mut turns = 0;
        self.hand_over();
        // A reader or transfer that makes no progress must not block the rest: it continues at the
        // next input.
        while turns <= TURNS_MAX && self.take_turn() {
            self.hand_over();
            turns += 1;
        }
        debug_assert!(turns <= TURNS_MAX, "something goes on without getting on");
    }

    /// Gives one turn; false if nothing can go on.
    fn take_turn(&mut self) -> bool {
        if let Some(event) = self.cx.mesh.as_mut().and_then(|mesh| mesh.peers.poll_event()) {
            self.peer_event(event);
        } else if let Some((reader, fresh)) = self.cx.turns.next_reader() {
            self.read(reader, fresh);
        } else if let Some((id, turn)) = self.cx.turns.next_transfer() {
            // A reader may have joined since the end was marked.
            let of_nobody = self.object.is_unwanted(&self.cx, id)
                || self.client.misses.is_unwanted(&self.cx, id);
            if turn == Turn::End && of_nobody {
                // Asked before `over`, which ends the put.
                let is_put = self.publish.has(id);
                self.client.misses.forget(id);
                self.source.cancel(&mut self.cx, id);
                self.over(id);
                // `source` does not know a put: the driver, which reads its file, is told here.
                if is_put {
                    self.cx.out.push_back(Output::Origin(OriginOutput::Cancel(id)));
                }
                self.object.cancel(&mut self.cx, id);
            } else {
                way::enter("source: whom to ask");
                self.source.advance(&mut self.cx, id);
                way::enter("object: what may come");
                self.object.advance(&mut self.cx, id);
            }
        } else if let Some(reader) = self.client.peer_readers.can_read_now(&self.cx) {
            self.read(reader, None);
        } else {
            return false;
        }
        true
    }

    /// Hands over all values, and the values that follow from them.
    fn hand_over(&mut self) {
        for _ in 0..=VALUES_MAX {
            if let Some(value) = self.client.poll() {
                self.client_says(value);
            } else if let Some(value) = self.object.poll() {
                self.object_says(value);
            } else if let Some(value) = self.source.poll() {
                self.source_says(value);
            } else if let Some(value) = self.publish.poll() {
                way::enter("publish says something");
                match value {
                    publish::Value::Begin(id, bytes) => {
                        self.object.begin_file(&mut self.cx, id, bytes);
                    }
                    publish::Value::End(id) => self.cx.turns.end(id),
                }
            } else {
                return;
            }
        }
        debug_assert!(false, "machines talk without end");
    }

    /// A reader's turn: missing units are requested before stored ones are sent.
    fn read(&mut self, id: ExchangeId, fresh: Option<Fresh>) {
        let Some(exchange) = self.cx.exchanges.get(&id) else { return };
        let before = exchange.position();
        way::enter("client: a reader goes on");
        if let Some(fresh) = fresh {
            self.client.reading(&mut self.cx, id).feed(fresh);
        }
        let source = self.cx.exchanges.get(&id).and_then(Exchange::source);
        let is_listed =
            |fetch: &FetchId| self.cx.transfers.get(fetch).is_some_and(|it| !it.is_cut());
        if let Some(fetch) = source.and_then(Source::incoming).filter(is_listed) {
            way::enter("object: what a reader wants");
            self.object.want_for(&mut self.cx, fetch, id);
            self.hand_over();
        }
        self.client.go_on(&mut self.cx, id, before);
    }
}
