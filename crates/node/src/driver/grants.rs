//! What may come of an origin's answer, and how long it is waited for.

use std::time::Duration;
use wire::Instant;

/// An origin has so long to answer a dial, if nobody else can be dialled.
pub const DIAL_MAX: Duration = Duration::from_secs(20);
/// An origin gets so long to begin its answer, once it has the whole request: as long as others give
/// it, since some answer only when there is something to say.
pub const HEAD_MAX: Duration = Duration::from_secs(15 * 60);
/// An origin may pause for so long within its content: some only speak when there is news. One that
/// vanished is noticed earlier, by the connection itself.
const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);

/// The content of one answer on its way: taken as far as the engine grants it, and waited for only then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grants {
    /// Less than nothing if the last piece was larger than what was granted.
    bytes: i64,
    until: Option<Instant>,
}

impl Grants {
    /// So many more bytes may come.
    pub fn grant(&mut self, now: Instant, bytes: u64) {
        let was_open = self.is_open();
        self.bytes = self.bytes.saturating_add_unsigned(bytes);
        if !was_open {
            self.wait(now);
        }
    }

    /// So many bytes came.
    pub fn took(&mut self, now: Instant, bytes: usize) {
        self.bytes -= bytes as i64;
        self.wait(now);
    }

    /// Whether more may be taken. What has no content, or is at its end, needs no grant.
    pub fn is_open(&self) -> bool {
        self.bytes > 0
    }

    /// When the origin has paused for too long. Who may give nothing does not pause.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.until
    }

    fn wait(&mut self, now: Instant) {
        self.until = self.is_open().then(|| now + PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn an_origin_pauses_only_while_it_may_give_something() {
        let pause = PAUSE_MAX.as_secs();
        let mut grants = Grants::default();
        assert_eq!((grants.is_open(), grants.poll_timeout()), (false, None));
        grants.grant(at(1), 10);
        grants.grant(at(2), 10);
        assert_eq!(grants.poll_timeout(), Some(at(1 + pause)), "what may come more is no sign");
        grants.took(at(3), 15);
        assert_eq!((grants.is_open(), grants.poll_timeout()), (true, Some(at(3 + pause))));
        grants.took(at(4), 15);
        assert_eq!((grants.is_open(), grants.poll_timeout()), (false, None));
        grants.grant(at(5), 10);
        assert!(!grants.is_open(), "it came before it was granted");
        grants.grant(at(9999), 1);
        assert_eq!((grants.is_open(), grants.poll_timeout()), (true, Some(at(9999 + pause))));
    }
}
