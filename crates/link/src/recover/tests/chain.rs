//! A chain of routers in virtual time: one channel on which neighbours up to two hops away defer to each other,
//! and losses above the MAC, which acknowledges what IP never sees.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;
use wire::Instant;

use super::super::{Config, Output, Recover};
use super::ends::{Receiver, Sender};
use super::{Plain, router};
use crate::{Next, Outcome, Verdict};

/// Chances of what may go wrong, for each frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Air {
    /// The MAC acknowledges it, but it is lost.
    pub(super) lost: f64,
    /// The MAC gives it up.
    pub(super) given_up: f64,
    /// It arrives twice.
    pub(super) doubled: f64,
    /// It arrives late.
    pub(super) delayed: f64,
    /// A neighbour does not overhear it.
    pub(super) unheard: f64,
}

struct Station {
    engine: Option<Recover<Plain>>,
    queue: VecDeque<(Plain, usize)>,
    /// Until when the head of the queue is on the air.
    busy: Option<Instant>,
}

pub(super) struct Chain {
    now: Instant,
    air: Air,
    state: u64,
    stations: Vec<Station>,
    late: Vec<(Instant, usize, Plain)>,
    sender: Sender,
    receiver: Receiver,
    budget: u64,
}

/// How long the header, the MAC's acknowledgement and an average backoff take, and the rate of payload.
const OVERHEAD: Duration = Duration::from_micros(700);
const NANOS_PER_BYTE: u64 = 1455;
const QUEUE_MAX: usize = 50;

impl Chain {
    pub(super) fn new(
        hops: usize,
        config: Option<Config>,
        air: Air,
        length: u64,
        seed: u64,
    ) -> Self {
        let iss = seed as u32;
        let station = |it| Station {
            engine: config.map(|config| Recover::new(router(it), config)),
            queue: VecDeque::new(),
            busy: None,
        };
        Self {
            now: Instant::ZERO,
            air,
            state: seed,
            stations: (0..=hops).map(station).collect(),
            late: Vec::new(),
            sender: Sender::new(hops, iss, length),
            receiver: Receiver::new(hops, iss),
            budget: config.map_or(0, |it| it.cache_bytes.into()),
        }
    }

    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.state >> 33
    }

    fn chance(&mut self, probability: f64) -> bool {
        (self.draw() as f64) < probability * (1_u64 << 31) as f64
    }

    fn next(&self, at: usize, it: &Plain) -> usize {
        if it.0.to.ip() == router(0) { at - 1 } else { at + 1 }
    }

    fn send(&mut self, at: usize, it: Plain) {
        let hop = self.next(at, &it);
        match &mut self.stations[at].engine {
            None => self.enqueue(at, it, hop),
            Some(engine) => {
                let next = Next { hop: router(hop), other: None };
                engine.outgoing(self.now, &it.0, it, next);
                self.drain(at);
            }
        }
    }

    fn drain(&mut self, at: usize) {
        while let Some(output) = self.stations[at].engine.as_mut().and_then(Recover::poll_output) {
            if let Output::Send { packet, next } = output {
                let hop = if next == router(at + 1) { at + 1 } else { at - 1 };
                self.enqueue(at, packet, hop);
            }
        }
        if let Some(engine) = &self.stations[at].engine {
            assert!(engine.cached_bytes() <= self.budget);
        }
    }

    fn enqueue(&mut self, at: usize, it: Plain, hop: usize) {
        if self.stations[at].queue.len() < QUEUE_MAX {
            self.stations[at].queue.push_back((it, hop));
        } else {
            self.verdict(at, it, hop, Outcome::QueueFull);
        }
    }

    fn verdict(&mut self, at: usize, it: Plain, hop: usize, outcome: Outcome) {
        if let Some(engine) = &mut self.stations[at].engine {
            let verdict = Verdict { outcome, tries: 1 };
            engine.verdict(self.now, &it.0, it, router(hop), verdict);
            self.drain(at);
        }
    }

    fn arrive(&mut self, at: usize, it: Plain) {
        if let Some(engine) = &mut self.stations[at].engine {
            let pass = engine.incoming(self.now, &it.0);
            self.drain(at);
            if !pass {
                return;
            }
        }
        if it.0.to.ip() != router(at) {
            return self.send(at, it);
        }
        let reply = if at == 0 {
            self.sender.acknowledged(self.now, &it)
        } else {
            self.receiver.take(self.now, &it)
        };
        if let Some(reply) = reply {
            self.send(at, reply);
        }
        self.fill();
    }

    fn fill(&mut self) {
        while let Some(it) = self.sender.poll(self.now) {
            self.send(0, it);
        }
    }

    /// Starts transmissions of stations that nobody near disturbs, in random order.
    fn start(&mut self) {
        let count = self.stations.len();
        let first = self.draw() as usize % count;
        for at in (0..count).map(|it| (first + it * 7) % count).chain(0..count) {
            let near = at.saturating_sub(2)..(at + 3).min(count);
            let is_free = self.stations[near].iter().all(|it| it.busy.is_none());
            let Some((it, _)) = self.stations[at].queue.front().filter(|_| is_free) else {
                continue;
            };
            let air = Duration::from_nanos(u64::from(it.0.bytes) * NANOS_PER_BYTE);
            let jitter = Duration::from_micros(self.draw() % 300);
            self.stations[at].busy = Some(self.now + OVERHEAD + air + jitter);
        }
    }

    /// A transmission ends.
    fn finish(&mut self, at: usize) {
        self.stations[at].busy = None;
        let Some((it, hop)) = self.stations[at].queue.pop_front() else { return };
        if self.chance(self.air.given_up) {
            return self.verdict(at, it, hop, Outcome::GivenUp);
        }
        let mut copy = it;
        copy.0.ttl -= 1;
        self.verdict(at, it, hop, Outcome::Acked);
        let other = if hop > at { at.checked_sub(1) } else { Some(at + 1) };
        if let Some(other) = other.filter(|it| *it < self.stations.len())
            && !self.chance(self.air.unheard)
            && let Some(engine) = &mut self.stations[other].engine
        {
            engine.overheard(self.now, &it.0, router(at));
            self.drain(other);
        }
        if self.chance(self.air.lost) {
            return;
        }
        if self.chance(self.air.delayed) {
            let wait = Duration::from_micros(self.draw() % 100_000);
            return self.late.push((self.now + wait, hop, copy));
        }
        if self.chance(self.air.doubled) {
            self.arrive(hop, copy);
        }
        self.arrive(hop, copy);
    }

    /// The next moment at which something happens.
    fn next_at(&self) -> Option<Instant> {
        let busy = self.stations.iter().filter_map(|it| it.busy);
        let engines = self.stations.iter().filter_map(|it| it.engine.as_ref()?.poll_timeout());
        let late = self.late.iter().map(|it| it.0);
        let ends = self.sender.retry_at.into_iter().chain(self.receiver.ack_at);
        busy.chain(engines).chain(late).chain(ends).min()
    }

    fn step(&mut self, at: Instant) {
        let at = at.max(self.now);
        self.now = at;
        for station in 0..self.stations.len() {
            if self.stations[station].busy.is_some_and(|it| it <= at) {
                self.finish(station);
            }
            if let Some(engine) = &mut self.stations[station].engine {
                engine.handle_timeout(at);
                assert!(engine.poll_timeout().is_none_or(|it| it > at));
                self.drain(station);
            }
        }
        while let Some(index) = self.late.iter().position(|it| it.0 <= at) {
            let (_, hop, it) = self.late.swap_remove(index);
            self.arrive(hop, it);
        }
        if self.receiver.ack_at.is_some_and(|it| it <= at) {
            let ack = self.receiver.ack();
            let me = self.stations.len() - 1;
            self.send(me, ack);
        }
        if self.sender.retry_at.is_some_and(|it| it <= at) {
            self.sender.timeout(at);
        }
        self.fill();
        self.start();
    }

    /// Runs until all is acknowledged, or this long. Returns how long it took if all was.
    pub(super) fn run(&mut self, most: Duration) -> Option<Duration> {
        self.fill();
        self.start();
        while let Some(at) = self.next_at().filter(|at| at.since(Instant::ZERO) < most) {
            self.step(at);
            if self.sender.una == self.length() {
                return Some(at.since(Instant::ZERO));
            }
        }
        None
    }

    fn length(&self) -> u64 {
        self.sender.length()
    }
}

/// Mean rate over five seeds, kbit/s.
fn rate(hops: usize, config: Option<Config>, air: Air) -> f64 {
    let (mut bits, mut seconds) = (0.0, 0.0);
    for seed in 1..=5_u64 {
        let mut chain = Chain::new(hops, config, air, 1 << 20, seed * 0x5555_5555_1234);
        let most = Duration::from_secs(60);
        seconds += chain.run(most).unwrap_or(most).as_secs_f64();
        bits += chain.sender.una as f64 * 8.0;
    }
    bits / seconds / 1000.0
}

#[test]
fn without_losses_nothing_is_lost_by_recovery() {
    for hops in [3, 6] {
        let plain = rate(hops, None, Air::default());
        let ours = rate(hops, Some(Config::default()), Air::default());
        assert!(ours > 0.98 * plain, "{hops} hops: {ours:.0} of {plain:.0} kbit/s");
    }
}

#[test]
fn with_losses_most_of_the_rate_remains() {
    let without = rate(6, None, Air::default());
    for (lost, share) in [(0.01, 0.85), (0.05, 0.6)] {
        let air = Air { lost, ..Air::default() };
        let [plain, paper, ours] = [None, Some(Config::inpcm()), Some(Config::default())]
            .map(|config| rate(6, config, air));
        assert!(plain < paper && paper < ours, "{plain:.0}, {paper:.0}, {ours:.0} kbit/s");
        assert!(ours > share * without, "{lost}: {ours:.0} of {without:.0} kbit/s");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The receiver gets the exact stream (its model would notice any other byte: offsets are the content),
    /// budgets hold at each step, and no packet is counted twice or not at all.
    #[test]
    fn the_stream_arrives_whole(
        hops in 1_usize..8,
        seed: u64,
        lost in 0.0..0.15,
        given_up in 0.0..0.1,
        doubled in 0.0..0.1,
        delayed in 0.0..0.1,
        unheard in 0.0..0.5,
        budget in prop::sample::select(vec![0_u32, 3000, 20_000, 1 << 20]),
        paper: bool,
    ) {
        let base = if paper { Config::inpcm() } else { Config::default() };
        let config = Config { cache_bytes: budget, ..base };
        let air = Air { lost, given_up, doubled, delayed, unheard };
        let mut chain = Chain::new(hops, Some(config), air, 60_000, seed);
        prop_assert!(chain.run(Duration::from_secs(36_000)).is_some(), "at {}", chain.sender.una);
        prop_assert_eq!(chain.receiver.received, 60_000);
        for station in &chain.stations {
            let engine = station.engine.as_ref().unwrap();
            let it = engine.counters();
            prop_assert!(it.cached >= it.evicted());
            prop_assert_eq!(it.cached == it.evicted(), engine.cached_bytes() == 0);
        }
    }
}
