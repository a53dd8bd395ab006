//! How many bytes of an origin's response may be read, and how long to wait for them.

use std::time::Duration;
use wire::Instant;

/// The timeout of a connection attempt to an origin's only or last address. If an origin has several
/// addresses, the attempts to the others get less time.
pub const DIAL_MAX: Duration = Duration::from_secs(20);
/// The timeout for a response's head, once the origin has the whole request. Some origins respond only when
/// they have news (long polling), so it is as long as the read timeouts of other HTTP proxies.
pub const HEAD_MAX: Duration = Duration::from_secs(15 * 60);
/// The longest pause within a response's content: some origins send only when they have news. TCP detects
/// an origin that has vanished earlier than this.
const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);

/// The credit for one response's content. The content is read as far as the engine grants credit; its
/// timeout runs only while there is credit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grants {
    /// Credit left, in bytes; negative if the last piece was larger than the credit.
    bytes: i64,
    until: Option<Instant>,
}

impl Grants {
    /// The engine grants credit for this many more bytes.
    pub fn grant(&mut self, now: Instant, bytes: u64) {
        let was_open = self.is_open();
        self.bytes = self.bytes.saturating_add_unsigned(bytes);
        if !was_open {
            self.wait(now);
        }
    }

    /// This many bytes were read.
    pub fn took(&mut self, now: Instant, bytes: usize) {
        self.bytes -= bytes as i64;
        self.wait(now);
    }

    /// Whether more may be read. A response without content, or at its end, needs no credit.
    pub fn is_open(&self) -> bool {
        self.bytes > 0
    }

    /// When the origin will have paused for too long; `None` while there is no credit.
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
