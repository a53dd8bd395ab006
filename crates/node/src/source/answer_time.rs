//! How long a router off the way is waited for.
//!
//! It answers from its store, so nearly all that it takes is the round trip. As for TCP's retransmissions, a smoothed time
//! and its variation say when an answer is overdue (RFC 6298 §2): then the request goes along the way.

use std::time::Duration;

/// Before the first answer.
const FIRST: Duration = Duration::from_millis(500);
/// The limits. TCP sends a lost segment again after 200 ms at the soonest: that is no lie.
const LEAST: Duration = Duration::from_millis(300);
const MOST: Duration = Duration::from_secs(2);

/// The estimate.
#[derive(Debug)]
pub struct AnswerTime {
    /// The smoothed time and its variation, in seconds; `None` before the first answer.
    smoothed: Option<(f64, f64)>,
    timeout: Duration,
}

impl Default for AnswerTime {
    fn default() -> Self {
        Self { smoothed: None, timeout: FIRST }
    }
}

impl AnswerTime {
    /// An answer took this long.
    pub fn took(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        let (mean, variation) = match self.smoothed {
            None => (took, took / 2.0),
            Some((mean, variation)) => {
                (mean + (took - mean) / 8.0, variation + ((took - mean).abs() - variation) / 4.0)
            }
        };
        self.smoothed = Some((mean, variation));
        let timeout = Duration::from_secs_f64(mean + 4.0 * variation);
        self.timeout = timeout.clamp(LEAST, MOST);
    }

    /// An answer was overdue: the next one gets more time, in case answers have become slower.
    pub fn was_overdue(&mut self) {
        self.timeout = (self.timeout * 2).min(MOST);
    }

    /// An answer that takes longer than this is overdue.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn it_follows_what_answers_take() {
        let mut time = AnswerTime::default();
        assert_eq!(time.timeout(), FIRST);
        time.took(ms(100));
        assert_eq!(time.timeout(), ms(300), "RFC 6298 §2.2");
        (0..100).for_each(|_| time.took(ms(400)));
        assert!((ms(400)..ms(401)).contains(&time.timeout()), "{:?}", time.timeout());
        (0..100).for_each(|_| time.took(ms(10)));
        assert_eq!(time.timeout(), LEAST);
        (0..100).for_each(|_| time.took(ms(10_000)));
        assert_eq!(time.timeout(), MOST);
    }

    #[test]
    fn who_is_overdue_gets_more_time_until_an_answer_comes() {
        let mut time = AnswerTime::default();
        time.was_overdue();
        assert_eq!(time.timeout(), ms(1000));
        (0..9).for_each(|_| time.was_overdue());
        assert_eq!(time.timeout(), MOST);
        time.took(ms(100));
        assert_eq!(time.timeout(), ms(300));
    }
}
