//! When which place has its turn: a time for each, and the earliest on top.
//!
//! A tournament tree: setting a time costs a walk from its leaf towards the root, finding the earliest
//! costs nothing, and there is never a stale entry nor anything to allocate.

use wire::Instant;

const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// Times, by place.
#[derive(Clone, Debug)]
pub struct Due {
    /// A power of two many.
    at: Vec<Instant>,
    /// The place of the earlier of its two children; the root is at 1.
    earliest: Vec<u32>,
}

impl Due {
    /// For so many places, none of which has a time.
    pub fn new(places: usize) -> Self {
        let leaves = places.next_power_of_two().max(2);
        let mut due = Self { at: vec![NEVER; leaves], earliest: vec![0; leaves] };
        (1..leaves).rev().for_each(|node| due.earliest[node] = due.earlier_child(node));
        due
    }

    /// A place's time, if it has one.
    pub fn get(&self, place: usize) -> Option<Instant> {
        Some(self.at[place]).filter(|at| *at != NEVER)
    }

    /// Sets a place's time, or takes it away.
    pub fn set(&mut self, place: usize, at: Option<Instant>) {
        let at = at.unwrap_or(NEVER);
        if self.at[place] == at {
            return;
        }
        self.at[place] = at;
        let mut node = (place + self.at.len()) / 2;
        while node > 0 {
            let winner = self.earlier_child(node);
            // Above a match that neither was nor is this place's, nothing changes.
            if self.earliest[node] == winner && winner as usize != place {
                break;
            }
            self.earliest[node] = winner;
            node /= 2;
        }
    }

    /// The earliest time, and the first place that has it.
    pub fn next(&self) -> Option<(Instant, usize)> {
        let place = self.earliest[1] as usize;
        let at = self.at[place];
        (at != NEVER).then_some((at, place))
    }

    fn earlier_child(&self, node: usize) -> u32 {
        let leaves = self.at.len();
        let child = |child: usize| match child.checked_sub(leaves) {
            Some(leaf) => leaf as u32,
            None => self.earliest[child],
        };
        let (left, right) = (child(2 * node), child(2 * node + 1));
        if self.at[right as usize] < self.at[left as usize] { right } else { left }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_earliest_is_on_top(changes in prop::collection::vec((0_usize..9, 0_u64..6), 0..60)) {
            let mut due = Due::new(9);
            let mut plain = [None; 9];
            for (place, at) in changes {
                plain[place] = (at > 0).then(|| Instant::from_nanos(at));
                due.set(place, plain[place]);
                let first = plain.iter().enumerate().filter_map(|(i, at)| Some(((*at)?, i))).min();
                prop_assert_eq!(due.next(), first);
            }
        }
    }

    #[test]
    fn nobody_has_nothing_to_do() {
        assert_eq!(Due::new(0).next(), None);
    }
}
