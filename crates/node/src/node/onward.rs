//! Bodies of origins that break off: gone on with from the first byte that is missing, by range, where the
//! origin promises that it is the same version (RFC 9110 §13.1.5, §14.2, and §15.3.7.3 on combining parts).
//!
//! A connection that led out of the mesh elsewhere is dead and does not say so: the new way's address
//! translation knows nothing of it. So silence counts as an end once the way out has changed.

use super::Node;
use super::origin::content_length;
use crate::fetch::{self, Fetch, Onward, Via};
use crate::http::{self, ContentRange};
use crate::input::{FetchError, FetchId};
use crate::output::{OriginOutput, Output};
use crate::storing::{Inflow, Storing};
use ::http::{HeaderMap, StatusCode, header};
use std::time::Duration;
use wire::Instant;

/// An origin that owes something and says nothing for so long, while the way out is another than before, is
/// asked anew.
const SILENT: Duration = Duration::from_secs(8);
/// So long after an attempt to go on has failed another is made …
const RETRY: Duration = Duration::from_secs(2);
/// … until nothing has come for so long: well before a client's minute is over.
const GIVE_UP: Duration = Duration::from_secs(40);

impl Node {
    /// The transfer that what a driver says of a request is about; none, if that request is done with.
    pub(super) fn carried(&self, line: FetchId) -> Option<FetchId> {
        let id = self.lines.get(&line).copied().unwrap_or(line);
        self.fetches.get(&id).filter(|fetch| fetch.line(id) == line).map(|_| id)
    }

    /// A request of a driver has ended.
    pub(super) fn line_ends(&mut self, line: FetchId, result: Result<(), FetchError>) {
        let Some(id) = self.carried(line) else { return };
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let received = fetch.received;
        let short =
            fetch.onward.as_ref().is_some_and(|it| it.end.is_some_and(|end| end != received));
        let result = if short { Err(FetchError::Truncated) } else { result };
        if result.is_ok() || !self.could_go_on(id) {
            return self.end(id, result);
        }
        let first = self.fetches.get(&id).is_some_and(|fetch| fetch.onward.is_none());
        self.break_off(id);
        // An attempt that failed is not repeated at once.
        if first {
            self.go_on(id);
        }
    }

    /// Whether a body may be gone on with by range, if its origin cooperates.
    fn could_go_on(&mut self, id: FetchId) -> bool {
        let Some(fetch) = self.fetches.get_mut(&id) else { return false };
        let fits = fetch.via == Via::Origin && !fetch.ask.has_body;
        let Some(storing) = fetch.storing().filter(|_| fits) else { return false };
        let cut = matches!(storing.inflow, Inflow::Cut(_)) && !storing.ended;
        let known = storing.status == StatusCode::OK && !storing.readers.is_empty();
        let refuses = storing.headers.get(header::ACCEPT_RANGES).is_some_and(|it| it == "none");
        cut && known && !refuses && http::strong_validator(&storing.headers).is_some()
    }

    /// The request under way is done with.
    fn break_off(&mut self, id: FetchId) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let line = fetch.line(id);
        self.lines.remove(&line);
        // No driver knows this number: it speaks of none.
        fetch.onward = Some(Onward { line: None, answered: false, end: None, asked: self.cx.now });
        fetch.granted = fetch.received;
        self.look_at.get_or_insert(self.cx.now + super::LOOK_EVERY);
    }

    /// Asks the origin for the rest of a body.
    fn go_on(&mut self, id: FetchId) {
        let line = self.cx.tickets.fetch();
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let from = fetch.received;
        let mut headers = fetch.headers.clone();
        let Some(storing) = fetch.storing() else { return };
        let validator = http::strong_validator(&storing.headers).cloned();
        http::make_ranged(&mut headers, from, None, validator);
        fetch.onward =
            Some(Onward { line: Some(line), answered: false, end: None, asked: self.cx.now });
        let request = super::reach::origin_request(fetch, headers);
        self.lines.insert(line, id);
        self.cx.report.resumes += 1;
        self.cx.out.push_back(Output::Origin(OriginOutput::Fetch(line, Box::new(request))));
    }

    /// The head of the rest of a body; false if it is the head of something else.
    pub(super) fn onward_head(
        &mut self,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> bool {
        let Some(fetch) = self.fetches.get_mut(&id) else { return false };
        let (received, line) = (fetch.received, fetch.line(id));
        let Some(onward) = fetch.onward.as_mut().filter(|onward| !onward.answered) else {
            return false;
        };
        (onward.answered, onward.asked) = (true, self.cx.now);
        let Some(storing) = fetch.storing() else { return false };
        let end = rest_end(storing, received, status, headers);
        if let Some(onward) = fetch.onward.as_mut().filter(|_| end.is_some()) {
            onward.end = end;
            self.cx.turns.dirty(id);
        } else {
            // Another version, or no part of it: two are never spliced.
            self.cx.out.push_back(Output::Origin(OriginOutput::Cancel(line)));
            self.broken(id);
        }
        true
    }

    /// Looks whether bodies of origins come on that may have been cut off; whether to look again.
    pub(super) fn look_after_bodies(&mut self) -> bool {
        let changed = self.cx.mesh.as_ref().and_then(|mesh| mesh.led_elsewhere);
        let doubtful = |(id, fetch): (&FetchId, &Fetch)| {
            // Of what has all come nothing is owed, whoever still reads it.
            let storing = matches!(&fetch.state, fetch::State::Storing(storing) if !storing.ended)
                && fetch.via == Via::Origin;
            let since = fetch.onward.as_ref().map_or(fetch.moved, |it| it.asked.max(fetch.moved));
            let is = fetch.onward.is_some() || changed.is_some_and(|at| at >= fetch.moved);
            (storing && is).then_some((*id, since.max(changed.unwrap_or(since))))
        };
        let mut ids: Vec<_> = self.fetches.iter().filter_map(doubtful).collect();
        ids.sort_unstable();
        for (id, since) in &ids {
            self.look_after_body(*id, *since);
        }
        !ids.is_empty()
    }

    /// Since then nothing has been heard of a body, and the way out may be another.
    fn look_after_body(&mut self, id: FetchId, since: Instant) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let (moved, owes) = (fetch.moved, fetch.granted > fetch.received);
        let cut_off = fetch.is_cut_off();
        let unanswered = fetch.onward.as_ref().is_some_and(|onward| !onward.answered);
        let line = fetch.line(id);
        if cut_off && self.cx.now - moved > GIVE_UP {
            self.broken(id);
        } else if cut_off && self.cx.now - since > RETRY {
            self.go_on(id);
        } else if !cut_off && (owes || unanswered) && self.cx.now - since > SILENT {
            self.cx.out.push_back(Output::Origin(OriginOutput::Cancel(line)));
            match self.could_go_on(id) && self.cx.now - moved <= GIVE_UP {
                true => {
                    self.break_off(id);
                    self.go_on(id);
                }
                false => self.broken(id),
            }
        }
    }
}

/// Where a body ends of which an answer is the rest; `None` if it is not.
fn rest_end(storing: &Storing, from: u64, status: StatusCode, headers: &HeaderMap) -> Option<u64> {
    if status != StatusCode::PARTIAL_CONTENT {
        return None;
    }
    let ContentRange { range, whole } = ContentRange::of(headers)?;
    // An origin need not send all that it is asked for: the end is known or told, or this may not be it.
    let told = whole.or(storing.announced) == Some(range.end);
    let same = |name| headers.get(&name).is_none_or(|it| storing.headers.get(&name) == Some(it));
    let announced = storing.announced.is_none_or(|length| length == range.end);
    let counted = content_length(headers).is_none_or(|length| from + length == range.end);
    let fits = range.start == from && told && announced && counted;
    let alike =
        [header::ETAG, header::LAST_MODIFIED, header::CONTENT_ENCODING].into_iter().all(same);
    let validator = http::strong_validator(&storing.headers)?.as_bytes();
    (fits && alike && http::repeats(headers, validator)).then_some(range.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cutting::Cutting;
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

    /// Where a body with these fields ends, when 100 bytes have come and a 206 follows with those.
    fn end_of(
        announced: Option<u64>,
        first: &[(&'static str, &'static str)],
        rest: &[(&'static str, &'static str)],
    ) -> Option<u64> {
        let inflow = Inflow::Cut(Box::new(Cutting::new(content::Profile::DEFAULT, None)));
        let came = (Date::default(), true);
        let id = RecordId([0; 16]);
        let mut storing = Storing::new(id, StatusCode::OK, fields(first), came, inflow);
        storing.announced = announced;
        rest_end(&storing, 100, StatusCode::PARTIAL_CONTENT, &fields(rest))
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
        // An origin need not send all of what it can give.
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
