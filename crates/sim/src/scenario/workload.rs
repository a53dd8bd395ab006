//! The requests of clients: who requests what, in which order.

use std::time::Duration;

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

use super::choice::Choice;

/// Number of this random stream among those of a seed. Changing it changes runs.
const PURPOSE: u64 = 3 << 16;

/// What the clients request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Size of each file, in bytes.
    pub bytes: u64,
    /// Number of different files.
    pub files: usize,
    /// The requests of one round. If empty, each receiver requests each file.
    pub trace: Vec<Request>,
    /// Number of rounds.
    pub rounds: usize,
    /// The order of requests.
    pub order: Order,
    /// Time from the start of one transfer to the start of the next. `None`: each starts when the one before
    /// has ended.
    pub stagger: Option<Duration>,
}

/// The order in which requests begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Round by round, file by file, receivers in the listed order.
    Listed,
    /// All requests shuffled by the seed.
    Random,
}

/// A client's request for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The router that the client is wired to, by its index among the scenario's routers.
    pub receiver: usize,
    /// The file's number, from 0.
    pub file: usize,
}

impl Choice for Order {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Listed, "listed"), (Self::Random, "random")];
}

impl Workload {
    /// All requests in the order in which they begin.
    pub(super) fn requests(&self, receivers: &[usize], seed: u64) -> Vec<Request> {
        let files = 0..if self.trace.is_empty() { self.files } else { 0 };
        let each = files
            .flat_map(|file| receivers.iter().map(move |receiver| (file, *receiver)))
            .map(|(file, receiver)| Request { receiver, file });
        let round: Vec<_> = self.trace.iter().copied().chain(each).collect();
        let mut requests = round.repeat(self.rounds);
        if self.order == Order::Random {
            shuffle(&mut requests, seed);
        }
        requests
    }
}

/// Fisher and Yates's shuffle. Numbers below a bound are made by multiplying and shifting (Lemire, 2019),
/// with a bias below 2^-44 for lists of this length.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let root = SplitMix64::seed_from_u64(seed).next_u64();
    let mut stream = Xoshiro256PlusPlus::seed_from_u64(root ^ PURPOSE);
    for last in (1..items.len()).rev() {
        let product = u128::from(stream.next_u64()) * (last as u128 + 1);
        items.swap(last, (product >> 64) as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn workload(order: Order) -> Workload {
        Workload { bytes: 1, files: 2, trace: Vec::new(), rounds: 2, order, stagger: None }
    }

    fn pairs(order: Order, seed: u64) -> Vec<(usize, usize)> {
        let requests = workload(order).requests(&[7, 5, 9], seed);
        requests.into_iter().map(|it| (it.receiver, it.file)).collect()
    }

    #[test]
    fn listed_is_by_round_then_file_then_receiver() {
        let round = [(7, 0), (5, 0), (9, 0), (7, 1), (5, 1), (9, 1)];
        assert_eq!(pairs(Order::Listed, 1), [round, round].concat());
    }

    #[test]
    fn a_trace_is_a_round() {
        let trace = [(4, 0), (4, 0), (2, 1)].map(|(receiver, file)| Request { receiver, file });
        let workload = Workload { trace: trace.to_vec(), ..workload(Order::Listed) };
        assert_eq!(workload.requests(&[4, 2], 1), [trace, trace].concat());
    }

    #[test]
    fn random_has_the_same_requests_in_an_order_of_the_seed() {
        let (mut listed, mut random) = (pairs(Order::Listed, 0), pairs(Order::Random, 1));
        assert_eq!(random, pairs(Order::Random, 1));
        assert_ne!(random, pairs(Order::Random, 2));
        assert_ne!(random, listed);
        listed.sort_unstable();
        random.sort_unstable();
        assert_eq!(random, listed);
    }

    /// A repeated experiment must have the same order of requests.
    #[test]
    fn what_a_seed_means_is_frozen() {
        let mut items = [0, 1, 2, 3, 4, 5, 6, 7];
        shuffle(&mut items, 42);
        assert_eq!(items, [5, 4, 7, 1, 0, 2, 6, 3]);
    }

    #[test]
    fn every_order_comes_up() {
        let orders: BTreeSet<_> = (0..200)
            .map(|seed| {
                let mut items = [0, 1, 2];
                shuffle(&mut items, seed);
                items
            })
            .collect();
        assert_eq!(orders.len(), 6);
    }
}
