//! Estimates of round trips, and the line through their deviations.

use std::time::Duration;

/// Timeouts are no shorter. MACs defer for milliseconds, and no round trip is known so exactly.
const TIMEOUT_MIN: f64 = 10e-3;

/// The timeout before a round trip was measured.
const TIMEOUT_FIRST: f64 = 0.5;

/// Timeouts are no longer, before any doubling.
const TIMEOUT_MAX: f64 = 2.0;

/// A smoothed time and how far samples stray from it, all in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    smoothed: f64,
    /// Mean deviation, as in RFC 6298.
    deviation: f64,
    variance: f64,
    samples: u32,
}

impl Estimate {
    /// Takes a sample.
    pub(super) fn sample(&mut self, time: Duration) {
        let time = time.as_secs_f64();
        if self.samples == 0 {
            (self.smoothed, self.deviation) = (time, time / 2.0);
            self.variance = self.deviation * self.deviation;
        } else {
            let error = time - self.smoothed;
            self.deviation += (error.abs() - self.deviation) / 4.0;
            self.variance += (error * error - self.variance) / 8.0;
            self.smoothed += error / 8.0;
        }
        self.samples = self.samples.saturating_add(1);
    }

    /// How many samples it took.
    pub(super) fn samples(&self) -> u32 {
        self.samples
    }

    /// The smoothed time, once there is one.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        (self.samples > 0).then(|| Duration::from_secs_f64(self.smoothed))
    }

    /// The standard deviation of the samples, seconds.
    pub(super) fn standard_deviation(&self) -> f64 {
        self.variance.sqrt()
    }

    /// TCP's timeout (RFC 6298, section 2).
    pub(super) fn timeout(&self) -> Duration {
        self.timeout_after(4.0 * self.deviation)
    }

    /// The smoothed time and `margin` seconds.
    pub(super) fn timeout_after(&self, margin: f64) -> Duration {
        let timeout = if self.samples == 0 { TIMEOUT_FIRST } else { self.smoothed + margin };
        Duration::from_secs_f64(timeout.clamp(TIMEOUT_MIN, TIMEOUT_MAX))
    }

    /// Which multiple of `deviation` makes the timeout `timeout` seconds.
    pub(super) fn multiple(&self, timeout: f64, deviation: f64) -> f64 {
        if deviation > 0.0 { (timeout - self.smoothed) / deviation } else { 0.0 }
    }
}

/// Receivers farther away count as this far.
const HOPS_MAX: usize = 32;

/// Deviations by hop count, and the line of least squares through them (InPCM, equations 2 to 4).
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// By hop count less one: the smoothed standard deviation, seconds.
    deviations: [Option<f64>; HOPS_MAX],
    /// `a` and `b` of equation 2: asked for with each packet.
    coefficients: (f64, f64),
}

impl Line {
    /// A line through no points.
    pub(super) fn new() -> Self {
        Self { deviations: [None; HOPS_MAX], coefficients: (0.0, 0.0) }
    }

    /// Takes the deviation of a flow whose receiver is `hops` away.
    pub(super) fn sample(&mut self, hops: u8, deviation: f64) {
        let point = &mut self.deviations[usize::from(hops.max(1) - 1).min(HOPS_MAX - 1)];
        let old = point.unwrap_or(deviation);
        *point = Some(old + (deviation - old) / 8.0);
        self.coefficients = self.fit();
    }

    /// The points: hops to the receiver, and the deviation in seconds.
    pub(super) fn points(&self) -> impl Iterator<Item = (u8, f64)> {
        (1..).zip(&self.deviations).filter_map(|(hops, it)| Some((hops, (*it)?)))
    }

    /// `a` and `b` of equation 2. One point makes a level line, none makes 0.
    fn fit(&self) -> (f64, f64) {
        let points = || self.points().map(|(hops, y)| (f64::from(hops), y));
        let n = points().count() as f64;
        if n == 0.0 {
            return (0.0, 0.0);
        }
        let mean_x = points().map(|(x, _)| x).sum::<f64>() / n;
        let mean_y = points().map(|(_, y)| y).sum::<f64>() / n;
        let squares = points().map(|(x, _)| x * x).sum::<f64>();
        let products = points().map(|(x, y)| x * y).sum::<f64>();
        let below = squares - n * mean_x * mean_x;
        if below <= 0.0 {
            return (mean_y, 0.0);
        }
        let a = (mean_y * squares - mean_x * products) / below;
        let b = (products - n * mean_x * mean_y) / below;
        (a, b)
    }

    /// The deviation that the line gives for a receiver `hops` away, seconds; not below 0.
    pub(super) fn at(&self, hops: u8) -> f64 {
        let (a, b) = self.coefficients;
        (a + b * f64::from(hops.max(1))).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_time_is_its_own_timeout() {
        let mut it = Estimate::default();
        assert_eq!(it.timeout(), Duration::from_millis(500), "before the first sample");
        (0..200).for_each(|_| it.sample(Duration::from_millis(40)));
        assert!((it.timeout().as_secs_f64() - 0.040).abs() < 1e-4);
        (0..200).for_each(|i| it.sample(Duration::from_millis(if i % 2 == 0 { 30 } else { 50 })));
        assert!((it.standard_deviation() - 0.010).abs() < 2e-3);
        assert!(it.timeout() > Duration::from_millis(70));
    }

    #[test]
    fn a_timeout_is_bounded() {
        let mut it = Estimate::default();
        (0..99).for_each(|_| it.sample(Duration::from_micros(3)));
        assert_eq!(it.timeout(), Duration::from_secs_f64(TIMEOUT_MIN));
        it.sample(Duration::from_secs(1 << 40));
        assert_eq!(it.timeout(), Duration::from_secs_f64(TIMEOUT_MAX));
    }

    #[test]
    fn the_line_goes_through_points_that_lie_on_one() {
        let mut line = Line::new();
        assert_eq!(line.at(5), 0.0);
        line.sample(4, 0.018);
        assert!((line.at(1) - 0.018).abs() < 1e-12, "one point makes a level line");
        line.sample(2, 0.014);
        line.sample(9, 0.028);
        let (a, b) = line.coefficients;
        assert!((a - 0.010).abs() < 1e-9 && (b - 0.002).abs() < 1e-9, "{a} + {b} x");
        assert!((line.at(20) - 0.050).abs() < 1e-9);
    }

    #[test]
    fn the_line_is_never_negative() {
        let mut line = Line::new();
        line.sample(1, 0.1);
        line.sample(2, 0.0);
        assert_eq!(line.at(200), 0.0);
    }

    /// RFC 6298, section 2, by hand: R is 100, 180 and 30 ms.
    #[test]
    fn estimates_follow_the_rfc() {
        let ms = Duration::from_millis;
        let is =
            |value: f64, ms: f64| assert!((value * 1e3 - ms).abs() < 1e-6, "{value} s, {ms} ms");
        let mut it = Estimate::default();
        assert_eq!((it.samples(), it.smoothed()), (0, None));
        it.sample(ms(100));
        is(it.timeout().as_secs_f64(), 100.0 + 4.0 * 50.0);
        is(it.standard_deviation(), 50.0);
        it.sample(ms(180));
        is(it.smoothed().unwrap().as_secs_f64(), 110.0);
        is(it.timeout().as_secs_f64(), 110.0 + 4.0 * 57.5);
        is(it.standard_deviation(), (2500.0_f64 + 3900.0 / 8.0).sqrt());
        it.sample(ms(30));
        assert_eq!(it.samples(), 3);
        is(it.smoothed().unwrap().as_secs_f64(), 100.0);
        is(it.timeout().as_secs_f64(), 100.0 + 4.0 * 63.125);
        is(it.timeout_after(0.02).as_secs_f64(), 120.0);
    }

    #[test]
    fn a_multiple_makes_the_timeout_that_it_was_asked_for() {
        let mut it = Estimate::default();
        it.sample(Duration::from_millis(100));
        assert!((it.multiple(0.2, 0.05) - 2.0).abs() < 1e-9);
        assert!((it.multiple(0.05, 0.05) + 1.0).abs() < 1e-9);
        assert_eq!([0.0, -0.05].map(|deviation| it.multiple(0.2, deviation)), [0.0; 2]);
    }

    /// By hand: through (1, 1), (2, 3) and (3, 2), of which the means are 2, the line of least squares is 1 + x / 2.
    #[test]
    fn the_line_is_that_of_least_squares() {
        let mut line = Line::new();
        line.sample(1, 1.0);
        line.sample(2, 3.0);
        line.sample(3, 2.0);
        for (hops, deviation) in [(1, 1.5), (2, 2.0), (10, 6.0)] {
            assert!((line.at(hops) - deviation).abs() < 1e-9, "{hops}");
        }
        assert_eq!(line.at(0), line.at(1));
    }

    #[test]
    fn each_point_moves_by_an_eighth_and_the_farthest_are_one() {
        let mut line = Line::new();
        line.sample(1, 0.008);
        line.sample(0, 0.016);
        line.sample(32, 0.1);
        line.sample(33, 0.1);
        line.sample(255, 0.9);
        let points: Vec<_> = line.points().collect();
        let [(1, near), (32, far)] = points[..] else { panic!("{points:?}") };
        assert!((near - 0.009).abs() < 1e-9 && (far - 0.2).abs() < 1e-9);
    }
}
