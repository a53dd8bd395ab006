//! Random numbers of the distributions that programs draw from. They use `libm`, so that they are the same on
//! every machine.

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore as _;

/// An exponentially distributed time of this mean.
pub(super) fn exponential(chance: &mut Xoshiro256PlusPlus, mean: Duration) -> Duration {
    mean.mul_f64(-libm::log(above_zero(chance)))
}

/// A log-normally distributed number of mean 1; `sigma` is the standard deviation of its logarithm.
pub(super) fn log_normal(chance: &mut Xoshiro256PlusPlus, sigma: f64) -> f64 {
    // Two uniform numbers give a normal one (Box and Muller, 1958); the first must not be 0.
    let radius = libm::sqrt(-2.0 * libm::log(above_zero(chance)));
    let normal = radius * libm::cos(std::f64::consts::TAU * above_zero(chance));
    // The mean of exp(sigma n) is exp(sigma^2 / 2).
    libm::exp(sigma * normal - sigma * sigma / 2.0)
}

/// A number above 0 and up to 1, made from 53 bits.
fn above_zero(chance: &mut Xoshiro256PlusPlus) -> f64 {
    ((chance.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}
