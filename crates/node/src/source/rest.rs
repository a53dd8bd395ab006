//! Bodies that their origin broke off (`source/resume.rs`): whether such a body can be resumed, and
//! whether a response is its rest.

use super::{Source, Value};
use crate::context::Context;
use crate::http;
use crate::http::{ContentRange, content_length};
use crate::input::{FetchError, FetchId};
use crate::pursuits::{Doubt, Pursuit, Rest};
use crate::transfers::incoming::Incoming;
use crate::transfers::transfer::Transfer;
use ::http::{HeaderMap, StatusCode, header};
use wire::Instant;

impl Source {
    /// A driver's request has ended. Returns the response's result, or `None` if it will be
    /// resumed.
    pub fn origin_ends(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        result: Result<(), FetchError>,
    ) -> Option<Result<(), FetchError>> {
        let came = cx.transfers.get(&id).map_or(0, |incoming| incoming.received_bytes);
        let pursuit = cx.pursuits.get(&id);
        let result = pursuit.map_or(result, |it| it.ended(came, result));
        let Some(rest) = self.rest_of(cx, id, false).filter(|_| result.is_err()) else {
            return Some(result);
        };
        self.break_off(cx, id, rest, false);
        None
    }

    /// What is missing of a body that may be resumed by range, if its origin allows it. It is begun
    /// only while a reader waits; once begun it continues for readers that may return.
    fn rest_of(&mut self, cx: &mut Context, id: FetchId, begun: bool) -> Option<Rest> {
        let may_resume = cx.pursuits.get(&id).is_some_and(Pursuit::may_resume);
        let incoming = cx.transfers.get(&id).filter(|_| may_resume)?;
        let from = incoming.received_bytes;
        let cut = matches!(incoming.transfer, Transfer::Cutting(_));
        let known = incoming.status == StatusCode::OK && (begun || !incoming.readers.is_empty());
        let refuses = incoming.headers.get(header::ACCEPT_RANGES).is_some_and(|it| it == "none");
        let validator = http::strong_validator(&incoming.headers).cloned();
        (cut && known && !refuses && validator.is_some()).then_some(Rest { from, validator })
    }

    /// The head of the rest of a body; false if no rest was awaited.
    pub fn rest_head(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> bool {
        let now = cx.now;
        let pursuit = cx.pursuits.get_mut(&id);
        if !pursuit.is_some_and(|it| it.rest_answered(now)) {
            return false;
        }
        let Some(incoming) = cx.transfers.get(&id) else { return false };
        match rest_end(incoming, incoming.received_bytes, status, headers) {
            Some(end) => {
                if let Some(pursuit) = cx.pursuits.get_mut(&id) {
                    pursuit.rest_ends(end);
                }
                cx.turns.dirty(id);
            }
            None => {
                // Another version, or not the requested part: the two must not be spliced.
                self.hang_up(cx, id);
                self.values.push_back(Value::Broken(id));
            }
        }
        true
    }

    /// Checks bodies whose connection to the origin may be dead. True if they are to be checked
    /// again.
    pub fn look_after_bodies(&mut self, cx: &mut Context) -> bool {
        let doubtful = |(id, incoming): (&FetchId, &Incoming)| {
            // A complete body is owed nothing more, though it is still read.
            let pursuit = cx.pursuits.get(id).filter(|_| !incoming.is_ended());
            let since = pursuit.and_then(|it| it.doubted_since(cx));
            since.map(|since| (*id, since))
        };
        let mut ids: Vec<_> = cx.transfers.iter().filter_map(doubtful).collect();
        ids.sort_unstable();
        for (id, since) in &ids {
            self.look_after_body(cx, *id, *since);
        }
        !ids.is_empty()
    }

    /// Nothing has been heard of a body since then, and the way out may have changed.
    fn look_after_body(&mut self, cx: &mut Context, id: FetchId, since: Instant) {
        let Some(incoming) = cx.transfers.get(&id) else { return };
        let owes = incoming.granted > incoming.received_bytes;
        let pursuit = cx.pursuits.get(&id);
        let doubt = pursuit.map_or(Doubt::None, |it| it.doubt(cx.now, since, owes));
        if doubt == Doubt::None {
            return;
        }
        let cut_off = cx.pursuits.get(&id).is_some_and(Pursuit::is_cut_off);
        if !cut_off {
            self.hang_up(cx, id);
        }
        match self.rest_of(cx, id, cut_off).filter(|_| doubt == Doubt::Resume) {
            Some(rest) if cut_off => self.resume(cx, id, rest),
            Some(rest) => self.break_off(cx, id, rest, true),
            None => self.values.push_back(Value::Broken(id)),
        }
    }
}

/// Where the body ends, if this response is its rest; `None` if it is not.
fn rest_end(
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
