//! When which station is to do what next.

use crate::due::Due;
use crate::output::Station;
use wire::Instant;

/// What can be due. Of what is due at one instant, the first in this order comes first: so frames
/// that end make room for those that begin, and nothing begins before everything else was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// When the station's transmission ends.
    End,
    /// When the PHY header ends of a frame that the station follows, among others.
    Header,
    /// When to give up on the answer to a frame, unless one is being received.
    AnswerTimeout,
    /// When to send what the station owes a SIFS after what it received.
    Answer,
    /// When to send the station's packet, if the medium stays idle until then.
    Access,
}

const KINDS: [Timer; 5] =
    [Timer::End, Timer::Header, Timer::AnswerTimeout, Timer::Answer, Timer::Access];

/// All timers of all stations.
#[derive(Clone, Debug)]
pub struct Timers {
    stations: usize,
    /// By kind, then by station: of equals the first is the earliest.
    due: Due,
}

impl Timers {
    /// For so many stations, none set.
    pub fn new(stations: usize) -> Self {
        Self { stations, due: Due::new(stations * KINDS.len()) }
    }

    /// When this timer is due, if it is set.
    pub fn get(&self, timer: Timer, station: Station) -> Option<Instant> {
        self.due.get(self.place(timer, station))
    }

    /// Sets a timer, or sets it anew.
    pub fn set(&mut self, timer: Timer, station: Station, at: Instant) {
        self.due.set(self.place(timer, station), Some(at));
    }

    /// Clears a timer, if it is set.
    pub fn clear(&mut self, timer: Timer, station: Station) {
        self.due.set(self.place(timer, station), None);
    }

    /// What is due next.
    pub fn next(&self) -> Option<(Instant, Timer, Station)> {
        let (at, place) = self.due.next()?;
        Some((at, KINDS[place / self.stations], Station((place % self.stations) as u16)))
    }

    fn place(&self, timer: Timer, station: Station) -> usize {
        timer as usize * self.stations + usize::from(station.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_is_on_top(
            stations in 1_usize..9,
            changes in prop::collection::vec((0_usize..4, 0_u16..8, 0_u64..6), 0..60),
        ) {
            let mut timers = Timers::new(stations);
            let mut plain = vec![None; 4 * stations];
            for (kind, station, at) in changes {
                let station = station % stations as u16;
                let place = &mut plain[kind * stations + usize::from(station)];
                if at == 0 {
                    *place = None;
                    timers.clear(KINDS[kind], Station(station));
                } else {
                    *place = Some(Instant::from_nanos(at));
                    timers.set(KINDS[kind], Station(station), Instant::from_nanos(at));
                }
                prop_assert_eq!(timers.get(KINDS[kind], Station(station)), *place);
                let first = plain.iter().enumerate().filter_map(|(i, at)| Some(((*at)?, i))).min();
                let first = first.map(|(at, i)| (at, KINDS[i / stations], i % stations));
                let next = timers.next().map(|(at, timer, s)| (at, timer, usize::from(s.0)));
                prop_assert_eq!(next, first);
            }
        }
    }

    #[test]
    fn nobody_has_nothing_to_do() {
        assert_eq!(Timers::new(0).next(), None);
    }
}
