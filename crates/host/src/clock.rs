//! The engines' clock: time since a moment of this process.

use std::time::Duration;
use tokio::time::Instant;

/// The zero of the clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts a clock: this moment is instant zero.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The current instant.
    #[must_use]
    pub fn now(self) -> wire::Instant {
        wire::Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }

    /// Waits until an instant; forever if there is none.
    pub async fn wait_until(self, instant: Option<wire::Instant>) {
        match instant {
            Some(at) => {
                tokio::time::sleep_until(self.0 + Duration::from_nanos(at.as_nanos())).await
            }
            None => std::future::pending().await,
        }
    }
}
