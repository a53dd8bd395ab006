//! A mean and its confidence interval.

/// A mean, and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The ends of the interval; `None` without one.
    pub interval: Option<[f64; 2]>,
}

impl Mean {
    /// The upper end of what a picture shows of it.
    pub(crate) fn high(&self) -> f64 {
        self.interval.map_or(self.mean, |[_, high]| high)
    }
}
