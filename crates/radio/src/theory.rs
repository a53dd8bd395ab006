//! Closed forms for the capacity of a medium, with which the engine is compared.
//!
//! *Who calls it:* tests, and reports that print theory beside measurements. Pure functions of a
//! [`Config`], in double precision. Sources:
//!
//! - Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE
//!   JSAC 18(3), 2000: saturated stations in range of each other.
//! - Jun, Peddabachagari, Sichitiu, "Theoretical maximum throughput of IEEE 802.11 and its
//!   applications", 2003: one saturated sender, no losses.

use crate::airtime::{self, Timing, WINDOW_MAX};
use crate::config::{Config, Decoding};
use crate::rate::Rate;
use std::time::Duration;

/// Bisection steps for the fixed point: a double has no more bits.
const HALVINGS: u32 = 60;

/// Packets per second of one saturated sender without other senders or losses. Each packet takes a
/// DIFS, the mean backoff, and its frame exchange.
pub fn single_sender(config: &Config, packet_bytes: u32) -> f64 {
    let backoff = f64::from(config.phy.window_min()) / 2.0 * config.phy.slot().as_secs_f64();
    let exchange = Exchange::new(config, packet_bytes);
    1.0 / (config.phy.difs().as_secs_f64() + backoff + exchange.success.as_secs_f64())
}

/// Jun's theoretical maximum throughput, in bits per second, for MSDUs of this length. It holds for
/// 802.11b with long preambles, without RTS, with control frames at the basic rate. An MSDU is
/// everything after the MAC header. His MAC header has four addresses (34 bytes with the FCS), and
/// he does not round times up to whole microseconds.
pub fn maximum_of_jun(data_rate: Rate, basic_rate: Rate, msdu_bytes: u32) -> f64 {
    let (difs, sifs, backoff, preamble) = (50.0, 10.0, 310.0, 192.0);
    let ack = preamble + 14.0 * 8.0 / basic_rate.mbps();
    let data = preamble + (34.0 + f64::from(msdu_bytes)) * 8.0 / data_rate.mbps();
    f64::from(msdu_bytes) * 8.0 * 1e6 / (difs + sifs + backoff + ack + data)
}

/// Bianchi's results for saturated stations in range of each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// Packets per second of all stations together.
    pub packets_per_second: f64,
    /// Probability that a station transmits in a slot (his tau).
    pub attempt: f64,
    /// Probability that a transmission collides (his p).
    pub collision: f64,
}

/// Bianchi's fixed point for this number of stations, whose packets all have the same length, with
/// RTS if the configuration uses them.
///
/// Two rules of the standard complete his model. The greatest window is reached after `log2(1024 /
/// first)` collisions. When a packet reaches the retry limit, the window is reset (Wu et al.,
/// "Performance of reliable transport protocol over IEEE 802.11 wireless LAN", INFOCOM 2002). After
/// a collision, a station that was locked onto one of the frames waits for an EIFS. With
/// [`Decoding::BitErrors`] stations detect no preamble among signals of equal strength, and wait
/// only for a DIFS.
pub fn saturation(config: &Config, stations: u32, packet_bytes: u32) -> Saturation {
    let others = f64::from(stations.max(1) - 1);
    let collision_of = |attempt: f64| 1.0 - libm::pow(1.0 - attempt, others);
    // More collisions mean fewer attempts: the difference decreases, and has one root.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        let is_below = attempt_at(config, collision_of(middle)) > middle;
        *if is_below { &mut low } else { &mut high } = middle;
    }
    let attempt = (low + high) / 2.0;
    let idle = libm::pow(1.0 - attempt, others + 1.0);
    let success = (others + 1.0) * attempt * libm::pow(1.0 - attempt, others);
    let exchange = Exchange::new(config, packet_bytes);
    let difs = config.phy.difs().as_secs_f64();
    let mean_slot = idle * config.phy.slot().as_secs_f64()
        + success * (exchange.success.as_secs_f64() + difs)
        + (1.0 - idle - success) * (exchange.collision.as_secs_f64() + difs);
    Saturation {
        packets_per_second: success / mean_slot,
        attempt,
        collision: collision_of(attempt),
    }
}

/// The probability that a station transmits in a slot, for this probability of collision: the mean
/// number of tries of a packet, divided by the mean number of slots that they take.
fn attempt_at(config: &Config, collision: f64) -> f64 {
    let (mut tries, mut slots, mut reached) = (0.0, 0.0, 1.0);
    for window in windows(config) {
        tries += reached;
        slots += reached * (f64::from(window) / 2.0 + 1.0);
        reached *= collision;
    }
    tries / slots
}

/// The contention windows of a packet's tries, in slots: a backoff is drawn from zero to its window. Each
/// collision doubles the window, up to the greatest, until the retry limit.
pub fn windows(config: &Config) -> impl Iterator<Item = u32> {
    let widen = |window: &u32| Some((2 * window + 1).min(WINDOW_MAX));
    std::iter::successors(Some(config.phy.window_min()), widen)
        .take(usize::from(config.short_tries_max.max(1)))
}

/// How long a packet occupies the medium, without the DIFS after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The first frame: an RTS if the configuration uses them, else the data frame.
    pub first: Duration,
    /// The whole exchange, up to the end of the ACK.
    pub success: Duration,
    /// The first frame, and the waiting time after it if it collides.
    pub collision: Duration,
}

impl Exchange {
    /// The exchange for a packet of this length, with RTS if the configuration uses them.
    pub fn new(config: &Config, packet_bytes: u32) -> Self {
        let timing = Timing::new(config);
        let data = timing.data(packet_bytes, config.data_rate);
        let answer = timing.sifs + timing.ack;
        let bytes = airtime::data_bytes(packet_bytes);
        let after_collision = match config.decoding {
            Decoding::Capture => airtime::eifs(config.phy) - config.phy.difs(),
            Decoding::BitErrors => Duration::ZERO,
        };
        let (first, rest) = match config.rts_threshold.is_some_and(|threshold| bytes > threshold) {
            false => (data, Duration::ZERO),
            true => (timing.rts, answer + timing.sifs + data),
        };
        Self { first, success: first + rest + answer, collision: first + after_collision }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sender_as_by_hand() {
        let off = |value: f64, known: f64| (value / known - 1.0).abs();
        let kbps = |config: &Config| single_sender(config, 1488) * 1460.0 * 8.0 / 1000.0;
        let basic_1 = Config::default();
        let basic_2 = Config { basic_rate: Rate::Mbps2, ..Config::default() };
        let rts = |config: &Config| Config { rts_threshold: Some(0), ..config.clone() };
        assert!(off(kbps(&basic_1), 5913.9) < 1e-4);
        assert!(off(kbps(&rts(&basic_1)), 4405.9) < 1e-4);
        assert!(off(kbps(&basic_2), 6086.5) < 1e-4);
        assert!(off(kbps(&rts(&basic_2)), 4749.9) < 1e-4);
        // Jun's value for 1500 bytes.
        let jun = maximum_of_jun(Rate::Mbps11, Rate::Mbps1, 1500) / 1000.0;
        assert!(off(jun, 6055.6) < 1e-4, "{jun}");
    }

    #[test]
    fn saturation_has_the_known_shape() {
        let config = Config::default();
        let one = saturation(&config, 1, 1488);
        assert!((one.packets_per_second / single_sender(&config, 1488) - 1.0).abs() < 1e-9);
        assert!(one.collision == 0.0 && (one.attempt - 2.0 / 33.0).abs() < 1e-12);
        let collisions: Vec<f64> =
            (1..=50).map(|n| saturation(&config, n, 1488).collision).collect();
        assert!(collisions.is_sorted());
        // Bianchi, figure 4 and text: with windows of 32 to 1024, about 30 % of the transmissions
        // of ten stations collide.
        assert!((0.25..0.35).contains(&collisions[9]), "{}", collisions[9]);
        // Collisions cost less with RTS, because only the RTS collide.
        let rts = Config { rts_threshold: Some(0), ..config.clone() };
        let lost = |config: &Config| {
            saturation(config, 50, 1488).packets_per_second
                / saturation(config, 2, 1488).packets_per_second
        };
        assert!(lost(&config) < 0.9 && lost(&rts) > 0.9, "{} {}", lost(&config), lost(&rts));
    }
}
