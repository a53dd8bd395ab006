//! Whether a response may be stored, and in which form (RFC 9111 §3).

use super::directives::CacheControl;
use super::freshness::{explicit_lifetime, heuristic, is_ruled};
use super::headers::binds;
use classes::{Kind, Verdict};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use wire::Date;

wire::reasons! {
    /// Why a response is not stored; shown in `Cache-Status` and counted.
    pub enum NotStored {
        /// Asked for with credentials.
        Authorization = "authorization",
        /// The request had content.
        Body = "body",
        /// Larger than an object may be.
        BodySize = "body-size",
        /// Its content class is never kept.
        Class = "class",
        /// Coded: its digest cannot be checked.
        Coded = "coded",
        /// Asked for with a cookie, or sets one.
        // The response may be for one user only: the origin gave neither a lifetime above zero nor
        // `no-cache`.
        Cookie = "cookie",
        /// Its connection is one user's.
        Connection = "connection",
        /// Asked for its head alone.
        Head = "head",
        /// Its header is too large.
        HeaderSize = "header-size",
        /// Host names another server.
        HostMismatch = "host-mismatch",
        /// The resolver does not answer.
        HostUnknown = "host-unknown",
        /// Neither GET nor HEAD.
        Method = "method",
        /// Client or origin forbid it.
        NoStore = "no-store",
        /// Asked for a certain version.
        Precondition = "precondition",
        /// For one user only.
        Private = "private",
        /// A part of an object.
        Range = "range",
        /// The peer does not store it either.
        Relayed = "relayed",
        /// Not a whole or final answer.
        Status = "status",
        /// The store does not work.
        Store = "store",
        /// No HTTP that we can read.
        Unreadable = "unreadable",
        /// Neither lifetime nor validator.
        Unusable = "unusable",
        /// Leaves HTTP.
        Upgrade = "upgrade",
        /// Too many variants (Vary).
        Vary = "vary",
    }
}

/// The most header bytes of a stored response.
const HEADERS_MAX: usize = 32 * 1024;
/// The most fields that one `Vary` may name.
const VARY_MAX: usize = 16;

/// The request to which a response answers.
pub struct Asked<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// The request's header fields.
    pub headers: &'a HeaderMap,
    /// What the content classes say of its URL.
    pub verdict: &'a Verdict,
}

/// Decides whether a response may be stored, from its head.
pub fn judge(
    asked: &Asked<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    now: Date,
) -> Result<(), NotStored> {
    let control = CacheControl::of_response(headers);
    if asked.method != Method::GET {
        return Err(NotStored::Method);
    }
    if matches!(status.as_u16(), ..200 | 206 | 304) || !understood(status, &control) {
        return Err(NotStored::Status);
    }
    // `must-understand` of a status that is understood overrides `no-store` (§5.2.2.3).
    if (control.no_store && !control.must_understand)
        || CacheControl::heeded(asked.headers, asked.verdict).no_store
    {
        return Err(NotStored::NoStore);
    }
    if control.private {
        return Err(NotStored::Private);
    }
    // Which client the connection was known for cannot be told.
    if binds(headers) || binds(asked.headers) {
        return Err(NotStored::Connection);
    }
    if asked.headers.contains_key(header::AUTHORIZATION) && !is_for_all(&control) {
        return Err(NotStored::Authorization);
    }
    // `Vary: *` matches no later request.
    let varies = vary(headers).ok_or(NotStored::Vary)?;
    // A variant is stored with the fields that select it: credentials would be on the disk.
    if varies.contains(&header::AUTHORIZATION) {
        return Err(NotStored::Authorization);
    }
    if !is_promised(asked.verdict.kind, status, headers) {
        usable(status, headers, &control, now)?;
    }
    // The response may depend on the cookie. Only the origin can permit its use for others, by a rule
    // of its own.
    if asked.headers.contains_key(header::COOKIE) && !is_ruled(headers, &control, now) {
        return Err(NotStored::Cookie);
    }
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if size > HEADERS_MAX { Err(NotStored::HeaderSize) } else { Ok(()) }
}

/// Whether the origin permits that others get what it sent for credentials (§3.5).
pub fn is_for_all(control: &CacheControl) -> bool {
    control.public || control.must_revalidate || control.s_maxage.is_some()
}

/// Whether the content class makes a response usable later, without lifetime and validator. The path of a class that
/// changes may still answer with a cookie for one client.
fn is_promised(kind: Kind, status: StatusCode, headers: &HeaderMap) -> bool {
    let is_promised = match kind {
        Kind::Undecided => false,
        Kind::Immutable { .. } => true,
        Kind::Changing { .. } => !headers.contains_key(header::SET_COOKIE),
    };
    is_promised && status == StatusCode::OK
}

fn understood(status: StatusCode, control: &CacheControl) -> bool {
    !control.must_understand || heuristic(status) || matches!(status.as_u16(), 302 | 303 | 307)
}

/// Whether a rule permits storing the response (§3), and a lifetime or validator makes it usable later.
fn usable(
    status: StatusCode,
    headers: &HeaderMap,
    control: &CacheControl,
    now: Date,
) -> Result<(), NotStored> {
    let lifetime = explicit_lifetime(headers, control, now);
    let validator =
        headers.contains_key(header::ETAG) || headers.contains_key(header::LAST_MODIFIED);
    let permitted = control.public || lifetime.is_some() || heuristic(status);
    // A response that sets a cookie may answer other clients only if the origin gives its lifetime.
    let fresh = lifetime.unwrap_or(0) > 0;
    let guessed = !fresh && headers.contains_key(header::SET_COOKIE);
    if !permitted || guessed || (!fresh && !validator) {
        return Err(NotStored::Unusable);
    }
    Ok(())
}

/// The request fields that `Vary` names, sorted. `None` if no request can select the response (§4.1),
/// or if too many are named.
pub fn vary(headers: &HeaderMap) -> Option<Vec<HeaderName>> {
    let mut names = Vec::new();
    for line in headers.get_all(header::VARY) {
        for name in line.to_str().ok()?.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            // `*` is a token, and so a valid name to the parser.
            let name = HeaderName::from_bytes(name.as_bytes()).ok().filter(|n| n != "*")?;
            names.push(name);
        }
    }
    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    (names.len() <= VARY_MAX).then_some(names)
}

/// The selecting fields with this request's values, in normal form.
pub fn selecting(
    names: Vec<HeaderName>,
    request: &HeaderMap,
) -> Vec<(HeaderName, Option<Vec<u8>>)> {
    names.into_iter().map(|name| (name.clone(), normal(request, &name))).collect()
}

/// A field's value in normal form: its lines joined by commas, without white space around items. Of `Accept`, whose order
/// may count for an origin, what surely means nothing is left out: case, repetitions, and the weight 1 (RFC 9110 §12.5.1).
pub fn normal(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let lines: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
    (!lines.is_empty()).then(|| {
        let items = lines.iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        if *name != header::ACCEPT {
            return items.map(<[u8]>::trim_ascii).collect::<Vec<_>>().join(&b","[..]);
        }
        let mut kept: Vec<Vec<u8>> = Vec::new();
        for range in items.map(media_range).filter(|it| !it.is_empty()) {
            if !kept.contains(&range) {
                kept.push(range);
            }
        }
        kept.join(&b","[..])
    })
}

/// A media range with its parameters, in lower case.
fn media_range(item: &[u8]) -> Vec<u8> {
    let parts = item.split(|byte| *byte == b';').map(|it| it.trim_ascii().to_ascii_lowercase());
    let is_whole = |it: &[u8]| {
        it.strip_prefix(b"q=1")
            .is_some_and(|it| matches!(it, b"" | b"." | b".0" | b".00" | b".000"))
    };
    parts.filter(|it| !is_whole(it)).collect::<Vec<_>>().join(&b";"[..])
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    const FRESH: (&str, &str) = ("cache-control", "max-age=60");

    fn judged(
        request: &[(&'static str, &'static str)],
        status: u16,
        response: &[(&'static str, &'static str)],
    ) -> Result<(), NotStored> {
        judged_as(Kind::Undecided, request, status, response)
    }

    fn judged_as(
        kind: Kind,
        request: &[(&'static str, &'static str)],
        status: u16,
        response: &[(&'static str, &'static str)],
    ) -> Result<(), NotStored> {
        let asked = Asked {
            method: &Method::GET,
            headers: &record(request).headers,
            verdict: &Verdict { kind, ..Verdict::default() },
        };
        let status = StatusCode::from_u16(status).unwrap();
        judge(&asked, status, &record(response).headers, Date::from_unix(1000))
    }

    #[test]
    fn what_permits_storing_is_stored() {
        assert_eq!(judged(&[], 200, &[FRESH]), Ok(()));
        assert_eq!(judged(&[], 599, &[FRESH]), Ok(()));
        assert_eq!(judged(&[], 200, &[("etag", "\"a\"")]), Ok(()));
        assert_eq!(judged(&[], 404, &[("last-modified", "x")]), Ok(()));
        let shared = ("cache-control", "s-maxage=5");
        assert_eq!(judged(&[("authorization", "x")], 200, &[shared]), Ok(()));
        let understood = ("cache-control", "no-store, must-understand, max-age=5");
        assert_eq!(judged(&[], 200, &[understood]), Ok(()));
    }

    #[test]
    fn what_forbids_storing_is_not() {
        let no_store = ("cache-control", "no-store");
        assert_eq!(judged(&[], 200, &[FRESH, no_store]), Err(NotStored::NoStore));
        assert_eq!(judged(&[no_store], 200, &[FRESH]), Err(NotStored::NoStore));
        let private = ("cache-control", "private=\"set-cookie\", max-age=60");
        assert_eq!(judged(&[], 200, &[private]), Err(NotStored::Private));
        assert_eq!(judged(&[("authorization", "x")], 200, &[FRESH]), Err(NotStored::Authorization));
        assert_eq!(judged(&[], 206, &[FRESH]), Err(NotStored::Status));
        assert_eq!(judged(&[], 200, &[FRESH, ("vary", "accept, *")]), Err(NotStored::Vary));
        assert_eq!(judged(&[], 200, &[]), Err(NotStored::Unusable));
        assert_eq!(judged(&[], 599, &[("etag", "x")]), Err(NotStored::Unusable));
        let guessed = [("last-modified", "x"), ("set-cookie", "a=b")];
        assert_eq!(judged(&[], 200, &guessed), Err(NotStored::Unusable));
        let unknown = ("cache-control", "must-understand, max-age=5");
        assert_eq!(judged(&[], 499, &[unknown]), Err(NotStored::Status));
    }

    #[test]
    fn a_class_makes_a_bare_answer_usable_but_permits_nothing_that_is_forbidden() {
        let never_changes = Kind::Immutable { digest: None };
        let changes = Kind::Changing { lifetime: 60, stale: 60 };
        for kind in [never_changes, changes] {
            let judged =
                |request: &[_], status, response: &[_]| judged_as(kind, request, status, response);
            assert_eq!(judged(&[], 200, &[]), Ok(()));
            assert_eq!(judged(&[], 599, &[]), Err(NotStored::Unusable));
            assert_eq!(judged(&[], 200, &[("cache-control", "no-store")]), Err(NotStored::NoStore));
            assert_eq!(judged(&[], 200, &[("cache-control", "private")]), Err(NotStored::Private));
            assert_eq!(judged(&[("authorization", "x")], 200, &[]), Err(NotStored::Authorization));
            assert_eq!(judged(&[("cookie", "x")], 200, &[]), Err(NotStored::Cookie));
        }
        let sets = [("set-cookie", "a=b")];
        assert_eq!(judged_as(never_changes, &[], 200, &sets), Ok(()));
        assert_eq!(judged_as(changes, &[], 200, &sets), Err(NotStored::Unusable));
    }

    #[test]
    fn after_a_cookie_no_lifetime_is_guessed() {
        let judged = |response: &[_]| judged(&[("cookie", "a=b")], 200, response);
        assert_eq!(judged(&[("last-modified", "x")]), Err(NotStored::Cookie));
        let public = ("cache-control", "public, must-revalidate");
        assert_eq!(judged(&[("etag", "\"a\""), public]), Err(NotStored::Cookie));
        assert_eq!(judged(&[FRESH]), Ok(()));
        assert_eq!(judged(&[FRESH, ("set-cookie", "a=b")]), Ok(()));
        for zero in
            [("expires", "0"), ("cache-control", "max-age=0"), ("cache-control", "s-maxage=0")]
        {
            assert_eq!(judged(&[zero, ("etag", "\"a\"")]), Err(NotStored::Cookie), "{zero:?}");
        }
        assert_eq!(judged(&[("cache-control", "no-cache"), ("etag", "\"a\"")]), Ok(()));
    }

    #[test]
    fn selecting_fields_have_a_normal_form() {
        let names = vary(&record(&[("vary", "B, a"), ("vary", "b")]).headers).unwrap();
        let request = record(&[("a", "1 , 2"), ("a", "3")]).headers;
        let fields = selecting(names, &request);
        assert_eq!(fields[0].1.as_deref(), Some(&b"1,2,3"[..]));
        assert_eq!((fields[1].0.as_str(), &fields[1].1), ("b", &None));
    }

    #[test]
    fn a_stored_head_has_32_kib_at_most() {
        let of = |bytes: usize| {
            let mut response = record(&[FRESH]).headers;
            let others = FRESH.0.len() + FRESH.1.len() + "x".len();
            response.insert("x", "y".repeat(bytes - others).parse().unwrap());
            let request = HeaderMap::new();
            let asked =
                Asked { method: &Method::GET, headers: &request, verdict: &Verdict::default() };
            judge(&asked, StatusCode::OK, &response, Date::from_unix(1000))
        };
        assert_eq!((of(32 * 1024), of(32 * 1024 + 1)), (Ok(()), Err(NotStored::HeaderSize)));
    }

    #[test]
    fn sixteen_fields_may_select_a_response() {
        let names = |count: usize| {
            // One that is named again counts once.
            let names: Vec<_> =
                (0..count).chain([0]).map(|number| format!("a{number:02}")).collect();
            let text = names.join(", ").parse().unwrap();
            vary(&HeaderMap::from_iter([(header::VARY, text)])).map(|names| names.len())
        };
        assert_eq!((names(16), names(17)), (Some(16), None));
    }

    #[test]
    fn only_final_answers_to_get_are_stored() {
        for status in [100, 101, 199, 206, 304] {
            assert_eq!(judged(&[], status, &[FRESH]), Err(NotStored::Status), "{status}");
        }
        let headers = record(&[FRESH]).headers;
        for method in [Method::HEAD, Method::POST, Method::OPTIONS] {
            let asked =
                Asked { method: &method, headers: &HeaderMap::new(), verdict: &Verdict::default() };
            let judged = judge(&asked, StatusCode::OK, &headers, Date::from_unix(1000));
            assert_eq!(judged, Err(NotStored::Method), "{method}");
        }
        // RFC 9111 §5.2.2.3: statuses whose meaning for caches we know.
        let understood = ("cache-control", "must-understand, no-store, max-age=5");
        for status in [200, 204, 301, 302, 303, 307, 308, 404, 410] {
            assert_eq!(judged(&[], status, &[understood]), Ok(()), "{status}");
        }
        for status in [201, 305, 306, 400, 500] {
            assert_eq!(judged(&[], status, &[understood]), Err(NotStored::Status), "{status}");
        }
    }

    #[test]
    fn what_a_connection_that_may_know_its_client_gave_is_not_stored() {
        let (asked, answered) = (("authorization", "Negotiate x"), ("www-authenticate", "NTLM x"));
        let public = ("cache-control", "public, max-age=60");
        for (request, response) in [
            (&[asked][..], &[public][..]),
            (&[], &[public, answered]),
            (&[asked], &[public, answered]),
        ] {
            assert_eq!(judged(request, 200, response), Err(NotStored::Connection));
        }
        assert_eq!(judged(&[("authorization", "Basic x")], 200, &[public]), Ok(()));
    }

    #[test]
    fn what_is_selected_by_credentials_is_not_stored() {
        let public = ("cache-control", "public, max-age=60");
        let varies = ("vary", "accept, Authorization");
        for request in [&[][..], &[("authorization", "x")]] {
            assert_eq!(judged(request, 200, &[public, varies]), Err(NotStored::Authorization));
        }
        assert_eq!(judged(&[("authorization", "x")], 200, &[public, ("vary", "accept")]), Ok(()));
    }

    #[test]
    fn a_status_without_guessed_lifetime_is_stored_if_it_is_public_or_has_one() {
        let tag = ("etag", "x");
        assert_eq!(judged(&[], 599, &[tag, ("cache-control", "public")]), Ok(()));
        assert_eq!(judged(&[], 599, &[tag, ("cache-control", "max-age=0")]), Ok(()));
        assert_eq!(judged(&[], 599, &[("cache-control", "max-age=0")]), Err(NotStored::Unusable));
        assert_eq!(judged(&[], 599, &[("cache-control", "max-age=1")]), Ok(()));
    }

    #[test]
    fn what_means_nothing_in_accept_is_left_out() {
        let normal = |text: &'static str| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(text))]);
            String::from_utf8(normal(&headers, &header::ACCEPT).unwrap()).unwrap()
        };
        assert_eq!(
            normal("Text/HTML ; Level=1;q=1.0 , text/html;level=1,, */*; q=0.10"),
            "text/html;level=1,*/*;q=0.10"
        );
        assert_eq!(normal("b/b, a/a"), "b/b,a/a", "their order may count");
        assert_eq!(
            normal("a/a;q=1.5, b/b;q=10"),
            "a/a;q=1.5,b/b;q=10",
            "these are no weights of 1"
        );
    }
}
