//! Whose turn it is to send: short flows first, then an equal share for each client.

use crate::hasher::Map;
use std::time::Duration;
use wire::Instant;

/// A flow counts as short until this many bytes of it have crossed.
pub const SHORT: u64 = 32 * 1024;
/// Parts of a flow that are ready or being prepared at most.
pub const AHEAD: usize = 2;
/// Payloads of long flows that are ready or being prepared at most, in bytes.
pub const UNSENT_MAX: usize = 512 * 1024;
/// Jobs for long flows at one time at most.
pub const JOBS_MAX: usize = 2;
/// Clients whose shares are remembered at most.
const CLIENTS_MAX: usize = 4096;

/// What a flow's turn depends on; the lowest is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    is_long: bool,
    served: u64,
    /// When its turn was last, as a count.
    last: u64,
}

/// How many bytes were sent for each client (start-time fair queueing: Goyal, Vin, Cheng 1996).
#[derive(Debug, Default)]
pub struct Shares {
    served: Map<u64, u64>,
    /// What the client that was served last had before: who comes anew begins here, and neither has saved up
    /// anything nor has to make up for others' past.
    clock: u64,
}

impl Shares {
    /// The turn of a flow of this client, after this many bytes of the flow; the flows of one client take turns.
    pub fn turn(&self, client: u64, sent: u64, last: u64) -> Turn {
        Turn { is_long: sent >= SHORT, served: self.of(client), last }
    }

    /// Where a client stands: the lowest is next, and all of those that have had no more than others stand at zero.
    pub fn rank(&self, client: u64) -> u64 {
        Some(self.of(client)).filter(|served| *served > self.clock).unwrap_or_default()
    }

    /// Clients that have had no more than this stand at zero.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Whether a client has had much more than those whose turn it is.
    pub fn is_ahead(&self, client: u64) -> bool {
        self.of(client) > self.clock + SHORT
    }

    /// This many bytes were sent for a client.
    pub fn serve(&mut self, client: u64, bytes: u64) {
        let before = self.of(client);
        self.clock = self.clock.max(before);
        self.served.insert(client, before + bytes);
        if self.served.len() > CLIENTS_MAX {
            // All begin anew, with equal shares.
            self.clock = self.served.values().copied().max().unwrap_or_default();
            self.served.clear();
        }
    }

    fn of(&self, client: u64) -> u64 {
        self.served.get(&client).copied().unwrap_or_default().max(self.clock)
    }
}

/// How fast the link is, as far as what was sent over it tells.
#[derive(Debug, Default)]
pub struct Rate {
    /// In bytes a second; zero if it is not known.
    bytes_per_second: u64,
    /// Since when there has always been something to send, and how much of it went.
    busy: Option<(Instant, u64)>,
}

/// The rate is measured over at least this long.
const MEASURED: Duration = Duration::from_millis(400);

impl Rate {
    /// Bytes were sent, and more are waiting.
    pub fn sent(&mut self, now: Instant, bytes: usize) {
        let (since, sent) = self.busy.get_or_insert((now, 0));
        let passed = now.since(*since);
        // What the socket took at once says nothing of the link.
        if passed >= MEASURED && *sent > 0 {
            let rate = u128::from(*sent) * 1_000_000_000 / passed.as_nanos();
            let rate = rate as u64;
            self.bytes_per_second = match self.bytes_per_second {
                0 => rate,
                before => (before + rate) / 2,
            };
            self.busy = Some((now, 0));
        }
        if let Some((_, sent)) = &mut self.busy {
            *sent += bytes as u64;
        }
    }

    /// Nothing is waiting.
    pub fn is_idle(&mut self) {
        self.busy = None;
    }

    /// In bytes a second, if it is known.
    pub fn get(&self) -> Option<u64> {
        (self.bytes_per_second > 0).then_some(self.bytes_per_second)
    }

    /// The longest record: what the link carries in 100 ms, so that what is more urgent does not wait.
    pub fn record_max(&self) -> usize {
        let tenth = self.get().map_or(super::RECORD_MAX as u64, |rate| rate / 10);
        (tenth as usize).clamp(1024, super::RECORD_MAX)
    }

    /// The best level of zstd that keeps the link full: at each of these rates one core of a small server packs
    /// several times as much.
    pub fn level(&self) -> i32 {
        match self.get() {
            Some(rate) if rate <= 500_000 => 19,
            Some(rate) if rate <= 2_500_000 => 9,
            _ => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_flows_go_first_and_clients_share_equally() {
        let mut shares = Shares::default();
        shares.serve(1, 1000);
        assert!(shares.turn(1, 0, 9) < shares.turn(2, SHORT, 1), "a short flow goes first");
        assert!(shares.turn(2, SHORT, 9) < shares.turn(1, SHORT, 1), "then who had less");
        assert!(
            shares.turn(1, SHORT, 1) < shares.turn(1, SHORT, 9),
            "then whose turn is longer ago"
        );
        assert!(shares.rank(2) < shares.rank(1));
        for _ in 0..100 {
            let next = if shares.turn(1, SHORT, 1) < shares.turn(2, SHORT, 2) { 1 } else { 2 };
            shares.serve(next, 100);
        }
        let [one, two] = [1, 2].map(|client| shares.served[&client]);
        assert!(one.abs_diff(two) <= 100, "{shares:?}");
        shares.serve(3, 10);
        assert!(shares.served[&3] + 100 >= one.min(two), "a new client has saved up nothing");
    }

    #[test]
    fn clients_without_end_are_forgotten_all_at_once() {
        let mut shares = Shares::default();
        (0..10_000).for_each(|client| shares.serve(client, 10));
        assert!(shares.served.len() <= CLIENTS_MAX);
    }

    #[test]
    fn the_rate_is_that_of_a_link_that_is_always_busy() {
        let mut rate = Rate::default();
        assert_eq!((rate.get(), rate.level(), rate.record_max()), (None, 3, 16 * 1024));
        for step in 0..100 {
            rate.sent(Instant::from_nanos(step * 100_000_000), 6400);
        }
        assert_eq!(rate.get(), Some(64_000));
        assert_eq!((rate.level(), rate.record_max()), (19, 6400));
        rate.is_idle();
        rate.sent(Instant::from_nanos(90_000_000_000), 6400);
        assert_eq!(rate.get(), Some(64_000), "a pause is not counted");
    }
}
