//! Link-RED: early drops by the MAC's repetitions (Fu et al. 2005, section 5).

use super::LinkRed;

/// Weight of the newest packet in the average.
const WEIGHT: f64 = 1.0 / 8.0;

/// The average number of repetitions at the MAC, and the drops that follow from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Red {
    repetitions: f64,
    state: u64,
}

impl Red {
    /// An idle MAC; equal seeds make equal choices.
    pub(super) fn new(seed: u64) -> Self {
        Self { repetitions: 0.0, state: seed }
    }

    /// The MAC has sent a packet `tries` times.
    pub(super) fn sent(&mut self, tries: u8) {
        let repetitions = f64::from(tries.saturating_sub(1));
        self.repetitions += (repetitions - self.repetitions) * WEIGHT;
    }

    /// How often the MAC sends a packet, on average.
    pub(super) fn tries(&self) -> f64 {
        self.repetitions + 1.0
    }

    /// Whether the next packet is to be dropped.
    pub(super) fn drops(&mut self, config: &LinkRed) -> bool {
        let share = (self.repetitions - config.min) / (config.max - config.min).max(f64::EPSILON);
        let probability = share.min(config.probability_max);
        probability > 0.0 && self.draw() < probability
    }

    /// The next number of SplitMix64, as a fraction of 1.
    fn draw(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_drops_by_the_average_of_repetitions() {
        let config = LinkRed { min: 1.0, max: 3.0, probability_max: 0.25 };
        let dropped_at = |tries: u8| {
            let mut red = Red::new(7);
            (0..200).for_each(|_| red.sent(tries));
            (0..10_000).filter(|_| red.drops(&config)).count()
        };
        assert_eq!(dropped_at(1), 0);
        assert_eq!(dropped_at(2), 0, "an average of 1 is the threshold");
        assert!((2200..2800).contains(&dropped_at(3)), "half way, but no more than a quarter");
        assert!((2200..2800).contains(&dropped_at(9)));
    }

    #[test]
    fn equal_thresholds_divide_nothing_by_zero() {
        let config = LinkRed { min: 1.0, max: 1.0, probability_max: 1.0 };
        let mut red = Red::new(0);
        assert!(!red.drops(&config));
        (0..99).for_each(|_| red.sent(9));
        assert!(red.drops(&config));
    }

    /// The first numbers of SplitMix64 with seed 0, as its authors give them.
    #[test]
    fn chance_is_splitmix64() {
        let mut red = Red::new(0);
        for number in [0xe220_a839_7b1d_cdaf_u64, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f] {
            assert_eq!(red.draw(), (number >> 11) as f64 / 2_f64.powi(53));
        }
    }

    #[test]
    fn each_packet_moves_the_average_by_an_eighth() {
        let mut red = Red::new(0);
        assert_eq!(red.tries(), 1.0);
        red.sent(0);
        red.sent(1);
        assert_eq!(red.tries(), 1.0);
        red.sent(3);
        assert_eq!(red.tries(), 1.25);
        red.sent(3);
        assert_eq!(red.tries(), 1.25 + 1.75 / 8.0);
        red.sent(1);
        assert_eq!(red.tries(), 1.0 + 0.46875 * 7.0 / 8.0);
    }

    /// Fu et al. 2005, section 5: the probability is the average's place between the thresholds.
    #[test]
    fn the_probability_grows_between_the_thresholds() {
        for (max, dropped) in [(3.0, 9_700..=10_000), (5.0, 4_800..=5_200), (9.0, 2_300..=2_700)] {
            let config = LinkRed { min: 1.0, max, probability_max: 1.0 };
            let mut red = Red::new(7);
            (0..500).for_each(|_| red.sent(4));
            let count = (0..10_000).filter(|_| red.drops(&config)).count();
            assert!(dropped.contains(&count), "{max}: {count}");
        }
    }
}
