//! Stations on a plane, indexed by cells, so that pairs out of range are not examined.

use super::Propagation;
use crate::links::{Link, Links};
use crate::output::Station;
use std::collections::BTreeMap;

/// Stations on a plane. When one moves, only stations in range are examined.
#[derive(Clone, Debug)]
pub struct Field {
    propagation: Propagation,
    positions_m: Vec<(f64, f64)>,
    /// No signal is sensed beyond this. Cells have this width, so all stations in range are in nine
    /// cells.
    farthest_m: f64,
    cells: BTreeMap<Cell, Vec<Station>>,
}

type Cell = (i64, i64);

impl Field {
    /// Stations at these positions, in metres.
    ///
    /// # Panics
    ///
    /// If there are more stations than a [`Station`] can number.
    pub fn new(propagation: Propagation, positions_m: &[(f64, f64)]) -> Self {
        assert!(positions_m.len() <= usize::from(u16::MAX), "at most 65535 stations");
        let farthest_m = propagation.farthest_m().max(1.0);
        let positions_m = positions_m.to_vec();
        let mut field = Self { propagation, positions_m, farthest_m, cells: BTreeMap::new() };
        for index in 0..field.positions_m.len() {
            let cell = field.cell(field.positions_m[index]);
            field.cells.entry(cell).or_default().push(Station(index as u16));
        }
        field
    }

    /// The position of a station, if it exists.
    pub fn position_m(&self, station: Station) -> Option<(f64, f64)> {
        self.positions_m.get(usize::from(station.0)).copied()
    }

    /// The links for the current positions; `loss` as in [`Propagation::links`].
    pub fn links(&self, loss: impl Fn(f64) -> f64) -> Links {
        let mut links = Links::new(self.positions_m.len());
        for (index, position) in self.positions_m.iter().enumerate() {
            let station = Station(index as u16);
            for other in self.around(*position) {
                if let Some(link) = self.link(station, other, &loss) {
                    links.set(station, other, link);
                }
            }
        }
        match self.propagation.fades {
            true => links.fading(self.propagation.thresholds),
            false => links,
        }
    }

    /// Moves a station, and calls `changed` for each link that may have changed, in both
    /// directions, with the arguments of [`Input::Link`](crate::Input::Link).
    ///
    /// # Panics
    ///
    /// If the station does not exist.
    pub fn move_to(
        &mut self,
        station: Station,
        to_m: (f64, f64),
        loss: impl Fn(f64) -> f64,
        mut changed: impl FnMut(Station, Station, Option<Link>),
    ) {
        let from_m = std::mem::replace(&mut self.positions_m[usize::from(station.0)], to_m);
        let (before, now) = (self.cell(from_m), self.cell(to_m));
        if before != now {
            if let Some(stations) = self.cells.get_mut(&before) {
                stations.retain(|other| *other != station);
            }
            self.cells.retain(|_, stations| !stations.is_empty());
            self.cells.entry(now).or_default().push(station);
        }
        // Stations near the old position but not near the new one.
        let lost = self.around(from_m).filter(|other| !is_near(self.cell_of(*other), now));
        for other in self.around(to_m).chain(lost).filter(|other| *other != station) {
            let distance_m = |place| distance_m(place, self.positions_m[usize::from(other.0)]);
            if distance_m(from_m).min(distance_m(to_m)) <= self.farthest_m {
                let link = self.link(station, other, &loss);
                changed(station, other, link);
                changed(other, station, link);
            }
        }
    }

    fn link(&self, one: Station, other: Station, loss: &impl Fn(f64) -> f64) -> Option<Link> {
        let place = |station: Station| self.positions_m[usize::from(station.0)];
        let distance_m = distance_m(place(one), place(other));
        self.propagation.link((one, other), distance_m, loss).filter(|_| one != other)
    }

    /// All stations in the nine cells around a place.
    fn around(&self, place_m: (f64, f64)) -> impl Iterator<Item = Station> {
        let (x, y) = self.cell(place_m);
        let near = move |d: i64| (x.saturating_add(d / 3 - 1), y.saturating_add(d % 3 - 1));
        (0..9).filter_map(move |d| self.cells.get(&near(d))).flatten().copied()
    }

    fn cell_of(&self, station: Station) -> Cell {
        self.cell(self.positions_m[usize::from(station.0)])
    }

    fn cell(&self, (x, y): (f64, f64)) -> Cell {
        ((x / self.farthest_m).floor() as i64, (y / self.farthest_m).floor() as i64)
    }
}

fn is_near(one: Cell, other: Cell) -> bool {
    one.0.abs_diff(other.0) <= 1 && one.1.abs_diff(other.1) <= 1
}

fn distance_m(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (dx, dy) = (a.0 - b.0, a.1 - b.1);
    libm::sqrt(dx * dx + dy * dy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::propagation::Ranges;
    use proptest::prelude::*;

    /// All pairs, without cells.
    fn plain(propagation: &Propagation, positions_m: &[(f64, f64)]) -> Links {
        let mut links = Links::new(positions_m.len());
        for (i, a) in positions_m.iter().enumerate() {
            for (j, b) in positions_m.iter().enumerate().filter(|(j, _)| *j != i) {
                let pair = (Station(i as u16), Station(j as u16));
                if let Some(link) = propagation.link(pair, distance_m(*a, *b), |_| 0.0) {
                    links.set(pair.0, pair.1, link);
                }
            }
        }
        links
    }

    fn same(one: &Links, other: &Links) -> bool {
        let stations = (0..one.stations() as u16).map(Station);
        stations.into_iter().all(|it| one.hearers_of(it) == other.hearers_of(it))
    }

    proptest! {
        #[test]
        fn cells_leave_out_nothing_and_moves_tell_all(
            mut places in prop::collection::vec((-900.0..900.0, -900.0..900.0), 2..12),
            moves in prop::collection::vec((any::<usize>(), (-900.0..900.0, -900.0..900.0)), 0..12),
        ) {
            let propagation = Propagation::in_ranges(Ranges { receive_m: 120.0, sense_m: 300.0 });
            let mut field = Field::new(propagation.clone(), &places);
            let mut links = plain(&propagation, &places);
            prop_assert!(same(&field.links(|_| 0.0), &links));
            for (index, to_m) in moves {
                let index = index % places.len();
                let mut told = Links::new(places.len());
                let keep = |from: Station, to, link: Option<Link>, told: &mut Links| {
                    if let Some(link) = link { told.set(from, to, link) }
                };
                let mut gone = Vec::new();
                field.move_to(Station(index as u16), to_m, |_| 0.0, |from, to, link| {
                    keep(from, to, link, &mut told);
                    gone.push((from, to));
                });
                places[index] = to_m;
                let now = plain(&propagation, &places);
                // Links without a call of `changed` are as before, the others are as reported.
                for (from, to) in (0..places.len() as u16).flat_map(|a| {
                    (0..places.len() as u16).map(move |b| (Station(a), Station(b)))
                }) {
                    let known = if gone.contains(&(from, to)) { &told } else { &links };
                    prop_assert_eq!(known.get(from, to), now.get(from, to));
                }
                links = now;
            }
            prop_assert!(same(&field.links(|_| 0.0), &links));
        }
    }

    #[test]
    fn a_thousand_stations_far_apart_have_few_links() {
        let place = |i: u32| (f64::from(i % 32) * 200.0, f64::from(i / 32) * 200.0);
        let positions: Vec<_> = (0..1000).map(place).collect();
        let field = Field::new(Propagation::in_ranges(Ranges::default()), &positions);
        let links = field.links(|_| 0.0);
        // Around the middle of a grid with steps of 200 m, 20 other stations are within 550 m (2.75
        // steps).
        assert_eq!(links.hearers_of(Station(500)).len(), 20);
        assert_eq!(field.position_m(Station(33)), Some((200.0, 200.0)));
        assert_eq!(field.position_m(Station(1000)), None);
    }
}
