//! Which neighbours the MAC reaches, and how well they are overheard.

use std::net::IpAddr;

/// How many neighbours are remembered.
const NEIGHBOURS_MAX: usize = 64;

/// After this many packets in a row that the MAC gave up, a neighbour counts as gone.
const GIVEN_UP_MAX: u8 = 6;

/// Weight of the newest suspicion in the share of those that were right.
const WEIGHT: f64 = 1.0 / 16.0;

/// What the silence of a neighbour suggests is acted upon while this share of such suspicions is right: that a packet
/// is lost, and that it is lost again. A loss that only its sender repairs costs more than two packets sent in vain.
const RIGHT_MIN: [f64; 2] = [0.3, 0.2];

/// The share before anything is known.
const RIGHT_FIRST: f64 = 0.5;

/// What is known of one neighbour.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    address: IpAddr,
    /// How many packets in a row the MAC has given up.
    given_up: u8,
    /// Share of suspicions that were right: first ones, and those that a packet is lost again.
    right: [f64; 2],
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

    /// A neighbour was not heard forwarding a packet that was sent again `resends` times: whether to believe that
    /// it does not have it.
    pub(super) fn suspects(&self, address: IpAddr, resends: u8) -> bool {
        let kind = usize::from(resends.min(1));
        let known = self.known.iter().find(|it| it.address == address);
        known.map_or(RIGHT_FIRST, |it| it.right[kind]) >= RIGHT_MIN[kind]
    }

    /// Such a suspicion was right, as the neighbour forwarded the packet once it had been sent again, or the
    /// receiver missed it; or it was not, as far as is known.
    pub(super) fn judge(&mut self, address: IpAddr, resends: u8, was_right: bool) {
        let right = &mut self.neighbour(address).right[usize::from(resends.min(1))];
        *right += (f64::from(u8::from(was_right)) - *right) * WEIGHT;
    }

    fn neighbour(&mut self, address: IpAddr) -> &mut Neighbour {
        let index = match self.known.iter().position(|it| it.address == address) {
            Some(index) => index,
            None => self.add(Neighbour { address, given_up: 0, right: [RIGHT_FIRST; 2] }),
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
    fn suspicions_are_believed_while_they_are_often_right() {
        let mut it = Neighbours::default();
        assert!(it.suspects(address(1), 0), "nothing is known");
        (0..100).for_each(|_| it.judge(address(1), 0, false));
        assert!(!it.suspects(address(1), 0) && it.suspects(address(2), 0));
        assert!(it.suspects(address(1), 1), "that it is lost again is another question");
        (0..100).for_each(|number| it.judge(address(1), 0, number % 2 == 0));
        assert!(it.suspects(address(1), 0), "it learns again");
    }

    #[test]
    fn a_thousand_neighbours_take_no_more_room_than_the_limit() {
        let mut it = Neighbours::default();
        (0..1000).for_each(|number| it.missed(address(number)));
        assert_eq!(it.known.len(), NEIGHBOURS_MAX);
    }

    /// The share begins at 0.5 and loses a sixteenth with each wrong one: (15/16)⁷ · 0.5 ≈ 0.318, (15/16)⁸ · 0.5 ≈ 0.298,
    /// (15/16)¹⁴ · 0.5 ≈ 0.203, (15/16)¹⁵ · 0.5 ≈ 0.190.
    #[test]
    fn eight_wrong_first_suspicions_are_too_many_and_fifteen_of_a_second_loss() {
        for (resends, most) in [(0, 7), (1, 14), (3, 14)] {
            let mut it = Neighbours::default();
            for wrong in 0..20 {
                assert_eq!(it.suspects(address(1), resends), wrong <= most, "{resends} {wrong}");
                it.judge(address(1), resends, false);
            }
        }
    }

    #[test]
    fn beyond_the_limit_the_neighbour_known_longest_is_forgotten() {
        let mut it = Neighbours::default();
        for number in 0..NEIGHBOURS_MAX as u32 {
            (0..GIVEN_UP_MAX).for_each(|_| it.missed(address(number)));
        }
        assert!(it.is_gone(address(0)));
        for number in 0..3 {
            it.missed(address(1000 + number));
            let gone: Vec<_> = (0..64).filter(|number| it.is_gone(address(*number))).collect();
            assert!(gone.into_iter().eq(number + 1..64));
        }
        assert!(!it.is_gone(address(1000)), "once is not often");
    }
}
