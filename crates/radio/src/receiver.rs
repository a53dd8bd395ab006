//! One station's receiver: what it is locked onto, and what disturbs that.
//!
//! An idle receiver locks onto the first transmission whose preamble it finds, and stays with it until
//! its end; all else is interference. Which preambles it finds, [`Locking`] and [`Decoding`] say. Of
//! transmissions that begin at the same instant it takes the strongest, so that the outcome does not
//! depend on the order in which they are told.

use crate::config::{Decoding, Locking};
use crate::output::Station;
use crate::physics::{Physics, Speed};
use wire::Instant;

/// A transmission, as a station senses it.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    pub sender: Station,
    /// In attowatts.
    pub power: u64,
    pub decodable: bool,
    pub speed: Speed,
}

/// How a reception ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending {
    /// It was not locked onto this transmission.
    Missed,
    /// Too weak to be decoded.
    Weak,
    /// Decodable: it arrives with this chance, after having met this much interference.
    Decodable { chance: f64, interference_max: u64 },
}

/// One station's receiver.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// The powers of all others' transmissions on the air here, added up.
    power_sum: u64,
    /// What it is receiving.
    lock: Option<Lock>,
    /// It is half duplex: while it transmits it hears nothing.
    transmitting: bool,
}

#[derive(Clone, Copy, Debug)]
struct Lock {
    signal: Signal,
    since: Instant,
    /// The power that all else has together, and since when.
    interference: u64,
    piece_since: Instant,
    /// The most that it was at any moment.
    interference_max: u64,
    /// What its bits have been through until `piece_since`.
    hazard: f64,
}

impl Receiver {
    /// Another's transmission begins; says whether the receiver locks onto it.
    pub fn begin(&mut self, now: Instant, signal: Signal, physics: &Physics) -> bool {
        self.power_sum += signal.power;
        if self.transmitting {
            return false;
        }
        if let Some(lock) = self.lock.as_mut().filter(|lock| lock.since < now) {
            lock.interference_is(now, self.power_sum - lock.signal.power, physics);
            return false;
        }
        let may_lock = signal.decodable || physics.locking == Locking::First;
        let rival = self.lock.map(|lock| lock.signal);
        let strongest = match rival {
            Some(rival) if rival.power >= signal.power || !may_lock => Some(rival),
            _ => may_lock.then_some(signal),
        };
        let sum = self.power_sum;
        let found = strongest.filter(|it| physics.finds(it.power, sum - it.power));
        self.lock = found.map(|signal| Lock::new(now, signal, sum - signal.power));
        found.is_some_and(|it| it.sender == signal.sender)
    }

    /// Another's transmission ends.
    pub fn end(&mut self, now: Instant, signal: Signal, physics: &Physics) -> Ending {
        self.power_sum -= signal.power;
        match &mut self.lock {
            None => Ending::Missed,
            Some(lock) if lock.signal.sender != signal.sender => {
                lock.interference_is(now, self.power_sum - lock.signal.power, physics);
                Ending::Missed
            }
            Some(lock) => {
                let ending = lock.ending(now, physics);
                self.lock = None;
                ending
            }
        }
    }

    /// The station itself begins to transmit, and gives up what it was receiving.
    pub fn mute(&mut self) {
        self.lock = None;
        self.transmitting = true;
    }

    /// The station itself has ended transmitting.
    pub fn unmute(&mut self) {
        self.transmitting = false;
    }

    /// Whose frame it is receiving, if that is strong enough for its header to be understood.
    pub fn receiving(&self) -> Option<Station> {
        self.lock.filter(|lock| lock.signal.decodable).map(|lock| lock.signal.sender)
    }
}

impl Lock {
    fn new(now: Instant, signal: Signal, interference: u64) -> Self {
        Self {
            signal,
            since: now,
            interference,
            piece_since: now,
            interference_max: interference,
            hazard: 0.0,
        }
    }

    /// From now on there is so much interference.
    fn interference_is(&mut self, now: Instant, interference: u64, physics: &Physics) {
        self.settle(now, physics);
        self.interference = interference;
        self.interference_max = self.interference_max.max(interference);
    }

    /// Adds up what the bits went through while interference was constant.
    fn settle(&mut self, now: Instant, physics: &Physics) {
        if physics.decoding == Decoding::BitErrors && self.signal.decodable {
            let nanos = |at: Instant| at.as_nanos() - self.since.as_nanos();
            let piece = (nanos(self.piece_since), nanos(now));
            let Signal { speed, power, .. } = self.signal;
            self.hazard += physics.hazard(speed, piece, power, self.interference);
            self.piece_since = now;
        }
    }

    fn ending(&mut self, now: Instant, physics: &Physics) -> Ending {
        if !self.signal.decodable {
            return Ending::Weak;
        }
        self.settle(now, physics);
        let interference_max = self.interference_max;
        let chance = match physics.decoding {
            Decoding::Capture => {
                f64::from(u8::from(physics.captures(self.signal.power, interference_max)))
            }
            // Most meet no hazard at all.
            Decoding::BitErrors if self.hazard == 0.0 => 1.0,
            Decoding::BitErrors => libm::exp(-self.hazard),
        };
        Ending::Decodable { chance, interference_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const T: [Instant; 3] =
        [Instant::from_nanos(1), Instant::from_nanos(2), Instant::from_nanos(3)];

    fn signal(sender: u16, power: u64) -> Signal {
        Signal { sender: Station(sender), power, decodable: power >= 100, speed: Speed::Data }
    }

    fn capture() -> Physics {
        Physics::new(&Config::default())
    }

    fn chance(ending: Ending) -> f64 {
        match ending {
            Ending::Decodable { chance, .. } => chance,
            _ => panic!("{ending:?}"),
        }
    }

    #[test]
    fn the_first_is_received_if_ten_times_stronger_than_all_else_together() {
        for (others, arrives) in [(10, 1.0), (11, 0.0)] {
            let (mut receiver, physics) = (Receiver::default(), capture());
            receiver.begin(T[0], signal(0, 200), &physics);
            receiver.begin(T[1], signal(1, 10), &physics);
            receiver.begin(T[1], signal(2, others), &physics);
            assert_eq!(receiver.end(T[2], signal(1, 10), &physics), Ending::Missed);
            let ending = receiver.end(T[2], signal(0, 200), &physics);
            assert_eq!(
                ending,
                Ending::Decodable { chance: arrives, interference_max: 10 + others }
            );
            assert_eq!(receiver.end(T[2], signal(2, others), &physics), Ending::Missed);
            assert_eq!(receiver.power_sum, 0);
        }
    }

    #[test]
    fn a_weak_signal_holds_the_receiver_if_the_first_does() {
        for (locking, weak, strong) in
            [(Locking::First, Ending::Weak, None), (Locking::Decodable, Ending::Missed, Some(1.0))]
        {
            let physics = Physics::new(&Config { locking, ..Config::default() });
            let mut receiver = Receiver::default();
            receiver.begin(T[0], signal(0, 1), &physics);
            assert_eq!(receiver.receiving(), None);
            receiver.begin(T[1], signal(1, 1000), &physics);
            assert_eq!(receiver.end(T[2], signal(0, 1), &physics), weak);
            match strong {
                None => {
                    assert_eq!(receiver.end(T[2], signal(1, 1000), &physics), Ending::Missed);
                }
                Some(arrives) => {
                    assert_eq!(chance(receiver.end(T[2], signal(1, 1000), &physics)), arrives);
                }
            }
        }
    }

    #[test]
    fn of_equally_early_signals_the_strongest_is_received_whatever_the_order() {
        for order in [[0, 1], [1, 0]] {
            let (mut receiver, physics) = (Receiver::default(), capture());
            let signals = [signal(0, 50), signal(1, 1000)];
            order.into_iter().for_each(|i| {
                receiver.begin(T[0], signals[i], &physics);
            });
            assert_eq!(receiver.receiving(), Some(Station(1)));
            assert_eq!(chance(receiver.end(T[1], signals[1], &physics)), 1.0);
        }
    }

    #[test]
    fn no_preamble_is_found_among_equals() {
        let physics = Physics::new(&Config::like_ns3());
        let strong = |sender: u16, power: u64| signal(sender, power * 1_000_000);
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let signals = [strong(0, 1000), strong(1, 900), strong(2, 10)];
            let mut receiver = Receiver::default();
            order.into_iter().for_each(|i| {
                receiver.begin(T[0], signals[i], &physics);
            });
            assert_eq!(receiver.receiving(), None);
            // A later one that stands out from all of them is found, though.
            let late = strong(3, 10_000);
            assert!(receiver.begin(T[1], late, &physics));
            assert_eq!(receiver.receiving(), Some(Station(3)));
        }
    }

    #[test]
    fn interference_harms_the_bits_that_it_meets() {
        let physics = Physics::new(&Config::like_ns3());
        // 6 dB above the other: at 11 Mbit/s a bit in thousand or so is wrong.
        let (wanted, other) = (signal(0, 4_000_000_000), signal(1, 1_000_000_000));
        let at = |micros: u64| Instant::from_nanos(micros * 1000);
        let meet = |from_us: u64, to_us: u64| {
            let mut receiver = Receiver::default();
            receiver.begin(at(0), wanted, &physics);
            receiver.begin(at(from_us), other, &physics);
            receiver.end(at(to_us), other, &physics);
            chance(receiver.end(at(1500), wanted, &physics))
        };
        let (short, long) = (meet(300, 310), meet(300, 340));
        assert!(short < 1.0 && long > 0.0);
        assert!((short.powi(4) - long).abs() < 1e-9, "{short} {long}");
        assert_eq!(meet(10, 140), 1.0, "its preamble is found already, and carries no bits");
    }

    #[test]
    fn what_began_while_it_transmitted_is_lost_and_disturbs() {
        let (mut receiver, physics) = (Receiver::default(), capture());
        receiver.begin(T[0], signal(0, 1000), &physics);
        receiver.mute();
        receiver.begin(T[0], signal(1, 200), &physics);
        receiver.unmute();
        assert_eq!(receiver.end(T[1], signal(0, 1000), &physics), Ending::Missed);
        receiver.begin(T[2], signal(2, 1000), &physics);
        assert_eq!(receiver.end(T[2], signal(1, 200), &physics), Ending::Missed);
        assert_eq!(chance(receiver.end(T[2], signal(2, 1000), &physics)), 0.0);
    }
}
