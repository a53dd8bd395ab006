//! How much content origins may send: what is granted to them and what waits here for the link take memory.
//!
//! *Source:* dynamic thresholds (Choudhury, Hahne 1998), as in `driver::room`: a client's flows may have as many bytes as
//! are free. So a client that reads nothing leaves room for the others, and who has nothing always gets a step.

use super::STEP;
use std::collections::{BTreeMap, BTreeSet};

/// The bytes that all flows of a gateway have.
#[derive(Debug)]
pub struct Credit {
    max: u64,
    used: u64,
    /// Those that have bytes, or wait for some.
    clients: BTreeMap<u64, Client>,
    turns: u64,
}

#[derive(Debug, Default)]
struct Client {
    used: u64,
    /// Flows that would take more, in the order in which they have waited.
    waiting: BTreeSet<Wait>,
}

/// A flow's place among those of its client that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    turn: u64,
    flow: u64,
}

impl Credit {
    /// Credit for this many bytes in all.
    pub fn new(max: u64) -> Self {
        Self { max, used: 0, clients: BTreeMap::new(), turns: 0 }
    }

    /// This many bytes are for all flows from now on. What is used already stays.
    pub fn set_max(&mut self, max: u64) {
        self.max = max;
    }

    /// How many more bytes the flows of a client may have.
    pub fn room(&self, client: u64) -> u64 {
        let free = self.max.saturating_sub(self.used);
        match self.clients.get(&client).map_or(0, |client| client.used) {
            0 => free.max(STEP),
            used => free.saturating_sub(used),
        }
    }

    /// A flow of this client has `now` bytes in place of `before`.
    pub fn change(&mut self, client: u64, before: u64, now: u64) {
        let it = self.clients.entry(client).or_default();
        it.used = (it.used + now).saturating_sub(before);
        self.used = (self.used + now).saturating_sub(before);
        self.forget(client);
    }

    /// A flow waits until others of its client have fewer bytes.
    pub fn wait(&mut self, client: u64, flow: u64) -> Wait {
        self.turns += 1;
        let wait = Wait { turn: self.turns, flow };
        self.clients.entry(client).or_default().waiting.insert(wait);
        wait
    }

    /// A flow waits no longer.
    pub fn leave(&mut self, client: u64, wait: Wait) {
        if let Some(it) = self.clients.get_mut(&client) {
            it.waiting.remove(&wait);
        }
        self.forget(client);
    }

    /// The flow of a client that has waited longest.
    pub fn next(&self, client: u64) -> Option<u64> {
        Some(self.clients.get(&client)?.waiting.first()?.flow)
    }

    fn forget(&mut self, client: u64) {
        if self.clients.get(&client).is_some_and(|it| it.used == 0 && it.waiting.is_empty()) {
            self.clients.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_alone_gets_half_and_the_next_half_of_the_rest() {
        let mut credit = Credit::new(1_000_000);
        let mut got = [0; 3];
        for (client, got) in (0..).zip(&mut got) {
            while credit.room(client) >= 1000 {
                credit.change(client, 0, 1000);
                *got += 1000;
            }
        }
        assert_eq!(got, [500_000, 250_000, 125_000]);
    }

    #[test]
    fn who_has_nothing_gets_a_step_though_nothing_is_free() {
        let mut credit = Credit::new(1000);
        credit.change(1, 0, 1000);
        assert_eq!((credit.room(1), credit.room(2)), (0, STEP));
        credit.change(1, 1000, 0);
        assert!(credit.clients.is_empty(), "who has nothing is forgotten");
        credit.set_max(5 * STEP);
        assert_eq!(credit.room(1), 5 * STEP);
    }

    #[test]
    fn flows_of_a_client_wait_in_turns() {
        let mut credit = Credit::new(1000);
        let first = credit.wait(7, 30);
        credit.wait(7, 20);
        credit.wait(8, 10);
        assert_eq!((credit.next(7), credit.next(8), credit.next(9)), (Some(30), Some(10), None));
        credit.leave(7, first);
        assert_eq!(credit.next(7), Some(20));
    }
}
