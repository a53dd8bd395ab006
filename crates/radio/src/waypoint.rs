//! Random waypoint mobility: a station moves from one random place to the next.
//!
//! Johnson and Maltz, "Dynamic source routing in ad hoc wireless networks", 1996: a station chooses
//! a place and a speed, moves there in a straight line, pauses, and chooses again. *Who calls it:*
//! code that moves stations, in time steps of any size; positions do not depend on the steps.

use crate::chance;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use std::ops::RangeInclusive;
use std::time::Duration;
use wire::Instant;

/// The least speed, in metres per second: a slower station would never arrive.
const SLOWEST_MPS: f64 = 0.01;
/// The least duration of a leg, so that time advances.
const LEG_MIN: Duration = Duration::from_millis(1);

/// The parameters of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Walks {
    /// Width and height of the rectangle, in metres.
    pub area_m: (f64, f64),
    /// The range of speeds in metres per second, uniformly distributed.
    pub speed_mps: RangeInclusive<f64>,
    /// The pause at each place.
    pub rest: Duration,
}

/// One station's walk.
#[derive(Clone, Debug)]
pub struct Walk {
    walks: Walks,
    stream: SplitMix64,
    from_m: (f64, f64),
    to_m: (f64, f64),
    /// When it leaves `from_m`, reaches `to_m`, and leaves `to_m`.
    leaves: Instant,
    arrives: Instant,
    leaves_next: Instant,
}

impl Walk {
    /// The walk of the station with this number, from a random place.
    pub fn new(walks: Walks, seed: u64, station: u16) -> Self {
        let root = SplitMix64::seed_from_u64(seed).next_u64();
        let mut stream = SplitMix64::seed_from_u64(root ^ u64::from(station));
        let from_m = place(&walks, &mut stream);
        Self::with(walks, stream, from_m)
    }

    /// The same, from the given place.
    pub fn beginning_at(walks: Walks, seed: u64, station: u16, place_m: (f64, f64)) -> Self {
        let Self { walks, stream, .. } = Self::new(walks, seed, station);
        Self::with(walks, stream, place_m)
    }

    fn with(walks: Walks, stream: SplitMix64, from_m: (f64, f64)) -> Self {
        let start = Instant::ZERO;
        let (leaves, arrives, leaves_next) = (start, start, start);
        Self { walks, stream, from_m, to_m: from_m, leaves, arrives, leaves_next }
    }

    /// The position in metres. Times must ascend: for a time before the current leg, the result is
    /// the start of that leg.
    pub fn position_m(&mut self, now: Instant) -> (f64, f64) {
        while self.leaves_next <= now {
            self.next_leg();
        }
        let whole = self.arrives.since(self.leaves).as_secs_f64();
        let share = (now.since(self.leaves).as_secs_f64() / whole).min(1.0);
        let along = |from: f64, to: f64| from + (to - from) * share;
        (along(self.from_m.0, self.to_m.0), along(self.from_m.1, self.to_m.1))
    }

    fn next_leg(&mut self) {
        self.from_m = self.to_m;
        self.to_m = place(&self.walks, &mut self.stream);
        let (slowest, fastest) = (*self.walks.speed_mps.start(), *self.walks.speed_mps.end());
        let part = chance::part(self.stream.next_u64());
        let speed_mps = (slowest + (fastest - slowest) * part).max(SLOWEST_MPS);
        let (dx, dy) = (self.to_m.0 - self.from_m.0, self.to_m.1 - self.from_m.1);
        let seconds = libm::sqrt(dx * dx + dy * dy) / speed_mps;
        let lasts = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).max(LEG_MIN);
        self.leaves = self.leaves_next;
        self.arrives = self.leaves + lasts;
        self.leaves_next = self.arrives + self.walks.rest;
    }
}

fn place(walks: &Walks, stream: &mut SplitMix64) -> (f64, f64) {
    let (width_m, height_m) = walks.area_m;
    let (x, y) = (chance::part(stream.next_u64()), chance::part(stream.next_u64()));
    (x * width_m, y * height_m)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walks() -> Walks {
        Walks { area_m: (1000.0, 500.0), speed_mps: 1.0..=5.0, rest: Duration::from_secs(10) }
    }

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn it_stays_inside_and_keeps_its_speed() {
        let mut walk = Walk::new(walks(), 1, 3);
        let places: Vec<_> = (0..10_000).map(|s| walk.position_m(at(f64::from(s)))).collect();
        assert!(
            places.iter().all(|(x, y)| (0.0..=1000.0).contains(x) && (0.0..=500.0).contains(y))
        );
        let steps = places.windows(2).map(|p| {
            let (dx, dy) = (p[1].0 - p[0].0, p[1].1 - p[0].1);
            (dx * dx + dy * dy).sqrt()
        });
        let steps: Vec<f64> = steps.collect();
        assert!(steps.iter().all(|step| *step <= 5.0 + 1e-6));
        let resting = steps.iter().filter(|step| **step == 0.0).count();
        assert!((100..3000).contains(&resting), "it rests now and then: {resting}");
    }

    #[test]
    fn steps_do_not_matter_and_seeds_do() {
        let (mut fine, mut coarse) = (Walk::new(walks(), 1, 0), Walk::new(walks(), 1, 0));
        for tenth in 0..1000 {
            fine.position_m(at(f64::from(tenth) / 10.0));
        }
        assert_eq!(fine.position_m(at(5000.0)), coarse.position_m(at(5000.0)));
        let mut other = Walk::new(walks(), 1, 1);
        assert_ne!(coarse.position_m(at(5000.0)), other.position_m(at(5000.0)));
        let mut placed = Walk::beginning_at(walks(), 1, 0, (20.0, 30.0));
        assert_eq!(placed.position_m(Instant::ZERO), (20.0, 30.0));
    }

    #[test]
    fn no_walk_ends_in_a_loop() {
        let still = Walks { area_m: (0.0, 0.0), speed_mps: 0.0..=0.0, rest: Duration::ZERO };
        let mut walk = Walk::new(still, 1, 0);
        assert_eq!(walk.position_m(at(100.0)), (0.0, 0.0));
    }
}
