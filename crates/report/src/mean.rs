//! A mean, and how sure it is.

/// A mean, and half of its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The interval goes so far to both sides; `None` without one.
    pub half: Option<f64>,
}

impl Mean {
    /// The ends of the interval; the mean twice if there is none.
    pub fn interval(&self) -> [f64; 2] {
        let half = self.half.unwrap_or(0.0);
        [self.mean - half, self.mean + half]
    }
}
