//! Who hears whom, and how strongly.

use crate::output::Station;

/// Received powers are at most this, so that the powers of all stations add up in 64 bits.
pub const POWER_MAX: u64 = 1 << 48;

/// The carrier of two-ray ground propagation, in hertz (ns-2's and ns-3's default for it).
const CARRIER_HZ: f64 = 914e6;
/// Antennas stand this high, in metres (the same default).
const ANTENNA_M: f64 = 1.5;
/// Metres per second.
const LIGHT_MPS: f64 = 299_792_458.0;
/// Nearer than this, in metres, power grows no further.
const NEAREST_M: f64 = 1.0;

/// What one station gets of another's signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Received power, in a linear unit of the caller's choice that is the same for all links; an
    /// integer so that sums are exact. More than [`POWER_MAX`] counts as [`POWER_MAX`].
    pub power: u64,
    /// Strong enough to be received; else it is only sensed, and interferes.
    pub decodable: bool,
    /// Probability that a data frame does not arrive though nothing disturbed it.
    pub loss: f64,
}

/// How far signals reach, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// Up to here frames can be received.
    pub receive_m: f64,
    /// Up to here carriers are sensed and disturb.
    pub sense_m: f64,
}

impl Default for Ranges {
    /// 250 and 550 m: ns-2's defaults, which the literature on chains uses.
    fn default() -> Self {
        Self { receive_m: 250.0, sense_m: 550.0 }
    }
}

/// The links between the stations of one channel, each in its own direction.
#[derive(Clone, Debug)]
pub struct Links {
    /// For each sender those that sense it, in order of their numbers.
    hearers: Vec<Vec<(Station, Link)>>,
}

impl Links {
    /// So many stations, none of which hears another.
    ///
    /// # Panics
    ///
    /// If there are more stations than a [`Station`] can count.
    pub fn new(stations: usize) -> Self {
        assert!(stations <= usize::from(u16::MAX), "a channel has at most 65535 stations");
        Self { hearers: vec![Vec::new(); stations] }
    }

    /// Links from positions on a plane, in metres: the same both ways, none beyond `ranges.sense_m`.
    ///
    /// Power falls with the square of the distance up to the crossover of two-ray ground propagation
    /// (86 m here) and with its fourth power beyond. `loss` gets the distance in metres.
    pub fn by_distance(
        positions_m: &[(f64, f64)],
        ranges: Ranges,
        loss: impl Fn(f64) -> f64,
    ) -> Self {
        let mut links = Self::new(positions_m.len());
        for (from, a) in positions_m.iter().enumerate() {
            for (to, b) in positions_m.iter().enumerate().filter(|(to, _)| *to != from) {
                let (dx, dy) = (a.0 - b.0, a.1 - b.1);
                let distance_m = (dx * dx + dy * dy).sqrt();
                if distance_m <= ranges.sense_m {
                    let decodable = distance_m <= ranges.receive_m;
                    let (power, loss) = (two_ray_power(distance_m), loss(distance_m));
                    links.set(place(from), place(to), Link { power, decodable, loss });
                }
            }
        }
        links
    }

    /// Says what `to` gets of the signal of `from`; nobody gets its own.
    ///
    /// # Panics
    ///
    /// If one of them is not among the stations.
    pub fn set(&mut self, from: Station, to: Station, link: Link) {
        assert!(usize::from(to.0) < self.stations(), "no such station: {to:?}");
        let hearers = &mut self.hearers[usize::from(from.0)];
        let link = Link { power: link.power.min(POWER_MAX), ..link };
        match hearers.binary_search_by_key(&to, |(station, _)| *station) {
            _ if from == to => {}
            Ok(index) => hearers[index].1 = link,
            Err(index) => hearers.insert(index, (to, link)),
        }
    }

    /// What `to` gets of the signal of `from`, if anything.
    pub fn get(&self, from: Station, to: Station) -> Option<&Link> {
        let hearers = self.hearers_of(from);
        let index = hearers.binary_search_by_key(&to, |(station, _)| *station).ok()?;
        Some(&hearers[index].1)
    }

    /// How many stations there are.
    pub fn stations(&self) -> usize {
        self.hearers.len()
    }

    /// Those that sense a station, in order of their numbers.
    pub(crate) fn hearers_of(&self, from: Station) -> &[(Station, Link)] {
        self.hearers.get(usize::from(from.0)).map_or(&[], Vec::as_slice)
    }
}

fn place(index: usize) -> Station {
    Station(u16::try_from(index).expect("Links::new bounds the number of stations"))
}

/// Received power at a distance, where [`POWER_MAX`] is what is received at 1 m (Rappaport, Wireless
/// Communications, ground reflection model, with free space within its crossover as ns-2 does).
fn two_ray_power(distance_m: f64) -> u64 {
    let wavelength_m = LIGHT_MPS / CARRIER_HZ;
    let crossover_m = 4.0 * std::f64::consts::PI * ANTENNA_M * ANTENNA_M / wavelength_m;
    let square = distance_m.max(NEAREST_M) * distance_m.max(NEAREST_M);
    let beyond = (crossover_m * crossover_m / square).min(1.0);
    (POWER_MAX as f64 / square * beyond) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Station = Station(0);
    const B: Station = Station(1);
    const C: Station = Station(2);

    #[test]
    fn links_have_directions() {
        let mut links = Links::new(3);
        let link = Link { power: u64::MAX, decodable: true, loss: 0.1 };
        links.set(C, A, link);
        links.set(A, A, link);
        assert_eq!(links.get(C, A).map(|link| link.power), Some(POWER_MAX));
        assert_eq!(
            (links.get(A, C), links.get(A, A), links.get(Station(9), A)),
            (None, None, None)
        );
        links.set(C, A, Link { power: 5, ..link });
        assert_eq!(links.get(C, A).map(|link| link.power), Some(5));
        assert_eq!(links.stations(), 3);
    }

    #[test]
    fn power_falls_with_distance_as_over_ground() {
        let positions = [(0.0, 0.0), (200.0, 0.0), (600.0, 0.0)];
        let links = Links::by_distance(&positions, Ranges::default(), |_| 0.0);
        assert!(links.get(A, B).unwrap().decodable);
        assert!(!links.get(B, C).unwrap().decodable);
        assert_eq!(links.get(A, C), None);
        let ratio = links.get(A, B).unwrap().power as f64 / links.get(B, C).unwrap().power as f64;
        assert!((ratio - 16.0).abs() < 0.01, "twice as far is 16 times weaker: {ratio}");
        assert_eq!(two_ray_power(10.0) / two_ray_power(20.0), 4);
        assert_eq!(two_ray_power(0.0), POWER_MAX);
        assert!(two_ray_power(86.0) >= two_ray_power(86.3));
    }
}
