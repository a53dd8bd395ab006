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
    fn a_guessed_lifetime_is_a_day_at_most() {
        let modified = ("last-modified", "Fri, 02 Jan 1970 00:00:00 GMT");
        let made = |date| lifetime_of(&[modified, ("date", date)]);
        // A tenth of ten days is one day.
        assert_eq!(made("Sun, 11 Jan 1970 23:59:50 GMT"), 86_399);
        assert_eq!(made("Mon, 12 Jan 1970 00:00:00 GMT"), 86_400);
        assert_eq!(made("Mon, 12 Jan 1970 00:00:10 GMT"), 86_400);
        assert_eq!(made("Wed, 02 Jan 1980 00:00:00 GMT"), 86_400);
        // What its origin says is not bounded.
        assert_eq!(lifetime_of(&[modified, ("cache-control", "max-age=86401")]), 86_401);
    }

    #[test]
    fn a_lifetime_is_guessed_for_the_statuses_of_the_rfc_and_for_what_is_public() {
        let modified = ("last-modified", "Thu, 01 Jan 1970 00:06:40 GMT"); // 400 s
        // RFC 9110 §15.1, without 206.
        let listed = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];
        for status in 200..600 {
            let lifetime = |headers: &[_]| {
                let mut record = record(headers);
                record.status = StatusCode::from_u16(status).expect("a status");
                let control = CacheControl::of_response(&record.headers);
                lifetime(&record, &control, Kind::Undecided)
            };
            let guessed = if listed.contains(&status) { 60 } else { 0 };
            assert_eq!(lifetime(&[DATE, modified]), guessed, "{status}");
            // RFC 9111 §5.2.2.9.
            assert_eq!(lifetime(&[DATE, modified, ("cache-control", "public")]), 60, "{status}");
        }
    }

    #[test]
    fn a_class_gives_its_lifetime_to_a_200_alone() {
        let modified = ("last-modified", "Thu, 01 Jan 1970 00:06:40 GMT"); // 400 s
        let mut record = record(&[DATE, modified]);
        let kind = Kind::Changing { lifetime: 7, stale: 0 };
        let control = CacheControl::of_response(&record.headers);
        assert_eq!(lifetime(&record, &control, kind), 7);
        record.status = StatusCode::NOT_FOUND;
        assert_eq!(lifetime(&record, &control, kind), 60, "it is guessed as for other responses");
    }

    #[test]
    fn an_origin_rules_with_any_lifetime_above_zero() {
        let ruled = |headers: &[_]| {
            let record = record(headers);
            let control = CacheControl::of_response(&record.headers);
            is_ruled(&record.headers, &control, record.received)
        };
        assert!(ruled(&[("cache-control", "max-age=1")]));
        assert!(!ruled(&[("cache-control", "max-age=0")]));
        assert!(ruled(&[("cache-control", "max-age=0, no-cache")]));
        assert!(ruled(&[DATE, ("expires", "Thu, 01 Jan 1970 00:16:41 GMT")]));
        assert!(!ruled(&[DATE, ("expires", "Thu, 01 Jan 1970 00:16:40 GMT")]));
        assert!(!ruled(&[DATE]));
    }

    #[test]
    fn an_age_is_the_larger_of_what_was_said_and_what_the_date_shows() {
        let old = ("date", "Thu, 01 Jan 1970 00:15:00 GMT"); // 900 s, 100 s before it came
        let now = Date::from_unix(1010);
        // RFC 9111 §4.2.3: the age that was said, and the time that the response took to come.
        let age = |headers: &[_], carried, took: u64| {
            let mut record = record(headers);
            record.carried = carried;
            record.requested = Date::from_unix(1000 - took);
            age(&record, now)
        };
        assert_eq!(age(&[("age", "5")], 0, 20), 35);
        assert_eq!(age(&[("age", "5")], 7, 20), 37, "the peer knew it to be older");
        assert_eq!(age(&[("age", "7")], 5, 20), 37);
        assert_eq!(age(&[old, ("age", "79")], 0, 20), 110);
        assert_eq!(age(&[old, ("age", "81")], 0, 20), 111);
        let ahead = ("date", "Thu, 01 Jan 1970 01:00:00 GMT"); // 3600 s
        assert_eq!(age(&[ahead], 0, 0), 10, "an origin's clock may be ahead");
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
