//! Many timers: a time for each, and the earliest at hand.
//!
//! A tournament tree: setting a timer walks from its leaf towards the root, finding the earliest costs
//! nothing. There is never a stale entry, and nothing is allocated after the start.

use crate::Instant;

const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// Timers by number: when each is due.
#[derive(Clone, Debug)]
pub struct TimerQueue {
    /// By timer; the length is a power of two.
    at: Vec<Instant>,
    /// For each inner node of the tree, the timer that is the earlier of its two children; the root is at 1.
    earliest: Vec<u32>,
}

impl TimerQueue {
    /// A queue of timers 0 to `timers - 1`, none of them set.
    pub fn new(timers: usize) -> Self {
        let leaves = timers.next_power_of_two().max(2);
        let mut queue = Self { at: vec![NEVER; leaves], earliest: vec![0; leaves] };
        (1..leaves).rev().for_each(|node| queue.earliest[node] = queue.earlier_child(node));
        queue
    }

    /// When a timer is due, if it is set.
    pub fn get(&self, timer: usize) -> Option<Instant> {
        Some(self.at[timer]).filter(|at| *at != NEVER)
    }

    /// Sets a timer, or clears it.
    pub fn set(&mut self, timer: usize, at: Option<Instant>) {
        let at = at.unwrap_or(NEVER);
        if self.at[timer] == at {
            return;
        }
        self.at[timer] = at;
        let mut node = (timer + self.at.len()) / 2;
        while node > 0 {
            let winner = self.earlier_child(node);
            // This timer neither won this match before nor wins it now: nothing changes above.
            if self.earliest[node] == winner && winner as usize != timer {
                break;
            }
            self.earliest[node] = winner;
            node /= 2;
        }
    }

    /// The earliest time, and the timer that has it; of several the one with the smallest number.
    pub fn next(&self) -> Option<(Instant, usize)> {
        let timer = self.earliest[1] as usize;
        let at = self.at[timer];
        (at != NEVER).then_some((at, timer))
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
            let mut queue = TimerQueue::new(9);
            let mut plain = [None; 9];
            for (timer, at) in changes {
                plain[timer] = (at > 0).then(|| Instant::from_nanos(at));
                queue.set(timer, plain[timer]);
                let first = plain.iter().enumerate().filter_map(|(i, at)| Some(((*at)?, i))).min();
                prop_assert_eq!(queue.next(), first);
            }
        }
    }

    #[test]
    fn an_empty_queue_is_never_due() {
        assert_eq!(TimerQueue::new(0).next(), None);
    }
}
