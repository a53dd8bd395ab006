//! Data that no signature covers: responses that are not stored, and loose bytes of objects.
//!
//! If gateways are configured, this node's clients get such data only from one of them (decision
//! 0023). A neighbour that passes it on may be honest, so it is not expelled: the gateway itself is
//! asked. Data that only a peer asked for is passed on as it arrives, because that peer checks it
//! itself. Otherwise each hop would make the gateway ask the origin once more.

use crate::context::Context;
use crate::input::FetchId;
use crate::request::Asker;
use wire::NodeId;

impl Context {
    /// Whether a peer's data for a transfer counts without a signature. If not, the transfer must
    /// turn to the gateway.
    pub fn takes_unsigned(&self, id: FetchId, peer: NodeId) -> bool {
        let believed = self.mesh.as_ref().is_some_and(|mesh| mesh.believes_unsigned(peer));
        believed || !self.is_for_clients(id)
    }

    /// Whether clients of this node read the transfer.
    fn is_for_clients(&self, id: FetchId) -> bool {
        let Some(incoming) = self.transfers.get(&id) else {
            return self.pursuits.get(&id).is_some_and(|it| it.quest.ask.asker == Asker::Client);
        };
        let of_client = |id| self.exchanges.get(&id).is_some_and(|it| it.peer().is_none());
        incoming.readers.iter().any(|reader| of_client(reader.id))
    }
}
