//! Timers: what does not come about ends, and who says nothing is asked whether they are there.

use super::link::{Link, Role};
use super::peer::Peer;
use super::{Down, Peers};
use crate::input::LinkId;
use std::time::Duration;
use wire::{Instant, NodeId};

/// A dial, or a handshake, takes no longer.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// A connection that another one would replace answers within this, or goes.
pub const PROBE: Duration = Duration::from_secs(5);
/// A peer that has been told something and says nothing for so long is pinged.
const PING_WAITING: Duration = Duration::from_secs(5);
/// A peer that nobody waits for is pinged after so long: in an idle mesh pings are all that costs air, and
/// with thcp they cross every hop. Whoever asks a peer that is gone finds out by itself, in [`PING_WAITING`].
const PING_IDLE: Duration = Duration::from_secs(300);
/// A peer that does not answer a ping for so long, with whatever, is gone. Several of TCP's
/// retransmissions fit in: a route that changes must not look like a death.
const SILENT: Duration = Duration::from_secs(15);

/// A peer that gives nothing to whoever waits for it, and sends nothing else, is asked for a sign of life.
const DOUBT: Duration = Duration::from_secs(2);
/// It is mute if none comes within so many times what an answer has taken lately …
const ANSWERS: u32 = 4;
/// … and within this: two losses of the same packet in a row, with the pauses that TCP makes, fit in.
const ANSWER_MIN: Duration = Duration::from_secs(2);

impl Peer {
    /// When it is to be pinged, or has been silent for too long.
    pub(super) fn due(&self) -> Instant {
        match (self.pinged, self.asked) {
            (Some(pinged), _) => pinged + SILENT,
            (None, Some(asked)) => asked + PING_WAITING,
            (None, None) => self.heard + PING_IDLE,
        }
    }
}

impl Link {
    /// When it ends, if nothing comes of it.
    fn due(&self) -> Option<Instant> {
        match &self.role {
            Role::Proven(proven) if !self.dialled => Some(proven.probe?.1 + PROBE),
            Role::Control(..) | Role::DataIn(..) | Role::DataOut(_) => None,
            _ => Some(self.since + HANDSHAKE),
        }
    }
}

impl Peers {
    /// Something has been waited for since then: a peer that has said nothing for a while is asked whether
    /// it is there. The longer it only answers that, the more rarely.
    pub fn doubt(&mut self, now: Instant, them: NodeId, since: Instant) {
        let Some(peer) = self.peers.get_mut(&them) else { return };
        let gave = peer.gave.max(since);
        let wait = DOUBT.max((peer.heard - gave) / 2);
        if peer.doubted.is_none() && now - peer.heard.max(since) >= wait {
            peer.doubted = Some(now);
            self.say_ping(now, them);
        }
    }

    /// Whether a peer owes a sign of life for longer than it ever takes: nothing at all has come of it
    /// meanwhile. It may be gone, or out of reach for a moment.
    pub fn is_mute(&self, now: Instant, them: NodeId) -> bool {
        let Some(peer) = self.peers.get(&them) else { return false };
        let patience = ANSWER_MIN.max(peer.answers_in * ANSWERS);
        peer.doubted.is_some_and(|doubted| now - doubted > patience)
    }

    /// A ping is answered: how long that took.
    pub(super) fn ping_answered(&mut self, now: Instant, them: NodeId, number: u64) {
        let Some(peer) = self.peers.get_mut(&them) else { return };
        if let Some((_, at)) = peer.ping.take_if(|(asked, _)| *asked == number) {
            // Upwards at once, downwards slowly: a way that was slow may be so again.
            peer.answers_in = (now - at).max((peer.answers_in * 7 + (now - at)) / 8);
        }
    }

    /// Does what is due.
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
        // What was due may have ended together with what came before it.
        let Some(link) = self.links.get(&id) else { return };
        match link.proven() {
            Some(proven) if !link.dialled => {
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
                self.want_data(now, them);
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
