//! Conditional requests, on both sides (RFC 9110 §13, RFC 9111 §4.3).

use super::date;
use super::headers::{end_to_end, take_cookies};
use super::record::Record;
use super::storing::vary;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use wire::Date;

/// The request fields that make a request conditional.
pub const CONDITIONS: [HeaderName; 5] = [
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
];

/// A `Last-Modified` this much older than `Date` is a strong validator (RFC 9110 §8.8.2.2): it excludes
/// a second change within the same second, even if two clocks differ a little.
const SETTLED_SECONDS: u64 = 60;

/// Makes a request conditional, to revalidate `record` (RFC 9111 §4.3.1). False if the record has no
/// validator.
pub fn make_conditional(request: &mut HeaderMap, record: &Record) -> bool {
    let etag = record.headers.get(header::ETAG);
    let modified = record.headers.get(header::LAST_MODIFIED);
    // `If-Range` stays beside `Range`: without it, a client could get a part of another version (RFC 9110
    // §13.1.5).
    let ranged = request.contains_key(header::RANGE);
    for name in CONDITIONS.into_iter().filter(|name| !ranged || *name != header::IF_RANGE) {
        request.remove(name);
    }
    if let Some(etag) = etag {
        request.insert(header::IF_NONE_MATCH, etag.clone());
    }
    if let Some(modified) = modified {
        request.insert(header::IF_MODIFIED_SINCE, modified.clone());
    }
    etag.is_some() || modified.is_some()
}

/// Makes a range request, from byte `first` to byte `last` or the end (RFC 9110 §14.2). With a
/// validator, only that version's bytes match (`If-Range`, §13.1.5). Other conditions are removed.
pub fn make_ranged(
    request: &mut HeaderMap,
    first: u64,
    last: Option<u64>,
    validator: Option<HeaderValue>,
) {
    for name in CONDITIONS {
        request.remove(name);
    }
    let range = format!("bytes={first}-{}", last.map_or(String::new(), |last| last.to_string()));
    request.insert(header::RANGE, HeaderValue::try_from(range).expect("digits are ASCII"));
    request.extend(validator.map(|validator| (header::IF_RANGE, validator)));
}

/// Whether a 304 selects this record (§4.3.4): the validator that it carries, if any, matches the record's.
pub fn confirms(headers: &HeaderMap, record: &Record) -> bool {
    match headers.get(header::ETAG) {
        Some(etag) => {
            record.headers.get(header::ETAG).is_some_and(|ours| opaque(ours) == opaque(etag))
        }
        None => headers
            .get(header::LAST_MODIFIED)
            .is_none_or(|modified| record.headers.get(header::LAST_MODIFIED) == Some(modified)),
    }
}

/// The record, updated with the header fields of a 304 (or of a 200 to a HEAD) (§3.2, §4.3.4).
pub fn freshened(
    record: &Record,
    update: &HeaderMap,
    requested: Date,
    received: Date,
    clocked: bool,
) -> Record {
    let mut fresh = Record {
        requested,
        received,
        clocked,
        invalid: false,
        carried: 0,
        record_signature: None,
        ..record.clone()
    };
    let mut update = end_to_end(update);
    // Cookies are for the client that asked, and are not stored.
    take_cookies(&mut update);
    take_cookies(&mut fresh.headers);
    // What selected it still does, whatever a 304 leaves out.
    if let (Some(ours), Some(theirs)) = (vary(&fresh.headers), vary(&update)) {
        let missing: Vec<_> =
            ours.iter().filter(|it| !theirs.contains(it)).map(|it| it.as_str()).collect();
        if update.contains_key(header::VARY) && !missing.is_empty() {
            let missing = HeaderValue::try_from(missing.join(", ")).expect("names are ASCII");
            update.append(header::VARY, missing);
        }
    }
    // All values of a field are replaced together, so the old ones go first.
    for name in update.keys().filter(|name| !describes_content(name)) {
        fresh.headers.remove(name);
    }
    // The stored `Age` and `Date` describe the old response. A response without `Date` counts as
    // generated when it was received (RFC 9110 §6.6.1).
    fresh.headers.remove(header::AGE);
    fresh.headers.remove(header::DATE);
    if clocked && !update.contains_key(header::DATE) {
        fresh.headers.insert(header::DATE, date::format(received));
    }
    for (name, value) in update.iter().filter(|(name, _)| !describes_content(name)) {
        fresh.headers.append(name.clone(), value.clone());
    }
    fresh
}

/// Whether a field describes the stored content: a later response never updates such fields (§3.2).
fn describes_content(name: &HeaderName) -> bool {
    [header::CONTENT_LENGTH, header::CONTENT_ENCODING, header::CONTENT_TYPE, header::CONTENT_RANGE]
        .contains(name)
}

/// Whether the client already has the record's content, so that it gets a 304 (RFC 9110 §13.2.2).
pub fn not_modified(request: &HeaderMap, record: &Record) -> bool {
    if record.status != StatusCode::OK {
        return false;
    }
    if request.contains_key(header::IF_NONE_MATCH) {
        let ours = record.headers.get(header::ETAG);
        return lists(request.get_all(header::IF_NONE_MATCH).iter(), ours);
    }
    let Some(since) = date::header(request, header::IF_MODIFIED_SINCE) else { return false };
    let modified = date::header(&record.headers, header::LAST_MODIFIED)
        .or_else(|| date::header(&record.headers, header::DATE))
        .unwrap_or(record.received);
    modified <= since
}

/// Whether a list of entity tags contains ours by weak comparison (RFC 9110 §8.8.3.2), or is `*`.
fn lists<'a>(lines: impl Iterator<Item = &'a HeaderValue>, ours: Option<&HeaderValue>) -> bool {
    lines.into_iter().any(|line| {
        line.as_bytes().trim_ascii() == b"*"
            || ours.is_some_and(|ours| has_tag(line.as_bytes(), opaque(ours)))
    })
}

/// Whether a list of entity tags contains `ours`. A quoted tag may contain commas.
fn has_tag(mut list: &[u8], ours: &[u8]) -> bool {
    while !list.is_empty() {
        list = list.trim_ascii_start();
        let quote = list.iter().position(|byte| *byte == b'"');
        let comma = list.iter().position(|byte| *byte == b',').unwrap_or(list.len());
        let end = match quote {
            Some(open) if open < comma => list[open + 1..]
                .iter()
                .position(|byte| *byte == b'"')
                .map_or(list.len(), |close| open + close + 2),
            _ => comma,
        };
        let (tag, rest) = list.split_at(end);
        if !tag.is_empty() && strip_weak(tag.trim_ascii()) == ours {
            return true;
        }
        let next = rest.iter().position(|byte| *byte == b',').map_or(rest.len(), |at| at + 1);
        list = &rest[next..];
    }
    false
}

fn opaque(etag: &HeaderValue) -> &[u8] {
    strip_weak(etag.as_bytes().trim_ascii())
}

fn strip_weak(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The strong validator, which changes whenever the bytes change (RFC 9110 §8.8.1): a strong entity tag, or a
/// `Last-Modified` at least a minute before `Date` (§8.8.2.2).
pub fn strong_validator(headers: &HeaderMap) -> Option<&HeaderValue> {
    match headers.get(header::ETAG) {
        Some(etag) => Some(etag).filter(|etag| etag.as_bytes().starts_with(b"\"")),
        None => {
            let modified = date::header(headers, header::LAST_MODIFIED)?;
            let made = date::header(headers, header::DATE)?;
            let long = made.as_unix() >= modified.as_unix().saturating_add(SETTLED_SECONDS);
            headers.get(header::LAST_MODIFIED).filter(|_| long)
        }
    }
}

/// Whether a 206 repeats the strong validator that `If-Range` sent, and so may be combined with the
/// earlier part (RFC 9110 §15.3.7.3). A 206 without validator may be of another version.
pub fn repeats(part: &HeaderMap, validator: &[u8]) -> bool {
    let name = if validator.starts_with(b"\"") { header::ETAG } else { header::LAST_MODIFIED };
    part.get(name).is_some_and(|said| said.as_bytes() == validator)
}

/// Whether the range may be served: `If-Range` is absent, or holds by strong comparison (RFC 9110 §13.1.5).
pub fn range_holds(request: &HeaderMap, record: &Record) -> bool {
    let Some(condition) = request.get(header::IF_RANGE) else { return true };
    let condition = condition.as_bytes().trim_ascii();
    if condition.starts_with(b"W/") {
        return false;
    }
    if condition.starts_with(b"\"") {
        return record.headers.get(header::ETAG).is_some_and(|etag| etag.as_bytes() == condition);
    }
    record.headers.get(header::LAST_MODIFIED).is_some_and(|at| at.as_bytes() == condition)
}

#[cfg(test)]
mod tests {
    use super::super::record::RecordSignature;
    use super::super::record::tests::record;
    use super::*;
    use wire::{PublicKey, Signature};

    const COOKIE: (&str, &str) = ("set-cookie", "a=b");

    #[test]
    fn a_304_adds_to_what_selects_a_response_and_takes_nothing_away() {
        let fields = |ours: &'static str, update: &'static str| {
            let (ours, update) = (record(&[("vary", ours)]), record(&[("vary", update)]));
            let now = Date::from_unix(9);
            let fresh = freshened(&ours, &update.headers, now, now, true);
            let values = fresh.headers.get_all("vary").iter();
            values.map(|it| it.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(fields("accept", "accept-encoding"), ["accept-encoding", "accept"]);
        assert_eq!(fields("accept, x, y", "x"), ["x", "accept, y"]);
        assert_eq!(fields("accept", "Accept, x"), ["Accept, x"], "it has them all");
    }

    #[test]
    fn a_request_asks_with_all_validators_there_are() {
        let mut request = record(&[("if-range", "x"), ("if-none-match", "\"z\"")]).headers;
        assert!(make_conditional(&mut request, &record(&[("etag", "\"a\"")])));
        assert_eq!(request.len(), 1);
        assert_eq!(request[header::IF_NONE_MATCH], "\"a\"");
        assert!(!make_conditional(&mut request, &record(&[])));
        assert!(request.is_empty());
    }

    #[test]
    fn entity_tags_are_compared_weakly_in_lists() {
        let tagged = record(&[("etag", "W/\"a,b\"")]);
        let matches =
            |list: &'static str| not_modified(&record(&[("if-none-match", list)]).headers, &tagged);
        assert!(matches("\"x\", \"a,b\""));
        assert!(matches("W/\"a,b\""));
        assert!(matches("*"));
        assert!(!matches("\"a\", \"b\""));
        assert!(!matches("a,b"));
        assert!(!matches(",,\""));
    }

    #[test]
    fn dates_count_only_without_tags() {
        let since = ("if-modified-since", "Thu, 01 Jan 1970 00:10:00 GMT");
        let old = record(&[("last-modified", "Thu, 01 Jan 1970 00:10:00 GMT")]);
        let new = record(&[("last-modified", "Thu, 01 Jan 1970 00:10:01 GMT")]);
        assert!(not_modified(&record(&[since]).headers, &old));
        assert!(!not_modified(&record(&[since]).headers, &new));
        assert!(!not_modified(&record(&[since, ("if-none-match", "\"x\"")]).headers, &old));
    }

    #[test]
    fn a_304_updates_all_but_what_describes_the_bytes() {
        let old =
            record(&[("etag", "\"a\""), ("x", "1"), ("content-length", "5"), ("age", "9"), COOKIE]);
        let update =
            record(&[("x", "2"), ("content-length", "0"), ("connection", "y"), ("y", "3"), COOKIE]);
        let now = Date::from_unix(2000);
        assert!(update.headers.contains_key(COOKIE.0));
        let fresh = freshened(&old, &update.headers, now, now, true);
        assert_eq!(fresh.headers["x"], "2");
        assert_eq!(fresh.headers["content-length"], "5");
        for gone in ["y", "age", COOKIE.0] {
            assert!(!fresh.headers.contains_key(gone), "{gone}");
        }
        assert_eq!((fresh.received, fresh.id), (now, old.id));
    }

    #[test]
    fn a_304_for_another_version_confirms_nothing() {
        let ours = record(&[("etag", "\"a\""), ("last-modified", "x")]);
        let confirms = |headers: &[_]| confirms(&record(headers).headers, &ours);
        assert!(confirms(&[]) && confirms(&[("etag", "W/\"a\"")]));
        assert!(confirms(&[("last-modified", "x")]));
        assert!(!confirms(&[("etag", "\"b\"")]) && !confirms(&[("last-modified", "y")]));
    }

    #[test]
    fn what_may_change_within_its_second_promises_nothing() {
        let (early, late) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:37 GMT");
        let strong = |fields: &[(&'static str, &'static str)]| {
            strong_validator(&record(fields).headers).map(|it| it.to_str().unwrap().to_owned())
        };
        assert_eq!(strong(&[("etag", "\"a\""), ("date", early)]), Some("\"a\"".into()));
        assert_eq!(strong(&[("last-modified", early), ("date", late)]), Some(early.into()));
        assert_eq!(strong(&[("last-modified", early), ("date", early)]), None);
        assert_eq!(strong(&[("last-modified", early)]), None);
        assert_eq!(strong(&[("etag", "W/\"a\""), ("last-modified", early), ("date", late)]), None);
    }

    #[test]
    fn a_part_repeats_the_validator_that_was_sent() {
        let date = "Thu, 01 Jan 1970 00:10:00 GMT";
        let part = record(&[("etag", "\"a\""), ("last-modified", date)]).headers;
        assert!(repeats(&part, b"\"a\"") && repeats(&part, date.as_bytes()));
        assert!(!repeats(&part, b"\"b\"") && !repeats(&part, b"Thu, 01 Jan 1970 00:10:01 GMT"));
        assert!(!repeats(&record(&[("etag", "W/\"a\"")]).headers, b"\"a\""));
        for validator in [&b"\"a\""[..], date.as_bytes()] {
            assert!(!repeats(&HeaderMap::new(), validator));
        }
    }

    #[test]
    fn if_range_compares_strongly() {
        let ours = record(&[("etag", "\"a\""), ("last-modified", "Thu, 01 Jan 1970 00:10:00 GMT")]);
        let holds = |value| range_holds(&record(&[("if-range", value)]).headers, &ours);
        assert!(holds("\"a\"") && holds("Thu, 01 Jan 1970 00:10:00 GMT"));
        assert!(!holds("W/\"a\"") && !holds("\"b\"") && !holds("Thu, 01 Jan 1970 00:10:01 GMT"));
        assert!(range_holds(&HeaderMap::new(), &ours));
    }

    #[test]
    fn a_range_is_asked_for_in_one_version_only() {
        let asked = |first, last, validator: Option<&'static str>| {
            let mut request = record(&[
                ("if-none-match", "x"),
                ("if-modified-since", "x"),
                ("if-match", "x"),
                ("if-unmodified-since", "x"),
                ("if-range", "x"),
                ("range", "bytes=0-1"),
                ("accept", "x"),
            ]);
            make_ranged(&mut request.headers, first, last, validator.map(HeaderValue::from_static));
            request.headers
        };
        let expected = [("accept", "x"), ("range", "bytes=5-9"), ("if-range", "\"a\"")];
        assert_eq!(asked(5, Some(9), Some("\"a\"")), record(&expected).headers);
        let expected = [("accept", "x"), ("range", "bytes=5-")];
        assert_eq!(asked(5, None, None), record(&expected).headers);
    }

    #[test]
    fn if_range_stays_beside_a_range() {
        let of = |fields: &[_]| {
            let mut request = record(fields).headers;
            make_conditional(&mut request, &record(&[("last-modified", "x")]));
            request
        };
        let (range, condition) = (("range", "bytes=0-1"), ("if-range", "\"a\""));
        let since = ("if-modified-since", "x");
        assert_eq!(
            of(&[range, condition, ("if-match", "y")]),
            record(&[range, condition, since]).headers
        );
        assert_eq!(of(&[condition]), record(&[since]).headers);
    }

    /// RFC 9110 §6.6.1.
    #[test]
    fn a_304_without_date_is_of_when_it_came_if_the_clock_is_right() {
        let old = record(&[("date", "Thu, 01 Jan 1970 00:00:01 GMT"), ("content-type", "a")]);
        let (asked, came) = (Date::from_unix(3599), Date::from_unix(3600));
        let date = |update: &[_], clocked| {
            let fresh = freshened(&old, &record(update).headers, asked, came, clocked);
            assert_eq!((fresh.requested, fresh.received, fresh.clocked), (asked, came, clocked));
            assert_eq!(fresh.headers["content-type"], "a");
            fresh.headers.get(header::DATE).map(|it| it.to_str().unwrap().to_owned())
        };
        assert_eq!(date(&[], true).as_deref(), Some("Thu, 01 Jan 1970 01:00:00 GMT"));
        assert_eq!(date(&[("content-type", "b")], false), None);
        let told = ("date", "Thu, 01 Jan 1970 00:30:00 GMT");
        assert_eq!(date(&[told], true).as_deref(), Some(told.1));
    }

    #[test]
    fn only_a_200_is_told_not_to_have_changed() {
        let asks = record(&[("if-none-match", "*")]).headers;
        let of = |status| not_modified(&asks, &Record { status, ..record(&[("etag", "x")]) });
        assert!(of(StatusCode::OK) && !of(StatusCode::NOT_FOUND));
    }

    /// RFC 9110 §13.1.3: what has no `Last-Modified` changed when it was made at the latest.
    #[test]
    fn without_last_modified_the_date_counts_or_when_it_came() {
        let asks = |second: &'static str, fields: &[_]| {
            not_modified(&record(&[("if-modified-since", second)]).headers, &record(fields))
        };
        // It came at 1000 s, and was made at 900 s.
        let made = [("date", "Thu, 01 Jan 1970 00:15:00 GMT")];
        assert!(asks("Thu, 01 Jan 1970 00:15:00 GMT", &made));
        assert!(!asks("Thu, 01 Jan 1970 00:14:59 GMT", &made));
        assert!(asks("Thu, 01 Jan 1970 00:16:40 GMT", &[]));
        assert!(!asks("Thu, 01 Jan 1970 00:16:39 GMT", &[]));
    }

    #[test]
    fn a_minute_makes_a_date_strong() {
        let strong = |date| {
            let fields = [("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ("date", date)];
            strong_validator(&record(&fields).headers).is_some()
        };
        assert!(
            strong("Sun, 06 Nov 1994 08:50:37 GMT") && !strong("Sun, 06 Nov 1994 08:50:36 GMT")
        );
    }

    #[test]
    fn tags_in_a_list_are_divided_by_commas_outside_of_quotes() {
        let lists = |list: &'static str, ours| {
            let fields = record(&[("etag", ours)]);
            not_modified(&record(&[("if-none-match", list)]).headers, &fields)
        };
        for list in
            ["\"a\"", " \"x,\" , W/\"a\"", ",,\"a\"", "x, \"a\"", "\"\",\"a\" ,", "\"x\"y, \"a\""]
        {
            assert!(lists(list, "\"a\"") && lists(list, "W/\"a\""), "{list}");
        }
        for list in ["", "\"x\"", "\"x,\"a\"\"", "a", "\"a", "\"aa\"", "w/\"a\"", "**"] {
            assert!(!lists(list, "\"a\""), "{list}");
        }
        let untagged = record(&[]);
        let asks = |list| not_modified(&record(&[("if-none-match", list)]).headers, &untagged);
        assert!(asks("*") && !asks("\"a\""));
    }

    /// RFC 9111 §4.3.4: it is valid again, and as old as the 304 says; nobody has signed it so.
    #[test]
    fn a_304_makes_a_record_valid_and_new_and_ours() {
        let signature =
            RecordSignature { signer: PublicKey([3; 32]), signature: Signature([4; 64]) };
        let old = Record {
            invalid: true,
            carried: 7,
            record_signature: Some(signature),
            ..record(&[("etag", "x")])
        };
        let now = Date::from_unix(2000);
        let fresh = freshened(&old, &HeaderMap::new(), now, now, true);
        assert_eq!((fresh.invalid, fresh.carried, fresh.record_signature), (false, 0, None));
    }
}
