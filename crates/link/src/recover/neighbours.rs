//! Which neighbours the MAC reaches, and how well they are overheard.

use std::net::IpAddr;

/// How many neighbours are remembered.
const NEIGHBOURS_MAX: usize = 64;

/// After this many packets in a row that the MAC gave up, a neighbour counts as gone.
const GIVEN_UP_MAX: u8 = 6;

/// Weight of the newest suspicion in the share of those that were right.
const WEIGHT: f64 = 1.0 / 16.0;

/// What silence of a neighbour suggests is acted upon while this share of such suspicions is right. A loss that
/// only its sender repairs costs far more than a packet sent in vain.
const RIGHT_MIN: f64 = 0.1;

/// Else only one in this many is acted upon, to learn whether it is right again.
const PROBE_EVERY: u8 = 16;

/// What is known of one neighbour.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    address: IpAddr,
    /// How many packets in a row the MAC has given up.
    given_up: u8,
    /// Share of suspicions that were right.
    right: f64,
    /// Suspicions since one was acted upon.
    ignored: u8,
}

/// The neighbours that packets were sent to.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours {
    known: Vec<Neighbour>,
    /// The next to be forgotten.
    oldest: usize,
}

impl Neighbours {
    /// A neighbour has acknowledged a packet.
    pub(super) fn reached(&mut self, address: IpAddr) {
        self.neighbour(address).given_up = 0;
    }

    /// The MAC has given up a packet to a neighbour.
    pub(super) fn missed(&mut self, address: IpAddr) {
        let it = self.neighbour(address);
        it.given_up = it.given_up.saturating_add(1);
    }

    /// Whether a neighbour seems gone.
    pub(super) fn is_gone(&self, address: IpAddr) -> bool {
        self.known.iter().any(|it| it.address == address && it.given_up >= GIVEN_UP_MAX)
    }

    /// A neighbour was not heard forwarding a packet: whether to believe that it does not have it.
    pub(super) fn suspect(&mut self, address: IpAddr) -> bool {
        let it = self.neighbour(address);
        it.ignored += 1;
        let believes = it.right >= RIGHT_MIN || it.ignored >= PROBE_EVERY;
        if believes {
            it.ignored = 0;
        }
        believes
    }

    /// A suspicion was right, as the neighbour forwarded the packet once it had been sent again; or it was not,
    /// as far as is known.
    pub(super) fn judge(&mut self, address: IpAddr, was_right: bool) {
        let it = self.neighbour(address);
        it.right += (f64::from(u8::from(was_right)) - it.right) * WEIGHT;
    }

    fn neighbour(&mut self, address: IpAddr) -> &mut Neighbour {
        let index = match self.known.iter().position(|it| it.address == address) {
            Some(index) => index,
            None => self.add(Neighbour { address, given_up: 0, right: 0.5, ignored: 0 }),
        };
        &mut self.known[index]
    }

    fn add(&mut self, neighbour: Neighbour) -> usize {
        if self.known.len() < NEIGHBOURS_MAX {
            self.known.push(neighbour);
            return self.known.len() - 1;
        }
        let index = self.oldest;
        self.known[index] = neighbour;
        self.oldest = (index + 1) % NEIGHBOURS_MAX;
        index
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn a_neighbour_is_gone_until_it_is_reached() {
        let mut it = Neighbours::default();
        (1..GIVEN_UP_MAX).for_each(|_| it.missed(address(1)));
        assert!(!it.is_gone(address(1)));
        it.missed(address(1));
        assert!(it.is_gone(address(1)));
        it.reached(address(1));
        assert!(!it.is_gone(address(1)));
    }

    #[test]
    fn suspicions_that_are_always_wrong_are_rarely_acted_upon() {
        let mut it = Neighbours::default();
        let acted = |it: &mut Neighbours, is_right: bool| {
            let mut acted = 0;
            for _ in 0..1000 {
                if it.suspect(address(1)) {
                    acted += 1;
                    it.judge(address(1), is_right);
                }
            }
            acted
        };
        assert_eq!(acted(&mut it, true), 1000);
        assert!(acted(&mut it, false) < 150);
        assert!(acted(&mut it, true) > 900, "it learns again");
    }

    #[test]
    fn a_thousand_neighbours_take_no_more_room_than_the_limit() {
        let mut it = Neighbours::default();
        (0..1000).for_each(|number| it.missed(address(number)));
        assert_eq!(it.known.len(), NEIGHBOURS_MAX);
    }
}
