//! How old a stored response is, and how long it stays fresh (RFC 9111 §4.2).

use super::date;
use super::directives::{CacheControl, span};
use super::record::Record;
use classes::Kind;
use http::{HeaderMap, StatusCode, header};
use wire::Date;

/// A response without explicit lifetime is fresh for a tenth of the time since its last modification,
/// which RFC 9111 §4.2.2 calls typical …
const HEURISTIC_SHARE: u64 = 10;
/// … but not longer than this, in seconds.
const HEURISTIC_MAX: u64 = 86_400;

/// The freshness lifetime that the origin gave, in seconds, if it gave one.
pub fn explicit_lifetime(
    headers: &HeaderMap,
    control: &CacheControl,
    received: Date,
) -> Option<u64> {
    if let Some(seconds) = control.s_maxage.or(control.max_age) {
        return Some(seconds);
    }
    headers.contains_key(header::EXPIRES).then(|| {
        // An unreadable or repeated date means "already expired" (§5.3).
        let expires = date::header(headers, header::EXPIRES).unwrap_or_default();
        expires.since(date::header(headers, header::DATE).unwrap_or(received))
    })
}

/// Whether the origin itself says when the response must be revalidated: after a lifetime above zero,
/// or before each use. A lifetime of zero does not say so. A stale response may still be used if the
/// origin is out of reach (§4.2.4), or if a request permits it (§5.2.1.2).
pub fn is_ruled(headers: &HeaderMap, control: &CacheControl, received: Date) -> bool {
    control.no_cache || explicit_lifetime(headers, control, received).is_some_and(|it| it > 0)
}

/// The record's freshness lifetime in seconds, from the time at which the origin generated the response. If the origin
/// gives none, its content class does, or it is guessed.
pub fn lifetime(record: &Record, control: &CacheControl, kind: Kind) -> u64 {
    let explicit = explicit_lifetime(&record.headers, control, record.received);
    explicit.unwrap_or_else(|| match kind {
        Kind::Changing { lifetime, .. } if record.status == StatusCode::OK => u64::from(lifetime),
        _ if heuristic(record.status) || control.public => heuristic_lifetime(record),
        _ => 0,
    })
}

fn heuristic_lifetime(record: &Record) -> u64 {
    let headers = &record.headers;
    let made = date::header(headers, header::DATE).unwrap_or(record.received);
    let Some(modified) = date::header(headers, header::LAST_MODIFIED) else { return 0 };
    (made.since(modified) / HEURISTIC_SHARE).min(HEURISTIC_MAX)
}

/// Status codes that may be stored without explicit freshness (RFC 9110 §15.1), except 206.
pub fn heuristic(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// The record's age: seconds since the origin generated or validated the response (§4.2.3).
pub fn age(record: &Record, now: Date) -> u64 {
    let said =
        header_age(&record.headers).max(record.carried) + record.received.since(record.requested);
    // The origin's clock is compared with ours only if ours was right when the response arrived.
    let apparent = match date::header(&record.headers, header::DATE) {
        Some(made) if record.clocked => record.received.since(made),
        _ => 0,
    };
    said.max(apparent).saturating_add(now.since(record.received))
}

/// The value of `Age`: the first counts, and a malformed value counts as zero (§5.1).
pub fn header_age(headers: &HeaderMap) -> u64 {
    let Some(Ok(text)) = headers.get(header::AGE).map(|value| value.to_str()) else { return 0 };
    span(text.split(',').next().unwrap_or_default().trim()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    fn lifetime_of(headers: &[(&'static str, &'static str)]) -> u64 {
        let record = record(headers);
        lifetime(&record, &CacheControl::of_response(&record.headers), Kind::Undecided)
    }

    const DATE: (&str, &str) = ("date", "Thu, 01 Jan 1970 00:16:40 GMT"); // 1000 s

    #[test]
    fn the_nearest_rule_gives_the_lifetime() {
        let expires = ("expires", "Thu, 01 Jan 1970 00:18:20 GMT"); // 1100 s
        assert_eq!(lifetime_of(&[DATE, expires]), 100);
        assert_eq!(lifetime_of(&[expires]), 100, "received counts where there is no Date");
        assert_eq!(lifetime_of(&[DATE, expires, ("cache-control", "max-age=7")]), 7);
        assert_eq!(lifetime_of(&[("cache-control", "max-age=7, s-maxage=9")]), 9);
        assert_eq!(lifetime_of(&[DATE, ("expires", "0")]), 0);
        assert_eq!(lifetime_of(&[DATE, expires, expires]), 0, "doubled");
    }

    #[test]
    fn without_explicit_lifetime_a_tenth_of_its_age() {
        let modified = ("last-modified", "Thu, 01 Jan 1970 00:06:40 GMT"); // 400 s
        assert_eq!(lifetime_of(&[DATE, modified]), 60);
        assert_eq!(lifetime_of(&[DATE]), 0);
    }

    #[test]
    fn age_adds_what_was_said_and_what_passed() {
        let now = Date::from_unix(1010);
        assert_eq!(age(&record(&[("age", "5")]), now), 15);
        assert_eq!(age(&record(&[("age", "5, 7")]), now), 15);
        assert_eq!(age(&record(&[("age", "x")]), now), 10);
        let old = ("date", "Thu, 01 Jan 1970 00:15:00 GMT"); // 900 s
        assert_eq!(age(&record(&[old]), now), 110);
        let mut unclocked = record(&[old]);
        unclocked.clocked = false;
        assert_eq!(age(&unclocked, now), 10);
    }
}
