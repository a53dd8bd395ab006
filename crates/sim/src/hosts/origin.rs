//! The origin's responses: files generated from a seed, served as a plain web server would.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::ops::Range;
use wire::Date;

use super::content::{BLOCK, Source, Stream, file, stream};
use super::http::RequestHead;

/// The origin's files.
#[derive(Clone, Debug)]
pub struct Files {
    /// Their content is generated from it.
    pub source: Source,
    /// Size of each file in bytes, by its number.
    pub sizes: Vec<u64>,
    /// `max-age` of each response, in seconds.
    pub max_age_s: u64,
    /// When all files were last modified.
    pub changed: Date,
}

impl Files {
    /// The size of a file; `None` if there is no such file.
    pub fn size(&self, file: usize) -> Option<u64> {
        self.sizes.get(file).copied()
    }

    /// The response to a request.
    pub fn answer(&self, request: &RequestHead, now: Date) -> Answer {
        if request.method != Method::GET && request.method != Method::HEAD {
            return Answer::empty(StatusCode::METHOD_NOT_ALLOWED, now);
        }
        let found = file(request.uri.path()).and_then(|file| Some((file, self.size(file)?)));
        let Some((file, size)) = found else { return Answer::empty(StatusCode::NOT_FOUND, now) };
        let mut answer = Answer::empty(StatusCode::OK, now);
        let tag = format!("\"{:x}-{file:x}-{size:x}\"", self.source.seed());
        answer.put(header::ETAG, &tag);
        answer.put(header::LAST_MODIFIED, &format_date(self.changed));
        answer.put(header::CACHE_CONTROL, &format!("public, max-age={}", self.max_age_s));
        answer.put(header::ACCEPT_RANGES, "bytes");
        if confirms(&request.headers, &tag, self.changed) {
            answer.status = StatusCode::NOT_MODIFIED;
            answer.headers.remove(header::CONTENT_LENGTH);
            return answer;
        }
        answer.put(header::CONTENT_TYPE, "application/octet-stream");
        let range = range(&request.headers, &tag, size);
        if let Some(range) = &range {
            answer.status = StatusCode::PARTIAL_CONTENT;
            let place = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            answer.put(header::CONTENT_RANGE, &place);
        }
        let range = range.unwrap_or(0..size);
        answer.put(header::CONTENT_LENGTH, &(range.end - range.start).to_string());
        let is_wanted = request.method == Method::GET;
        answer.body = is_wanted.then(|| Body::new(self.source, file, range));
        answer
    }
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its header fields.
    pub headers: HeaderMap,
    /// Its content, if it has any.
    pub body: Option<Body>,
}

impl Answer {
    fn empty(status: StatusCode, now: Date) -> Self {
        let mut answer = Self { status, headers: HeaderMap::with_capacity(10), body: None };
        answer.put(header::DATE, &format_date(now));
        answer.put(header::CONTENT_LENGTH, "0");
        answer
    }

    fn put(&mut self, name: header::HeaderName, text: &str) {
        // All header values are ASCII that this file wrote.
        if let Ok(value) = HeaderValue::try_from(text) {
            self.headers.insert(name, value);
        }
    }
}

/// A range of a file, generated as it is taken.
#[derive(Debug)]
pub struct Body {
    stream: Stream,
    left: u64,
}

impl Body {
    fn new(source: Source, file: usize, range: Range<u64>) -> Self {
        let mut stream = stream(source, file);
        stream.set_position(range.start);
        Self { stream, left: range.end - range.start }
    }

    /// The next bytes, `most` at most; `None` at the end.
    pub fn take(&mut self, most: usize) -> Option<Bytes> {
        let length = self.left.min(most.min(BLOCK) as u64) as usize;
        let mut bytes = BytesMut::zeroed(length);
        self.stream.fill(&mut bytes);
        self.left -= length as u64;
        (length > 0).then(|| bytes.freeze())
    }
}

/// Whether the client's copy is still valid (RFC 9110 section 13.2.2).
fn confirms(asked: &HeaderMap, tag: &str, changed: Date) -> bool {
    let text = |name| asked.get(name).and_then(|value| value.to_str().ok());
    match (text(header::IF_NONE_MATCH), text(header::IF_MODIFIED_SINCE)) {
        (Some(tags), _) => tags.split(',').any(|it| it.trim() == tag || it.trim() == "*"),
        (None, Some(since)) => since == format_date(changed),
        (None, None) => false,
    }
}

/// The requested range. `None` if `If-Range` names another version of the file, or if the range lies outside
/// it.
fn range(asked: &HeaderMap, tag: &str, size: u64) -> Option<Range<u64>> {
    if asked.get(header::IF_RANGE).is_some_and(|it| it.as_bytes() != tag.as_bytes()) {
        return None;
    }
    let text = asked.get(header::RANGE)?.to_str().ok()?;
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let start = first.trim().parse().ok()?;
    let end = match last.trim() {
        "" => size,
        last => size.min(last.parse::<u64>().ok()?.saturating_add(1)),
    };
    (start < end).then_some(start..end)
}

/// A date in HTTP's format.
pub(crate) fn format_date(date: Date) -> String {
    let since = std::time::Duration::from_secs(date.as_unix());
    httpdate::fmt_http_date(std::time::SystemTime::UNIX_EPOCH + since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::content::Check;
    use http::{Uri, Version};

    const NOW: Date = Date::from_unix(1_800_000_000);

    fn ask(fields: &[(&'static str, &str)], path: &str) -> Answer {
        let changed = Date::from_unix(1_700_000_000);
        let files = Files { source: 5.into(), sizes: vec![10_000, 3], max_age_s: 60, changed };
        let field = |(name, value): &(&'static str, &str)| {
            (header::HeaderName::from_static(name), HeaderValue::try_from(*value).unwrap())
        };
        let headers = fields.iter().map(field).collect();
        let uri = path.parse::<Uri>().unwrap();
        let request = RequestHead { method: Method::GET, uri, version: Version::HTTP_11, headers };
        files.answer(&request, NOW)
    }

    fn body(answer: Answer) -> Vec<u8> {
        let Some(mut body) = answer.body else { return Vec::new() };
        std::iter::from_fn(|| body.take(1000)).flatten().collect()
    }

    #[test]
    fn a_file_comes_whole_or_in_part_and_is_confirmed() {
        let whole = ask(&[], "/file-1.bin");
        assert_eq!(
            (whole.status.as_u16(), &whole.headers["content-length"]),
            (200, &"10000".parse().unwrap())
        );
        assert_eq!(whole.headers["date"], "Fri, 15 Jan 2027 08:00:00 GMT");
        let tag = whole.headers["etag"].to_str().unwrap().to_owned();
        let whole = body(whole);
        let mut check = Check::new(5, 0);
        check.take(&whole);
        assert!(check.is_right() && whole.len() == 10_000);
        let part = ask(&[("range", "bytes=9000-"), ("if-range", &tag)], "/file-1.bin");
        assert_eq!(part.headers["content-range"], "bytes 9000-9999/10000");
        assert_eq!((part.status.as_u16(), body(part)), (206, whole[9000..].to_vec()));
        let part = ask(&[("range", "bytes=1-2")], "/file-1.bin");
        assert_eq!(body(part), whole[1..3]);
        assert_eq!(ask(&[("if-none-match", &tag)], "/file-1.bin").status, 304);
    }

    #[test]
    fn what_is_not_there_is_said_so() {
        assert_eq!(ask(&[], "/file-3.bin").status, 404);
        assert_eq!(ask(&[], "/").status, 404);
        for odd in ["bytes=20000-", "bytes=5-4", "bytes=x-", "lines=1-2"] {
            let answer = ask(&[("range", odd)], "/file-1.bin");
            assert_eq!(answer.status, 200, "{odd}");
        }
        let other = ask(&[("range", "bytes=1-2"), ("if-range", "\"x\"")], "/file-1.bin");
        assert_eq!(other.status, 200);
    }
}
