//! What no signature covers: responses that are not stored, and bytes that are in no unit.
//!
//! Where gateways are named, clients of this node get such bytes from a gateway that is named and from nobody
//! else. Neighbours in between are honest by their own lights, so they are not expelled: the gateway itself is
//! asked. What only a peer has asked for is given on as it comes, because that peer judges for itself; else each
//! hop would have the gateway ask the origin once more.

use super::Node;
use crate::input::FetchId;
use crate::object::fetch;
use crate::request::Asker;
use wire::NodeId;
use wire::peer::Request;

impl Node {
    /// Whether what a peer gives for a transfer counts though nobody has signed it. If not, the transfer
    /// turns to the gateway itself, in its turn.
    pub(super) fn takes_unsigned(&mut self, id: FetchId, asked: (NodeId, Request)) -> bool {
        let believed = self.cx.mesh.as_ref().is_some_and(|mesh| mesh.believes_unsigned(asked.0));
        let takes = believed || !self.is_for_clients(id);
        if !takes {
            self.source.turn_to_gateway(&mut self.cx, id, asked);
        }
        takes
    }

    /// Whether clients of this node get what comes.
    fn is_for_clients(&self, id: FetchId) -> bool {
        let Some(fetch) = self.object.fetches.get(&id) else { return false };
        match &fetch.state {
            fetch::State::Storing(storing) => storing.readers.iter().any(|reader| {
                self.client.exchanges.get(reader).is_some_and(|exchange| exchange.peer().is_none())
            }),
            _ => fetch.ask.asker == Asker::Client,
        }
    }
}
