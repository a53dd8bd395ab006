//! Which neighbours the MAC reaches.

use std::net::IpAddr;

/// So many neighbours are remembered.
const NEIGHBOURS_MAX: usize = 64;

/// After this many packets in a row that the MAC gave up, a neighbour counts as gone.
const GIVEN_UP_MAX: u8 = 6;

/// How many packets in a row the MAC has given up, by neighbour.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours {
    given_up: Vec<(IpAddr, u8)>,
    /// The next to be forgotten.
    oldest: usize,
}

impl Neighbours {
    /// A neighbour has acknowledged a packet.
    pub(super) fn reached(&mut self, neighbour: IpAddr) {
        if let Some((_, count)) = self.given_up.iter_mut().find(|(it, _)| *it == neighbour) {
            *count = 0;
        }
    }

    /// The MAC has given up a packet to a neighbour.
    pub(super) fn missed(&mut self, neighbour: IpAddr) {
        if let Some((_, count)) = self.given_up.iter_mut().find(|(it, _)| *it == neighbour) {
            *count = count.saturating_add(1);
        } else if self.given_up.len() < NEIGHBOURS_MAX {
            self.given_up.push((neighbour, 1));
        } else {
            self.given_up[self.oldest] = (neighbour, 1);
            self.oldest = (self.oldest + 1) % NEIGHBOURS_MAX;
        }
    }

    /// Whether a neighbour seems gone.
    pub(super) fn is_gone(&self, neighbour: IpAddr) -> bool {
        self.given_up.iter().any(|(it, count)| *it == neighbour && *count >= GIVEN_UP_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_neighbour_is_gone_until_it_is_reached() {
        let mut it = Neighbours::default();
        let near = IpAddr::from(Ipv4Addr::new(10, 0, 0, 1));
        (1..GIVEN_UP_MAX).for_each(|_| it.missed(near));
        assert!(!it.is_gone(near));
        it.missed(near);
        assert!(it.is_gone(near));
        it.reached(near);
        assert!(!it.is_gone(near));
    }

    #[test]
    fn a_thousand_neighbours_take_no_more_room_than_the_limit() {
        let mut it = Neighbours::default();
        (0..1000_u32).for_each(|i| it.missed(IpAddr::from(Ipv4Addr::from_bits(i))));
        assert_eq!(it.given_up.len(), NEIGHBOURS_MAX);
    }
}
