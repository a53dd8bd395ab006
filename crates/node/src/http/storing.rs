//! Whether a response may be stored, and in which form (RFC 9111 §3).

use super::directives::CacheControl;
use super::freshness::{explicit_lifetime, heuristic, is_ruled};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use wire::Date;

/// Why a response is not stored; shown in `Cache-Status` and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotStored {
    /// Not the answer to a plain GET.
    Method,
    /// The status is not final, not understood, or partial.
    Status,
    /// `no-store` in the request or the response.
    NoStore,
    /// `private`: for one user only.
    Private,
    /// The request carried credentials.
    Authorization,
    /// `Vary: *`, or more than is worth to tell apart.
    Vary,
    /// No lifetime and no validator: it could never be used.
    Unusable,
    /// The request had a cookie, and the origin gave neither a lifetime above zero nor `no-cache`: the response
    /// may be for one user only.
    Cookie,
    /// The header fields alone are larger than we keep.
    HeaderSize,
}

impl NotStored {
    /// A short word for counters and `Cache-Status` details.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Status => "status",
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::Authorization => "authorization",
            Self::Vary => "vary",
            Self::Unusable => "unusable",
            Self::Cookie => "cookie",
            Self::HeaderSize => "header-size",
        }
    }
}

/// Header bytes of a response that is stored, at most.
const HEADERS_MAX: usize = 32 * 1024;
/// Fields that one `Vary` may name.
const VARY_MAX: usize = 16;

/// What a storable response was asked with.
pub struct Asked<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its header fields.
    pub headers: &'a HeaderMap,
}

/// Judges a response by its head.
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
        || CacheControl::of_request(asked.headers).no_store
    {
        return Err(NotStored::NoStore);
    }
    if control.private {
        return Err(NotStored::Private);
    }
    let shared = control.public || control.must_revalidate || control.s_maxage.is_some();
    if asked.headers.contains_key(header::AUTHORIZATION) && !shared {
        return Err(NotStored::Authorization);
    }
    vary(headers).ok_or(NotStored::Vary)?;
    usable(status, headers, &control, now)?;
    if asked.headers.contains_key(header::COOKIE) && !is_ruled(headers, &control, now) {
        return Err(NotStored::Cookie);
    }
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if size > HEADERS_MAX { Err(NotStored::HeaderSize) } else { Ok(()) }
}

fn understood(status: StatusCode, control: &CacheControl) -> bool {
    !control.must_understand || heuristic(status) || matches!(status.as_u16(), 302 | 303 | 307)
}

/// Something must permit storing (§3), and something must make it of use later.
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
    // What sets a cookie is for others only if the origin says for how long.
    let fresh = lifetime.unwrap_or(0) > 0;
    let guessed = !fresh && headers.contains_key(header::SET_COOKIE);
    if !permitted || guessed || (!fresh && !validator) {
        return Err(NotStored::Unusable);
    }
    Ok(())
}

/// The request fields that select the response, in order; `None` if none ever will (§4.1).
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

/// The selecting fields as this request has them, in normal form: lines joined, white space gone.
pub fn selecting(
    names: Vec<HeaderName>,
    request: &HeaderMap,
) -> Vec<(HeaderName, Option<Vec<u8>>)> {
    names.into_iter().map(|name| (name.clone(), normal(request, &name))).collect()
}

/// One field in normal form: its lines joined by commas, without white space around items.
pub fn normal(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let lines: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
    (!lines.is_empty()).then(|| {
        let items = lines.iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        items.map(<[u8]>::trim_ascii).collect::<Vec<_>>().join(&b","[..])
    })
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
        let asked = Asked { method: &Method::GET, headers: &record(request).headers };
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
}
