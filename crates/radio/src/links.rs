//! The links: which station senses which, and how strongly.

use crate::output::Station;
use crate::power::POWER_MAX;
use crate::propagation::{Propagation, Ranges};

/// The link from one station to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Received power in attowatts (10⁻¹⁸ W, see [`power`](crate::power)); an integer, so that sums
    /// are exact. The maximum is [`POWER_MAX`]. If links fade, the mean.
    pub power: u64,
    /// Whether the signal is strong enough to be received. Otherwise it is only sensed, and
    /// interferes. If links fade, the [`Thresholds`] decide instead.
    pub decodable: bool,
    /// Probability that a frame is lost without interference. [`LossScope`](crate::LossScope) says
    /// for which frames.
    pub loss: f64,
    /// The same for overheard data frames. They may be received here even if no other frame is.
    /// `None`: `loss` applies.
    pub overheard_loss: Option<f64>,
}

/// The thresholds of received power, in attowatts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// From this power on a frame can be decoded.
    pub receive: u64,
    /// From this power on a carrier is sensed, and interferes.
    pub sense: u64,
}

/// The links between the stations of one channel, one for each direction.
#[derive(Clone, Debug)]
pub struct Links {
    /// For each sender, the stations that sense it, in order of their numbers.
    hearers: Vec<Vec<(Station, Link)>>,
    fading: Option<Thresholds>,
}

impl Links {
    /// This number of stations, without links.
    ///
    /// # Panics
    ///
    /// If there are more stations than a [`Station`] can number.
    pub fn new(stations: usize) -> Self {
        assert!(stations <= usize::from(u16::MAX), "a channel has at most 65535 stations");
        Self { hearers: vec![Vec::new(); stations], fading: None }
    }

    /// The links between positions on a plane, in metres: equal in both directions, none beyond
    /// `ranges.sense_m`. Two-ray ground propagation ([`Propagation::in_ranges`]). `loss` is given
    /// the distance in metres.
    pub fn by_distance(
        positions_m: &[(f64, f64)],
        ranges: Ranges,
        loss: impl Fn(f64) -> f64,
    ) -> Self {
        Propagation::in_ranges(ranges).links(positions_m, loss)
    }

    /// Adds Rayleigh fading: each frame reaches each receiver with its own power, constant during
    /// the frame. The link's power is the mean, and the thresholds decide what the receiver can do
    /// with the frame.
    #[must_use]
    pub fn fading(mut self, thresholds: Thresholds) -> Self {
        self.fading = Some(thresholds);
        self
    }

    /// The thresholds, if links fade.
    pub fn thresholds(&self) -> Option<Thresholds> {
        self.fading
    }

    /// Sets the link from one station to another; a link to itself is ignored.
    ///
    /// # Panics
    ///
    /// If one of the stations does not exist.
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

    /// Removes the link from one station to another.
    pub fn remove(&mut self, from: Station, to: Station) {
        if let Some(hearers) = self.hearers.get_mut(usize::from(from.0)) {
            hearers.retain(|(station, _)| *station != to);
        }
    }

    /// The link from one station to another, if there is one.
    pub fn get(&self, from: Station, to: Station) -> Option<&Link> {
        let hearers = self.hearers_of(from);
        let index = hearers.binary_search_by_key(&to, |(station, _)| *station).ok()?;
        Some(&hearers[index].1)
    }

    /// The number of stations.
    pub fn stations(&self) -> usize {
        self.hearers.len()
    }

    /// The stations that sense a station, in order of their numbers.
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
