//! Nanoseconds that this thread has been on a processor, not what a clock on the wall says: other programs
//! take no part in it, except that they share caches and memory.

use std::fs;
use std::thread;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};

/// See the module.
pub struct OnProcessor;

impl OnProcessor {
    fn now() -> Duration {
        // The kernel brings the figure up to date when it has to choose who runs.
        thread::yield_now();
        let about = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
        let nanos = about.split(' ').next().and_then(|it| it.parse().ok());
        Duration::from_nanos(nanos.expect("a number"))
    }
}

impl Measurement for OnProcessor {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        Self::now()
    }

    fn end(&self, start: Duration) -> Duration {
        Self::now() - start
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
