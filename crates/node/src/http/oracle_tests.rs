//! Compares our rules with those of the crate `http-cache-semantics` (the *oracle*), for random heads
//! and ages.
//!
//! Our rules differ deliberately in these points, which the generators avoid or the tests below allow for:
//!
//! - a response with a status code that the oracle does not understand is stored if it has a lifetime (RFC 9111
//!   §3);
//! - `must-understand` overrides `no-store` (§5.2.2.3);
//! - a response with neither a lifetime nor a validator could never be used, and is not stored;
//! - a response with `Vary: *` is not stored, because no request ever selects it (§4.1);
//! - a response with `Set-Cookie` needs an explicit lifetime, and is fresh for that long (§7.3 leaves the choice
//!   to the cache);
//! - `Date` counts towards the age, too (§4.2.3), and a heuristic lifetime is at most a day (§4.2.2);
//! - `proxy-revalidate` and `s-maxage` forbid the use of stale responses, not of fresh ones (§5.2.2.8,
//!   §5.2.2.10), and `no-cache` forbids it even if `max-stale` permits it (§5.2.2.4);
//! - `max-stale=5` permits five seconds, not four (§5.2.1.2);
//! - `Pragma` counts in requests only, and only without `Cache-Control` (§5.4);
//! - names of directives are case-insensitive, and of two contradictory spans the shorter counts (§4.2.1);
//! - `immutable` is no lifetime (RFC 8246 §2).

use super::date;
use super::record::{Record, Row};
use super::reuse::{Reuse, decide};
use super::storing::{Asked, judge, selecting, vary};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_cache_semantics::{BeforeRequest, CacheOptions, CachePolicy};
use proptest::prelude::*;
use std::rc::Rc;
use std::time::{Duration, SystemTime};
use wire::{Date, RecordId};

const RECEIVED: Date = Date::from_unix(2_000_000_000);
/// The status codes that the oracle understands.
const STATUSES: [u16; 15] =
    [200, 203, 204, 206, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501];

type Heads = (StatusCode, HeaderMap, HeaderMap, HeaderMap);

fn directives(of: Vec<String>, name: header::HeaderName, headers: &mut HeaderMap) {
    if !of.is_empty() {
        headers.insert(name, HeaderValue::try_from(of.join(", ")).expect("ASCII"));
    }
}

fn response_directives() -> impl Strategy<Value = Vec<String>> {
    let span = prop_oneof![(0u32..200).prop_map(|n| n.to_string()), Just("x".to_owned())];
    (span.clone(), span).prop_flat_map(|(first, second)| {
        let all = [
            format!("max-age={first}"),
            format!("s-maxage={second}"),
            "public".into(),
            "private".into(),
            "no-cache".into(),
            "no-store".into(),
            "must-revalidate".into(),
            "no-transform".into(),
        ];
        prop::sample::subsequence(all.to_vec(), 0..4)
    })
}

fn request_directives() -> impl Strategy<Value = Vec<String>> {
    (0u32..200, 1u32..100, 0u32..200).prop_flat_map(|(age, fresh, stale)| {
        let all = [
            format!("max-age={age}"),
            format!("min-fresh={fresh}"),
            format!("max-stale={stale}"),
            "no-cache".into(),
        ];
        prop::sample::subsequence(all.to_vec(), 0..3)
    })
}

fn response() -> impl Strategy<Value = (StatusCode, HeaderMap)> {
    let dates = (any::<bool>(), prop::option::of(0u64..300), prop::option::of(0u64..300));
    let rest = (prop::option::of(0u32..100), any::<bool>(), prop::option::of(Just("accept")));
    (prop::sample::select(&STATUSES[..]), response_directives(), dates, rest).prop_map(
        |(status, control, (dated, expires, modified), (age, tagged, varies))| {
            let mut headers = HeaderMap::new();
            directives(control, header::CACHE_CONTROL, &mut headers);
            let at = |seconds: u64| date::format(Date::from_unix(seconds));
            if dated {
                headers.insert(header::DATE, date::format(RECEIVED));
            }
            if let Some(after) = expires {
                headers.insert(header::EXPIRES, at(RECEIVED.as_unix() + after - 100));
            }
            if let Some(tens) = modified {
                headers.insert(header::LAST_MODIFIED, at(RECEIVED.as_unix() - 10 * tens));
            }
            if let Some(age) = age {
                headers.insert(header::AGE, HeaderValue::from(age));
            }
            if tagged {
                headers.insert(header::ETAG, HeaderValue::from_static("\"a\""));
            }
            if let Some(name) = varies {
                headers.insert(header::VARY, HeaderValue::from_static(name));
            }
            (StatusCode::from_u16(status).expect("a status"), headers)
        },
    )
}

fn request(first: bool) -> impl Strategy<Value = HeaderMap> {
    let rest = (any::<bool>(), 0..3u8, prop::option::of(prop::sample::select(&["a", "b"][..])));
    (request_directives(), rest).prop_map(move |(control, (pragma, authorized, accept))| {
        let mut headers = HeaderMap::new();
        if first {
            if authorized == 0 {
                headers.insert(header::AUTHORIZATION, HeaderValue::from_static("x"));
            }
        } else if control.is_empty() && pragma {
            headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
        } else {
            directives(control, header::CACHE_CONTROL, &mut headers);
        }
        if let Some(accept) = accept {
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        }
        headers
    })
}

fn heads() -> impl Strategy<Value = Heads> {
    (response(), request(true), request(false))
        .prop_map(|((status, response), first, next)| (status, response, first, next))
}

fn system(date: Date) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(date.as_unix())
}

fn asking(headers: &HeaderMap) -> Request<()> {
    let mut request = Request::get("http://o.test/a").body(()).expect("a request");
    *request.headers_mut() = headers.clone();
    request
}

fn policy((status, response, first, _): &Heads) -> CachePolicy {
    let mut answer = Response::builder().status(*status).body(()).expect("a response");
    *answer.headers_mut() = response.clone();
    CachePolicy::new_options(&asking(first), &answer, system(RECEIVED), CacheOptions::default())
}

fn is_storable((status, response, first, _): &Heads) -> bool {
    let asked =
        Asked { method: &Method::GET, headers: first, verdict: &classes::Verdict::default() };
    judge(&asked, *status, response, RECEIVED).is_ok()
}

fn record((status, response, first, _): &Heads) -> Record {
    let names = vary(response).expect("no star is drawn");
    Record {
        id: RecordId([7; 16]),
        status: *status,
        headers: response.clone(),
        selecting: selecting(names, first),
        requested: RECEIVED,
        received: RECEIVED,
        clocked: true,
        invalid: false,
        carried: 0,
        record_signature: None,
        verified: None,
        length: 5,
        offsets: vec![0],
    }
}

fn says(headers: &HeaderMap, word: &str) -> bool {
    headers.get(header::CACHE_CONTROL).is_some_and(|line| {
        line.to_str().expect("ASCII").split(", ").any(|directive| directive.starts_with(word))
    })
}

/// Whether a stored response could ever be used.
fn is_usable(response: &HeaderMap, policy: &CachePolicy) -> bool {
    let validator =
        response.contains_key(header::ETAG) || response.contains_key(header::LAST_MODIFIED);
    validator || policy.time_to_live(system(RECEIVED)) > Duration::ZERO
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn we_store_what_the_oracle_stores(heads in heads()) {
        let mut lasting = heads.clone();
        // The oracle subtracts `Age` from the lifetime, and `no-cache` sets it to zero. Neither makes a
        // response unusable.
        lasting.1.remove(header::AGE);
        if let Some(control) = lasting.1.get_mut(header::CACHE_CONTROL) {
            let others = control.to_str().expect("ASCII").replace("no-cache", "no-transform");
            *control = HeaderValue::try_from(others).expect("ASCII");
        }
        let expected = policy(&heads).is_storable() && is_usable(&heads.1, &policy(&lasting));
        prop_assert_eq!(is_storable(&heads), expected);
    }

    #[test]
    fn we_call_fresh_what_the_oracle_calls_fresh(heads in heads(), after in 0u64..300) {
        let (response, next) = (&heads.1, &heads.3);
        let stale_differs = says(response, "s-maxage") || says(response, "no-cache");
        if !is_storable(&heads) || (says(next, "max-stale") && stale_differs) {
            return Ok(());
        }
        let now = RECEIVED.plus(after);
        let (record, oracle) = (record(&heads), policy(&heads));
        let mut row = Row::default();
        row.put(Rc::new(record.clone()));
        let (_, left) = record.age_and_freshness(&classes::Verdict::default(), now);
        // The two differ at exactly the permitted second (see `max-stale` above).
        if left <= 0 && says(next, &format!("max-stale={}", -left)) {
            return Ok(());
        }
        let ours = matches!(decide(&row, next, &classes::Verdict::default(), now, true), Reuse::Hit(..));
        let theirs = matches!(
            oracle.before_request(&asking(next), system(now)),
            BeforeRequest::Fresh(_)
        );
        prop_assert_eq!(ours, theirs, "left {}", left);
    }
}
