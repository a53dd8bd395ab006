//! Power: attowatts internally, dBm at the interface.
//!
//! Received powers are integers, so that sums are exact and equal on all machines. The unit is the
//! attowatt (10⁻¹⁸ W); thermal noise in one channel is about 100 000 of them.

/// The greatest received power, -5.5 dBm: the sum over all stations fits 64 bits.
pub const POWER_MAX: u64 = 1 << 48;

/// One milliwatt, in attowatts.
const MILLIWATT: f64 = 1e15;
/// Boltzmann's constant times 290 K, in attowatts per hertz.
const THERMAL_PER_HZ: f64 = 1.380_649e-23 * 290.0 * 1e18;

/// Converts dBm to attowatts, from 0 to [`POWER_MAX`].
pub fn from_dbm(dbm: f64) -> u64 {
    (ratio(dbm) * MILLIWATT).clamp(0.0, POWER_MAX as f64) as u64
}

/// Converts attowatts to dBm; zero counts as one attowatt.
pub fn to_dbm(attowatts: u64) -> f64 {
    10.0 * libm::log10(attowatts.max(1) as f64 / MILLIWATT)
}

/// Converts dB to a ratio.
pub(crate) fn ratio(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

/// Thermal noise of a channel in a receiver with this noise figure, in attowatts.
pub(crate) fn noise(bandwidth_hz: f64, figure_db: f64) -> u64 {
    (THERMAL_PER_HZ * bandwidth_hz * ratio(figure_db)).clamp(1.0, POWER_MAX as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attowatts_and_dbm_are_the_same() {
        assert_eq!(from_dbm(-150.0), 1);
        assert_eq!((from_dbm(f64::NEG_INFINITY), from_dbm(90.0)), (0, POWER_MAX));
        assert!((to_dbm(from_dbm(-64.4)) + 64.4).abs() < 1e-6);
        assert!((to_dbm(POWER_MAX) + 5.5).abs() < 0.01);
        assert!((to_dbm(0) + 150.0).abs() < 1e-9);
    }

    #[test]
    fn noise_is_as_known() {
        // -174 dBm/Hz + 73.4 dB of bandwidth + 7 dB of noise figure.
        assert!((to_dbm(noise(22e6, 7.0)) + 93.55).abs() < 0.05);
    }
}
