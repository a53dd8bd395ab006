//! A common room of which each tenant takes what others leave.
//!
//! *Source:* dynamic thresholds (Choudhury, Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
//! IEEE/ACM Transactions on Networking 6(2), 1998): a tenant may take one more while it has less than what is free. So a
//! tenant alone gets half, N that all want more get 1/(N+1) each, and there is always something left for one that comes.

use super::shares::Shares;

/// The room, and what each tenant has of it.
#[derive(Debug)]
pub struct Room<K> {
    all: usize,
    taken: usize,
    shares: Shares<K>,
    refused: u64,
}

impl<K: Ord> Room<K> {
    /// Room for this many.
    pub fn new(all: usize) -> Self {
        Self { all, taken: 0, shares: Shares::default(), refused: 0 }
    }

    /// Takes a place for a tenant; whether there was one.
    pub fn take(&mut self, whom: K) -> bool {
        let may = self.shares.of(&whom) < self.all - self.taken;
        if may {
            self.taken += 1;
            self.shares.add(whom);
        } else {
            self.refused += 1;
        }
        may
    }

    /// Gives a tenant's place back.
    pub fn release(&mut self, whom: &K) {
        if self.shares.of(whom) > 0 {
            self.taken -= 1;
            self.shares.release(whom);
        }
    }

    /// How many places are taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// How often there was no place.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn fill(room: &mut Room<u8>, whom: u8) -> usize {
        std::iter::repeat_with(|| room.take(whom)).take_while(|may| *may).count()
    }

    #[test]
    fn one_alone_gets_half_and_the_next_half_of_the_rest() {
        let mut room = Room::new(100);
        assert_eq!((fill(&mut room, 1), fill(&mut room, 2), fill(&mut room, 3)), (50, 25, 13));
        assert!(room.take(9), "who has none finds a place");
        assert_eq!(room.refused(), 3);
    }

    #[test]
    fn what_is_given_back_can_be_taken_by_others() {
        let mut room = Room::new(10);
        assert_eq!((fill(&mut room, 1), fill(&mut room, 2)), (5, 3));
        room.release(&3);
        assert!(!room.take(2), "nothing was given back");
        (0..5).for_each(|_| room.release(&1));
        room.release(&1);
        assert_eq!(fill(&mut room, 2), 2);
        assert_eq!(fill(&mut Room::new(0), 1), 0);
        assert_eq!(fill(&mut Room::new(1), 1), 1);
    }

    proptest! {
        /// Whatever others take, one with less than any of them finds a place while there is one.
        #[test]
        fn nobody_takes_the_last_place_of_one_that_has_less(
            steps in prop::collection::vec((0..6u8, any::<bool>()), 0..400),
            all in 0..80usize,
        ) {
            let mut room = Room::new(all);
            let mut has: BTreeMap<u8, usize> = BTreeMap::new();
            for (whom, gives) in steps {
                let free = all - has.values().sum::<usize>();
                let own = has.entry(whom).or_default();
                if gives {
                    room.release(&whom);
                    *own = own.saturating_sub(1);
                } else {
                    let may = room.take(whom);
                    prop_assert_eq!(may, *own < free);
                    *own += usize::from(may);
                }
                prop_assert!(has.values().sum::<usize>() <= all);
            }
        }
    }
}
