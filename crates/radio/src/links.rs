//! Who hears whom, and how strongly.

use crate::output::Station;
use crate::power::POWER_MAX;
use crate::propagation::{Propagation, Ranges};

/// What one station gets of another's signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Received power in attowatts (10⁻¹⁸ W, see [`power`](crate::power)); an integer so that sums are
    /// exact. More than [`POWER_MAX`] counts as [`POWER_MAX`]. If links fade, its mean.
    pub power: u64,
    /// Strong enough to be received; else it is only sensed, and interferes. If links fade, the
    /// [`Thresholds`] decide instead.
    pub decodable: bool,
    /// Probability that a frame does not arrive though nothing disturbed it. Which frames suffer it,
    /// [`LossScope`](crate::LossScope) says.
    pub loss: f64,
    /// The same of data frames that are for others; they may arrive here though nothing else does. `None`:
    /// they are as any other.
    pub overheard_loss: Option<f64>,
}

/// From which power on signals mean something, in attowatts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// From here on a frame can be decoded.
    pub receive: u64,
    /// From here on a carrier is sensed, and disturbs.
    pub sense: u64,
}

/// The links between the stations of one channel, each in its own direction.
#[derive(Clone, Debug)]
pub struct Links {
    /// For each sender those that sense it, in order of their numbers.
    hearers: Vec<Vec<(Station, Link)>>,
    fading: Option<Thresholds>,
}

impl Links {
    /// So many stations, none of which hears another.
    ///
    /// # Panics
    ///
    /// If there are more stations than a [`Station`] can count.
    pub fn new(stations: usize) -> Self {
        assert!(stations <= usize::from(u16::MAX), "a channel has at most 65535 stations");
        Self { hearers: vec![Vec::new(); stations], fading: None }
    }

    /// Links from positions on a plane, in metres: the same both ways, none beyond `ranges.sense_m`.
    /// Power falls as over ground ([`Propagation::in_ranges`]). `loss` gets the distance in metres.
    pub fn by_distance(
        positions_m: &[(f64, f64)],
        ranges: Ranges,
        loss: impl Fn(f64) -> f64,
    ) -> Self {
        Propagation::in_ranges(ranges).links(positions_m, loss)
    }

    /// From now on each frame reaches each receiver with a power of its own, whose mean is that of the
    /// link (Rayleigh fading, constant during a frame), and the thresholds say what it is good for.
    #[must_use]
    pub fn fading(mut self, thresholds: Thresholds) -> Self {
        self.fading = Some(thresholds);
        self
    }

    /// The thresholds, if links fade.
    pub fn thresholds(&self) -> Option<Thresholds> {
        self.fading
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

    /// From now on `to` gets nothing of the signal of `from`.
    pub fn remove(&mut self, from: Station, to: Station) {
        if let Some(hearers) = self.hearers.get_mut(usize::from(from.0)) {
            hearers.retain(|(station, _)| *station != to);
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
    pub fn hearers_of(&self, from: Station) -> &[(Station, Link)] {
        self.hearers.get(usize::from(from.0)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Station = Station(0);
    const C: Station = Station(2);

    #[test]
    fn links_have_directions() {
        let mut links = Links::new(3);
        let link = Link { power: u64::MAX, decodable: true, loss: 0.1, overheard_loss: None };
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
        links.set(A, C, link);
        links.remove(C, A);
        assert_eq!((links.get(C, A), links.get(A, C).is_some()), (None, true));
    }
}
