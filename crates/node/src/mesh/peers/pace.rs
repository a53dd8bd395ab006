//! How fast a peer's units come, so that no more of them are on their way than are worth it.

use std::time::Duration;
use wire::Instant;

/// It is looked at again after so long …
const SPAN: Duration = Duration::from_secs(1);
/// … or after so many bytes.
const SPAN_BYTES: u64 = 256 * 1024;
/// Nothing is known of a pause that was longer: perhaps nothing was wanted.
const PAUSE: Duration = Duration::from_secs(30);

/// Bytes that come, and how fast.
#[derive(Debug, Default)]
pub struct Pace {
    since: Instant,
    bytes: u64,
    per_second: Option<u64>,
}

impl Pace {
    /// So many bytes have come.
    pub fn came(&mut self, now: Instant, bytes: u64) {
        if now - self.since > PAUSE {
            (self.since, self.bytes) = (now, 0);
        }
        self.bytes += bytes;
        let span = now - self.since;
        if span >= SPAN || (self.bytes >= SPAN_BYTES && !span.is_zero()) {
            let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX).max(1);
            let fresh = self.bytes.saturating_mul(1_000_000) / micros;
            self.per_second = Some(self.per_second.map_or(fresh, |before| (before + fresh) / 2));
            (self.since, self.bytes) = (now, 0);
        }
    }

    /// How many bytes come within this time, if that is known.
    pub fn within(&self, time: Duration) -> Option<u64> {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.per_second.map(|bytes| bytes.saturating_mul(millis) / 1000)
    }
}
