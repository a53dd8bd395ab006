//! Origins that want to be asked no more for a while (`Retry-After`, RFC 9110 §10.2.3).

use crate::context::Context;
use crate::http::{self, Record, Target};
use crate::request::Ask;
use ::http::{HeaderMap, StatusCode, header};
use classes::Kind;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{Date, Instant};

/// Origins that are known to pause; the one whose pause ends first makes room.
const PAUSES_MAX: usize = 64;
/// No pause is longer, whatever an origin says.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// When each origin may be asked again.
#[derive(Debug, Default)]
pub struct Pauses(BTreeMap<String, Instant>);

impl Pauses {
    /// An origin has answered: with 429 or 503 it may name a pause. `date` is none if our clock is wrong.
    pub fn learn(
        &mut self,
        target: &Target,
        status: StatusCode,
        headers: &HeaderMap,
        (now, date): (Instant, Option<Date>),
    ) {
        let asks =
            matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let Some(pause) = pause(headers, date).filter(|_| asks) else { return };
        self.0.retain(|_, until| *until > now);
        let origin = origin(target);
        if self.0.len() >= PAUSES_MAX && !self.0.contains_key(&origin) {
            let first = self.0.iter().min_by_key(|(_, until)| **until).map(|(it, _)| it.clone());
            first.into_iter().for_each(|it| _ = self.0.remove(&it));
        }
        self.0.insert(origin, now + pause.min(PAUSE_MAX));
    }

    /// Whether a stale record is served without asking its origin, which wants to be left alone: if its class permits that.
    pub fn excuse(&self, cx: &Context, ask: &Ask, record: &Record) -> bool {
        matches!(ask.verdict.kind, Kind::Changing { .. })
            && self.has(&ask.target, cx.now)
            && http::stale_permitted(record, &ask.headers, &ask.verdict, cx.date(), true)
    }

    fn has(&self, target: &Target, now: Instant) -> bool {
        !self.0.is_empty() && self.0.get(&origin(target)).is_some_and(|until| *until > now)
    }
}

fn origin(target: &Target) -> String {
    let scheme = if target.is_tls() { "https" } else { "http" };
    format!("{scheme}://{}", target.authority())
}

fn pause(headers: &HeaderMap, date: Option<Date>) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = http::parse_date(text)?;
    Some(Duration::from_secs(until.since(date?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::HeaderValue;

    fn target(url: &str) -> Target {
        Target::read(&url.parse().expect("a URI")).expect("a target")
    }

    fn headers(text: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(text))])
    }

    const ASKED: &str = "https://r.test/v2/a";

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn until(status: u16, text: &'static str, date: Option<u64>) -> u64 {
        let mut pauses = Pauses::default();
        let status = StatusCode::from_u16(status).unwrap();
        let now = (at(10), date.map(Date::from_unix));
        pauses.learn(&target(ASKED), status, &headers(text), now);
        (10..10_000).find(|it| !pauses.has(&target("https://r.test/v2/b"), at(*it))).unwrap()
    }

    #[test]
    fn an_origin_is_left_alone_for_as_long_as_it_says_and_an_hour_at_most() {
        assert_eq!(until(429, "30", None), 40);
        assert_eq!(until(503, "30", None), 40);
        assert_eq!(until(200, "30", None), 10);
        assert_eq!(until(429, "99999", None), 3610);
        assert_eq!(until(429, "soon", None), 10);
        let date = "Thu, 01 Jan 1970 00:16:50 GMT";
        assert_eq!(until(429, date, Some(1000)), 20);
        assert_eq!(until(429, date, Some(2000)), 10, "it is over");
        assert_eq!(until(429, date, None), 10, "with a wrong clock a date says nothing");
    }

    #[test]
    fn a_pause_is_of_one_origin_and_pauses_are_bounded() {
        let mut pauses = Pauses::default();
        let learn = |pauses: &mut Pauses, url: &str, seconds| {
            let status = StatusCode::TOO_MANY_REQUESTS;
            pauses.learn(&target(url), status, &headers(seconds), (at(0), None));
        };
        learn(&mut pauses, ASKED, "50");
        for other in ["http://r.test/v2/a", "https://r.test:444/v2/a", "https://s.test/v2/a"] {
            assert!(!pauses.has(&target(other), at(1)), "{other}");
        }
        (0..64).for_each(|n| learn(&mut pauses, &format!("https://{n}.test/"), "60"));
        assert_eq!(pauses.0.len(), PAUSES_MAX);
        assert!(!pauses.has(&target(ASKED), at(1)), "its pause would have ended first");
        assert!(pauses.has(&target("https://0.test/"), at(59)));
    }
}
