//! The interference of two links, by a model of two contending flows: Garetto, Shi, Knightly, "Modeling media access
//! in embedded two-flow topologies of multi-hop wireless networks", MobiCom 2005, from which WINE fills its matrix
//! (section 5.1).
//!
//! Two saturated flows, A to a and B to b. Which of the four stations sense each other puts the pair into a class,
//! and the class says how likely a frame of the first flow passes:
//!
//! - *Senders connected*: A and B take turns. Of three outcomes of a slot that is not idle (A's frame, B's frame, a
//!   collision of both) one is A's success; Bianchi's fixed point for two stations gives the shares. Two flows of one
//!   station share its queue: a half.
//! - *Asymmetric incomplete state*: A does not sense B, but a does, and b does not sense A. B sends as if it were alone,
//!   and A's frame passes if its vulnerable time falls into B's pause, a DIFS and a backoff.
//! - *Symmetric incomplete state*: the same for both. Collisions widen both windows, and thus the pauses: a fixed point.
//! - *Independent*: neither B nor b reaches a. The frame passes.
//!
//! The vulnerable time is the first frame. With RTS it is the RTS, if B can decode the CTS that answers it; otherwise
//! everything up to the end of the data frame.
//!
//! *Near and far.* If A's signal at a is ten times B's (10 dB), the receiver keeps A's frame once it has locked onto
//! it. Then only a frame of B that began earlier spoils it, unless the receiver does not lock onto what it
//! cannot decode.
//!
//! *Simplified against the paper:* its answer is a throughput, by channel states with their own mean times; this is the
//! chance of one frame, as WINE's matrix wants it. A frame of A begins at a moment that is independent of B's.
//! Where only b's answers reach a, they are spread evenly over time. In the symmetric class both flows have the
//! first one's capture. Losses of links and fading do not count.

use std::time::Duration;

use radio::theory::{self, Exchange};
use radio::{Config, Links, Locking, Station};

use crate::{Matrix, Mesh};

/// IP packets of the two flows, in bytes: a payload of 1460 over UDP.
const PACKET_BYTES: u32 = 1488;
/// An ACK or a CTS, in bytes.
const ANSWER_BYTES: u32 = 14;
/// By this factor a frame must be stronger than interference (`radio::Decoding::Capture`).
const CAPTURE: u128 = 10;
/// Bisection steps for the fixed point: a double has no more bits.
const HALVINGS: u32 = 60;

/// The matrix of a mesh. Links have no direction, so each entry is the mean over the directions of both flows.
pub fn matrix(mesh: &Mesh, config: &Config, signals: &Links) -> Matrix {
    let model = Model::new(config, signals);
    let mut matrix = Matrix::new(mesh.links().len());
    for (one, ends) in mesh.links().iter().enumerate() {
        for (other, others) in mesh.links().iter().enumerate().filter(|(other, _)| *other != one) {
            let pairs = ways(*ends).map(|way| ways(*others).map(|with| model.passes(way, with)));
            let mean = pairs.as_flattened().iter().sum::<f64>() / 4.0;
            matrix.set(one, other, mean.clamp(0.0, 1.0));
        }
    }
    matrix
}

/// The sender and the receiver of a flow.
type Way = (usize, usize);

fn ways((a, b): (usize, usize)) -> [Way; 2] {
    [(a, b), (b, a)]
}

/// The class of two flows, from the first one's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    OneSender,
    SendersConnected,
    Incomplete { is_symmetric: bool, is_warned: bool, is_captured: bool },
    OnlyAnswers { is_captured: bool },
    Independent,
}

/// The model on one channel.
struct Model<'a> {
    signals: &'a Links,
    locking: Locking,
    exchange: Exchange,
    sifs: f64,
    slot: f64,
    difs: f64,
    answer: f64,
    has_rts: bool,
    /// The windows of successive tries, in slots.
    windows: Vec<f64>,
    connected: f64,
    /// Of the symmetric class, and of the other, with and without a warning by CTS, with and without capture.
    incomplete: [[[f64; 2]; 2]; 2],
}

impl<'a> Model<'a> {
    fn new(config: &Config, signals: &'a Links) -> Self {
        let seconds = |it: Duration| it.as_secs_f64();
        let attempt = theory::saturation(config, 2, PACKET_BYTES).attempt;
        let exchange = Exchange::new(config, PACKET_BYTES);
        let answer = seconds(config.phy.airtime(ANSWER_BYTES, config.basic_rate));
        // Without RTS, an exchange is a data frame, a SIFS and the ACK.
        let after_first = seconds(exchange.success - exchange.first);
        let mut model = Self {
            signals,
            locking: config.locking,
            exchange,
            sifs: seconds(config.phy.sifs()),
            slot: seconds(config.phy.slot()),
            difs: seconds(config.phy.difs()),
            answer,
            has_rts: after_first > 2.0 * (seconds(config.phy.sifs()) + answer),
            windows: theory::windows(config).map(f64::from).collect(),
            connected: (1.0 - attempt) / (2.0 - attempt),
            incomplete: Default::default(),
        };
        for (at, [symmetric, warned, captured]) in (0..8).map(|at| (at, [at & 4, at & 2, at & 1])) {
            let [symmetric, warned, captured] = [symmetric, warned, captured].map(|it| it > 0);
            model.incomplete[at >> 2][at >> 1 & 1][at & 1] =
                model.between_frames(symmetric, warned, captured);
        }
        model
    }

    /// The probability that a frame of the first flow passes.
    fn passes(&self, one: Way, with: Way) -> f64 {
        match self.class(one, with) {
            Class::OneSender => 0.5,
            Class::SendersConnected => self.connected,
            Class::Incomplete { is_symmetric, is_warned, is_captured } => {
                self.incomplete[usize::from(is_symmetric)][usize::from(is_warned)]
                    [usize::from(is_captured)]
            }
            Class::OnlyAnswers { is_captured } => self.between_answers(is_captured),
            Class::Independent => 1.0,
        }
    }

    fn class(&self, (sender, receiver): Way, (rival, rivals): Way) -> Class {
        if sender == rival {
            return Class::OneSender;
        }
        if self.power(sender, rival).or(self.power(rival, sender)).is_some() {
            return Class::SendersConnected;
        }
        if self.spoils(rival, (sender, receiver)) {
            return Class::Incomplete {
                is_symmetric: self.spoils(sender, (rival, rivals)),
                is_warned: self.decodes(receiver, rival),
                is_captured: self.is_captured(sender, rival, receiver),
            };
        }
        match self.spoils(rivals, (sender, receiver)) {
            true => Class::OnlyAnswers { is_captured: self.is_captured(sender, rivals, receiver) },
            false => Class::Independent,
        }
    }

    fn power(&self, from: usize, to: usize) -> Option<u64> {
        self.signals.get(Station(from as u16), Station(to as u16)).map(|it| it.power)
    }

    fn decodes(&self, from: usize, to: usize) -> bool {
        let link = self.signals.get(Station(from as u16), Station(to as u16));
        link.is_some_and(|it| it.decodable)
    }

    /// Whether a station's frames can spoil those of a flow: they reach its receiver, which locks onto them if they
    /// are first, or in the middle of a frame that is not ten times as strong.
    fn spoils(&self, rival: usize, (sender, receiver): Way) -> bool {
        let locks = self.locking == Locking::First || self.decodes(rival, receiver);
        let reaches = self.power(rival, receiver).is_some();
        reaches && (locks || !self.is_captured(sender, rival, receiver))
    }

    fn is_captured(&self, sender: usize, rival: usize, receiver: usize) -> bool {
        let power = |from| u128::from(self.power(from, receiver).unwrap_or(0));
        power(sender) >= CAPTURE * power(rival)
    }

    /// The probability that a frame falls into the pauses of a sender that its own sender does not sense.
    fn between_frames(&self, is_symmetric: bool, is_warned: bool, is_captured: bool) -> f64 {
        let first = self.exchange.first.as_secs_f64();
        let vulnerable = match (self.has_rts, is_warned) {
            (true, true) => first + self.sifs,
            (true, false) => self.exchange.success.as_secs_f64() - self.sifs - self.answer,
            (false, _) => first,
        };
        let needed = if is_captured { 0.0 } else { vulnerable };
        if !is_symmetric {
            return self.pause(0.0, needed) / self.cycle(0.0);
        }
        // More collisions mean longer pauses, and thus fewer collisions: the difference has one root.
        let passes = |collision: f64| self.pause(collision, needed) / self.cycle(collision);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            *if 1.0 - passes(middle) > middle { &mut low } else { &mut high } = middle;
        }
        passes((low + high) / 2.0)
    }

    /// The probability that a frame does not meet the answers of the rival's receiver.
    fn between_answers(&self, is_captured: bool) -> f64 {
        let answers = if self.has_rts { 2.0 } else { 1.0 };
        let vulnerable = if is_captured { 0.0 } else { self.exchange.first.as_secs_f64() };
        1.0 - (answers * (self.answer + vulnerable) / self.cycle(0.0)).min(1.0)
    }

    /// The mean part of a pause in which a frame can begin that needs this many seconds of it, if each try collides
    /// with this probability.
    fn pause(&self, collision: f64, needed: f64) -> f64 {
        let (mut sum, mut weights, mut weight) = (0.0, 0.0, 1.0);
        for window in &self.windows {
            // The mean over all backoffs of the window.
            let slots = (0..=*window as u32).map(f64::from);
            let rest = slots.map(|slots| (self.difs + slots * self.slot - needed).max(0.0));
            sum += weight * rest.sum::<f64>() / (window + 1.0);
            weights += weight;
            weight *= collision;
        }
        sum / weights
    }

    /// The mean time from one try to the next.
    fn cycle(&self, collision: f64) -> f64 {
        let Exchange { success, collision: failure, .. } = self.exchange;
        let busy = (1.0 - collision) * success.as_secs_f64() + collision * failure.as_secs_f64();
        self.pause(collision, 0.0) + busy
    }
}

#[cfg(test)]
mod tests {
    use radio::{Ranges, Rate};

    use super::*;
    use crate::testing::chain;

    /// WINE's chain: neighbours at 240 m, reception up to 250 and interference up to 550 m, RTS or none.
    fn model(signals: &Links, rts: Option<u32>) -> Model<'_> {
        let config = Config { basic_rate: Rate::Mbps2, rts_threshold: rts, ..Config::default() };
        Model::new(&config, signals)
    }

    fn signals(ranges: Ranges) -> Links {
        let places: Vec<_> = (0..9).map(|it| (240.0 * f64::from(it), 0.0)).collect();
        Links::by_distance(&places, ranges, |_| 0.0)
    }

    #[test]
    fn pairs_of_the_chain_are_in_the_papers_classes() {
        let signals = signals(Ranges::default());
        let model = model(&signals, None);
        assert_eq!(model.class((1, 2), (1, 0)), Class::OneSender);
        for (one, with) in [((0, 1), (1, 2)), ((0, 1), (2, 3)), ((0, 1), (2, 1))] {
            assert_eq!(model.class(one, with), Class::SendersConnected, "{one:?} {with:?}");
            assert_eq!(model.class(with, one), Class::SendersConnected, "{one:?} {with:?}");
        }
        // Three hops apart: 3 disturbs 1, but neither 0 nor 1 disturbs 4.
        let disturbed =
            Class::Incomplete { is_symmetric: false, is_warned: false, is_captured: true };
        assert_eq!(model.class((0, 1), (3, 4)), disturbed);
        assert_eq!(model.class((3, 4), (0, 1)), Class::Independent);
        // Towards each other: both receivers are between the senders.
        let both = Class::Incomplete { is_symmetric: true, is_warned: false, is_captured: true };
        assert_eq!((model.class((0, 1), (3, 2)), model.class((3, 2), (0, 1))), (both, both));
        // Away from each other's senders: only the receivers meet.
        assert_eq!(model.class((0, 1), (4, 3)), Class::OnlyAnswers { is_captured: true });
        assert_eq!(model.class((0, 1), (5, 6)), Class::Independent);
    }

    #[test]
    fn chances_have_the_papers_order() {
        let signals = signals(Ranges { receive_m: 250.0, sense_m: 250.0 });
        for rts in [None, Some(0)] {
            let model = model(&signals, rts);
            let connected = model.passes((0, 1), (1, 2));
            assert!((0.45..0.5).contains(&connected), "{connected}");
            // The disadvantaged flow starves; the other one does not notice.
            let (starved, other) = (model.passes((0, 1), (2, 3)), model.passes((2, 3), (0, 1)));
            assert_eq!(other, 1.0);
            assert!(starved < 0.5 * connected, "{starved}");
            // Of two hidden senders with one receiver, both do better than that: their windows grow.
            let hidden = model.passes((0, 1), (2, 1));
            assert!(hidden > starved && hidden < 1.0, "{hidden} {starved}");
        }
        // A data frame of 1.3 ms does not fit into a pause of at most 0.67 ms; an RTS of 0.27 ms does.
        assert_eq!(model(&signals, None).passes((0, 1), (2, 3)), 0.0);
        assert!(model(&signals, Some(0)).passes((0, 1), (2, 3)) > 0.0);
    }

    #[test]
    fn the_chance_of_the_starved_is_that_of_the_pauses() {
        let signals = signals(Ranges::default());
        let model = model(&signals, None);
        // With capture, the frame has to begin in a pause: a DIFS of 50 and 15.5 slots of 20 us on average. Then come
        // the data frame, 192 us and 1524 bytes at 11 Mbit/s, a SIFS of 10 us, and the ACK, 192 us and 14 bytes at 2.
        let data = 192.0 + (1524.0_f64 * 8.0 / 11.0).ceil();
        let cycle = 360.0 + data + 10.0 + 192.0 + 56.0;
        assert!((model.passes((0, 1), (3, 4)) - 360.0 / cycle).abs() < 1e-9);
    }

    #[test]
    fn the_matrix_of_the_chain_is_symmetric_and_local() {
        let matrix = matrix(&chain(8), &Config::default(), &signals(Ranges::default()));
        for one in 0..8 {
            for other in (0..8).filter(|other| *other != one) {
                let value = matrix.get(one, other);
                assert!((value - matrix.get(other, one)).abs() < 1e-12);
                assert_eq!(value < 1.0, one.abs_diff(other) <= 3, "{one} {other}: {value}");
            }
        }
    }
}
