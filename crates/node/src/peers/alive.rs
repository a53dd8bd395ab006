//! Timers: dials and handshakes that take too long are ended, and silent peers are pinged.

use super::link::{Link, Role};
use super::peer::Peer;
use super::{Down, Peers};
use crate::input::LinkId;
use std::time::Duration;
use wire::{Instant, NodeId};

/// A dial, or a handshake, that takes longer is ended.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// A connection that a newer one would replace is ended unless it answers a ping within this time.
pub const PROBE: Duration = Duration::from_secs(5);
/// A peer that is silent for this long after a message to it is pinged.
const PING_WAITING: Duration = Duration::from_secs(5);
/// A peer that owes no answer is pinged after this long without bytes from it. In an idle mesh, pings
/// are the only traffic, and with thcp they cross every hop. A message to a peer that is gone leads to
/// a ping much sooner, after [`PING_WAITING`].
const PING_IDLE: Duration = Duration::from_secs(300);
/// A peer that sends nothing for this long after a ping counts as gone. Several of TCP's
/// retransmissions fit in, so that a change of route does not look like a dead peer.
const SILENT: Duration = Duration::from_secs(15);

/// While a request waits for a peer, the peer is pinged once it has been silent for this long.
const DOUBT: Duration = Duration::from_secs(2);
/// The peer is mute if it sends nothing for this many times the recent round-trip time of pings …
const ANSWERS: u32 = 4;
/// … and for at least this long: TCP can lose a packet twice in a row and still deliver it within this
/// time.
const ANSWER_MIN: Duration = Duration::from_secs(2);

impl Peer {
    /// When the peer must be pinged or, if it has been pinged, when it counts as gone.
    pub(super) fn due(&self) -> Instant {
        match (self.pinged, self.asked) {
            (Some(pinged), _) => pinged + SILENT,
            (None, Some(asked)) => asked + PING_WAITING,
            (None, None) => self.heard + PING_IDLE,
        }
    }
}

impl Link {
    /// When this connection is ended if it makes no progress; `None` if it has no deadline.
    fn due(&self) -> Option<Instant> {
        match &self.role {
            Role::Proven(proven) if !self.dialled => Some(proven.probe?.1 + PROBE),
            Role::Control(..) | Role::DataIn(..) | Role::DataOut(_) => None,
            _ => Some(self.since + HANDSHAKE),
        }
    }
}

impl Peers {
    /// Pings a silent peer for a request that has waited for it since `since`. The longer the peer sends
    /// nothing but pongs, the rarer the pings.
    pub fn doubt(&mut self, now: Instant, them: NodeId, since: Instant) {
        let Some(peer) = self.peers.get_mut(&them) else { return };
        let gave = peer.gave.max(since);
        let wait = DOUBT.max((peer.heard - gave) / 2);
        if peer.doubted.is_none() && now - peer.heard.max(since) >= wait {
            peer.doubted = Some(now);
            self.say_ping(now, them);
        }
    }

    /// Whether a peer has sent nothing since the ping of [`doubt`](Self::doubt), for longer than its pongs
    /// take. The peer may be gone, or out of reach for a moment.
    pub fn is_mute(&self, now: Instant, them: NodeId) -> bool {
        let Some(peer) = self.peers.get(&them) else { return false };
        let timeout = ANSWER_MIN.max(peer.answers_in * ANSWERS);
        peer.doubted.is_some_and(|doubted| now - doubted > timeout)
    }

    /// A pong has arrived: updates the peer's round-trip time.
    pub(super) fn ping_answered(&mut self, now: Instant, them: NodeId, number: u64) {
        let Some(peer) = self.peers.get_mut(&them) else { return };
        if let Some((_, at)) = peer.ping.take_if(|(asked, _)| *asked == number) {
            // The estimate rises at once and falls slowly: a path that was slow may be slow again.
            peer.answers_in = (now - at).max((peer.answers_in * 7 + (now - at)) / 8);
        }
    }

    /// Handles all deadlines that have passed, and finds the next one.
    pub(super) fn ring(&mut self, now: Instant) {
        if self.alarm.is_none_or(|alarm| alarm > now) {
            return;
        }
        let is_due = |link: &Link| link.due().is_some_and(|due| due <= now);
        let links: Vec<LinkId> =
            self.links.iter().filter(|(_, link)| is_due(link)).map(|(id, _)| *id).collect();
        for link in links {
            self.link_due(now, link);
        }
        let peers: Vec<NodeId> = self.peers.keys().copied().collect();
        for peer in peers {
            self.peer_due(now, peer);
        }
        let links = self.links.values().filter_map(Link::due);
        let peers = self.peers.values().map(Peer::due);
        let pauses = self.peers.values().filter(|it| it.data_wanted).filter_map(|it| it.data_pause);
        self.alarm = links.chain(peers).chain(pauses).min();
    }

    fn link_due(&mut self, now: Instant, id: LinkId) {
        // The deadline of an earlier link may have ended this one too.
        let Some(link) = self.links.get(&id) else { return };
        match link.proven() {
            Some(proven) if !link.dialled => {
                // The peer's established connection has not answered the probe.
                let them = proven.them.id;
                self.gone(now, them, Down::Silent);
            }
            _ => self.end(now, id, Down::Silent),
        }
    }

    fn peer_due(&mut self, now: Instant, them: NodeId) {
        let Some(peer) = self.peers.get_mut(&them) else { return };
        if peer.data_pause.is_some_and(|pause| pause <= now) {
            peer.data_pause = None;
            if peer.data_wanted {
                self.open_data(now, them);
            }
        }
        let Some(peer) = self.peers.get(&them).filter(|peer| peer.due() <= now) else { return };
        if peer.pinged.is_some() {
            self.gone(now, them, Down::Silent);
        } else {
            self.ping(now, them);
        }
    }
}
