//! The rest of a body: whether it can be asked for by range, and whether a response is it (RFC 9110 §14.2, §15.3.7.3).

use super::incoming::Incoming;
use super::transfer::Transfer;
use crate::http::{self, ContentRange, content_length};
use crate::pursuits::Rest;
use ::http::{HeaderMap, StatusCode, header};

impl Incoming {
    /// What is missing of it, if its origin lets that be asked for and guarantees the same version.
    pub fn rest(&self) -> Option<Rest> {
        let is_whole =
            self.status == StatusCode::OK && matches!(self.transfer, Transfer::Cutting(_));
        let refuses = self.headers.get(header::ACCEPT_RANGES).is_some_and(|it| it == "none");
        let validator = http::strong_validator(&self.headers).filter(|_| is_whole && !refuses)?;
        Some(Rest { from: self.received_bytes, validator: validator.clone() })
    }
}

/// Where the body ends, if this response is its rest; `None` if it is not.
pub fn rest_end(
    incoming: &Incoming,
    from: u64,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<u64> {
    if status != StatusCode::PARTIAL_CONTENT {
        return None;
    }
    let ContentRange { range, whole } = ContentRange::of(headers)?;
    // An origin may send less than the requested range, so the end must be known or stated.
    let told = whole.or(incoming.announced) == Some(range.end);
    let same = |name| headers.get(&name).is_none_or(|it| incoming.headers.get(&name) == Some(it));
    let announced = incoming.announced.is_none_or(|length| length == range.end);
    let counted = content_length(headers).is_none_or(|length| from + length == range.end);
    let fits = range.start == from && told && announced && counted;
    let alike =
        [header::ETAG, header::LAST_MODIFIED, header::CONTENT_ENCODING].into_iter().all(same);
    let validator = http::strong_validator(&incoming.headers)?.as_bytes();
    (fits && alike && http::repeats(headers, validator)).then_some(range.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfers::cutting::Cutting;
    use ::http::HeaderValue;
    use wire::{Date, RecordId};

    fn fields(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.insert(*name, HeaderValue::from_static(value));
        }
        map
    }

    const DATE: (&str, &str) = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    const CHANGED: (&str, &str) = ("last-modified", "Sun, 06 Nov 1994 08:00:00 GMT");
    const TAGGED: (&str, &str) = ("etag", "\"a\"");
    const REST: (&str, &str) = ("content-range", "bytes 100-299/300");

    /// Where the body with these fields ends, if a 206 with the others follows after 100 bytes.
    fn end_of(
        announced: Option<u64>,
        first: &[(&'static str, &'static str)],
        rest: &[(&'static str, &'static str)],
    ) -> Option<u64> {
        let cutting = Cutting::new(content::Profile::DEFAULT, None);
        let transfer = Transfer::Cutting(Box::new(cutting));
        let came = (Date::default(), true);
        let id = RecordId([0; 16]);
        let mut incoming = Incoming::new(id, StatusCode::OK, fields(first), came, transfer);
        incoming.announced = announced;
        rest_end(&incoming, 100, StatusCode::PARTIAL_CONTENT, &fields(rest))
    }

    #[test]
    fn the_rest_is_what_begins_where_the_first_part_broke_off_and_certainly_ends_it() {
        let end =
            |announced, range| end_of(announced, &[TAGGED], &[TAGGED, ("content-range", range)]);
        for length in [None, Some(300)] {
            assert_eq!(end(length, "bytes 100-299/300"), Some(300));
            assert_eq!(end(length, "bytes 99-299/300"), None);
            assert_eq!(end(length, "bytes 100-199/300"), None);
            assert_eq!(end(length, "bytes 100-199/*"), None);
        }
        assert_eq!(end(Some(400), "bytes 100-299/300"), None);
        assert_eq!(end(Some(300), "bytes 100-299/*"), Some(300));
        // An origin may send less than it could.
        assert_eq!(end(None, "bytes 100-299/*"), None);
    }

    #[test]
    fn the_rest_is_of_the_same_version_and_coded_alike() {
        let coded = ("content-encoding", "br");
        let with = |rest: &[_]| end_of(None, &[TAGGED, coded], &[&[REST][..], rest].concat());
        assert_eq!(with(&[TAGGED]), Some(300));
        assert_eq!(with(&[TAGGED, coded]), Some(300));
        assert_eq!(with(&[TAGGED, ("content-encoding", "gzip")]), None);
        assert_eq!(with(&[("etag", "\"b\"")]), None);
        assert_eq!(with(&[("etag", "W/\"a\"")]), None);
    }

    #[test]
    fn the_rest_repeats_the_validator_that_it_was_asked_with() {
        let dated = [DATE, CHANGED];
        assert_eq!(end_of(None, &[TAGGED], &[REST]), None, "it may be of any version");
        assert_eq!(end_of(None, &[TAGGED, CHANGED], &[REST, CHANGED]), None);
        assert_eq!(end_of(None, &dated, &[REST, CHANGED]), Some(300));
        assert_eq!(end_of(None, &dated, &[REST, DATE]), None);
        assert_eq!(end_of(None, &[], &[REST]), None, "nothing promises anything");
    }
}
