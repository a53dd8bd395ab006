//! From positions to links: received power as a function of distance, and the thresholds.
//!
//! *Who calls it:* code that builds a scenario or moves its stations. *What it never does:* use a
//! medium. *Where to start:* [`Propagation`], then [`Field`] for stations that move.
//!
//! Sources: Rappaport, Wireless Communications, 1996, chapter 3: free space, two-ray ground
//! reflection, log-distance path loss with log-normal shadowing. Carrier, antennas, transmit power
//! and ranges are those of ns-2, which the literature on chains of stations uses.

mod field;

pub use field::Field;

use crate::chance;
use crate::links::{Link, Links, Thresholds};
use crate::output::Station;
use crate::power::{self, POWER_MAX};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use std::f64::consts::PI;

/// The carrier frequency of two-ray ground propagation, in hertz.
const CARRIER_HZ: f64 = 914e6;
/// The height of antennas, in metres.
const ANTENNA_M: f64 = 1.5;
/// The speed of light, in metres per second.
const LIGHT_MPS: f64 = 299_792_458.0;
/// At smaller distances, in metres, the power does not increase.
const NEAREST_M: f64 = 1.0;
/// The greatest distance at which a signal is sensed, in metres, in any model.
const FARTHEST_M: f64 = 1e6;

/// Transmit power in dBm: 0.28 W.
pub const TRANSMIT_DBM: f64 = 24.5;

/// Fading raises one frame in 20 000 by more than this many dB above its mean. Links that only such
/// frames could use are left out.
const FADING_MARGIN_DB: f64 = 10.0;
/// Shadowing beyond this many standard deviations is neglected in the search for the greatest
/// range.
const SHADOWING_DEVIATIONS: f64 = 4.0;

/// The ranges of signals, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// Up to this distance frames can be received.
    pub receive_m: f64,
    /// Up to this distance a carrier is sensed, and interferes.
    pub sense_m: f64,
}

impl Default for Ranges {
    /// 250 and 550 m: ns-2's defaults, which the literature on chains uses.
    fn default() -> Self {
        Self { receive_m: 250.0, sense_m: 550.0 }
    }
}

/// How power decreases with distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathLoss {
    /// With the square of the distance up to the crossover of two-ray ground propagation (86 m
    /// here), with its fourth power beyond.
    TwoRayGround,
    /// By the loss at 1 m and an exponent, plus for each pair of stations a normally distributed
    /// number of dB, the same in both directions.
    LogDistance {
        /// Loss at 1 m, in dB: 40 in the 2.4 GHz band, 46.7 in the 5 GHz band (free space).
        loss_1m_db: f64,
        /// 2 in free space, about 3 among houses.
        exponent: f64,
        /// Standard deviation of the shadowing, in dB; 0 for none.
        shadowing_db: f64,
        /// The seed of the shadowing.
        seed: u64,
    },
}

/// A propagation model with its thresholds.
#[derive(Clone, Debug, PartialEq)]
pub struct Propagation {
    path_loss: PathLoss,
    transmit_dbm: f64,
    thresholds: Thresholds,
    /// If set, signals without fading are judged by these ranges instead of the thresholds.
    ranges: Option<Ranges>,
    fades: bool,
}

impl Propagation {
    /// Two-ray ground propagation with fixed ranges, as in ns-2.
    pub fn in_ranges(ranges: Ranges) -> Self {
        let at = |distance_m| attowatts(TRANSMIT_DBM - two_ray_loss_db(distance_m));
        let thresholds = Thresholds { receive: at(ranges.receive_m), sense: at(ranges.sense_m) };
        let path_loss = PathLoss::TwoRayGround;
        let ranges = Some(ranges);
        Self { path_loss, transmit_dbm: TRANSMIT_DBM, thresholds, ranges, fades: false }
    }

    /// Signals of at least `receive_dbm` can be decoded; those of at least `sense_dbm` are sensed
    /// and interfere. With [`Decoding::BitErrors`](crate::Decoding::BitErrors) the two may be
    /// equal.
    pub fn by_power(
        path_loss: PathLoss,
        transmit_dbm: f64,
        receive_dbm: f64,
        sense_dbm: f64,
    ) -> Self {
        let thresholds =
            Thresholds { receive: attowatts(receive_dbm), sense: attowatts(sense_dbm) };
        Self { path_loss, transmit_dbm, thresholds, ranges: None, fades: false }
    }

    /// Adds Rayleigh fading: each frame reaches each receiver with its own power.
    #[must_use]
    pub fn fading(mut self) -> Self {
        self.fades = true;
        self
    }

    /// The links between stations at these positions on a plane, in metres. `loss` returns, for a
    /// distance in metres, the probability that a frame is lost without interference.
    ///
    /// # Panics
    ///
    /// If there are more stations than a [`Station`] can number.
    pub fn links(&self, positions_m: &[(f64, f64)], loss: impl Fn(f64) -> f64) -> Links {
        Field::new(self.clone(), positions_m).links(loss)
    }

    /// The link between two stations at this distance; `None` if they do not sense each other.
    pub fn link(
        &self,
        pair: (Station, Station),
        distance_m: f64,
        loss: impl Fn(f64) -> f64,
    ) -> Option<Link> {
        let power = attowatts(self.transmit_dbm - self.loss_db(distance_m) + self.shadow_db(pair));
        let Thresholds { receive, sense } = self.thresholds;
        let (is_sensed, decodable) = match self.ranges {
            _ if self.fades => {
                let margin = power::ratio(FADING_MARGIN_DB);
                (power as f64 * margin >= sense as f64, power >= receive)
            }
            Some(ranges) => (distance_m <= ranges.sense_m, distance_m <= ranges.receive_m),
            None => (power >= sense, power >= receive),
        };
        is_sensed.then(|| Link { power, decodable, loss: loss(distance_m), overheard_loss: None })
    }

    /// The greatest distance at which a signal is sensed, in metres.
    pub fn farthest_m(&self) -> f64 {
        if let Some(ranges) = self.ranges.filter(|_| !self.fades) {
            return ranges.sense_m;
        }
        let shadowing_db = match self.path_loss {
            PathLoss::TwoRayGround => 0.0,
            PathLoss::LogDistance { shadowing_db, .. } => shadowing_db * SHADOWING_DEVIATIONS,
        };
        let fading_db = if self.fades { FADING_MARGIN_DB } else { 0.0 };
        let sense_dbm = power::to_dbm(self.thresholds.sense);
        let is_sensed = |distance_m: f64| {
            self.transmit_dbm - self.loss_db(distance_m) + shadowing_db + fading_db >= sense_dbm
        };
        let (mut near, mut far) = (NEAREST_M, FARTHEST_M);
        while far - near > 0.1 {
            let middle = (near + far) / 2.0;
            *if is_sensed(middle) { &mut near } else { &mut far } = middle;
        }
        far
    }

    fn loss_db(&self, distance_m: f64) -> f64 {
        match self.path_loss {
            PathLoss::TwoRayGround => two_ray_loss_db(distance_m),
            PathLoss::LogDistance { loss_1m_db, exponent, .. } => {
                loss_1m_db + 10.0 * exponent * libm::log10(distance_m.max(NEAREST_M))
            }
        }
    }

    /// The effect of shadowing on the power between two stations, in dB.
    fn shadow_db(&self, (one, other): (Station, Station)) -> f64 {
        match self.path_loss {
            PathLoss::LogDistance { shadowing_db, seed, .. } if shadowing_db > 0.0 => {
                let pair = u64::from(one.0.min(other.0)) << 16 | u64::from(one.0.max(other.0));
                let root = SplitMix64::seed_from_u64(seed).next_u64();
                let mut bits = SplitMix64::seed_from_u64(root ^ pair);
                let (u, v) = (chance::part(bits.next_u64()), chance::part(bits.next_u64()));
                // Box and Muller, 1958.
                let normal = libm::sqrt(-2.0 * libm::log1p(-u)) * libm::cos(2.0 * PI * v);
                normal * shadowing_db
            }
            _ => 0.0,
        }
    }
}

/// Loss at a distance, in dB (two-ray ground reflection; free space up to the crossover, as in
/// ns-2).
fn two_ray_loss_db(distance_m: f64) -> f64 {
    let wavelength_m = LIGHT_MPS / CARRIER_HZ;
    let crossover_m = 4.0 * PI * ANTENNA_M * ANTENNA_M / wavelength_m;
    let distance_m = distance_m.max(NEAREST_M);
    let free_space_db = 20.0 * libm::log10(4.0 * PI * distance_m / wavelength_m);
    free_space_db + 20.0 * libm::log10((distance_m / crossover_m).max(1.0))
}

/// Converts dBm to attowatts; at least one, because the power of a link must not be zero.
fn attowatts(dbm: f64) -> u64 {
    power::from_dbm(dbm).clamp(1, POWER_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: (Station, Station) = (Station(0), Station(1));

    fn dbm(propagation: &Propagation, distance_m: f64) -> f64 {
        power::to_dbm(propagation.link(PAIR, distance_m, |_| 0.0).unwrap().power)
    }

    #[test]
    fn power_falls_with_distance_as_over_ground() {
        let (a, b, c) = (Station(0), Station(1), Station(2));
        let positions = [(0.0, 0.0), (200.0, 0.0), (600.0, 0.0)];
        let links = Links::by_distance(&positions, Ranges::default(), |_| 0.0);
        assert!(links.get(a, b).unwrap().decodable);
        assert!(!links.get(b, c).unwrap().decodable);
        assert_eq!(links.get(a, c), None);
        let ratio = links.get(a, b).unwrap().power as f64 / links.get(b, c).unwrap().power as f64;
        assert!((ratio - 16.0).abs() < 0.01, "twice as far is 16 times weaker: {ratio}");
        let free = two_ray_loss_db(20.0) - two_ray_loss_db(10.0);
        assert!((free - 6.02).abs() < 0.01, "{free}");
        assert_eq!(two_ray_loss_db(0.0), two_ray_loss_db(1.0));
        assert!(two_ray_loss_db(86.0) <= two_ray_loss_db(86.3));
    }

    #[test]
    fn ranges_have_the_powers_of_ns2() {
        // RXThresh_ and CSThresh_ there: 3.652e-10 W and 1.559e-11 W.
        let Thresholds { receive, sense } = Propagation::in_ranges(Ranges::default()).thresholds;
        assert!((receive as f64 / 3.652e8 - 1.0).abs() < 0.01, "{receive}");
        assert!((sense as f64 / 1.559e7 - 1.0).abs() < 0.01, "{sense}");
        // The bounds of the ranges are included.
        let propagation = Propagation::in_ranges(Ranges::default());
        let link = |distance_m| propagation.link(PAIR, distance_m, |_| 0.0);
        assert!(link(250.0).unwrap().decodable && !link(250.001).unwrap().decodable);
        assert!(link(550.0).is_some() && link(550.001).is_none());
    }

    #[test]
    fn log_distance_falls_by_its_exponent() {
        let path_loss = |shadowing_db| PathLoss::LogDistance {
            loss_1m_db: 40.0,
            exponent: 3.0,
            shadowing_db,
            seed: 7,
        };
        let plain = Propagation::by_power(path_loss(0.0), 20.0, -85.0, -95.0);
        assert!((dbm(&plain, 1.0) + 20.0).abs() < 1e-3);
        assert!((dbm(&plain, 100.0) + 80.0).abs() < 1e-3);
        // A loss of 75 dB more than at 1 m: 10^2.5 m.
        assert!((plain.farthest_m() - 316.2).abs() < 0.2, "{}", plain.farthest_m());
        let shadowed = Propagation::by_power(path_loss(6.0), 20.0, -85.0, -150.0);
        let shadows: Vec<f64> = (1..5000)
            .map(|other| {
                let pair = |a, b| shadowed.link((Station(a), Station(b)), 100.0, |_| 0.0).unwrap();
                assert_eq!(pair(0, other), pair(other, 0));
                power::to_dbm(pair(0, other).power) + 80.0
            })
            .collect();
        let mean = shadows.iter().sum::<f64>() / shadows.len() as f64;
        let square = shadows.iter().map(|it| it * it).sum::<f64>() / shadows.len() as f64;
        // Four standard deviations of each.
        assert!(mean.abs() < 0.34 && (square.sqrt() - 6.0).abs() < 0.24, "{mean} {square}");
    }

    #[test]
    fn fading_links_reach_farther_but_are_seldom_heard_there() {
        let propagation = Propagation::in_ranges(Ranges::default()).fading();
        let links = propagation.links(&[(0.0, 0.0), (800.0, 0.0), (2000.0, 0.0)], |_| 0.0);
        assert!(links.get(Station(0), Station(1)).is_some(), "6.5 dB under the threshold");
        assert_eq!(links.get(Station(0), Station(2)), None);
        assert_eq!(links.thresholds(), Some(propagation.thresholds));
        // 10 dB, with the fourth power of the distance.
        assert!((propagation.farthest_m() - 550.0 * 1.778).abs() < 1.0);
    }
}
