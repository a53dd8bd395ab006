//! Connections with peers: how many there are, and how much of each is in memory.
//!
//! The engine bounds the links that it has not hung up, so a driver takes in every one that comes: only the
//! engine knows whose place another may take. What a driver has beyond those are farewells, links that are
//! hung up and whose last bytes are still to be sent. They are bounded here, and the oldest ends first:
//! else one who connects and never closes would hold all places of a driver.

use super::shares::{Shares, connections_each};
use crate::peers::{DIALS_MAX, HANDSHAKES_MAX, PEERS_MAX};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

/// Links that say farewell, at one time.
pub const FAREWELLS_MAX: usize = 32;
/// Links that others made, at one time: those that have not said who they are; of each peer one for
/// control, one for units, and one that waits beside it; one that waits for each of our dials; farewells.
pub const ACCEPTED_MAX: usize = HANDSHAKES_MAX + 3 * PEERS_MAX + DIALS_MAX + FAREWELLS_MAX;
/// Links that we made, at one time: of each peer one for control and one for units; dials, and two more
/// for those who are needed; farewells.
pub const DIALLED_MAX: usize = 2 * PEERS_MAX + DIALS_MAX + 2 + FAREWELLS_MAX;
/// A peer has this long to answer a dial.
pub const DIAL: Duration = Duration::from_secs(10);
/// What was written before a hang-up has this long to be sent, and the other side to read it.
pub const LINGER: Duration = Duration::from_secs(5);
/// The engine may have this many bytes on their way to a socket, at most …
const ROOM_MAX: u64 = 128 * 1024;
/// … and at least, however many links there are …
const ROOM_MIN: u64 = 16 * 1024;
/// … which share this many.
const ROOMS: u64 = 1024 * 1024;

/// How many bytes the engine may have on their way to the socket of a new link, where there are this many
/// links.
pub fn room(links: usize) -> u64 {
    (ROOMS / links.max(1) as u64).clamp(ROOM_MIN, ROOM_MAX)
}

/// Which place a link has, until its farewell is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One of those for whoever connects, from this address.
    Accepted(IpAddr),
    /// One of those for dials.
    Dialled,
}

/// Places that are taken.
#[derive(Debug, Default)]
pub struct Places {
    accepted: usize,
    by_peer: Shares<IpAddr>,
    dialled: usize,
}

impl Places {
    /// Whether one who has connected can have a place. If not, a driver waits for one.
    pub fn is_vacant(&self) -> bool {
        self.accepted < ACCEPTED_MAX
    }

    /// Takes a place, if there is one, and the peer's address has not its share of all. This machine may have all.
    #[must_use]
    pub fn take(&mut self, place: Place) -> bool {
        let may = match place {
            Place::Dialled => self.dialled < DIALLED_MAX,
            Place::Accepted(peer) => {
                let peer = peer.to_canonical();
                let each = connections_each(ACCEPTED_MAX);
                self.is_vacant() && (peer.is_loopback() || self.by_peer.of(&peer) < each)
            }
        };
        match place {
            _ if !may => {}
            Place::Dialled => self.dialled += 1,
            Place::Accepted(peer) => {
                self.accepted += 1;
                self.by_peer.add(peer.to_canonical());
            }
        }
        may
    }

    /// Gives a place back that was taken.
    pub fn release(&mut self, place: Place) {
        match place {
            Place::Dialled => self.dialled -= 1,
            Place::Accepted(peer) => {
                self.accepted -= 1;
                self.by_peer.release(&peer.to_canonical());
            }
        }
    }

    /// Whether nobody has any.
    pub fn is_empty(&self) -> bool {
        self.accepted + self.dialled == 0 && self.by_peer.is_empty()
    }
}

/// Links that are hung up and not over yet, the oldest first.
#[derive(Debug)]
pub struct Farewells<K>(VecDeque<K>);

impl<K> Default for Farewells<K> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K> Farewells<K> {
    /// A link says farewell. If there are too many, the oldest is given out: it ends now.
    pub fn begin(&mut self, link: K) -> Option<K> {
        self.0.push_back(link);
        if self.0.len() > FAREWELLS_MAX { self.0.pop_front() } else { None }
    }

    /// Links are over: those that this says of.
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
        // Of each peer one for control and one for units, and none takes anything.
        let all: u64 = (1..=2 * PEERS_MAX).map(room).sum();
        assert!(all < 5 << 20, "{all}");
    }

    #[test]
    fn one_address_gets_its_share_and_what_it_gives_back() {
        let mut places = Places::default();
        let [greedy, other] = [1, 2].map(|host| Place::Accepted([10, 0, 0, host].into()));
        assert_eq!((0..ACCEPTED_MAX).filter(|_| places.take(greedy)).count(), 38);
        assert!(places.take(other));
        places.release(greedy);
        assert!(places.take(greedy) && !places.take(greedy));
        (0..38).for_each(|_| places.release(greedy));
        places.release(other);
        assert!(places.is_empty());
    }

    #[test]
    fn this_machine_may_have_all() {
        let mut places = Places::default();
        let own = Place::Accepted([127, 0, 0, 1].into());
        assert_eq!((0..400).filter(|_| places.take(own)).count(), ACCEPTED_MAX);
        assert!(!places.is_vacant() && places.take(Place::Dialled));
    }

    #[test]
    fn dials_have_places_of_their_own() {
        let mut places = Places::default();
        assert_eq!((0..400).filter(|_| places.take(Place::Dialled)).count(), DIALLED_MAX);
        assert!(places.is_vacant());
        places.release(Place::Dialled);
        assert!(places.take(Place::Dialled));
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
