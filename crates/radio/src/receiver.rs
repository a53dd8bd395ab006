//! One station's receiver: the signal that it is locked onto, and the interference.
//!
//! An idle receiver locks onto the first transmission whose preamble it detects, and stays locked
//! until its end; all other signals are interference. [`Locking`] and [`Decoding`] decide which
//! preambles it detects. If several transmissions begin at the same instant, it takes the
//! strongest, so the result does not depend on the order of the calls. With [`Decoding::BitErrors`]
//! it reads the PHY header first; if that fails, it is free for the next signal.

use crate::chance::Chance;
use crate::config::{Decoding, Locking};
use crate::contention::Notice;
use crate::output::Station;
use crate::physics::{Physics, Section, Speed};
use wire::Instant;

/// A frame with this hazard counts as lost: its probability of survival is 10⁻¹⁷.
const HOPELESS: f64 = 40.0;

/// A transmission, as a station senses it.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    pub sender: Station,
    /// In attowatts.
    pub power: u64,
    pub decodable: bool,
    pub speed: Speed,
    /// When it ends.
    pub ends: Instant,
}

/// The result of a reception.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending {
    /// The receiver was not locked onto this transmission.
    Missed,
    /// The receiver was locked onto it, but could not read its header.
    Unread,
    /// The signal was too weak to be decoded.
    Weak,
    /// The frame was decodable: its probability of being received, and the greatest interference.
    Decodable { chance: f64, interference_max: u64 },
}

/// One station's receiver.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// The sum of the powers of all other stations' transmissions.
    power_sum: u64,
    /// The signal that it is locked onto.
    lock: Option<Lock>,
    /// It is half duplex: it receives nothing while the station transmits.
    transmitting: bool,
}

#[derive(Clone, Copy, Debug)]
struct Lock {
    signal: Signal,
    since: Instant,
    /// When its last bit ends; only the signal extension follows.
    bits_end: Instant,
    /// The sum of all other powers, and since when it is constant.
    interference: u64,
    piece_since: Instant,
    /// The greatest interference during its bits.
    interference_max: u64,
    /// The hazards of header and body until `piece_since`.
    hazards: [f64; 2],
    /// Whether its header was read.
    is_read: bool,
}

impl Receiver {
    /// Another station's transmission begins; returns whether the receiver locks onto it.
    pub fn begin(
        &mut self,
        now: Instant,
        signal: Signal,
        physics: &Physics,
        chance: &mut Chance,
    ) -> bool {
        self.power_sum += signal.power;
        if self.transmitting {
            return false;
        }
        // A header that has ended since the last event may have been lost: then the receiver is
        // free.
        self.lock.take_if(|lock| !lock.reads_header(now, physics, chance));
        if let Some(lock) = self.lock.as_mut().filter(|lock| lock.since < now) {
            lock.interference_is(now, self.power_sum - lock.signal.power, physics);
            return false;
        }
        // From here on the receiver is idle, or locked since this very instant.
        let may_lock = signal.decodable || physics.locking == Locking::First;
        let rival = self.lock.map(|lock| lock.signal);
        let strongest = match rival {
            Some(rival) if rival.power >= signal.power || !may_lock => Some(rival),
            _ => may_lock.then_some(signal),
        };
        let sum = self.power_sum;
        let found = strongest.filter(|it| physics.finds(it.power, sum - it.power));
        self.lock = found.map(|signal| Lock::new(now, signal, sum - signal.power, physics));
        found.is_some_and(|it| it.sender == signal.sender)
    }

    /// Another station's transmission ends.
    pub fn end(
        &mut self,
        now: Instant,
        signal: Signal,
        physics: &Physics,
        chance: &mut Chance,
    ) -> Ending {
        self.power_sum -= signal.power;
        match &mut self.lock {
            None => Ending::Missed,
            Some(lock) if lock.signal.sender != signal.sender => {
                lock.interference_is(now, self.power_sum - lock.signal.power, physics);
                Ending::Missed
            }
            Some(lock) => {
                let ending = match lock.reads_header(now, physics, chance) {
                    true => lock.ending(now, physics),
                    false => Ending::Unread,
                };
                self.lock = None;
                ending
            }
        }
    }

    /// The station itself begins to transmit, which ends a reception.
    pub fn mute(&mut self) {
        self.lock = None;
        self.transmitting = true;
    }

    /// The station itself has ended its transmission.
    pub fn unmute(&mut self) {
        self.transmitting = false;
    }

    /// The sender of the frame being received, once its header was read (PHY-RXSTART).
    pub fn receiving(
        &mut self,
        now: Instant,
        physics: &Physics,
        chance: &mut Chance,
    ) -> Option<Station> {
        self.lock.take_if(|lock| !lock.reads_header(now, physics, chance));
        let lock = self.lock.filter(|lock| lock.is_past_header(now, physics));
        let signal = lock?.signal;
        physics.understands(signal.decodable).then_some(signal.sender)
    }

    /// ns-3: what the PHY reports to a station's MAC about a transmission that has just begun.
    /// During the body of the locked frame the PHY reports nothing; a report made during the
    /// preamble is lost when the header begins.
    pub fn notice(&self, now: Instant, physics: &Physics) -> Notice {
        let Some(lock) = &self.lock else { return Notice::All };
        let (begins, ends) = physics.header_bounds(lock.signal.speed);
        match lock.nanos(now) {
            0 => Notice::UntilHeader(lock.header_ends(physics)),
            nanos if nanos < begins => Notice::InPreamble(lock.header_ends(physics)),
            nanos if nanos < ends => Notice::All,
            _ => Notice::Nothing,
        }
    }

    /// Unlocks if the header, which has ended, could not be read; returns when that frame ends.
    pub fn gives_up(
        &mut self,
        now: Instant,
        physics: &Physics,
        chance: &mut Chance,
    ) -> Option<Instant> {
        let lock = self.lock.take_if(|lock| !lock.reads_header(now, physics, chance));
        lock.map(|lock| lock.signal.ends)
    }
}

impl Lock {
    fn new(now: Instant, signal: Signal, interference: u64, physics: &Physics) -> Self {
        let bits_end = signal.ends.as_nanos().saturating_sub(physics.silence(signal.speed));
        Self {
            signal,
            since: now,
            bits_end: Instant::from_nanos(bits_end),
            interference,
            piece_since: now,
            interference_max: interference,
            hazards: [0.0, 0.0],
            is_read: physics.decoding == Decoding::Capture,
        }
    }

    /// The interference changes to this power.
    fn interference_is(&mut self, now: Instant, interference: u64, physics: &Physics) {
        self.settle(now, physics);
        self.interference = interference;
        if now < self.bits_end {
            self.interference_max = self.interference_max.max(interference);
        }
    }

    /// Adds the hazards of the period of constant interference that ends now.
    fn settle(&mut self, now: Instant, physics: &Physics) {
        if physics.decoding == Decoding::Capture {
            return;
        }
        let piece = (self.nanos(self.piece_since), self.nanos(now.min(self.bits_end)));
        let Signal { speed, power, decodable, .. } = self.signal;
        self.piece_since = now;
        if !self.is_read {
            let section = (speed, Section::Header);
            self.hazards[0] += physics.hazard(section, piece, power, self.interference);
        }
        // If the frame cannot be decoded or is already lost, more precision is useless.
        if decodable && self.hazards[1] < HOPELESS {
            let section = (speed, Section::Body);
            self.hazards[1] += physics.hazard(section, piece, power, self.interference);
        }
    }

    fn header_ends(&self, physics: &Physics) -> Instant {
        let nanos = self.since.as_nanos() + physics.header_ends(self.signal.speed);
        Instant::from_nanos(nanos)
    }

    fn is_past_header(&self, now: Instant, physics: &Physics) -> bool {
        self.nanos(now) >= physics.header_ends(self.signal.speed)
    }

    /// Whether its header was read, or has not ended yet.
    fn reads_header(&mut self, now: Instant, physics: &Physics, chance: &mut Chance) -> bool {
        if self.is_read || !self.is_past_header(now, physics) {
            return true;
        }
        self.settle(now, physics);
        self.is_read = chance.survives(survival(self.hazards[0]));
        self.is_read
    }

    fn nanos(&self, at: Instant) -> u64 {
        at.as_nanos() - self.since.as_nanos()
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
            Decoding::BitErrors => survival(self.hazards[1]),
        };
        Ending::Decodable { chance, interference_max }
    }
}

/// The probability of surviving a hazard. Most frames meet none.
fn survival(hazard: f64) -> f64 {
    if hazard == 0.0 { 1.0 } else { libm::exp(-hazard) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::phy::Phy;
    use crate::rate::Rate;

    const T: [Instant; 3] =
        [Instant::from_nanos(1), Instant::from_nanos(2), Instant::from_nanos(3)];

    fn signal(sender: u16, power: u64) -> Signal {
        let (sender, ends) = (Station(sender), Instant::from_nanos(u64::MAX));
        Signal { sender, power, decodable: power >= 100, speed: Speed::Data, ends }
    }

    /// A receiver with its physics and its random numbers.
    struct TestReceiver(Receiver, Physics, Chance);

    impl TestReceiver {
        fn new(physics: Physics) -> Self {
            Self(Receiver::default(), physics, Chance::new(1, 0))
        }

        fn begin(&mut self, now: Instant, signal: Signal) -> bool {
            self.0.begin(now, signal, &self.1, &mut self.2)
        }

        fn end(&mut self, now: Instant, signal: Signal) -> Ending {
            self.0.end(now, signal, &self.1, &mut self.2)
        }
    }

    /// The sender of the decodable signal that it is locked onto.
    fn followed(receiver: &Receiver) -> Option<Station> {
        receiver.lock.filter(|lock| lock.signal.decodable).map(|lock| lock.signal.sender)
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
            let mut receiver = TestReceiver::new(capture());
            receiver.begin(T[0], signal(0, 200));
            receiver.begin(T[1], signal(1, 10));
            receiver.begin(T[1], signal(2, others));
            assert_eq!(receiver.end(T[2], signal(1, 10)), Ending::Missed);
            let ending = receiver.end(T[2], signal(0, 200));
            assert_eq!(
                ending,
                Ending::Decodable { chance: arrives, interference_max: 10 + others }
            );
            assert_eq!(receiver.end(T[2], signal(2, others)), Ending::Missed);
            assert_eq!(receiver.0.power_sum, 0);
        }
    }

    #[test]
    fn a_weak_signal_holds_the_receiver_if_the_first_does() {
        for (locking, weak, strong) in
            [(Locking::First, Ending::Weak, None), (Locking::Decodable, Ending::Missed, Some(1.0))]
        {
            let physics = Physics::new(&Config { locking, ..Config::default() });
            let mut receiver = TestReceiver::new(physics.clone());
            receiver.begin(T[0], signal(0, 1));
            assert_eq!(followed(&receiver.0), None);
            receiver.begin(T[1], signal(1, 1000));
            assert_eq!(receiver.end(T[2], signal(0, 1)), weak);
            match strong {
                None => {
                    assert_eq!(receiver.end(T[2], signal(1, 1000)), Ending::Missed);
                }
                Some(arrives) => {
                    assert_eq!(chance(receiver.end(T[2], signal(1, 1000))), arrives);
                }
            }
        }
    }

    #[test]
    fn of_equally_early_signals_the_strongest_is_received_whatever_the_order() {
        for order in [[0, 1], [1, 0]] {
            let mut receiver = TestReceiver::new(capture());
            let signals = [signal(0, 50), signal(1, 1000)];
            order.into_iter().for_each(|i| {
                receiver.begin(T[0], signals[i]);
            });
            assert_eq!(followed(&receiver.0), Some(Station(1)));
            assert_eq!(chance(receiver.end(T[1], signals[1])), 1.0);
        }
    }

    #[test]
    fn no_preamble_is_found_among_equals() {
        let physics = Physics::new(&Config::like_ns3());
        let strong = |sender: u16, power: u64| signal(sender, power * 1_000_000);
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let signals = [strong(0, 1000), strong(1, 900), strong(2, 10)];
            let mut receiver = TestReceiver::new(physics.clone());
            order.into_iter().for_each(|i| {
                receiver.begin(T[0], signals[i]);
            });
            assert_eq!(followed(&receiver.0), None);
            // A later signal that exceeds all of them is detected.
            let late = strong(3, 10_000);
            assert!(receiver.begin(T[1], late));
            assert_eq!(followed(&receiver.0), Some(Station(3)));
        }
    }

    #[test]
    fn interference_harms_the_bits_that_it_meets() {
        let physics = Physics::new(&Config::like_ns3());
        // 6 dB above the other: at 11 Mbit/s about one bit in a thousand is wrong.
        let (wanted, other) = (signal(0, 4_000_000_000), signal(1, 1_000_000_000));
        let at = |micros: u64| Instant::from_nanos(micros * 1000);
        let meet = |from_us: u64, to_us: u64| {
            let mut receiver = TestReceiver::new(physics.clone());
            receiver.begin(at(0), wanted);
            receiver.begin(at(from_us), other);
            receiver.end(at(to_us), other);
            chance(receiver.end(at(1500), wanted))
        };
        let (short, long) = (meet(300, 310), meet(300, 340));
        assert!(short < 1.0 && long > 0.0);
        assert!((short.powi(4) - long).abs() < 1e-9, "{short} {long}");
        assert_eq!(meet(10, 140), 1.0, "its preamble is found already, and carries no bits");
    }

    #[test]
    fn nothing_harms_the_silence_at_a_frames_end() {
        let at = |micros: u64| Instant::from_nanos(micros * 1000);
        // 1536 bytes at 54 Mbit/s: preamble and header, 57 symbols, signal extension.
        let ends = at(20 + 57 * 4 + 6);
        let (wanted, other) = (signal(0, 4_000_000_000), signal(1, 8_000_000_000));
        let wanted = Signal { ends, ..wanted };
        let (phy, data_rate, basic_rate) = (Phy::G, Rate::Mbps54, Rate::Mbps6);
        for config in [Config::default(), Config::like_ns3()] {
            let physics = Physics::new(&Config { phy, data_rate, basic_rate, ..config });
            let meet = |from_us: u64| {
                let mut receiver = TestReceiver::new(physics.clone());
                receiver.begin(at(0), wanted);
                receiver.begin(at(from_us), other);
                chance(receiver.end(ends, wanted))
            };
            assert!(meet(20 + 56 * 4) < 1e-6, "the last symbol");
            assert_eq!(meet(20 + 57 * 4), 1.0);
        }
    }

    #[test]
    fn a_receiver_that_cannot_read_a_header_is_free_for_the_next() {
        let at = |micros: u64| Instant::from_nanos(micros * 1000);
        let (weak, strong) = (signal(0, 60_000_000), signal(1, 1_000_000_000));
        for (second_us, read) in [(100, false), (200, true)] {
            let mut receiver = TestReceiver::new(Physics::new(&Config::like_ns3()));
            assert!(receiver.begin(at(0), weak));
            assert!(!receiver.begin(at(second_us), strong));
            receiver.end(at(500), strong);
            assert_eq!(receiver.begin(at(600), signal(2, 1_000_000_000)), !read);
            let ending = receiver.end(at(700), weak);
            let is_missed = ending == Ending::Missed;
            assert_eq!(is_missed, !read, "{ending:?}");
        }
    }

    #[test]
    fn what_it_receives_is_known_from_the_end_of_its_header_on() {
        let at = |micros: u64| Instant::from_nanos(micros * 1000);
        let (weak, strong) = (10_000_000, 1_000_000_000);
        let weak = Signal { decodable: false, ..signal(0, weak) };
        for (config, signal, known) in [
            (Config::like_ns3(), signal(0, strong), true),
            (Config::like_ns3(), weak, true),
            (Config::default(), signal(0, strong), true),
            (Config::default(), weak, false),
        ] {
            let mut ear = TestReceiver::new(Physics::new(&config));
            assert!(ear.begin(at(0), signal));
            for (now, begun) in [(at(191), false), (at(192), true)] {
                let sender = ear.0.receiving(now, &ear.1, &mut ear.2);
                assert_eq!(sender, (begun && known).then_some(Station(0)));
                assert_eq!(ear.0.notice(now, &ear.1) == Notice::Nothing, begun);
            }
        }
    }

    #[test]
    fn what_began_while_it_transmitted_is_lost_and_disturbs() {
        let mut receiver = TestReceiver::new(capture());
        receiver.begin(T[0], signal(0, 1000));
        receiver.0.mute();
        receiver.begin(T[0], signal(1, 200));
        receiver.0.unmute();
        assert_eq!(receiver.end(T[1], signal(0, 1000)), Ending::Missed);
        receiver.begin(T[2], signal(2, 1000));
        assert_eq!(receiver.end(T[2], signal(1, 200)), Ending::Missed);
        assert_eq!(chance(receiver.end(T[2], signal(2, 1000))), 0.0);
    }
}
