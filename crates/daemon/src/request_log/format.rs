//! The lines of the log of requests.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::uri::Authority;
use http::{HeaderMap, Method, StatusCode, Version};
use serde::Serialize;

use crate::config::Format;

/// A client's request, and how it was answered.
#[derive(Debug)]
pub struct Request {
    client: IpAddr,
    /// The request's method.
    pub method: Method,
    /// What was asked for.
    pub url: String,
    /// The client's version of HTTP.
    pub version: Version,
    /// The page that led to it, if such are logged.
    pub referer: Option<Box<[u8]>>,
    /// The client's program, if such are logged.
    pub agent: Option<Box<[u8]>>,
    /// The status code; 0 if the client got none from us.
    pub status: u16,
    /// The content's type.
    pub kind: Option<Box<[u8]>>,
    /// How it was answered.
    pub how: How,
    /// Bytes of content that the client was given; of a tunnel, all bytes.
    pub bytes: u64,
    /// Whether that was all of it.
    pub is_whole: bool,
    /// When it ended.
    pub ended: SystemTime,
    /// How long it took.
    pub took: Duration,
}

/// How a request was answered: as the status counts requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// From the store.
    Hit,
    /// From the store, past its lifetime.
    Stale,
    /// From the store, after the origin confirmed it.
    Revalidated,
    /// From another request's transfer.
    Collapsed,
    /// Fetched; it replaces what is stored.
    Refreshed,
    /// Fetched, to be stored.
    Miss,
    /// Fetched, and not stored.
    Pass,
    /// By `CONNECT`.
    Tunnel,
    /// By the origin itself: the connections were joined.
    Relayed,
    /// By this router itself: refused or failed.
    #[default]
    Error,
    /// By this router itself, as is right.
    Own,
}

impl How {
    /// Reads what the router `name` says of it in `Cache-Status` (RFC 9211), which is the last member.
    pub fn of(status: StatusCode, headers: &HeaderMap, name: &str) -> Self {
        let last = headers.get_all("cache-status").iter().next_back();
        let detail = last.and_then(|it| it.to_str().ok()?.strip_prefix(name)?.strip_prefix("; "));
        let Some(detail) = detail else {
            return if status.is_success() { Self::Own } else { Self::Error };
        };
        let has = |part: &str| detail.split("; ").any(|it| it == part);
        let is_stale = has("fwd=stale");
        match () {
            () if has("hit") && detail.contains("; ttl=-") => Self::Stale,
            () if has("hit") => Self::Hit,
            () if is_stale && has("fwd-status=304") => Self::Revalidated,
            () if is_stale && has("detail=unreachable") => Self::Stale,
            () if has("collapsed") => Self::Collapsed,
            () if is_stale && has("stored") => Self::Refreshed,
            () if has("stored") => Self::Miss,
            // A stale response stands in for an error.
            () if is_stale && !has("fwd-status=200") && !detail.contains("; detail=") => {
                Self::Stale
            }
            () => Self::Pass,
        }
    }

    /// Squid's code, and whether it asked others.
    fn of_squid(self, status: u16) -> (&'static str, bool) {
        match self {
            Self::Hit => ("TCP_HIT", false),
            Self::Stale => ("TCP_REFRESH_FAIL_OLD", false),
            Self::Revalidated => ("TCP_REFRESH_UNMODIFIED", true),
            Self::Refreshed => ("TCP_REFRESH_MODIFIED", true),
            Self::Collapsed => ("TCP_CF_MISS", true),
            Self::Miss | Self::Pass | Self::Relayed => ("TCP_MISS", true),
            Self::Tunnel => ("TCP_TUNNEL", true),
            Self::Error if status == 403 => ("TCP_DENIED", false),
            Self::Error | Self::Own => ("NONE_NONE", false),
        }
    }
}

/// A line of JSON.
#[derive(Serialize)]
struct Json<'a> {
    time: String,
    client: &'a str,
    method: &'a str,
    url: &'a str,
    status: u16,
    bytes: u64,
    result: How,
    complete: bool,
    milliseconds: u128,
    content_type: Option<std::borrow::Cow<'a, str>>,
}

impl Request {
    /// A request that nothing is known of but what it asks for.
    pub fn new(client: IpAddr, method: Method, url: String) -> Self {
        Self {
            client: client.to_canonical(),
            method,
            url,
            version: Version::HTTP_11,
            referer: None,
            agent: None,
            status: 0,
            kind: None,
            how: How::default(),
            bytes: 0,
            is_whole: false,
            ended: UNIX_EPOCH,
            took: Duration::ZERO,
        }
    }

    /// About how many bytes of memory it takes.
    pub fn weight(&self) -> usize {
        let texts = [&self.referer, &self.agent, &self.kind];
        let texts: usize = texts.iter().filter_map(|it| it.as_ref()).map(|it| it.len()).sum();
        size_of::<Self>() + self.url.len() + texts
    }

    /// Adds its line to `out`. With a key, the client's address is hashed.
    pub fn render(&self, format: Format, key: Option<&[u8; 32]>, out: &mut Vec<u8>) {
        let client = match key {
            None => self.client.to_string(),
            Some(key) => hashed(self.client, key),
        };
        match format {
            Format::Squid => self.squid(&client, out),
            Format::Combined => self.combined(&client, out),
            Format::Json => self.json(&client, out),
        }
        out.push(b'\n');
    }

    /// Squid's code, and from whom it had the content.
    fn result(&self) -> (String, String) {
        let (code, asked) = self.how.of_squid(self.status);
        let suffix = if self.is_whole { "" } else { "_ABORTED" };
        let from = match self.host().filter(|_| asked) {
            Some(host) => format!("HIER_DIRECT/{host}"),
            None => "HIER_NONE/-".to_owned(),
        };
        (format!("{code}{suffix}"), from)
    }

    /// The host that the URL names, without its port.
    fn host(&self) -> Option<String> {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        let authority = rest.split(['/', '?']).next()?.parse::<Authority>().ok()?;
        Some(authority.host().to_owned())
    }

    /// See <https://wiki.squid-cache.org/Features/LogFormat>.
    fn squid(&self, client: &str, out: &mut Vec<u8>) {
        let ended = self.ended.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, milliseconds) = (ended.as_secs(), ended.subsec_millis());
        let (took, (code, from)) = (self.took.as_millis(), self.result());
        let kind = self.kind.as_deref().map(|it| it.split(|c| *c == b';').next().unwrap_or(it));
        let kind = quoted(kind);
        let (url, method) = (quoted(Some(self.url.as_bytes())), &self.method);
        let (status, bytes) = (self.status, self.bytes);
        let line = format!(
            "{seconds:9}.{milliseconds:03} {took:6} {client} {code}/{status:03} {bytes} {method} {url} - {from} {kind}"
        );
        out.extend_from_slice(line.as_bytes());
    }

    /// See <https://httpd.apache.org/docs/current/logs.html#combined>, with squid's result behind.
    fn combined(&self, client: &str, out: &mut Vec<u8>) {
        // Like "Sun, 06 Nov 1994 08:49:37 GMT".
        let date = httpdate::fmt_http_date(self.ended);
        let (day, month, year, time) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
        let (url, method) = (quoted(Some(self.url.as_bytes())), &self.method);
        let (referer, agent) = (quoted(self.referer.as_deref()), quoted(self.agent.as_deref()));
        let (status, bytes, (code, from)) = (self.status, self.bytes, self.result());
        let (hierarchy, _) = from.split_once('/').unwrap_or((&from, ""));
        let line = format!(
            "{client} - - [{day}/{month}/{year}:{time} +0000] \"{method} {url} {:?}\" {status} {bytes} \"{referer}\" \
             \"{agent}\" {code}:{hierarchy}",
            self.version
        );
        out.extend_from_slice(line.as_bytes());
    }

    fn json(&self, client: &str, out: &mut Vec<u8>) {
        let line = Json {
            time: moment(self.ended),
            client,
            method: self.method.as_str(),
            url: &self.url,
            status: self.status,
            bytes: self.bytes,
            result: self.how,
            complete: self.is_whole,
            milliseconds: self.took.as_millis(),
            content_type: self.kind.as_deref().map(String::from_utf8_lossy),
        };
        // It cannot fail: no map has keys that are no text.
        let _ = serde_json::to_writer(out, &line);
    }
}

/// A name for an address that only those who have the key can trace back to it.
fn hashed(client: IpAddr, key: &[u8; 32]) -> String {
    let hash = match client {
        IpAddr::V4(address) => blake3::keyed_hash(key, &address.octets()),
        IpAddr::V6(address) => blake3::keyed_hash(key, &address.octets()),
    };
    hash.to_hex()[..16].to_owned()
}

/// A time of RFC 3339 in UTC, with milliseconds.
fn moment(time: SystemTime) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let date = httpdate::fmt_http_date(time);
    let month = MONTHS.find(&date[8..11]).unwrap_or_default() / 3 + 1;
    let milliseconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_millis();
    let (day, year, clock) = (&date[5..7], &date[12..16], &date[17..25]);
    format!("{year}-{month:02}-{day}T{clock}.{milliseconds:03}Z")
}

/// A text without what would end a field or a line, as web servers write it: `\xHH`. `-` if there is none.
fn quoted(text: Option<&[u8]>) -> String {
    let Some(text) = text.filter(|it| !it.is_empty()) else { return "-".to_owned() };
    let mut quoted = String::with_capacity(text.len());
    for c in text {
        match c {
            b'"' | b'\\' | 0..b' ' | 0x7f.. => {
                // Writing into a `String` cannot fail.
                let _ = write!(quoted, "\\x{c:02x}");
            }
            _ => quoted.push(char::from(*c)),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn request() -> Request {
        let mut request = Request::new(
            "::ffff:192.0.2.7".parse().unwrap(),
            Method::GET,
            "http://a.test/x?y=\"".to_owned(),
        );
        request.status = 200;
        request.kind = Some(b"text/html; charset=utf-8".as_slice().into());
        request.bytes = 1234;
        request.how = How::Miss;
        request.is_whole = true;
        request.ended = UNIX_EPOCH + Duration::from_millis(1_286_536_308_079);
        request.took = Duration::from_millis(180);
        request
    }

    fn line(request: &Request, format: Format) -> String {
        let mut out = Vec::new();
        request.render(format, None, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn squids_lines_are_as_squid_writes_them() {
        let mut request = request();
        assert_eq!(
            line(&request, Format::Squid),
            "1286536308.079    180 192.0.2.7 TCP_MISS/200 1234 GET http://a.test/x?y=\\x22 - HIER_DIRECT/a.test text/html\n"
        );
        (request.how, request.is_whole, request.kind) = (How::Hit, false, None);
        assert!(line(&request, Format::Squid).contains(" TCP_HIT_ABORTED/200 "));
        assert!(line(&request, Format::Squid).ends_with(" - HIER_NONE/- -\n"));
        (request.how, request.url, request.is_whole) = (How::Tunnel, "a.test:443".into(), true);
        assert!(line(&request, Format::Squid).contains(" a.test:443 - HIER_DIRECT/a.test -"));
    }

    #[test]
    fn combined_lines_hold_no_byte_that_would_end_them() {
        let mut request = request();
        request.agent = Some(b"x\"\n\\\xff y".as_slice().into());
        assert_eq!(
            line(&request, Format::Combined),
            "192.0.2.7 - - [08/Oct/2010:11:11:48 +0000] \"GET http://a.test/x?y=\\x22 HTTP/1.1\" 200 1234 \"-\" \
             \"x\\x22\\x0a\\x5c\\xff y\" TCP_MISS:HIER_DIRECT\n"
        );
    }

    #[test]
    fn json_lines_are_objects() {
        let json: serde_json::Value =
            serde_json::from_str(&line(&request(), Format::Json)).unwrap();
        let expected = serde_json::json!({
            "time": "2010-10-08T11:11:48.079Z", "client": "192.0.2.7", "method": "GET",
            "url": "http://a.test/x?y=\"", "status": 200, "bytes": 1234, "result": "miss",
            "complete": true, "milliseconds": 180, "content_type": "text/html; charset=utf-8",
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn a_hashed_client_is_the_same_under_one_key_and_another_under_another() {
        let name = |address: &str, key: u8| hashed(address.parse().unwrap(), &[key; 32]);
        assert_eq!(name("192.0.2.7", 1), name("192.0.2.7", 1));
        assert_ne!(name("192.0.2.7", 1), name("192.0.2.8", 1));
        assert_ne!(name("192.0.2.7", 1), name("192.0.2.7", 2));
        let mut out = Vec::new();
        request().render(Format::Json, Some(&[1; 32]), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(&name("192.0.2.7", 1)) && !text.contains("192.0.2.7"), "{text}");
    }

    #[test]
    fn how_it_was_answered_is_what_cache_status_says() {
        let how = |status: u16, members: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for member in members {
                headers.append("cache-status", HeaderValue::from_static(member));
            }
            How::of(StatusCode::from_u16(status).unwrap(), &headers, "us")
        };
        for (status, member, expected) in [
            (200, "us; hit; ttl=5", How::Hit),
            (200, "us; hit; ttl=0; detail=overheard", How::Hit),
            (200, "us; hit; ttl=-5", How::Stale),
            (200, "us; fwd=stale; fwd-status=304", How::Revalidated),
            (200, "us; fwd=stale; detail=unreachable", How::Stale),
            (200, "us; fwd=stale; fwd-status=503", How::Stale),
            (200, "us; fwd=stale; fwd-status=200; stored", How::Refreshed),
            (200, "us; fwd=uri-miss; fwd-status=200; stored; collapsed", How::Collapsed),
            (200, "us; fwd=uri-miss; fwd-status=200; stored", How::Miss),
            (200, "us; fwd=method; fwd-status=200; detail=method", How::Pass),
            (404, "us; fwd=uri-miss; fwd-status=404; stored", How::Miss),
            (502, "them; hit; ttl=5", How::Error),
            (200, "usual; hit; ttl=5", How::Own),
        ] {
            assert_eq!(how(status, &["far; hit", member]), expected, "{member}");
        }
        assert_eq!((how(504, &[]), how(200, &[])), (How::Error, How::Own));
    }
}
