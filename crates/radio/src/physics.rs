//! The rules that decide about receptions, common to all stations of a channel.

use crate::config::{Config, Decoding, Locking};
use crate::error_rate;
use crate::phy::Phy;
use crate::power;
use crate::rate::Rate;
use std::time::Duration;

/// A frame is received if its signal is this many times as strong as all interference together: 10
/// dB, the capture threshold of ns-2.
const CAPTURE_RATIO: u64 = 10;

/// A receiver detects a preamble if it is this many dB above noise and interference (ns-3's
/// default).
const PREAMBLE_DB: f64 = 4.0;

/// The two rates of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    Data,
    Basic,
}

/// The parts of a frame that carry bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Header,
    Body,
}

/// The rules that decide about receptions.
#[derive(Clone, Debug)]
pub struct Physics {
    pub decoding: Decoding,
    pub locking: Locking,
    /// Noise of a receiver, in attowatts.
    pub noise: u64,
    preamble_ratio: f64,
    /// PHY header and body of a frame, for each of the two rates.
    parts: [[Part; 2]; 2],
    /// The signal extension at the end of a frame, in nanoseconds, for each of the two rates.
    silences: [u64; 2],
}

/// A part of a frame that is sent at one rate.
#[derive(Clone, Copy, Debug)]
struct Part {
    rate: Rate,
    /// Nanoseconds from the start of the preamble.
    begins: u64,
    ends: u64,
    bits_per_nano: f64,
    /// Above this ratio of signal to noise and interference, bit errors are negligible.
    safe_ratio: f64,
}

impl Part {
    fn new(rate: Rate, begins_us: u64, ends_us: Option<u64>) -> Self {
        Self {
            rate,
            begins: begins_us * 1000,
            ends: ends_us.map_or(u64::MAX, |micros| micros * 1000),
            bits_per_nano: rate.bits_per_second() as f64 / 1e9,
            safe_ratio: error_rate::safe_ratio(rate),
        }
    }
}

impl Physics {
    pub fn new(config: &Config) -> Self {
        let rates = [config.data_rate, config.basic_rate];
        Self {
            decoding: config.decoding,
            locking: config.locking,
            noise: power::noise(config.phy.bandwidth_hz(), config.noise_figure_db),
            preamble_ratio: power::ratio(PREAMBLE_DB),
            parts: rates.map(|rate| parts(config.phy, rate)),
            silences: rates.map(|rate| config.phy.extension(rate).as_nanos() as u64),
        }
    }

    /// Whether a receiver detects the preamble of a signal, given the interference.
    pub fn finds(&self, signal: u64, interference: u64) -> bool {
        match self.decoding {
            Decoding::Capture => true,
            Decoding::BitErrors => {
                signal as f64 >= self.preamble_ratio * (self.noise + interference) as f64
            }
        }
    }

    /// Whether a receiver can read the PHY header of a signal without interference. With
    /// [`Decoding::BitErrors`] it can even read that of a frame whose body is too weak.
    pub fn understands(&self, decodable: bool) -> bool {
        decodable || self.decoding == Decoding::BitErrors
    }

    /// Whether a signal captures the receiver: it is strong enough against the greatest
    /// interference.
    pub fn captures(&self, signal: u64, interference_max: u64) -> bool {
        signal >= interference_max.saturating_mul(CAPTURE_RATIO)
    }

    /// The end of a frame's PHY header, in nanoseconds from the start of its preamble.
    pub fn header_ends(&self, speed: Speed) -> u64 {
        self.parts[speed as usize][0].ends
    }

    /// The start and the end of a frame's PHY header, likewise.
    pub fn header_bounds(&self, speed: Speed) -> (u64, u64) {
        let header = &self.parts[speed as usize][0];
        (header.begins, header.ends)
    }

    /// The duration of a frame's preamble and PHY header.
    pub fn header(&self, speed: Speed) -> Duration {
        Duration::from_nanos(self.header_ends(speed))
    }

    /// The duration of the signal extension at the end of a frame, in nanoseconds.
    pub fn silence(&self, speed: Speed) -> u64 {
        self.silences[speed as usize]
    }

    /// The hazard to the header or the body of a frame in a period of constant interference. The
    /// period is in nanoseconds from the start of the preamble; it ends with the frame's last bit
    /// at the latest.
    pub fn hazard(
        &self,
        (speed, section): (Speed, Section),
        (from, to): (u64, u64),
        signal: u64,
        others: u64,
    ) -> f64 {
        let (signal, noise) = (signal as f64, (self.noise + others) as f64);
        let part = &self.parts[speed as usize][section as usize];
        let nanos = to.min(part.ends).saturating_sub(from.max(part.begins));
        if nanos == 0 || signal >= part.safe_ratio * noise {
            return 0.0;
        }
        nanos as f64 * part.bits_per_nano * error_rate::hazard(part.rate, signal / noise)
    }
}

/// PHY header and body of a frame at this rate. The bits before the header only synchronise.
fn parts(phy: Phy, rate: Rate) -> [Part; 2] {
    let body_us = phy.preamble(rate).as_micros() as u64;
    let (header_rate, header_us) = match body_us {
        20 => (Rate::Mbps6, 4),
        96 => (Rate::Mbps2, 24),
        _ => (Rate::Mbps1, 48),
    };
    [Part::new(header_rate, body_us - header_us, Some(body_us)), Part::new(rate, body_us, None)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_overlaps_is_in_danger() {
        let physics = Physics::new(&Config::like_ns3());
        let hazards = |from_us: u64, to_us: u64, others| {
            [Section::Header, Section::Body].map(|section| {
                let piece = (from_us * 1000, to_us * 1000);
                physics.hazard((Speed::Data, section), piece, 1_000_000_000, others)
            })
        };
        assert_eq!(hazards(0, 1500, 0), [0.0, 0.0], "33 dB are safe");
        assert_eq!(hazards(0, 144, 9_000_000_000), [0.0, 0.0], "the preamble carries no bits");
        // Header at 1 Mbit/s: 48 bits. At -9.5 dB each is wrong with probability exp(-22 / 9) / 2.
        let [header, body] = hazards(0, 192, 9_000_000_000);
        let bits = -48.0 * (1.0 - 0.5 * (-22.0_f64 / 9.0).exp()).ln();
        assert!((header / bits - 1.0).abs() < 0.001 && body == 0.0, "{header}");
        // 11 bits per microsecond.
        let [header, body] = hazards(192, 193, 200_000_000);
        let ratio = 1e9 / (200_000_000 + physics.noise) as f64;
        let bits = 11.0 * error_rate::hazard(Rate::Mbps11, ratio);
        assert!((body / bits - 1.0).abs() < 1e-9 && header == 0.0);
        assert_eq!(physics.header_ends(Speed::Data), 192_000);
    }

    #[test]
    fn preambles_stand_out_by_4_db() {
        let physics = Physics::new(&Config::like_ns3());
        let others = 1_000_000_000;
        assert!(physics.finds(2_520_000_000, others) && !physics.finds(2_500_000_000, others));
        assert!(Physics::new(&Config::default()).finds(1, others), "no such rule without noise");
    }
}
