//! Messages that wait because peers take them slowly: how much of each peer, and of all.

use super::{CONTROL_BACKLOG_MAX, Peers, WINDOW};
use wire::NodeId;

/// Less than this that waits for one peer is no reason to look at all of them.
const LITTLE: usize = 4 * 1024;
/// A peer is told no more of manifests while more than this waits for it, in bytes …
const TELL_MAX: usize = 128 * 1024;
/// … or less, where there are many peers; but not less than this, for nobody is told when a shorter backlog
/// has gone.
const TELL_MIN: usize = WINDOW / 2;

impl Peers {
    /// From now on no more than this waits for all peers together, in bytes. One alone may always have
    /// its share.
    pub fn limit_backlogs(&mut self, bytes_max: usize) {
        self.backlogs_max = bytes_max.max(CONTROL_BACKLOG_MAX);
    }

    /// Bytes that wait to be sent to a peer in messages.
    pub fn backlog(&self, peer: NodeId) -> usize {
        let link = self.peers.get(&peer).and_then(|peer| self.links.get(&peer.control));
        let waiting = link.map_or(0, |link| (link.out.len() as u64).saturating_sub(link.room));
        usize::try_from(waiting).unwrap_or(usize::MAX)
    }

    /// Bytes that wait to be sent to all peers in messages.
    pub fn backlogs(&self) -> usize {
        self.peers.keys().map(|peer| self.backlog(*peer)).sum()
    }

    /// Whether a peer is to be told what can wait: its part of half of what may wait for all.
    pub fn may_tell(&self, peer: NodeId) -> bool {
        let share = self.backlogs_max / 2 / self.peers.len().max(1);
        self.backlog(peer) <= share.clamp(TELL_MIN, TELL_MAX)
    }

    /// Who is hung up because too much waits, after one more message for this peer: the one that has let
    /// its own backlog grow too far, or of all the one with the longest.
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
