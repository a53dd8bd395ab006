//! A neighbouring interlay node: its probes, its rate, and when it can take the next packet (WINE, section 2.2).

use std::net::IpAddr;
use std::time::Duration;

use wire::Instant;

use super::config::{Config, Follow, Overhead};
use super::window::Window;

/// How many probes can be under way to a neighbour: an answer to an older one is late.
const UNDER_WAY_MAX: usize = 16;
/// Of how many destinations a neighbour's traffic is remembered, to name them to it.
const RECENT_MAX: usize = 16;
/// By which power of e a rate changes at most at once: news may be of many packets.
const STEP_MAX: f64 = 0.1;
/// The lowest rate that follows what is under way, in bytes per second: from there it rises again within seconds.
const RATE_MIN: f64 = 20e3;

#[derive(Debug)]
pub(super) struct Neighbour {
    /// The last traffic from it, or its last claim that was believed.
    pub(super) active_at: Instant,
    /// The estimate, and over how many hops it was measured.
    estimate: Option<Estimate>,
    probes: Probes,
    /// When the path is free for another quantum.
    pub(super) free_at: Instant,
    /// Packets of its quantum that are in the active queue, and how long the whole quantum is.
    pub(super) in_active: u32,
    pub(super) quantum_bytes: u32,
    /// Destinations of the traffic that passed it last.
    pub(super) recent: Recent,
    /// What is under way to it.
    pub(super) window: Window,
    /// Destinations that it claimed.
    claims: Vec<(IpAddr, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// Bytes per second.
    rate: f64,
    hops: u8,
}

impl Neighbour {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            active_at: now,
            estimate: None,
            probes: Probes::default(),
            free_at: Instant::ZERO,
            in_active: 0,
            quantum_bytes: 0,
            recent: Recent::default(),
            window: Window::new(now),
            claims: Vec::new(),
        }
    }

    /// Whether packets to it are paced.
    pub(super) fn is_paced(&self) -> bool {
        self.estimate.is_some()
    }

    /// The estimated rate in bytes per second, and the hops to it.
    pub(super) fn estimate(&self) -> Option<(f64, u8)> {
        self.estimate.map(|it| (it.rate, it.hops))
    }

    /// How long the path to it takes for this many bytes: then the next may follow.
    pub(super) fn gap(&self, config: &Config, bytes: u32) -> Duration {
        let Some(Estimate { rate, hops }) = self.estimate else { return Duration::ZERO };
        let overhead = match config.overhead {
            Overhead::Probe => 0,
            Overhead::Each => config.overhead_bytes,
        };
        let brake = config.follow.map_or(0.0, |it| it.brake * self.window.beyond(it.most(hops)));
        let seconds = (f64::from(bytes) + f64::from(overhead)) / rate * (1.0 + brake);
        // A conversion of floats saturates.
        Duration::from_nanos((seconds * 1e9) as u64).min(config.gap_max)
    }

    /// Begins a probe with this number. `false`: too many were unanswered, and the neighbour is now silent.
    pub(super) fn probe(&mut self, config: &Config, number: u32) -> bool {
        if self.probes.unanswered >= config.probes_unanswered_max {
            self.estimate = None;
            self.probes = Probes::default();
            return false;
        }
        self.probes.begin(number);
        true
    }

    /// The MAC has been given this probe.
    pub(super) fn probe_left(&mut self, now: Instant, number: u32) {
        self.probes.left(now, number);
    }

    /// An answer has come over this many hops. `false`: it answers no probe that is under way.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        config: &Config,
        number: u32,
        hops: u8,
    ) -> bool {
        let Some(sent) = self.probes.answered(number) else { return false };
        let half = (now.since(sent).as_secs_f64() / 2.0).max(1e-9);
        let overhead = match config.overhead {
            Overhead::Probe => f64::from(config.overhead_bytes) * f64::from(hops),
            Overhead::Each => f64::from(config.overhead_bytes),
        };
        let measured = (f64::from(config.probe_bytes) + overhead).max(1.0) / half;
        let rate = match self.estimate {
            Some(before) if config.follow.is_some() && !self.window.is_silent(now) => before.rate,
            _ if config.follow.is_some() => measured.max(RATE_MIN),
            Some(before) => before.rate + config.gain * (measured - before.rate),
            None => measured,
        };
        self.estimate = Some(Estimate { rate, hops });
        true
    }

    /// It says that this number has left it. The rate follows, and rises only if packets wait for it.
    pub(super) fn follow(&mut self, now: Instant, follow: &Follow, number: u8, is_waiting: bool) {
        let Some(advance) = self.window.heed(now, number) else { return };
        let Some(estimate) = &mut self.estimate else { return };
        let missing =
            (follow.most(estimate.hops) - f64::from(self.window.under_way())).clamp(-2.0, 2.0);
        if missing < 0.0 || is_waiting {
            let step = follow.gain * missing * f64::from(advance);
            estimate.rate *= step.clamp(-STEP_MAX, STEP_MAX).exp();
            estimate.rate = estimate.rate.max(RATE_MIN);
        }
    }

    /// Notes that it claims a destination. `false`: it has claimed too many.
    pub(super) fn claim(&mut self, now: Instant, config: &Config, destination: IpAddr) -> bool {
        let is_same = |(it, _): &(IpAddr, Instant)| *it == destination;
        let is_over = |(_, at): &(IpAddr, Instant)| now.since(*at) >= config.activity_timeout;
        let same = self.claims.iter().position(is_same);
        match same.or_else(|| self.claims.iter().position(is_over)) {
            Some(index) => self.claims[index] = (destination, now),
            None if self.claims.len() < config.claims_max => self.claims.push((destination, now)),
            None => return false,
        }
        true
    }
}

/// The probes under way to a neighbour.
#[derive(Debug, Default)]
struct Probes {
    /// Number, and when the MAC got it.
    under_way: [Option<(u32, Option<Instant>)>; UNDER_WAY_MAX],
    begun: usize,
    /// Since the last answer.
    unanswered: u32,
}

impl Probes {
    fn begin(&mut self, number: u32) {
        self.under_way[self.begun % UNDER_WAY_MAX] = Some((number, None));
        self.begun = self.begun.wrapping_add(1);
        self.unanswered += 1;
    }

    fn left(&mut self, now: Instant, number: u32) {
        if let Some((_, at)) = self.under_way.iter_mut().flatten().find(|it| it.0 == number) {
            *at = Some(now);
        }
    }

    /// When the answered probe was sent. It is no longer under way.
    fn answered(&mut self, number: u32) -> Option<Instant> {
        let is_it = |it: &&mut Option<(u32, Option<Instant>)>| {
            it.is_some_and(|(under_way, at)| under_way == number && at.is_some())
        };
        let (_, at) = self.under_way.iter_mut().find(is_it)?.take()?;
        self.unanswered = 0;
        at
    }
}

/// Destinations of traffic that came with a neighbour's header, each with its last packet.
#[derive(Debug, Default)]
pub(super) struct Recent {
    seen: [Option<(IpAddr, Instant)>; RECENT_MAX],
    /// The one of the last packet, and when it was noted.
    last: usize,
    noted_at: Instant,
    /// The one that was named last.
    named: usize,
}

/// Of packets that come faster, not each is looked up.
const NOTE_EVERY: Duration = Duration::from_millis(5);

impl Recent {
    pub(super) fn note(&mut self, now: Instant, destination: IpAddr) {
        let is_it = |it: &Option<(IpAddr, Instant)>| it.is_some_and(|(ip, _)| ip == destination);
        if !is_it(&self.seen[self.last]) {
            if self.seen[self.last].is_some() && now.since(self.noted_at) < NOTE_EVERY {
                return;
            }
            self.noted_at = now;
            let oldest = || (0..RECENT_MAX).min_by_key(|at| self.seen[*at].map(|(_, at)| at));
            let place = self.seen.iter().position(is_it).or_else(oldest);
            self.last = place.unwrap_or_default();
        }
        self.seen[self.last] = Some((destination, now));
    }

    /// One of them that had a packet within this time; each in turn.
    pub(super) fn name(&mut self, now: Instant, within: Duration) -> Option<IpAddr> {
        for _ in 0..RECENT_MAX {
            self.named = (self.named + 1) % RECENT_MAX;
            if let Some((ip, at)) = self.seen[self.named]
                && now.since(at) < within
            {
                return Some(ip);
            }
        }
        None
    }
}
