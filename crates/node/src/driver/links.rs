//! Connections with peers: how many there are, and how much of each is in memory.
//!
//! The engine limits the links that it has not hung up, because only it knows which link may replace
//! which. So a driver accepts every incoming link for which it has a slot. Beyond these links, a
//! driver has *farewells*: links that are hung up, but whose last bytes are still being sent. They are
//! limited here, and the oldest ends first. Otherwise a peer that connects and never closes could
//! occupy all of a driver's slots.

use super::shares::{Shares, connections_each};
use crate::peers::{DIALS_MAX, HANDSHAKES_MAX, PEERS_MAX};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

/// The most farewells at one time.
pub const FAREWELLS_MAX: usize = 32;
/// The most accepted links at one time: links in the handshake; for each peer one for control, one for units
/// and one that may replace another; one that waits for each of our dials; farewells.
pub const ACCEPTED_MAX: usize = HANDSHAKES_MAX + 3 * PEERS_MAX + DIALS_MAX + FAREWELLS_MAX;
/// The most dialled links at one time: for each peer one for control and one for units; dials, and two
/// more to peers that are needed; farewells.
pub const DIALLED_MAX: usize = 2 * PEERS_MAX + DIALS_MAX + 2 + FAREWELLS_MAX;
/// The timeout of a dial to a peer.
pub const DIAL: Duration = Duration::from_secs(10);
/// The timeout of a farewell: until then the last bytes must be sent, and the peer must have read them.
pub const LINGER: Duration = Duration::from_secs(5);
/// The engine may have at most this many bytes queued for a link's socket …
const ROOM_MAX: u64 = 128 * 1024;
/// … and at least this many, even where there are many links …
const ROOM_MIN: u64 = 16 * 1024;
/// … and between the two an equal share of this many.
const ROOMS: u64 = 1024 * 1024;

/// How many bytes the engine may have queued for the socket of a new link, if there are this many links.
pub fn room(links: usize) -> u64 {
    (ROOMS / links.max(1) as u64).clamp(ROOM_MIN, ROOM_MAX)
}

/// The kind of slot that a link occupies until the end of its farewell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSlot {
    /// A slot for an accepted link, from this address.
    Accepted(IpAddr),
    /// A slot for a dialled link.
    Dialled,
}

/// The slots that are taken.
#[derive(Debug, Default)]
pub struct LinkSlots {
    accepted: usize,
    by_peer: Shares<IpAddr>,
    dialled: usize,
}

impl LinkSlots {
    /// Whether there is a slot for another accepted link. If not, the driver does not accept until there is.
    pub fn is_vacant(&self) -> bool {
        self.accepted < ACCEPTED_MAX
    }

    /// Takes a slot. False if there is none, or if the peer's address already has its share. Loopback
    /// addresses have no share: they may take all slots.
    #[must_use]
    pub fn take(&mut self, slot: LinkSlot) -> bool {
        let may = match slot {
            LinkSlot::Dialled => self.dialled < DIALLED_MAX,
            LinkSlot::Accepted(peer) => {
                let peer = peer.to_canonical();
                let each = connections_each(ACCEPTED_MAX);
                self.is_vacant() && (peer.is_loopback() || self.by_peer.of(&peer) < each)
            }
        };
        match slot {
            _ if !may => {}
            LinkSlot::Dialled => self.dialled += 1,
            LinkSlot::Accepted(peer) => {
                self.accepted += 1;
                self.by_peer.add(peer.to_canonical());
            }
        }
        may
    }

    /// Releases a slot that was taken.
    pub fn release(&mut self, slot: LinkSlot) {
        match slot {
            LinkSlot::Dialled => self.dialled -= 1,
            LinkSlot::Accepted(peer) => {
                self.accepted -= 1;
                self.by_peer.release(&peer.to_canonical());
            }
        }
    }

    /// Whether no slot is taken.
    pub fn is_empty(&self) -> bool {
        self.accepted + self.dialled == 0 && self.by_peer.is_empty()
    }
}

/// Links that are hung up but have not ended, the oldest first.
#[derive(Debug)]
pub struct Farewells<K>(VecDeque<K>);

impl<K> Default for Farewells<K> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K> Farewells<K> {
    /// A link was hung up. If there are too many farewells, returns the oldest link, which the driver
    /// ends now.
    pub fn begin(&mut self, link: K) -> Option<K> {
        self.0.push_back(link);
        if self.0.len() > FAREWELLS_MAX { self.0.pop_front() } else { None }
    }

    /// Removes the links for which `is_over` is true.
    pub fn end(&mut self, is_over: impl Fn(&K) -> bool) {
        self.0.retain(|link| !is_over(link));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_links_have_all_the_room_they_can_use_and_many_share_little() {
        assert_eq!((room(0), room(8)), (ROOM_MAX, ROOM_MAX));
        // Each peer has one link for control and one for units, and no peer reads anything.
        let all: u64 = (1..=2 * PEERS_MAX).map(room).sum();
        assert!(all < 5 << 20, "{all}");
    }

    #[test]
    fn one_address_gets_its_share_and_what_it_gives_back() {
        let mut slots = LinkSlots::default();
        let [greedy, other] = [1, 2].map(|host| LinkSlot::Accepted([10, 0, 0, host].into()));
        assert_eq!((0..ACCEPTED_MAX).filter(|_| slots.take(greedy)).count(), 38);
        assert!(slots.take(other));
        slots.release(greedy);
        assert!(slots.take(greedy) && !slots.take(greedy));
        (0..38).for_each(|_| slots.release(greedy));
        slots.release(other);
        assert!(slots.is_empty());
    }

    #[test]
    fn this_machine_may_have_all() {
        let mut slots = LinkSlots::default();
        let own = LinkSlot::Accepted([127, 0, 0, 1].into());
        assert_eq!((0..400).filter(|_| slots.take(own)).count(), ACCEPTED_MAX);
        assert!(!slots.is_vacant() && slots.take(LinkSlot::Dialled));
    }

    #[test]
    fn dials_have_places_of_their_own() {
        let mut slots = LinkSlots::default();
        assert_eq!((0..400).filter(|_| slots.take(LinkSlot::Dialled)).count(), DIALLED_MAX);
        assert!(slots.is_vacant());
        slots.release(LinkSlot::Dialled);
        assert!(slots.take(LinkSlot::Dialled));
    }

    #[test]
    fn the_oldest_farewell_ends_when_there_are_too_many() {
        let mut farewells = Farewells::default();
        for link in 0..FAREWELLS_MAX {
            assert_eq!(farewells.begin(link), None);
        }
        assert_eq!(farewells.begin(100), Some(0));
        farewells.end(|link| *link == 1);
        assert_eq!((farewells.begin(101), farewells.begin(102)), (None, Some(2)));
    }
}
