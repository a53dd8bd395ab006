//! How long a connection has been in slow start and in congestion avoidance.

use std::time::Duration;

use wire::Instant;

/// What makes the congestion window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The window is below the slow start threshold.
    SlowStart,
    /// The window is at or above it, or the sender is in fast recovery.
    Avoidance,
}

/// Times that a connection spent in its phases, from its opening to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    /// In slow start: with a congestion window below the threshold. All of the time before the first loss.
    pub slow_start: Duration,
    /// In congestion avoidance, with fast recovery.
    pub congestion_avoidance: Duration,
}

/// The clock of both phases.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    current: Option<(Phase, Instant)>,
    times: PhaseTimes,
}

impl Phases {
    /// From `now` on the connection is in this phase; in none before its opening and after its end.
    pub fn enter(&mut self, now: Instant, phase: Option<Phase>) {
        if self.current.map(|(phase, _)| phase) != phase {
            self.times = self.until(now);
            self.current = phase.map(|phase| (phase, now));
        }
    }

    /// The times until `now`.
    pub fn until(&self, now: Instant) -> PhaseTimes {
        let mut times = self.times;
        if let Some((phase, since)) = self.current {
            let time = match phase {
                Phase::SlowStart => &mut times.slow_start,
                Phase::Avoidance => &mut times.congestion_avoidance,
            };
            *time += now - since;
        }
        times
    }
}
