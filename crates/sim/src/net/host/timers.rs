//! When each socket must be looked at: a heap with one entry a socket.
//!
//! An entry may be earlier than the socket's timer, because timers are usually moved back and rarely expire.
//! Such a socket is looked at early, without effect, and entered again.

use wire::Instant;

/// Place of a socket that is not in the heap.
const NOWHERE: u32 = u32::MAX;

/// A heap of sockets by the time of their earliest timer.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    /// Entries in heap order: none is due before the entry at half its index.
    heap: Vec<(Instant, u32)>,
    /// Each socket's place in the heap.
    place: Vec<u32>,
}

impl Timers {
    /// The earliest time.
    pub fn earliest(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// Enters a socket, unless it already has an entry for this time or an earlier one.
    pub fn enter(&mut self, socket: u32, at: Instant) {
        if self.place.len() <= socket as usize {
            self.place.resize(socket as usize + 1, NOWHERE);
        }
        let mut place = self.place[socket as usize] as usize;
        if place == NOWHERE as usize {
            place = self.heap.len();
            self.heap.push((at, socket));
        } else if self.heap[place].0 <= at {
            return;
        }
        self.heap[place].0 = at;
        self.rise(place);
    }

    /// Removes and returns the first socket that is due at `now`.
    pub fn take(&mut self, now: Instant) -> Option<u32> {
        let (_, socket) = *self.heap.first().filter(|(at, _)| *at <= now)?;
        self.place[socket as usize] = NOWHERE;
        let last = self.heap.pop()?;
        if let Some(first) = self.heap.first_mut() {
            *first = last;
            self.sink();
        }
        Some(socket)
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 && entry < self.heap[(place - 1) / 2] {
            self.set(place, self.heap[(place - 1) / 2]);
            place = (place - 1) / 2;
        }
        self.set(place, entry);
    }

    fn sink(&mut self) {
        let entry = self.heap[0];
        let mut place = 0;
        loop {
            let left = 2 * place + 1;
            let Some(first) = (left..self.heap.len().min(left + 2)).min_by_key(|it| self.heap[*it])
            else {
                break;
            };
            if entry <= self.heap[first] {
                break;
            }
            self.set(place, self.heap[first]);
            place = first;
        }
        self.set(place, entry);
    }

    fn set(&mut self, place: usize, entry: (Instant, u32)) {
        self.heap[place] = entry;
        self.place[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Behaves like a plain map that is searched for its smallest time.
        #[test]
        fn the_earliest_comes_first(steps in prop::collection::vec((0..12u32, 0..50u64), 1..200)) {
            let mut timers = Timers::default();
            let mut plain: BTreeMap<u32, Instant> = BTreeMap::new();
            for (socket, nanos) in steps {
                let at = Instant::from_nanos(nanos);
                if socket < 10 {
                    timers.enter(socket, at);
                    let known = plain.entry(socket).or_insert(at);
                    *known = at.min(*known);
                } else {
                    let first = plain.iter().map(|(socket, at)| (*at, *socket)).min();
                    let due = first.filter(|(first, _)| *first <= at).map(|(_, socket)| socket);
                    prop_assert_eq!(timers.take(at), due);
                    due.map(|due| plain.remove(&due));
                }
                prop_assert_eq!(timers.earliest(), plain.values().min().copied());
                prop_assert_eq!(timers.heap.len(), plain.len());
            }
        }
    }
}
