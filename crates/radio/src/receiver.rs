//! One station's receiver: what it is locked onto, and what disturbs that.
//!
//! As in ns-2, and in ns-3 with receiver locking: an idle receiver locks onto the first transmission
//! that it senses, decodable or not, and stays with it until its end; all else is interference. Of
//! transmissions that begin at the same instant it takes the strongest, so that the outcome does not
//! depend on the order in which they are told.

use crate::output::Station;
use wire::Instant;

/// A signal is received if it is so many times as strong as all interference together: 10 dB, ns-2's
/// capture threshold.
const CAPTURE_RATIO: u64 = 10;

/// A transmission, as a station senses it.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    pub sender: Station,
    pub power: u64,
    pub decodable: bool,
}

/// How a reception ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was not locked onto this transmission.
    Missed,
    /// Too weak to be decoded.
    Weak,
    /// Decodable, but for the interference.
    Disturbed,
    /// Received.
    Clear,
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
    /// The most power that all else had together at any moment since.
    interference_max: u64,
}

impl Receiver {
    /// Another's transmission begins.
    pub fn begin(&mut self, now: Instant, signal: Signal) {
        self.power_sum += signal.power;
        if self.transmitting {
            return;
        }
        match &mut self.lock {
            Some(lock) if lock.since < now || lock.signal.power >= signal.power => {
                let interference = self.power_sum - lock.signal.power;
                lock.interference_max = lock.interference_max.max(interference);
            }
            lock => {
                let interference_max = self.power_sum - signal.power;
                *lock = Some(Lock { signal, since: now, interference_max });
            }
        }
    }

    /// Another's transmission ends.
    pub fn end(&mut self, signal: Signal) -> Ending {
        self.power_sum -= signal.power;
        match self.lock.take_if(|lock| lock.signal.sender == signal.sender) {
            None => Ending::Missed,
            Some(_) if !signal.decodable => Ending::Weak,
            Some(lock) if signal.power < lock.interference_max.saturating_mul(CAPTURE_RATIO) => {
                Ending::Disturbed
            }
            Some(_) => Ending::Clear,
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

#[cfg(test)]
mod tests {
    use super::*;

    const T: [Instant; 3] =
        [Instant::from_nanos(1), Instant::from_nanos(2), Instant::from_nanos(3)];

    fn signal(sender: u16, power: u64) -> Signal {
        Signal { sender: Station(sender), power, decodable: power >= 100 }
    }

    #[test]
    fn the_first_is_received_if_ten_times_stronger_than_all_else_together() {
        for (others, ending) in [(10, Ending::Clear), (11, Ending::Disturbed)] {
            let mut receiver = Receiver::default();
            receiver.begin(T[0], signal(0, 200));
            receiver.begin(T[1], signal(1, 10));
            receiver.begin(T[1], signal(2, others));
            assert_eq!(receiver.end(signal(1, 10)), Ending::Missed);
            assert_eq!(receiver.end(signal(0, 200)), ending);
            assert_eq!(receiver.end(signal(2, others)), Ending::Missed);
            assert_eq!(receiver.power_sum, 0);
        }
    }

    #[test]
    fn a_weak_signal_holds_the_receiver() {
        let mut receiver = Receiver::default();
        receiver.begin(T[0], signal(0, 1));
        receiver.begin(T[1], signal(1, 1000));
        assert_eq!(receiver.receiving(), None);
        assert_eq!(receiver.end(signal(0, 1)), Ending::Weak);
        assert_eq!(receiver.end(signal(1, 1000)), Ending::Missed);
    }

    #[test]
    fn of_equally_early_signals_the_strongest_is_received_whatever_the_order() {
        for order in [[0, 1], [1, 0]] {
            let mut receiver = Receiver::default();
            let signals = [signal(0, 50), signal(1, 1000)];
            order.into_iter().for_each(|i| receiver.begin(T[0], signals[i]));
            assert_eq!(receiver.receiving(), Some(Station(1)));
            assert_eq!(receiver.end(signals[1]), Ending::Clear);
        }
    }

    #[test]
    fn what_began_while_it_transmitted_is_lost_and_disturbs() {
        let mut receiver = Receiver::default();
        receiver.begin(T[0], signal(0, 1000));
        receiver.mute();
        receiver.begin(T[0], signal(1, 200));
        receiver.unmute();
        assert_eq!(receiver.end(signal(0, 1000)), Ending::Missed);
        receiver.begin(T[2], signal(2, 1000));
        assert_eq!(receiver.end(signal(1, 200)), Ending::Missed);
        assert_eq!(receiver.end(signal(2, 1000)), Ending::Disturbed);
    }
}
