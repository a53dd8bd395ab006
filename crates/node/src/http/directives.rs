//! `Cache-Control` and its predecessor `Pragma`, parsed (RFC 9111 §5.2, §5.4).
//!
//! A malformed value is read in the way that caches less (§4.2.1).

use classes::{Heeds, Kind, Verdict};
use http::{HeaderMap, header};

/// The longest time span, in seconds: longer ones are read as this (RFC 9111 §1.2.2).
const SPAN_MAX: u64 = 1 << 31;

/// What `Cache-Control` says, in a request or a response. Time spans are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// Must not be stored; in a request, its response must not be stored either.
    pub no_store: bool,
    /// Must not be used without revalidation at the origin. Field names in it are ignored, so that it
    /// covers the whole response (§5.2.2.4).
    pub no_cache: bool,
    /// For one user only. Field names in it are ignored, so that it covers the whole response (§5.2.2.7).
    pub private: bool,
    /// May be stored even if it otherwise might not (§5.2.2.9).
    pub public: bool,
    /// Once stale, must not be used without revalidation.
    pub must_revalidate: bool,
    /// Like `must_revalidate`, for shared caches only.
    pub proxy_revalidate: bool,
    /// May be stored only by a cache that understands the status code.
    pub must_understand: bool,
    /// The client wants a stored response or none.
    pub only_if_cached: bool,
    /// How long the response is fresh; in a request, how old the response may be.
    pub max_age: Option<u64>,
    /// How long the response is fresh in a shared cache.
    pub s_maxage: Option<u64>,
    /// How long the response must still be fresh.
    pub min_fresh: Option<u64>,
    /// How long the response may have been stale; a bare `max-stale` is [`u64::MAX`].
    pub max_stale: Option<u64>,
    /// How long a stale response may be used while it is being revalidated (RFC 5861 §3).
    pub stale_while_revalidate: Option<u64>,
    /// How long a stale response may be used when the origin fails (RFC 5861 §4).
    pub stale_if_error: Option<u64>,
}

impl CacheControl {
    /// Reads a request's directives; `Pragma: no-cache` counts if there is no `Cache-Control`.
    pub fn of_request(headers: &HeaderMap) -> Self {
        let mut parsed = Self::of_response(headers);
        if !headers.contains_key(header::CACHE_CONTROL) {
            parsed.no_cache = headers.get_all(header::PRAGMA).iter().any(|value| {
                value.to_str().is_ok_and(|text| {
                    text.split(',').any(|word| word.trim().eq_ignore_ascii_case("no-cache"))
                })
            });
        }
        parsed
    }

    /// Reads a request's directives as far as the class of its URL heeds them.
    pub fn heeded(headers: &HeaderMap, verdict: &Verdict) -> Self {
        let mut parsed = Self::of_request(headers);
        let lifetime = match verdict.kind {
            Kind::Undecided => return parsed,
            Kind::Immutable { .. } => 0,
            Kind::Changing { lifetime, .. } => u64::from(lifetime),
        };
        parsed.no_cache |= std::mem::take(&mut parsed.no_store);
        match verdict.heeds {
            Heeds::All => {}
            Heeds::NoCache => parsed.max_age = parsed.max_age.map(|age| age.max(lifetime)),
            Heeds::Nothing => {
                parsed.no_cache = false;
                (parsed.max_age, parsed.min_fresh) = (None, None);
            }
        }
        parsed
    }

    /// Whether a request takes only what the origin says from now on.
    pub fn insists(&self) -> bool {
        self.no_cache || self.max_age == Some(0)
    }

    /// Reads a response's directives.
    pub fn of_response(headers: &HeaderMap) -> Self {
        let mut parsed = Self::default();
        for line in headers.get_all(header::CACHE_CONTROL) {
            // Directives are ASCII. In a line with other bytes, the ASCII directives still count.
            let text = String::from_utf8_lossy(line.as_bytes());
            for directive in (Directives { rest: &text }) {
                parsed.take(directive.0, directive.1);
            }
        }
        parsed
    }

    fn take(&mut self, name: &str, value: Option<&str>) {
        match name.to_ascii_lowercase().as_str() {
            "no-store" => self.no_store = true,
            "no-cache" => self.no_cache = true,
            "private" => self.private = true,
            "public" => self.public = true,
            "must-revalidate" => self.must_revalidate = true,
            "proxy-revalidate" => self.proxy_revalidate = true,
            "must-understand" => self.must_understand = true,
            "only-if-cached" => self.only_if_cached = true,
            "max-age" => shorter(&mut self.max_age, value),
            "s-maxage" => shorter(&mut self.s_maxage, value),
            "min-fresh" => self.min_fresh = value.and_then(span),
            "max-stale" => self.max_stale = value.map_or(Some(u64::MAX), span),
            "stale-while-revalidate" => shorter(&mut self.stale_while_revalidate, value),
            "stale-if-error" => shorter(&mut self.stale_if_error, value),
            _ => {}
        }
    }
}

/// Of two contradictory spans the shorter counts; a malformed span counts as zero.
fn shorter(known: &mut Option<u64>, value: Option<&str>) {
    let span = value.and_then(span).unwrap_or(0);
    *known = Some(known.map_or(span, |known| known.min(span)));
}

/// Reads delta-seconds (RFC 9111 §1.2.2).
pub fn span(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(SPAN_MAX).min(SPAN_MAX))
}

/// Walks the directives of one line: `name`, `name=token`, `name="quoted, with commas"`.
struct Directives<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Directives<'a> {
    type Item = (&'a str, Option<&'a str>);

    fn next(&mut self) -> Option<Self::Item> {
        self.rest = self.rest.trim_start_matches([',', ' ', '\t']);
        if self.rest.is_empty() {
            return None;
        }
        let end = end_of_item(self.rest);
        let (item, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(match item.split_once('=') {
            None => (item.trim(), None),
            // White space around `=` is an error (RFC 9110 §5.6.6): it stays in the value, which is
            // then malformed.
            Some((name, value)) => (name.trim(), Some(unquoted(value.trim_end()))),
        })
    }
}

/// Where the first list item ends: at the first comma outside quotes.
fn end_of_item(text: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.bytes().enumerate() {
        match c {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ => {}
        }
    }
    text.len()
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&'static str]) -> CacheControl {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::CACHE_CONTROL, line.parse().unwrap());
        }
        CacheControl::of_response(&headers)
    }

    #[test]
    fn directives_are_read_in_any_case_order_and_quoting() {
        let parsed = parse(&["Max-Age=\"60\", PUBLIC", "foo=\"no-store, x\\\"\",s-maxage=5"]);
        assert_eq!((parsed.max_age, parsed.s_maxage), (Some(60), Some(5)));
        assert!(parsed.public && !parsed.no_store);
    }

    #[test]
    fn what_is_no_span_counts_as_stale() {
        for line in ["max-age", "max-age=", "max-age=-1", "max-age=1.5", "max-age=a1", "max-age= 9"]
        {
            assert_eq!(parse(&[line]).max_age, Some(0), "{line}");
        }
        assert_eq!(parse(&["max-age=99999999999999999999"]).max_age, Some(SPAN_MAX));
        assert_eq!(parse(&["max-age=10, max-age=3"]).max_age, Some(3));
    }

    #[test]
    fn pragma_counts_in_a_request_without_cache_control() {
        let mut headers = HeaderMap::new();
        headers.insert(header::PRAGMA, "foo, No-Cache".parse().unwrap());
        assert!(CacheControl::of_request(&headers).no_cache);
        assert!(!CacheControl::of_response(&headers).no_cache);
        headers.insert(header::CACHE_CONTROL, "max-age=1".parse().unwrap());
        assert!(!CacheControl::of_request(&headers).no_cache);
    }

    /// RFC 9111 §5.2.1 and §5.2.2, RFC 5861.
    #[test]
    fn each_directive_has_its_own_meaning() {
        let none = CacheControl::default();
        for (line, expected) in [
            ("no-store", CacheControl { no_store: true, ..none.clone() }),
            ("no-cache", CacheControl { no_cache: true, ..none.clone() }),
            ("private", CacheControl { private: true, ..none.clone() }),
            ("public", CacheControl { public: true, ..none.clone() }),
            ("must-revalidate", CacheControl { must_revalidate: true, ..none.clone() }),
            ("proxy-revalidate", CacheControl { proxy_revalidate: true, ..none.clone() }),
            ("must-understand", CacheControl { must_understand: true, ..none.clone() }),
            ("only-if-cached", CacheControl { only_if_cached: true, ..none.clone() }),
            ("max-age=7", CacheControl { max_age: Some(7), ..none.clone() }),
            ("s-maxage=7", CacheControl { s_maxage: Some(7), ..none.clone() }),
            ("min-fresh=7", CacheControl { min_fresh: Some(7), ..none.clone() }),
            ("max-stale=7", CacheControl { max_stale: Some(7), ..none.clone() }),
            ("max-stale", CacheControl { max_stale: Some(u64::MAX), ..none.clone() }),
            (
                "stale-while-revalidate=7",
                CacheControl { stale_while_revalidate: Some(7), ..none.clone() },
            ),
            ("stale-if-error=7", CacheControl { stale_if_error: Some(7), ..none.clone() }),
            ("immutable, no-transform, max-stale=x, min-fresh=x", none.clone()),
        ] {
            assert_eq!(parse(&[line]), expected, "{line}");
        }
    }

    #[test]
    fn a_quoted_value_may_hold_commas_and_escaped_quotes() {
        let parsed = parse(&["a=\"b, \\\", no-store\", public", "c=\"no-cache", "\"private\""]);
        assert!(parsed.public && !parsed.no_store && !parsed.no_cache && !parsed.private);
        let parsed = parse(&["a=\"b, no-store, c\", public"]);
        assert!(parsed.public && !parsed.no_store);
        // A backslash outside quotes escapes nothing.
        assert!(parse(&["a\\\"b\", no-store"]).no_store);
    }

    /// RFC 9111 §1.2.2.
    #[test]
    fn a_span_is_at_most_two_to_the_power_of_31() {
        assert_eq!(span("2147483647"), Some(2_147_483_647));
        for text in ["2147483648", "2147483649", "99999999999999999999"] {
            assert_eq!(span(text), Some(2_147_483_648));
        }
    }
}
