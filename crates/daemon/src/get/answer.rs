//! Decides what to do with a response to a download. Read RFC 9110 §13.1.5 (If-Range), §14.4
//! (Content-Range) and §15.3.7 (206) before editing.

use http::header::{
    CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, LAST_MODIFIED, LOCATION,
    TRANSFER_ENCODING,
};
use http::{StatusCode, Uri};
use node::{ContentRange, repeats, strong_validator};

use super::digest::{self, Sha256};
use super::part::Meta;

/// The digest of the whole representation (RFC 9530 §3).
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
/// The digest of this message's content (RFC 9530 §2).
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
/// How caches handled the request (RFC 9211).
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// The root of a published object.
const ROOT: HeaderName = HeaderName::from_static(node::named::ROOT);

/// What to do with a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Append the response's body to the part.
    Continue,
    /// The response's body is the whole file. `Meta` describes it.
    Anew(Box<Meta>),
    /// Discard the part, and request the whole file.
    StartOver,
    /// Request this URL instead.
    Redirect(String),
    /// The response is an error, for this reason.
    Refused(String),
}

/// Judges a response to a request for `meta.url` that starts at byte `bytes`. If `bytes` is 0, the whole
/// file was requested.
pub fn judge(status: StatusCode, headers: &HeaderMap, meta: &Meta, bytes: u64) -> Answer {
    match status {
        StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => {
            Answer::Anew(Box::new(describe(headers, &meta.url)))
        }
        StatusCode::PARTIAL_CONTENT if bytes > 0 => continued(headers, meta, bytes),
        StatusCode::RANGE_NOT_SATISFIABLE if bytes > 0 => Answer::StartOver,
        _ if status.is_redirection() => match text(headers, &LOCATION) {
            Some(location) => Answer::Redirect(location),
            None => Answer::Refused(format!("answered {status} without saying where to go")),
        },
        _ => Answer::Refused(format!("answered {status}")),
    }
}

/// Resolves a `Location`: an absolute URL, a reference without a scheme, or a path on the same host.
/// These are the forms of RFC 3986 §5.2 that origins send.
pub fn resolve(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next()?;
    let (scheme, host) = (base.scheme_str()?, base.authority()?);
    let absolute = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{host}{location}")
    } else if location.contains("://") {
        location.to_owned()
    } else {
        let (dir, _) = base.path().rsplit_once('/')?;
        format!("{scheme}://{host}{dir}/{location}")
    };
    absolute.parse().ok()
}

/// The declared length of the body. A chunked body has none (RFC 9112 §6.3).
pub fn body_length(headers: &HeaderMap) -> Option<u64> {
    if headers.contains_key(TRANSFER_ENCODING) {
        return None;
    }
    text(headers, &CONTENT_LENGTH)?.parse().ok()
}

/// The value of `Repr-Digest`.
pub fn repr_digest(headers: &HeaderMap) -> Option<String> {
    text(headers, &REPR_DIGEST)
}

/// The SHA-256 of this message's content, if the header has one.
pub fn content_digest(headers: &HeaderMap) -> Option<Sha256> {
    digest::of_header(&text(headers, &CONTENT_DIGEST)?)
}

/// `Cache-Status` of all caches on the path; the nearest cache is last.
pub fn cache_status(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(CACHE_STATUS).iter().filter_map(|value| value.to_str().ok());
    let all = values.collect::<Vec<_>>().join(", ");
    (!all.is_empty()).then_some(all)
}

/// The name of the cache that answered, from the text of [`cache_status`]; `None` if the origin answered.
pub fn answered_by(cache_status: &str) -> Option<&str> {
    cache_status.split(',').find_map(|member| {
        let mut items = member.split(';').map(str::trim);
        let name = items.next()?;
        items.any(|item| item == "hit" || item == "hit=?1").then_some(name.trim_matches('"'))
    })
}

/// Whether the response is an error of the proxy, with a text that says why: no cache has passed it
/// on.
pub fn is_of_proxy(headers: &HeaderMap) -> bool {
    let kind = text(headers, &CONTENT_TYPE);
    !headers.contains_key(CACHE_STATUS) && kind.is_some_and(|it| it.starts_with("text/plain"))
}

fn describe(headers: &HeaderMap, url: &str) -> Meta {
    Meta {
        url: url.to_owned(),
        etag: text(headers, &ETAG),
        last_modified: text(headers, &LAST_MODIFIED),
        validator: validator(headers),
        length: body_length(headers),
        repr_digest: repr_digest(headers),
        root: text(headers, &ROOT),
        synced_bytes: 0,
    }
}

/// The strong validator of this version (RFC 9110 §8.8.1).
fn validator(headers: &HeaderMap) -> Option<String> {
    Some(strong_validator(headers)?.to_str().ok()?.to_owned())
}

/// Judges a 206. It must begin where the part ends, declare the same whole length, and repeat the
/// request's validator (RFC 9110 §15.3.7.3). If no response has declared the length, a truncated file
/// could not be detected, so the download starts over.
fn continued(headers: &HeaderMap, meta: &Meta, bytes: u64) -> Answer {
    let fits = ContentRange::of(headers).is_some_and(|ContentRange { range, whole }| {
        let ends = match whole {
            Some(whole) => range.end == whole && meta.length.is_none_or(|length| length == whole),
            None => meta.length.is_some(),
        };
        range.start == bytes && ends
    });
    let validator = meta.validator.as_deref();
    let same_version = validator.is_some_and(|it| repeats(headers, it.as_bytes()));
    if fits && same_version { Answer::Continue } else { Answer::StartOver }
}

/// The whole file's length, according to `Content-Range`.
pub fn whole_length(headers: &HeaderMap) -> Option<u64> {
    ContentRange::of(headers)?.whole
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str) -> HeaderMap {
        let pair = |line: &str| {
            let (name, value) = line.trim().split_once(": ").unwrap();
            (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())
        };
        text.lines().filter(|line| !line.trim().is_empty()).map(pair).collect()
    }

    fn meta() -> Meta {
        Meta {
            url: "http://a/".into(),
            etag: Some("\"1\"".into()),
            validator: Some("\"1\"".into()),
            length: Some(10),
            ..Meta::default()
        }
    }

    #[test]
    fn a_part_is_continued_only_by_what_fits() {
        let judge = |text: &str| judge(StatusCode::PARTIAL_CONTENT, &headers(text), &meta(), 4);
        for fits in
            ["content-range: bytes 4-9/10\netag: \"1\"", "content-range: bytes 4-7/*\netag: \"1\""]
        {
            assert_eq!(judge(fits), Answer::Continue, "{fits}");
        }
        for not in [
            "",
            "content-type: multipart/byteranges",
            "content-range: bytes 5-9/10\netag: \"1\"",
            "content-range: bytes 4-9/11\netag: \"1\"",
            "content-range: bytes 4-8/10\netag: \"1\"",
            "content-range: bytes 4-3/10\netag: \"1\"",
            "content-range: bytes 4-9/10\netag: \"2\"",
            "content-range: bytes 4-9/10\netag: W/\"1\"",
            "content-range: bytes 4-9/10",
        ] {
            assert_eq!(judge(not), Answer::StartOver, "{not}");
        }
    }

    #[test]
    fn a_part_repeats_the_date_that_it_was_asked_with_and_says_where_the_whole_ends() {
        let date = "Sun, 06 Nov 1994 08:00:00 GMT";
        let judge = |length, text: &str| {
            let meta = Meta { validator: Some(date.into()), length, etag: None, ..meta() };
            judge(StatusCode::PARTIAL_CONTENT, &headers(text), &meta, 4)
        };
        let dated = |range: &str| format!("content-range: bytes {range}\nlast-modified: {date}");
        assert_eq!(judge(None, &dated("4-9/10")), Answer::Continue);
        assert_eq!(judge(None, "content-range: bytes 4-9/10"), Answer::StartOver);
        assert_eq!(judge(Some(10), &dated("4-7/*")), Answer::Continue);
        assert_eq!(judge(None, &dated("4-7/*")), Answer::StartOver);
    }

    #[test]
    fn other_answers_begin_anew_lead_elsewhere_or_are_refused() {
        let judge = |status: u16, text: &str, bytes| {
            judge(StatusCode::from_u16(status).unwrap(), &headers(text), &meta(), bytes)
        };
        assert_eq!(judge(416, "content-range: bytes */3", 4), Answer::StartOver);
        assert_eq!(judge(302, "location: /b", 0), Answer::Redirect("/b".into()));
        assert!(matches!(judge(200, "", 4), Answer::Anew(_)));
        for status in [204, 206, 304, 404, 416, 504] {
            assert!(matches!(judge(status, "", 0), Answer::Refused(_)), "{status}");
        }
    }

    #[test]
    fn only_strong_validators_count() {
        let date = "date: Sun, 06 Nov 1994 08:49:37 GMT\n";
        for (text, expected) in [
            ("etag: \"x\"", Some("\"x\"")),
            ("etag: W/\"x\"", None),
            ("etag: W/\"x\"\nlast-modified: Sun, 06 Nov 1994 08:00:00 GMT", None),
            ("last-modified: Sun, 06 Nov 1994 08:00:00 GMT", Some("Sun, 06 Nov 1994 08:00:00 GMT")),
            ("last-modified: Sun, 06 Nov 1994 08:49:00 GMT", None),
            ("last-modified: yesterday", None),
            ("", None),
        ] {
            let found = validator(&headers(&format!("{date}{text}")));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn redirects_are_resolved() {
        let base: Uri = "http://a:81/b/c?d".parse().unwrap();
        for (location, expected) in [
            ("http://e/f#g", "http://e/f"),
            ("//e/f", "http://e/f"),
            ("/f?g", "http://a:81/f?g"),
            ("f", "http://a:81/b/f"),
        ] {
            assert_eq!(resolve(&base, location), Some(expected.parse().unwrap()), "{location}");
        }
    }

    #[test]
    fn a_cache_says_whether_it_answered() {
        assert_eq!(answered_by("edge; fwd=miss, router-12; hit; ttl=9"), Some("router-12"));
        assert_eq!(answered_by("\"router 12\"; hit"), Some("router 12"));
        assert_eq!(answered_by("router-12; fwd=uri-miss; stored"), None);
    }
}
