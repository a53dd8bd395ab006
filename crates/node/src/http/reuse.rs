//! Whether a stored response answers a request (RFC 9111 §4).

use super::directives::CacheControl;
use super::freshness::{age, explicit_lifetime, lifetime};
use super::record::{Record, Row};
use super::storing::{is_for_all, normal};
use classes::{Kind, Verdict};
use http::{HeaderMap, HeaderName, StatusCode, header};
use std::rc::Rc;
use wire::Date;

/// What to do with the stored responses of a URI.
#[derive(Clone, Debug, PartialEq)]
pub enum Reuse {
    /// Use this record; it stays fresh for this many seconds (negative: stale but permitted).
    Hit(Rc<Record>, i64),
    /// Use this stale record now, and revalidate it meanwhile (RFC 5861 §3); the number is as in `Hit`.
    WhileRevalidating(Rc<Record>, i64),
    /// Revalidate this record at the origin before its use.
    Revalidate(Rc<Record>),
    /// No stored response is selected; `true` if there are records for other request fields.
    Miss(bool),
}

/// A record that never changes counts as fresh for this time, in seconds: a year, the longest lifetime that origins give.
pub const FOR_EVER: i64 = 31_536_000;

/// Decides for one request, by what the classes say of its URI. `clock_right`: whether our clock is right now.
pub fn decide(
    row: &Row,
    request: &HeaderMap,
    verdict: &Verdict,
    now: Date,
    clock_right: bool,
) -> Reuse {
    // The newest record comes first, and is the one to use (§4.1).
    let Some(record) = row.records.iter().find(|record| selects(record, request)) else {
        return Reuse::Miss(!row.records.is_empty());
    };
    // For its credentials the origin may have another response, if it has not said that this one is for all.
    let control = || CacheControl::of_response(&record.headers);
    if request.contains_key(header::AUTHORIZATION) && !is_for_all(&control()) {
        return Reuse::Miss(true);
    }
    let (asked, control, kind) = (CacheControl::heeded(request, verdict), control(), verdict.kind);
    // A client that wants it newer cannot get it newer, unless the class says that it may.
    if never_changes(record, kind) {
        let insists = asked.insists();
        return if insists { Reuse::Revalidate(Rc::clone(record)) } else { hit(record, FOR_EVER) };
    }
    let age = age(record, now);
    let left = lifetime(record, &control, kind) as i64 - age as i64;
    // If the clock was right at only one of the two times, their difference means nothing.
    let unknown_age = record.clocked != clock_right;
    if record.invalid || control.no_cache || asked.no_cache || unknown_age {
        return Reuse::Revalidate(Rc::clone(record));
    }
    // A browser's reload sends `max-age=0`, and must get nothing stored: not even a response of this
    // very second.
    let too_old = asked.max_age.is_some_and(|max| max == 0 || age > max);
    let too_short = asked.min_fresh.is_some_and(|min| left < min as i64);
    if left > 0 {
        let fits = !too_old && !too_short;
        return if fits { hit(record, left) } else { Reuse::Revalidate(Rc::clone(record)) };
    }
    if too_old || too_short || !may_be_stale(&control) {
        return Reuse::Revalidate(Rc::clone(record));
    }
    let stale = left.unsigned_abs();
    if asked.max_stale.is_some_and(|max| stale <= max) {
        return hit(record, left);
    }
    match control.stale_while_revalidate {
        Some(max) if stale <= max => Reuse::WhileRevalidating(Rc::clone(record), left),
        _ => Reuse::Revalidate(Rc::clone(record)),
    }
}

fn hit(record: &Rc<Record>, left: i64) -> Reuse {
    Reuse::Hit(Rc::clone(record), left)
}

/// Whether the content class promises that the content under the record's URI never changes.
pub fn never_changes(record: &Record, kind: Kind) -> bool {
    matches!(kind, Kind::Immutable { .. }) && record.status == StatusCode::OK && !record.invalid
}

/// Fields whose values mean the same in any case: names of codings, of charsets and of languages, and weights
/// (RFC 9110 §12.5.2, §12.5.3, §12.5.4).
const CASELESS: [HeaderName; 3] =
    [header::ACCEPT_CHARSET, header::ACCEPT_ENCODING, header::ACCEPT_LANGUAGE];

/// Whether the request's fields that `Vary` names match those of the record's request: they mean the same, whatever the
/// origin may make of them (§4.1). The order of languages may count for an origin, so it does here.
pub fn selects(record: &Record, request: &HeaderMap) -> bool {
    record.selecting.iter().all(|(name, value)| match (normal(request, name), value) {
        (Some(asked), Some(value)) if CASELESS.contains(name) => asked.eq_ignore_ascii_case(value),
        (asked, value) => asked == *value,
    })
}

/// Whether a response that is still arriving may answer another request, too: if the request could
/// reuse it (§4). A response without explicit lifetime counts as fresh until it has arrived.
pub fn may_join(record: &Record, request: &HeaderMap, verdict: &Verdict, now: Date) -> bool {
    let asked = CacheControl::heeded(request, verdict);
    let kind = verdict.kind;
    if never_changes(record, kind) {
        return selects(record, request) && !asked.insists();
    }
    let control = CacheControl::of_response(&record.headers);
    let age = age(record, now);
    let given = explicit_lifetime(&record.headers, &control, record.received);
    selects(record, request)
        && !control.no_cache
        && !asked.no_cache
        && given.is_none_or(|lifetime| age < lifetime)
        && asked.max_age.is_none_or(|max| age <= max)
        && asked
            .min_fresh
            .is_none_or(|min| lifetime(record, &control, kind) >= age.saturating_add(min))
}

/// Whether no directive forbids using the response once it is stale (§4.2.4).
fn may_be_stale(control: &CacheControl) -> bool {
    !(control.must_revalidate
        || control.proxy_revalidate
        || control.s_maxage.is_some()
        || control.no_cache)
}

/// Whether a stale response may be used because the origin is out of reach or, if `reached`, answered with
/// an error. The first needs no permission (§4.2.4); after a 5xx, `stale-if-error` must permit it
/// (RFC 5861 §4). A content class permits both for its time, also to clients that asked for a newer response: there is
/// none.
pub fn stale_permitted(
    record: &Record,
    request: &HeaderMap,
    verdict: &Verdict,
    now: Date,
    reached: bool,
) -> bool {
    let control = CacheControl::of_response(&record.headers);
    let asked = CacheControl::heeded(request, verdict);
    let kind = verdict.kind;
    if !selects(record, request) || record.invalid || !may_be_stale(&control) {
        return false;
    }
    let stale = age(record, now).saturating_sub(lifetime(record, &control, kind));
    let of_class = match kind {
        Kind::Changing { stale, .. } if record.status == StatusCode::OK => Some(u64::from(stale)),
        _ => None,
    };
    if of_class.is_some_and(|max| stale <= max) {
        return true;
    }
    if asked.insists() {
        return false;
    }
    let permitted = control.stale_if_error.or(asked.stale_if_error);
    if reached { permitted.is_some_and(|max| stale <= max) } else { true }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use classes::Heeds;

    /// The decision 100 s after the record was received, as text.
    /// What a table says of such a URL if it says no more.
    fn of(kind: Kind) -> Verdict {
        let heeds = match kind {
            Kind::Immutable { .. } => Heeds::Nothing,
            Kind::Undecided | Kind::Changing { .. } => Heeds::All,
        };
        Verdict { kind, heeds, ..Verdict::default() }
    }

    fn word(
        response: &[(&'static str, &'static str)],
        request: &[(&'static str, &'static str)],
    ) -> String {
        word_as(Kind::Undecided, response, request)
    }

    fn word_as(
        kind: Kind,
        response: &[(&'static str, &'static str)],
        request: &[(&'static str, &'static str)],
    ) -> String {
        word_at(1100, kind, response, request)
    }

    fn word_at(
        now: u64,
        kind: Kind,
        response: &[(&'static str, &'static str)],
        request: &[(&'static str, &'static str)],
    ) -> String {
        let mut row = Row::default();
        row.put(Rc::new(record(response)));
        match decide(&row, &record(request).headers, &of(kind), Date::from_unix(now), true) {
            Reuse::Hit(_, left) => format!("hit {left}"),
            Reuse::WhileRevalidating(_, left) => format!("while {left}"),
            Reuse::Revalidate(_) => "revalidate".into(),
            Reuse::Miss(_) => "miss".into(),
        }
    }

    #[test]
    fn fresh_is_used_and_stale_is_not() {
        assert_eq!(word(&[("cache-control", "max-age=101")], &[]), "hit 1");
        assert_eq!(word(&[("cache-control", "max-age=100")], &[]), "revalidate");
        assert_eq!(word(&[("cache-control", "max-age=999, no-cache")], &[]), "revalidate");
        assert_eq!(
            word(&[("cache-control", "max-age=50, stale-while-revalidate=60")], &[]),
            "while -50"
        );
        assert_eq!(
            word(&[("cache-control", "max-age=50, stale-while-revalidate=40")], &[]),
            "revalidate"
        );
    }

    #[test]
    fn stale_while_revalidating_is_used_for_as_long_as_it_says() {
        let word = |control| word(&[("cache-control", control)], &[]);
        // RFC 5861 §3: up to that number of seconds after it has become stale.
        assert_eq!(word("max-age=50, stale-while-revalidate=50"), "while -50");
        assert_eq!(word("max-age=50, stale-while-revalidate=49"), "revalidate");
        // It has become stale in this second.
        assert_eq!(word("max-age=100, stale-while-revalidate=0"), "while 0");
    }

    #[test]
    fn a_reload_gets_nothing_stored_not_even_of_this_second() {
        let word = |now, request| {
            let response = [("cache-control", "max-age=200")];
            word_at(now, Kind::Undecided, &response, &[("cache-control", request)])
        };
        assert_eq!(word(1000, "max-age=0"), "revalidate");
        assert_eq!(word(1000, "max-age=1"), "hit 200");
        assert_eq!(word(1001, "max-age=1"), "hit 199");
        assert_eq!(word(1002, "max-age=1"), "revalidate");
    }

    #[test]
    fn a_client_that_takes_stale_responses_may_still_limit_their_age() {
        let word =
            |request| word(&[("cache-control", "max-age=50")], &[("cache-control", request)]);
        assert_eq!(word("max-stale, max-age=100"), "hit -50");
        assert_eq!(word("max-stale, max-age=99"), "revalidate");
        assert_eq!(word("max-stale, min-fresh=0"), "revalidate", "it is not fresh for now");
    }

    #[test]
    fn a_response_under_way_is_joined_as_long_as_it_could_be_reused() {
        let joins = |response, request| {
            let request = record(&[("cache-control", request)]).headers;
            let record = record(&[("cache-control", response)]);
            may_join(&record, &request, &Verdict::default(), Date::from_unix(1100))
        };
        // RFC 9111 §4.2: it is fresh if its lifetime is greater than its age.
        assert!(joins("max-age=101", "") && !joins("max-age=100", ""));
        assert!(joins("", ""), "without a lifetime it is fresh until it has arrived");
        // §5.2.1.1: an age of at most that many seconds.
        assert!(joins("max-age=200", "max-age=100") && !joins("max-age=200", "max-age=99"));
        // §5.2.1.3: a lifetime of no less than its age and that many seconds.
        assert!(joins("max-age=200", "min-fresh=100") && !joins("max-age=200", "min-fresh=101"));
        assert!(!joins("max-age=200, no-cache", "") && !joins("max-age=200", "no-cache"));
    }

    #[test]
    fn credentials_get_only_what_is_for_all() {
        let word = |control| word(&[("cache-control", control)], &[("authorization", "Basic x")]);
        assert_eq!(word("max-age=101"), "miss");
        assert_eq!(word("max-age=101, public"), "hit 1");
        assert_eq!(word("max-age=101, must-revalidate"), "hit 1");
        assert_eq!(word("s-maxage=101"), "hit 1");
        assert_eq!(word("max-age=100, public"), "revalidate");
        let never = Kind::Immutable { digest: None };
        assert_eq!(word_as(never, &[], &[("authorization", "Basic x")]), "miss");
    }

    #[test]
    fn a_variant_is_selected_in_any_case_where_case_means_nothing() {
        let selects = |name: &'static str, ours: &str, asked: &'static str| {
            let mut record = record(&[]);
            let name_of = HeaderName::from_static(name);
            record.selecting = vec![(name_of, Some(ours.as_bytes().to_vec()))];
            selects(&record, &self::record(&[(name, asked)]).headers)
        };
        for name in ["accept-language", "accept-encoding", "accept-charset"] {
            assert!(selects(name, "en,de;q=0.5", "EN, De;Q=0.5"), "{name}");
            assert!(!selects(name, "en,de", "de, en"), "{name}");
            assert!(!selects(name, "en,de", "en"), "{name}");
        }
        for name in ["user-agent", "x"] {
            assert!(
                selects(name, "en,de", "en, de") && !selects(name, "en,de", "En, de"),
                "{name}"
            );
        }
    }

    #[test]
    fn the_client_may_want_it_fresher_or_staler() {
        let fresh = [("cache-control", "max-age=200")];
        assert_eq!(word(&fresh, &[("cache-control", "max-age=99")]), "revalidate");
        assert_eq!(word(&fresh, &[("cache-control", "max-age=100")]), "hit 100");
        assert_eq!(word(&fresh, &[("cache-control", "min-fresh=100")]), "hit 100");
        assert_eq!(word(&fresh, &[("cache-control", "min-fresh=101")]), "revalidate");
        assert_eq!(word(&fresh, &[("pragma", "no-cache")]), "revalidate");
        let stale = [("cache-control", "max-age=50")];
        assert_eq!(word(&stale, &[("cache-control", "max-stale=50")]), "hit -50");
        assert_eq!(word(&stale, &[("cache-control", "max-stale")]), "hit -50");
        assert_eq!(word(&stale, &[("cache-control", "max-stale=49")]), "revalidate");
        let strict = [("cache-control", "max-age=50, must-revalidate")];
        assert_eq!(word(&strict, &[("cache-control", "max-stale")]), "revalidate");
    }

    #[test]
    fn a_failed_origin_permits_stale_only_where_nothing_forbids_it() {
        let permitted = |control, reached| {
            let record = record(&[("cache-control", control)]);
            stale_permitted(
                &record,
                &HeaderMap::new(),
                &Verdict::default(),
                Date::from_unix(1100),
                reached,
            )
        };
        assert!(permitted("max-age=1", false));
        assert!(!permitted("max-age=1", true));
        assert!(permitted("max-age=1, stale-if-error=99", true));
        assert!(!permitted("max-age=1, stale-if-error=98", true));
        for strict in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=1"] {
            assert!(!permitted(strict, false), "{strict}");
        }
    }

    #[test]
    fn an_insistent_client_gets_nothing_stale_though_its_origin_is_out_of_reach() {
        let permitted = |asked, invalid| {
            let mut record = record(&[("cache-control", "max-age=1")]);
            record.invalid = invalid;
            let asked = self::record(&[("cache-control", asked)]).headers;
            stale_permitted(&record, &asked, &Verdict::default(), Date::from_unix(1100), false)
        };
        assert!(permitted("", false) && permitted("max-age=1", false));
        assert!(!permitted("max-age=0", false) && !permitted("no-cache", false));
        assert!(!permitted("", true), "it was replaced");
    }

    #[test]
    fn what_never_changes_is_used_whatever_the_client_asks() {
        let word = |response: &[_], request: &[_]| {
            word_as(Kind::Immutable { digest: None }, response, request)
        };
        let expected = format!("hit {FOR_EVER}");
        for request in ["max-age=0", "no-cache", "min-fresh=999999999"] {
            assert_eq!(word(&[], &[("cache-control", request)]), expected, "{request}");
        }
        assert_eq!(word(&[("cache-control", "max-age=1, must-revalidate")], &[]), expected);
        let mut withdrawn = record(&[]);
        withdrawn.invalid = true;
        assert!(!never_changes(&withdrawn, Kind::Immutable { digest: None }));
        let mut missing = record(&[]);
        missing.status = StatusCode::NOT_FOUND;
        assert!(!never_changes(&missing, Kind::Immutable { digest: None }));
    }

    fn asked_of(
        verdict: Verdict,
        response: &[(&'static str, &'static str)],
        asked: &'static str,
    ) -> String {
        let mut row = Row::default();
        row.put(Rc::new(record(response)));
        let request = record(&[("cache-control", asked)]).headers;
        match decide(&row, &request, &verdict, Date::from_unix(1100), true) {
            Reuse::Hit(_, left) => format!("hit {left}"),
            other => format!("{other:?}").split('(').next().unwrap().to_lowercase(),
        }
    }

    #[test]
    fn what_may_be_published_again_is_revalidated_for_who_insists() {
        let kind = Kind::Immutable { digest: None };
        let word =
            |asked| asked_of(Verdict { kind, heeds: Heeds::All, ..Verdict::default() }, &[], asked);
        for asked in ["no-cache", "no-store", "max-age=0"] {
            assert_eq!(word(asked), "revalidate", "{asked}");
        }
        for asked in ["", "max-age=1", "min-fresh=999999999"] {
            assert_eq!(word(asked), format!("hit {FOR_EVER}"), "{asked}");
        }
    }

    #[test]
    fn an_index_may_be_as_old_as_its_class_says_unless_no_cache_is_asked() {
        let word = |lifetime, heeds, response, asked| {
            let kind = Kind::Changing { lifetime, stale: 0 };
            asked_of(
                Verdict { kind, heeds, ..Verdict::default() },
                &[("cache-control", response)],
                asked,
            )
        };
        let no_cache = Heeds::NoCache;
        assert_eq!(word(100, no_cache, "max-age=300", "max-age=0"), "hit 200");
        assert_eq!(word(99, no_cache, "max-age=300", "max-age=0"), "revalidate", "a second older");
        assert_eq!(word(99, no_cache, "max-age=300", "max-age=100"), "hit 200");
        assert_eq!(word(100, no_cache, "max-age=300", "no-cache"), "revalidate");
        assert_eq!(word(100, no_cache, "max-age=300", "no-store"), "revalidate");
        assert_eq!(word(100, Heeds::All, "max-age=300", "max-age=0"), "revalidate");
        assert_eq!(word(100, no_cache, "max-age=100", "max-age=0"), "revalidate", "it is stale");
    }

    #[test]
    fn a_class_gives_a_lifetime_where_the_origin_gives_none() {
        let word = |lifetime, response: &[_], request: &[_]| {
            word_as(Kind::Changing { lifetime, stale: 0 }, response, request)
        };
        assert_eq!(word(101, &[], &[]), "hit 1");
        assert_eq!(word(100, &[], &[]), "revalidate");
        assert_eq!(word(999, &[("cache-control", "max-age=50")], &[]), "revalidate");
        assert_eq!(word(999, &[], &[("cache-control", "max-age=0")]), "revalidate");
    }

    #[test]
    fn a_class_permits_stale_responses_for_its_time() {
        let permitted = |control, asked, reached| {
            let record = record(&[("cache-control", control)]);
            let asked = self::record(&[("cache-control", asked)]).headers;
            let kind = Kind::Changing { lifetime: 50, stale: 50 };
            stale_permitted(&record, &asked, &of(kind), Date::from_unix(1100), reached)
        };
        for reached in [false, true] {
            assert!(permitted("", "max-age=0", reached));
            assert!(permitted("max-age=50", "no-cache", reached));
            assert!(!permitted("max-age=49", "no-cache", reached), "a second too old");
            assert!(!permitted("must-revalidate", "", reached));
        }
    }

    #[test]
    fn a_miss_tells_whether_there_are_records_for_other_requests() {
        let miss = |row: &Row| {
            decide(row, &HeaderMap::new(), &Verdict::default(), Date::from_unix(1000), true)
        };
        assert_eq!(miss(&Row::default()), Reuse::Miss(false));
        let mut row = Row::default();
        let selecting = vec![(header::ACCEPT, Some(b"a".to_vec()))];
        row.put(Rc::new(Record { selecting, ..record(&[]) }));
        assert_eq!(miss(&row), Reuse::Miss(true));
    }

    #[test]
    fn a_class_permits_a_stale_200_alone() {
        let permitted = |status| {
            let record = Record { status, ..record(&[]) };
            let kind = Kind::Changing { lifetime: 50, stale: 50 };
            stale_permitted(&record, &HeaderMap::new(), &of(kind), Date::from_unix(1040), true)
        };
        assert!(permitted(StatusCode::OK) && !permitted(StatusCode::NOT_FOUND));
    }
}
