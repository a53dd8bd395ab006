//! Draws random places of the routers, and improves them by rotating routers around their parents.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use std::f64::consts::TAU;

use super::expect;
use super::ground::{Ground, Places, ROUTERS, distance_m};
use super::objective::{Figures, STREAMS, objective, shares_off};
use sim::scenario;

/// The number of the random stream from which places are drawn, among the streams of a seed.
const PURPOSE: u16 = 11;
/// The number of attempts to place one router before all routers are drawn again.
const TURNS_MAX: usize = 200;
/// Values of `overhear_m` to try, in metres.
pub(super) const OVERHEAR_M: [f64; 8] = [76.0, 80.0, 84.0, 88.0, 92.0, 96.0, 100.0, 104.0];
/// The senders that router 7 must hear in the transfer to router 1 (section 6.3).
const SENDERS: [u8; 3] = [11, 30, 13];
/// The value of `overhear_m` at which router 7 must hear all [`SENDERS`] in a new draw.
const HEARING_M: f64 = 92.0;
/// The penalty, in points, if router 7 does not hear all [`SENDERS`]. It exceeds any value of the objective.
const OUT_OF_HEARING: f64 = 1e4;
/// The share of steps that rotate two routers.
const PAIRS: f64 = 0.3;
/// The share of rotations to a random direction.
const ANYWHERE: f64 = 0.3;
/// The largest angle of all other rotations, in radians.
const SMALL: f64 = 0.5;

/// Places, and their expected objective.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub places: Places,
    /// The value of `overhear_m` at which the two shares of observers are nearest to the paper's.
    pub overhear_m: f64,
    /// The expected objective at this value of `overhear_m`, in points.
    pub objective: f64,
}

/// Draws places, then tries `turns` rotations of one or two routers, and keeps those that reduce the objective.
pub(super) fn search(ground: &Ground, seed: u64, turns: usize) -> Spot {
    let mut chance = Chance::new(seed);
    let mut angles = chance.draw(ground);
    let mut best = Spot::at(ground, &placed(ground, &angles));
    for _ in 0..turns {
        let mut turned = angles;
        chance.turn(&mut turned);
        if chance.share() < PAIRS {
            chance.turn(&mut turned);
        }
        let places = placed(ground, &turned);
        if !ground.all_stand(&places) {
            continue;
        }
        let spot = Spot::near(ground, &places, best.overhear_m);
        if spot.objective < best.objective {
            (best, angles) = (spot, turned);
        }
    }
    best
}

impl Spot {
    /// These places with their expected objective.
    pub fn at(ground: &Ground, places: &Places) -> Self {
        Self::among(ground, places, &OVERHEAR_M)
    }

    /// The same as [`Spot::at`], but tries only this value of `overhear_m` and the two next to it.
    fn near(ground: &Ground, places: &Places, overhear_m: f64) -> Self {
        let at = OVERHEAR_M.iter().position(|it| *it == overhear_m).unwrap_or(0);
        let around = at.saturating_sub(1)..(at + 2).min(OVERHEAR_M.len());
        Self::among(ground, places, &OVERHEAR_M[around])
    }

    fn among(ground: &Ground, places: &Places, values: &[f64]) -> Self {
        let mut best: Option<(f64, Figures)> = None;
        for overhear_m in values {
            let figures = expect::figures(ground, &expect::table(ground, places, *overhear_m));
            if best.is_none_or(|(_, it)| shares_off(&figures) < shares_off(&it)) {
                best = Some((*overhear_m, figures));
            }
        }
        let (overhear_m, figures) = best.unwrap_or_default();
        let far_m = out_of_hearing_m(ground, places, overhear_m);
        let objective = if far_m > 0.0 { OUT_OF_HEARING + far_m } else { objective(&figures) };
        Self { places: *places, overhear_m, objective }
    }
}

/// How far router 7 is outside the range of the [`SENDERS`], in metres, summed over them; 0 if it hears all of
/// them.
pub(super) fn out_of_hearing_m(ground: &Ground, places: &Places, overhear_m: f64) -> f64 {
    let listener = places[ground.find(STREAMS.0)];
    let far = |sender: u8| distance_m(listener, places[ground.find(sender)]) - overhear_m;
    SENDERS.into_iter().map(|it| far(it).max(0.0)).sum()
}

fn placed(ground: &Ground, angles: &[f64; ROUTERS]) -> Places {
    let mut places = [(0.0, 0.0); ROUTERS];
    for router in 1..ROUTERS {
        places[router] = ground.place(router, &places, angles[router]);
    }
    places
}

/// The random numbers of one draw.
struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(scenario::seed(seed, 0, PURPOSE)))
    }

    /// A number from 0 to below 1.
    fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn angle(&mut self) -> f64 {
        TAU * self.share()
    }

    /// Rotates one router around its parent.
    fn turn(&mut self, angles: &mut [f64; ROUTERS]) {
        let router = 1 + (self.share() * (ROUTERS - 1) as f64) as usize;
        angles[router] = match self.share() < ANYWHERE {
            true => self.angle(),
            false => angles[router] + SMALL * (2.0 * self.share() - 1.0),
        };
    }

    /// Draws an angle for each router, in order, until the router's place is valid. Starts again if a router finds
    /// no valid place, or if router 7 does not hear all [`SENDERS`].
    fn draw(&mut self, ground: &Ground) -> [f64; ROUTERS] {
        loop {
            let (mut angles, mut places) = ([0.0; ROUTERS], [(0.0, 0.0); ROUTERS]);
            let all = (1..ROUTERS).all(|router| {
                (0..TURNS_MAX).any(|_| {
                    angles[router] = self.angle();
                    places[router] = ground.place(router, &places, angles[router]);
                    ground.stands(router, &places)
                })
            });
            if all && out_of_hearing_m(ground, &places, HEARING_M) == 0.0 {
                return angles;
            }
        }
    }
}
