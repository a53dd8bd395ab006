//! Bit error rates, by modulation and by the ratio of signal to noise and interference.
//!
//! Sources: for differential phase shift keying Proakis, Digital Communications (DBPSK exactly;
//! DQPSK by the tail of the normal distribution, which it approaches). For CCK the union bounds of
//! IEEE 802.15.2-2003, "Physical layer models". For OFDM the union bound on the standard's
//! convolutional code with hard decisions (Pursley and Taipale, 1987), over the bit error rates of
//! the modulations. The weights of the code and its puncturings are those of Haccoun and Bégin
//! (1989), as in NIST's model in ns-3.

use crate::rate::Rate;

/// Below this hazard per bit a whole frame is safe: 10⁵ such bits contain an error once in 10⁸
/// frames.
const SAFE: f64 = 1e-13;

/// The ratio above which bit errors at a rate are negligible.
pub fn safe_ratio(rate: Rate) -> f64 {
    // Bisection between -30 and +40 dB; 40 steps are far more than needed.
    let (mut low, mut high) = (1e-3, 1e4);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        *if hazard(rate, middle) > SAFE { &mut low } else { &mut high } = middle;
    }
    high
}

/// The hazard of one bit: the negative logarithm of the probability that it is correct. Hazards add
/// up: bits with the sum `sum` are all correct with probability `exp(-sum)`.
///
/// `ratio` is signal power divided by noise and interference power within the channel, not in dB.
pub fn hazard(rate: Rate, ratio: f64) -> f64 {
    match rate {
        // Energy per bit over noise density: a channel is 22 MHz wide.
        Rate::Mbps1 => bit(0.5 * libm::exp(-22.0 * ratio)),
        Rate::Mbps2 => {
            let distance = 4.0 - 2.0 * std::f64::consts::SQRT_2;
            bit(tail(distance * 11.0 * ratio))
        }
        Rate::Mbps5_5 => symbol(&[(14.0, 8.0), (1.0, 16.0)], ratio) / 4.0,
        Rate::Mbps11 => {
            let words =
                [(24.0, 4.0), (16.0, 6.0), (174.0, 8.0), (16.0, 10.0), (24.0, 12.0), (1.0, 16.0)];
            symbol(&words, ratio) / 8.0
        }
        Rate::Mbps6 => coded(&HALF, bpsk(ratio)),
        Rate::Mbps9 => coded(&THREE_QUARTERS, bpsk(ratio)),
        Rate::Mbps12 => coded(&HALF, qpsk(ratio)),
        Rate::Mbps18 => coded(&THREE_QUARTERS, qpsk(ratio)),
        Rate::Mbps24 => coded(&HALF, qam16(ratio)),
        Rate::Mbps36 => coded(&THREE_QUARTERS, qam16(ratio)),
        Rate::Mbps48 => coded(&TWO_THIRDS, qam64(ratio)),
        Rate::Mbps54 => coded(&THREE_QUARTERS, qam64(ratio)),
    }
}

fn bit(wrong: f64) -> f64 {
    -libm::log1p(-wrong.clamp(0.0, 0.5))
}

/// The hazard of a CCK symbol. Each group of wrong code words has a size and a distance.
fn symbol(words: &[(f64, f64)], ratio: f64) -> f64 {
    let wrong: f64 = words.iter().map(|(count, distance)| count * tail(distance * ratio)).sum();
    let count: f64 = words.iter().map(|(count, _)| count).sum();
    // In the worst case the receiver guesses among all code words.
    -libm::log1p(-wrong.clamp(0.0, count / (count + 1.0)))
}

/// The probability that a normal variable exceeds the root of `square`.
fn tail(square: f64) -> f64 {
    0.5 * libm::erfc(libm::sqrt(square / 2.0))
}

// Bit error rates of the modulations without coding; the ratio is that of a subcarrier's symbol.

fn bpsk(ratio: f64) -> f64 {
    tail(2.0 * ratio)
}

fn qpsk(ratio: f64) -> f64 {
    tail(ratio)
}

fn qam16(ratio: f64) -> f64 {
    3.0 / 4.0 * tail(ratio / 5.0)
}

fn qam64(ratio: f64) -> f64 {
    7.0 / 12.0 * tail(ratio / 21.0)
}

/// The punctured convolutional code of constraint length 7: information bits per step of its
/// trellis, the least distance of a wrong path, the difference in distance between groups of paths,
/// and the number of wrong bits in each group.
struct Code {
    bits: f64,
    distance: i32,
    step: i32,
    weights: &'static [f64],
}

const HALF: Code = Code {
    bits: 1.0,
    distance: 10,
    step: 2,
    weights: &[36.0, 211.0, 1404.0, 11_633.0, 77_433.0, 502_690.0, 3_322_763.0],
};

const TWO_THIRDS: Code = Code {
    bits: 2.0,
    distance: 6,
    step: 1,
    weights: &[3.0, 70.0, 285.0, 1276.0, 6160.0, 27_128.0, 117_019.0, 498_860.0],
};

const THREE_QUARTERS: Code = Code {
    bits: 3.0,
    distance: 5,
    step: 1,
    weights: &[42.0, 201.0, 1492.0, 10_469.0, 62_935.0, 379_644.0, 2_253_373.0, 13_073_811.0],
};

/// The hazard of a decoded bit, given the bit error rate before decoding.
fn coded(code: &Code, wrong: f64) -> f64 {
    let bound = libm::sqrt(4.0 * wrong * (1.0 - wrong));
    let step = if code.step == 2 { bound * bound } else { bound };
    let first = libm::pow(bound, f64::from(code.distance));
    // Horner's scheme, from the most distant paths to the nearest.
    let sum = code.weights.iter().rev().fold(0.0, |sum, weight| sum * step + weight) * first;
    bit(sum / (2.0 * code.bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power;

    /// The ratio in dB at which half of the frames of 1536 bytes are lost.
    fn half_lost_db(rate: Rate) -> f64 {
        let lost = |db: f64| 1.0 - libm::exp(-hazard(rate, power::ratio(db)) * 1536.0 * 8.0);
        let steps = (-200..400).map(|step| f64::from(step) / 10.0);
        steps.into_iter().find(|db| lost(*db) < 0.5).unwrap()
    }

    #[test]
    fn known_points() {
        // DBPSK: exp(-Eb/N0) / 2, at Eb/N0 = 22 × 0.5.
        assert!((hazard(Rate::Mbps1, 0.5) / (0.5 * libm::exp(-11.0)) - 1.0).abs() < 1e-3);
        // 2.275 % of a normal distribution lie beyond two standard deviations.
        assert!((tail(4.0) - 0.02275).abs() < 1e-5);
        // BPSK at 9.6 dB: a bit error rate of 10⁻⁵.
        assert!((bpsk(power::ratio(9.6)) / 1e-5 - 1.0).abs() < 0.05);
        assert!((qpsk(power::ratio(12.6)) / 1e-5 - 1.0).abs() < 0.05);
        // DQPSK needs 2.3 dB more than QPSK.
        let dqpsk = hazard(Rate::Mbps2, power::ratio(12.0 - 10.41));
        assert!((dqpsk / tail(2.0 * power::ratio(12.0 - 2.32)) - 1.0).abs() < 0.1, "{dqpsk}");
    }

    #[test]
    fn faster_rates_need_more_signal() {
        let dsss = [Rate::Mbps1, Rate::Mbps2, Rate::Mbps5_5, Rate::Mbps11].map(half_lost_db);
        assert!(dsss.is_sorted(), "{dsss:?}");
        assert!((6.0..9.0).contains(&dsss[3]), "{dsss:?}");
        // 9 Mbit/s needs more signal than 12 Mbit/s: its code is weaker, and BPSK does not make up
        // for it.
        let ofdm = Rate::ALL.into_iter().filter(|rate| rate.is_ofdm() && *rate != Rate::Mbps9);
        let ofdm: Vec<f64> = ofdm.map(half_lost_db).collect();
        assert!(ofdm.is_sorted(), "{ofdm:?}");
        assert!(ofdm[0] < 4.0 && (18.0..25.0).contains(&ofdm[6]), "{ofdm:?}");
    }

    #[test]
    fn hazards_fall_with_the_ratio_and_are_small_where_it_is_safe() {
        for rate in Rate::ALL {
            let steps = (-300..400).map(|step| hazard(rate, power::ratio(f64::from(step) / 10.0)));
            let hazards: Vec<f64> = steps.collect();
            assert!(hazards.is_sorted_by(|a, b| a >= b), "{rate:?}");
            assert!(hazards.iter().all(|hazard| (0.0..1.0).contains(hazard)), "{rate:?}");
            let safe = safe_ratio(rate);
            assert!(hazard(rate, safe) <= SAFE && hazard(rate, safe * 0.9) > SAFE, "{rate:?}");
        }
    }
}
