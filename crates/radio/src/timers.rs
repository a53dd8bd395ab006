//! When which station is to do what next: one place for each timer, and the earliest on top.
//!
//! A tournament tree: setting or clearing a timer costs a walk from its leaf to the root, finding
//! the earliest costs nothing, and there is never a stale entry nor anything to allocate.

use crate::output::Station;
use wire::Instant;

/// What can be due. Of what is due at one instant, the first in this order comes first: so frames
/// that end make room for those that begin, and nothing begins before everything else was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// When the station's transmission ends.
    End,
    /// When to give up on the answer to a frame, unless one is being received.
    AnswerTimeout,
    /// When to send what the station owes a SIFS after what it received.
    Answer,
    /// When to send the station's packet, if the medium stays idle until then.
    Access,
}

const KINDS: [Timer; 4] = [Timer::End, Timer::AnswerTimeout, Timer::Answer, Timer::Access];
/// A timer that is not set.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// All timers of all stations.
#[derive(Clone, Debug)]
pub struct Timers {
    stations: usize,
    /// By kind, then by station: of equals the first is the earliest. A power of two many.
    due: Vec<Instant>,
    /// The earlier of its two children, as an index into `due`; the root is at 1, the leaves' parents
    /// are the second half.
    earliest: Vec<u32>,
}

impl Timers {
    /// For so many stations, none set.
    pub fn new(stations: usize) -> Self {
        let leaves = (stations * KINDS.len()).next_power_of_two().max(2);
        let mut timers = Self { stations, due: vec![NEVER; leaves], earliest: vec![0; leaves] };
        (1..leaves).rev().for_each(|node| timers.earliest[node] = timers.earlier_child(node));
        timers
    }

    /// When this timer is due, if it is set.
    pub fn get(&self, timer: Timer, station: Station) -> Option<Instant> {
        Some(self.due[self.leaf(timer, station)]).filter(|at| *at != NEVER)
    }

    /// Sets a timer, or sets it anew.
    pub fn set(&mut self, timer: Timer, station: Station, at: Instant) {
        let leaf = self.leaf(timer, station);
        if self.due[leaf] == at {
            return;
        }
        self.due[leaf] = at;
        let mut node = (leaf + self.due.len()) / 2;
        while node > 0 {
            let winner = self.earlier_child(node);
            // Above a match that neither was nor is this leaf's, nothing changes.
            if self.earliest[node] == winner && winner as usize != leaf {
                break;
            }
            self.earliest[node] = winner;
            node /= 2;
        }
    }

    /// Clears a timer, if it is set.
    pub fn clear(&mut self, timer: Timer, station: Station) {
        self.set(timer, station, NEVER);
    }

    /// What is due next.
    pub fn next(&self) -> Option<(Instant, Timer, Station)> {
        let leaf = self.earliest[1] as usize;
        let at = self.due[leaf];
        let station = Station((leaf % self.stations.max(1)) as u16);
        (at != NEVER).then(|| (at, KINDS[leaf / self.stations], station))
    }

    fn leaf(&self, timer: Timer, station: Station) -> usize {
        timer as usize * self.stations + usize::from(station.0)
    }

    fn earlier_child(&self, node: usize) -> u32 {
        let leaves = self.due.len();
        let child = |child: usize| match child.checked_sub(leaves) {
            Some(leaf) => leaf as u32,
            None => self.earliest[child],
        };
        let (left, right) = (child(2 * node), child(2 * node + 1));
        if self.due[right as usize] < self.due[left as usize] { right } else { left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_is_on_top(
            stations in 1_usize..9,
            changes in prop::collection::vec((0_usize..4, 0_u16..8, 0_u64..6), 0..60),
        ) {
            let mut timers = Timers::new(stations);
            let mut plain = vec![None; 4 * stations];
            for (kind, station, at) in changes {
                let station = station % stations as u16;
                let place = &mut plain[kind * stations + usize::from(station)];
                if at == 0 {
                    *place = None;
                    timers.clear(KINDS[kind], Station(station));
                } else {
                    *place = Some(Instant::from_nanos(at));
                    timers.set(KINDS[kind], Station(station), Instant::from_nanos(at));
                }
                prop_assert_eq!(timers.get(KINDS[kind], Station(station)), *place);
                let first = plain.iter().enumerate().filter_map(|(i, at)| Some(((*at)?, i))).min();
                let first = first.map(|(at, i)| (at, KINDS[i / stations], i % stations));
                let next = timers.next().map(|(at, timer, s)| (at, timer, usize::from(s.0)));
                prop_assert_eq!(next, first);
            }
        }
    }

    #[test]
    fn nobody_has_nothing_to_do() {
        assert_eq!(Timers::new(0).next(), None);
    }
}
