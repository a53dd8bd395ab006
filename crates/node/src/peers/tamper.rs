//! A node that lies to its peers, for simulations and tests: an adversary with a true identity and true keys.

use super::Peers;
use bytes::Bytes;
use wire::peer::{ChunkHead, Message};
use wire::{Instant, NodeId};

/// What comes in place of a message: messages to peers, in this order. `None`: the message itself.
pub type Instead = Option<Vec<(NodeId, Message)>>;

/// Changes what a node says, below everything that decides.
pub trait Tamper {
    /// A peer has said something. `Some`: the node does not learn of it.
    fn hears(&mut self, now: Instant, from: NodeId, message: &Message) -> Instead;

    /// The node says something to a peer.
    fn says(&mut self, now: Instant, to: NodeId, message: &Message) -> Instead;

    /// The node sends a part of a unit to a peer: these bytes go instead, or nothing at all.
    fn sends(&mut self, to: NodeId, head: &ChunkHead, bytes: Bytes) -> Option<Bytes>;
}

impl Peers {
    /// Says what comes in place of a message, if anything does.
    pub(super) fn instead(
        &mut self,
        now: Instant,
        of: impl FnOnce(&mut Box<dyn Tamper>) -> Instead,
    ) -> bool {
        let instead = self.tamper.as_mut().and_then(of);
        for (peer, message) in instead.iter().flatten() {
            self.say(now, *peer, message);
        }
        instead.is_some()
    }
}
