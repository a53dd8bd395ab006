//! The loop at the end of each input: what machines and peers said, then readers, then transfers, then a request of
//! a peer that waited for memory, until nobody can go on.

use super::Node;
use crate::input::FetchId;
use crate::object::fetch::{self, Fetch};
use crate::turns::{TURNS_MAX, Turn};
use wire::peer::Resume;

impl Node {
    /// Lets everybody go on who can.
    pub(super) fn take_turns(&mut self) {
        let crowded = self.cx.is_crowded();
        if let Some(mesh) = &mut self.cx.mesh {
            mesh.peers.accept_chunks(!crowded);
        }
        let mut turns = 0;
        // Whatever might go on without getting on must not stop the rest: it goes on at the next input.
        while turns <= TURNS_MAX && self.take_turn() {
            turns += 1;
        }
        debug_assert!(turns <= TURNS_MAX, "something goes on without getting on");
    }

    /// Lets the next one go on; false if nobody can.
    fn take_turn(&mut self) -> bool {
        if let Some(value) = self.source.poll() {
            self.source_says(value);
        } else if let Some(event) = self.cx.mesh.as_mut().and_then(|mesh| mesh.peers.poll_event()) {
            self.peer_event(event);
        } else if let Some(value) = self.publish.poll() {
            self.publishing_wants(value);
        } else if let Some((reader, fresh)) = self.cx.turns.next_reader() {
            self.pump(reader, fresh);
        } else if let Some((id, turn)) = self.cx.turns.next_transfer() {
            match turn {
                Turn::End if self.is_unwanted(id) => self.cancel(id),
                Turn::End | Turn::GoOn => self.advance(id),
            }
        } else if let Some(reader) = self.client.can_read_now() {
            self.pump(reader, None);
        } else {
            return false;
        }
        true
    }

    /// Whether nobody waits for a transfer, or reads it.
    fn is_unwanted(&self, id: FetchId) -> bool {
        self.object.fetches.get(&id).is_some_and(|fetch| match &fetch.state {
            fetch::State::Asking => fetch.waiters.is_empty(),
            fetch::State::Passing(client, _) => !self.client.exchanges.contains_key(client),
            fetch::State::Storing(storing) => storing.readers.is_empty(),
            fetch::State::Repairing(_) => true,
        })
    }

    /// A transfer does what there is to do.
    fn advance(&mut self, id: FetchId) {
        let storing = self.object.fetches.get_mut(&id).and_then(Fetch::storing);
        let from = storing.and_then(|storing| {
            let record = storing.record;
            storing.listed().map(|it| (Resume { record, segment: it.next }, it.cover))
        });
        self.source.advance(&mut self.cx, id, from);
        if self.object.fetches.get_mut(&id).and_then(Fetch::storing).is_none() {
            return;
        }
        self.passed(id);
        self.loose_passed(id);
        self.object.rest(&mut self.cx, id);
        self.forget_if_read(id);
        self.settle(id);
        self.grant_ahead(id);
    }
}
