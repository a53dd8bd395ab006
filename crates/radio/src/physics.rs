//! What decides about receptions, the same for all stations of a channel.

use crate::config::{Config, Decoding, Locking};
use crate::error_rate;
use crate::phy::Phy;
use crate::power;
use crate::rate::Rate;
use std::time::Duration;

/// A frame is received if its signal is so many times as strong as all interference together: 10 dB,
/// ns-2's capture threshold.
const CAPTURE_RATIO: u64 = 10;

/// A preamble is found if it is so many dB above all else (ns-3's default).
const PREAMBLE_DB: f64 = 4.0;

/// At which of its two rates a frame is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    Data,
    Basic,
}

/// Of a frame what carries bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    Header,
    Body,
}

/// What decides about receptions.
#[derive(Clone, Debug)]
pub struct Physics {
    pub decoding: Decoding,
    pub locking: Locking,
    /// Noise in a receiver, in attowatts.
    pub noise: u64,
    preamble_ratio: f64,
    /// PHY header and body of frames, by their speed.
    parts: [[Part; 2]; 2],
    /// How long nothing is sent at the end of frames, in nanoseconds, by their speed.
    silences: [u64; 2],
}

/// A stretch of a frame that goes at one rate.
#[derive(Clone, Copy, Debug)]
struct Part {
    rate: Rate,
    /// Nanoseconds from the preamble's beginning.
    begins: u64,
    ends: u64,
    bits_per_nano: f64,
    /// Bits are safe if signal to noise and interference is above this.
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

    /// Whether a receiver finds the preamble of a signal among so much else.
    pub fn finds(&self, signal: u64, interference: u64) -> bool {
        match self.decoding {
            Decoding::Capture => true,
            Decoding::BitErrors => {
                signal as f64 >= self.preamble_ratio * (self.noise + interference) as f64
            }
        }
    }

    /// Whether the PHY header of a signal can be read that a receiver follows, if nothing disturbs it. Where
    /// bit errors decide, those of weak frames can: their bodies are what cannot be decoded.
    pub fn understands(&self, decodable: bool) -> bool {
        decodable || self.decoding == Decoding::BitErrors
    }

    /// Whether a signal stands out from the most interference that it met.
    pub fn captures(&self, signal: u64, interference_max: u64) -> bool {
        signal >= interference_max.saturating_mul(CAPTURE_RATIO)
    }

    /// When the PHY header of a frame ends, in nanoseconds from the beginning of its preamble.
    pub fn header_ends(&self, speed: Speed) -> u64 {
        self.parts[speed as usize][0].ends
    }

    /// When it begins, and when it ends.
    pub fn header_bounds(&self, speed: Speed) -> (u64, u64) {
        let header = &self.parts[speed as usize][0];
        (header.begins, header.ends)
    }

    /// How long the preamble and the PHY header of a frame last.
    pub fn header(&self, speed: Speed) -> Duration {
        Duration::from_nanos(self.header_ends(speed))
    }

    /// How long nothing is sent at the end of a frame, in nanoseconds.
    pub fn silence(&self, speed: Speed) -> u64 {
        self.silences[speed as usize]
    }

    /// The hazard to header or body of a frame while interference was constant: nanoseconds count from the
    /// beginning of its preamble, up to the end of its bits at most.
    pub fn hazard(
        &self,
        (speed, stretch): (Speed, Stretch),
        (from, to): (u64, u64),
        signal: u64,
        others: u64,
    ) -> f64 {
        let (signal, noise) = (signal as f64, (self.noise + others) as f64);
        let part = &self.parts[speed as usize][stretch as usize];
        let nanos = to.min(part.ends).saturating_sub(from.max(part.begins));
        if nanos == 0 || signal >= part.safe_ratio * noise {
            return 0.0;
        }
        nanos as f64 * part.bits_per_nano * error_rate::hazard(part.rate, signal / noise)
    }
}

/// PHY header and body of a frame of this rate; what is before the header only synchronises.
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
            [Stretch::Header, Stretch::Body].map(|stretch| {
                let piece = (from_us * 1000, to_us * 1000);
                physics.hazard((Speed::Data, stretch), piece, 1_000_000_000, others)
            })
        };
        assert_eq!(hazards(0, 1500, 0), [0.0, 0.0], "33 dB are safe");
        assert_eq!(hazards(0, 144, 9_000_000_000), [0.0, 0.0], "the preamble carries no bits");
        // Header at 1 Mbit/s: 48 bits; 9.5 dB below the rest each is wrong with half of exp(-22 / 9).
        let [header, body] = hazards(0, 192, 9_000_000_000);
        let bits = -48.0 * (1.0 - 0.5 * (-22.0_f64 / 9.0).exp()).ln();
        assert!((header / bits - 1.0).abs() < 0.001 && body == 0.0, "{header}");
        // 11 bits a microsecond.
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
