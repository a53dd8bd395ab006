//! Backlogs: messages that wait because peers read them slowly, limited per peer and in total.

use super::{CONTROL_BACKLOG_MAX, Peers, WINDOW};
use wire::NodeId;

/// The total is not checked after a message that leaves its peer's backlog at most this long, in bytes.
const LITTLE: usize = 4 * 1024;
/// A peer with a longer backlog than this, in bytes, is sent no more of a manifest …
const TELL_MAX: usize = 128 * 1024;
/// … With many peers the limit is lower, but never below this: `Event::Room` reports only the end of
/// longer backlogs.
const TELL_MIN: usize = WINDOW / 2;

impl Peers {
    /// Limits the backlogs of all peers together to this many bytes, but never below the limit for one
    /// peer.
    pub fn limit_backlogs(&mut self, bytes_max: usize) {
        self.backlogs_max = bytes_max.max(CONTROL_BACKLOG_MAX);
    }

    /// Bytes of messages that wait for a peer, beyond what its connection has room for.
    pub fn backlog(&self, peer: NodeId) -> usize {
        let link = self.peers.get(&peer).and_then(|peer| self.links.get(&peer.control));
        let waiting = link.map_or(0, |link| (link.out.len() as u64).saturating_sub(link.room));
        usize::try_from(waiting).unwrap_or(usize::MAX)
    }

    /// Bytes of messages that wait for all peers together.
    pub fn backlogs(&self) -> usize {
        self.peers.keys().map(|peer| self.backlog(*peer)).sum()
    }

    /// Whether a peer may be sent messages that are not urgent. They may fill half of the total limit,
    /// in equal shares.
    pub fn may_tell(&self, peer: NodeId) -> bool {
        let share = self.backlogs_max / 2 / self.peers.len().max(1);
        self.backlog(peer) <= share.clamp(TELL_MIN, TELL_MAX)
    }

    /// The peer to disconnect after one more message for this peer. It is this peer if its own backlog
    /// is over the limit; if the total is over its limit, it is the peer with the longest backlog.
    pub(super) fn who_is_too_slow(&self, them: NodeId) -> Option<NodeId> {
        let waiting = self.backlog(them);
        if waiting > CONTROL_BACKLOG_MAX {
            return Some(them);
        }
        if waiting <= LITTLE || self.backlogs() <= self.backlogs_max {
            return None;
        }
        self.peers.keys().copied().max_by_key(|peer| self.backlog(*peer))
    }
}
