//! What no signature covers: responses that are not stored, and bytes that are in no unit.
//!
//! Where gateways are named, clients of this node get such bytes from a gateway that is named and from nobody
//! else. Neighbours in between are honest by their own lights, so they are not expelled: the gateway itself is
//! asked. What only a peer has asked for is given on as it comes, because that peer judges for itself; else each
//! hop would have the gateway ask the origin once more.

use crate::context::Context;
use crate::input::FetchId;
use crate::request::Asker;
use wire::NodeId;

impl Context {
    /// Whether what a peer gives for a transfer counts though nobody has signed it. If not, the transfer
    /// is to turn to the gateway itself.
    pub fn takes_unsigned(&self, id: FetchId, peer: NodeId) -> bool {
        let believed = self.mesh.as_ref().is_some_and(|mesh| mesh.believes_unsigned(peer));
        believed || !self.is_for_clients(id)
    }

    /// Whether clients of this node get what comes.
    fn is_for_clients(&self, id: FetchId) -> bool {
        let Some(incoming) = self.transfers.get(&id) else {
            return self.pursuits.get(&id).is_some_and(|it| it.quest.ask.asker == Asker::Client);
        };
        let of_client = |id| self.exchanges.get(&id).is_some_and(|it| it.peer().is_none());
        incoming.readers.iter().any(|reader| of_client(reader.id))
    }
}
