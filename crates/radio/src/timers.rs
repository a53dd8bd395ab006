//! The timers of all stations.

use crate::output::Station;
use wire::{Instant, TimerQueue};

/// The kinds of timers. Timers that are due at the same instant are handled in this order: ends of
/// frames come before beginnings of frames, and a transmission of data begins only after all other
/// timers were handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// When the station's transmission ends.
    End,
    /// When the PHY header ends of the frame that the station is locked onto. Set only if other frames
    /// are on the air.
    Header,
    /// When to give up waiting for a response, unless a frame is being received.
    AnswerTimeout,
    /// When to send a response, a SIFS after the frame that it answers.
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
    /// Ordered by kind, then by station, so that of several timers with equal times the first kind comes
    /// first.
    due: TimerQueue,
}

impl Timers {
    /// Timers for this number of stations. None of them is set.
    pub fn new(stations: usize) -> Self {
        Self { stations, due: TimerQueue::new(stations * KINDS.len()) }
    }

    /// The time at which this timer is due; `None` if it is not set.
    pub fn get(&self, timer: Timer, station: Station) -> Option<Instant> {
        self.due.get(self.place(timer, station))
    }

    /// Sets a timer. This replaces its former time.
    pub fn set(&mut self, timer: Timer, station: Station, at: Instant) {
        self.due.set(self.place(timer, station), Some(at));
    }

    /// Clears a timer, if it is set.
    pub fn clear(&mut self, timer: Timer, station: Station) {
        self.due.set(self.place(timer, station), None);
    }

    /// The timer that is due first; `None` if no timer is set.
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
