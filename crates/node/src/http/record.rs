//! A record: one stored response without its content; and a row: all records of a URI.
//!
//! The catalogue stores a row under each object's key. A record does not imply that its units are stored
//! (docs/protocol.md, "What is signed").

use super::bytes::{Reader, Writer};
use super::directives::CacheControl;
use super::{freshness, reuse};
use classes::Verdict;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::rc::Rc;
use wire::{Date, Digest, ObjectKey, PublicKey, RecordId, Signature};

/// A complete response to a GET, without its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Drawn at random when the response began.
    pub id: RecordId,
    /// The status of the response.
    pub status: StatusCode,
    /// The response's end-to-end header fields.
    pub headers: HeaderMap,
    /// The request's values, in normal form, of the fields that `Vary` names (RFC 9111 §4.1).
    pub selecting: Vec<(HeaderName, Option<Vec<u8>>)>,
    /// When the request was sent.
    pub requested: Date,
    /// When the response, or the latest 304 for it, was received.
    pub received: Date,
    /// Whether our clock was right at that time. If it is wrong now, or was wrong and is right now, the
    /// record's age is unknown: the record is revalidated.
    pub clocked: bool,
    /// Whether the record must be revalidated before its next use, even if it is fresh (RFC 9111 §4.4).
    pub invalid: bool,
    /// The record's age when a peer sent it, in seconds; zero if it came from an origin.
    pub carried: u64,
    /// The signature of the router that vouches for the record; `None` if this router fetched it itself.
    pub record_signature: Option<RecordSignature>,
    /// The digest that the content was found to have, by this router or by the one that dialled; `None`: nobody looked.
    pub verified: Option<Digest>,
    /// The length of the content, in bytes.
    pub length: u64,
    /// For each segment of the manifest, the offset of its first byte in the content.
    pub offsets: Vec<u64>,
}

/// The signature of the router that dialled the origin (docs/protocol.md, "What is signed").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSignature {
    /// The signer's public key.
    pub signer: PublicKey,
    /// The signature of the record's head.
    pub signature: Signature,
}

/// All records of one URI, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The canonical URI, for people; empty if there is a mesh key, which hides URIs.
    pub uri: String,
    /// At most [`Row::RECORDS_MAX`].
    pub records: Vec<Rc<Record>>,
}

const VERSION: u8 = 1;
const CLOCKED: u8 = 1;
const INVALID: u8 = 2;
const CARRIED: u8 = 4;
const VOUCHED: u8 = 8;
const VERIFIED: u8 = 16;

impl Row {
    /// The most variants of one URI that are kept; the oldest is removed first.
    pub const RECORDS_MAX: usize = 8;

    /// A row without records of its own: requests that find it are answered by this record of another row. The other row
    /// owns the record, so that this one may be evicted without harm.
    pub fn alias_of(key: ObjectKey, record: RecordId) -> Self {
        Self { uri: format!("{key} {record}"), records: Vec::new() }
    }

    /// The row and the record that this one stands for, if [`alias_of`](Self::alias_of) made it.
    pub fn alias(&self) -> Option<(ObjectKey, RecordId)> {
        let (key, record) = self.uri.split_once(' ').filter(|_| self.records.is_empty())?;
        Some((key.parse().ok()?, record.parse().ok()?))
    }

    /// Adds a record; it replaces records that the same request fields select.
    pub fn put(&mut self, record: Rc<Record>) {
        self.records.retain(|old| old.id != record.id && old.selecting != record.selecting);
        self.records.insert(0, record);
        self.records.truncate(Self::RECORDS_MAX);
    }

    /// The row as the catalogue stores it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u8(VERSION).text(self.uri.as_bytes()).u8(self.records.len() as u8);
        for record in &self.records {
            record.encode(&mut out);
        }
        out.finish()
    }

    /// Reads a row that [`encode`](Self::encode) wrote; `None` if the bytes are malformed.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        if from.u8()? != VERSION {
            return None;
        }
        let uri = String::from_utf8(from.text()?.to_vec()).ok()?;
        let count = usize::from(from.u8()?);
        if count > Self::RECORDS_MAX {
            return None;
        }
        let records =
            (0..count).map(|_| Record::decode(&mut from).map(Rc::new)).collect::<Option<_>>()?;
        from.is_empty().then_some(Self { uri, records })
    }

    /// The row's approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        self.records.iter().map(|record| record.weight()).sum::<usize>() + self.uri.len() + 64
    }
}

impl RecordSignature {
    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { signer: PublicKey(from.array()?), signature: Signature(from.array()?) })
    }
}

impl Record {
    /// Whether a request with these fields selects this record (RFC 9111 §4.1).
    pub fn is_selected_by(&self, request: &HeaderMap) -> bool {
        reuse::selects(self, request)
    }

    /// The record's age, and how long it stays fresh (below zero: how long it has been stale), by what the classes say of
    /// its URI and as for a request without wishes of its own. In seconds.
    pub fn age_and_freshness(&self, verdict: &Verdict, now: Date) -> (u64, i64) {
        let (age, kind) = (freshness::age(self, now), verdict.kind);
        if reuse::never_changes(self, kind) {
            return (age, reuse::FOR_EVER);
        }
        let control = CacheControl::of_response(&self.headers);
        let left = freshness::lifetime(self, &control, kind) as i64 - age as i64;
        (age, if self.invalid || control.no_cache { left.min(0) } else { left })
    }

    /// Whether a request for content with this digest may be given this. An error has no digest to compare; a coded form
    /// of the file has none, either, but anything may say that it is one.
    pub fn may_have(&self, digest: Option<Digest>) -> bool {
        digest.is_none() || self.status != StatusCode::OK || self.verified == digest
    }

    /// Writes the request fields that select the record.
    fn encode_selecting(&self, out: &mut Writer) {
        out.u16(self.selecting.len() as u16);
        for (name, value) in &self.selecting {
            out.text(name.as_str().as_bytes()).u8(u8::from(value.is_some()));
            if let Some(value) = value {
                out.text(value);
            }
        }
    }

    fn encode(&self, out: &mut Writer) {
        let flag = |set, flag| if set { flag } else { 0 };
        let flags = flag(self.clocked, CLOCKED)
            | flag(self.invalid, INVALID)
            | flag(self.carried > 0, CARRIED)
            | flag(self.record_signature.is_some(), VOUCHED)
            | flag(self.verified.is_some(), VERIFIED);
        out.raw(&self.id.0).u16(self.status.as_u16()).u8(flags);
        out.u64(self.requested.as_unix()).u64(self.received.as_unix()).u64(self.length);
        out.u16(self.headers.len() as u16);
        for (name, value) in &self.headers {
            out.text(name.as_str().as_bytes()).text(value.as_bytes());
        }
        self.encode_selecting(out);
        out.u32(self.offsets.len() as u32);
        for offset in &self.offsets {
            out.u64(*offset);
        }
        if self.carried > 0 {
            out.u64(self.carried);
        }
        if let Some(record_signature) = &self.record_signature {
            out.raw(&record_signature.signer.0).raw(&record_signature.signature.0);
        }
        if let Some(digest) = &self.verified {
            out.text(digest.to_string().as_bytes());
        }
    }

    fn decode(from: &mut Reader<'_>) -> Option<Self> {
        let id = RecordId(from.array()?);
        let status = StatusCode::from_u16(from.u16()?).ok()?;
        // Flags say which optional fields follow, so that rows of older programs can be read.
        let flags = from.u8()?;
        let requested = Date::from_unix(from.u64()?);
        let received = Date::from_unix(from.u64()?);
        let length = from.u64()?;
        let mut headers = HeaderMap::new();
        for _ in 0..from.u16()? {
            let name = HeaderName::from_bytes(from.text()?).ok()?;
            // Appended, not inserted: a field may occur several times. A damaged row may have too
            // many.
            headers.try_append(name, HeaderValue::from_bytes(from.text()?).ok()?).ok()?;
        }
        let selecting = Self::decode_selecting(from)?;
        // Checked against the length, because readers look segments up by these offsets.
        let offsets = Self::decode_offsets(from, length)?;
        let carried = if flags & CARRIED != 0 { from.u64()? } else { 0 };
        let vouched = flags & VOUCHED != 0;
        let record_signature = if vouched { Some(RecordSignature::decode(from)?) } else { None };
        let verified = match flags & VERIFIED {
            0 => None,
            _ => Some(std::str::from_utf8(from.text()?).ok()?.parse().ok()?),
        };
        Some(Self {
            id,
            status,
            headers,
            selecting,
            requested,
            received,
            clocked: flags & CLOCKED != 0,
            invalid: flags & INVALID != 0,
            carried,
            record_signature,
            verified,
            length,
            offsets,
        })
    }

    fn decode_selecting(from: &mut Reader<'_>) -> Option<Vec<(HeaderName, Option<Vec<u8>>)>> {
        let mut selecting = Vec::new();
        for _ in 0..from.u16()? {
            let name = HeaderName::from_bytes(from.text()?).ok()?;
            let value = match from.u8()? {
                0 => None,
                1 => Some(from.text()?.to_vec()),
                _ => return None,
            };
            selecting.push((name, value));
        }
        Some(selecting)
    }

    fn decode_offsets(from: &mut Reader<'_>, length: u64) -> Option<Vec<u64>> {
        // It grows as they are read: the number alone allocates nothing.
        let offsets: Vec<u64> = (0..from.u32()?).map(|_| from.u64()).collect::<Option<_>>()?;
        let rising = offsets.windows(2).all(|pair| pair[0] < pair[1]);
        let starts = offsets.first() == Some(&0) && offsets.last().is_some_and(|at| *at <= length);
        (rising && starts).then_some(offsets)
    }

    fn weight(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 96).sum();
        headers + self.selecting.len() * 64 + self.offsets.len() * 8 + 384
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use classes::Kind;
    use http::header;
    use proptest::prelude::*;

    /// A fresh 200 of five bytes with these header fields, received at 1000 s.
    pub(crate) fn record(headers: &[(&'static str, &'static str)]) -> Record {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Record {
            id: RecordId([7; 16]),
            status: StatusCode::OK,
            headers: map,
            selecting: Vec::new(),
            requested: Date::from_unix(1000),
            received: Date::from_unix(1000),
            clocked: true,
            invalid: false,
            carried: 0,
            record_signature: None,
            verified: None,
            length: 5,
            offsets: vec![0],
        }
    }

    #[test]
    fn a_row_reads_back_what_it_wrote() {
        let mut varied = record(&[("vary", "accept"), ("etag", "\"x\""), ("set-cookie", "a")]);
        varied.headers.append(header::SET_COOKIE, HeaderValue::from_static("b"));
        varied.selecting = vec![(header::ACCEPT, Some(b"*/*".to_vec())), (header::COOKIE, None)];
        varied.offsets = vec![0, 3];
        let mut row = Row { uri: "http://a/".into(), ..Row::default() };
        row.put(Rc::new(record(&[("age", "5")])));
        varied.id = RecordId([8; 16]);
        row.put(Rc::new(varied));
        assert_eq!(row.records.len(), 2);
        assert_eq!(Row::decode(&row.encode()), Some(row));
    }

    #[test]
    fn each_flag_reads_back_alone() {
        let plain = Record { clocked: false, ..record(&[]) };
        let signature =
            RecordSignature { signer: PublicKey([3; 32]), signature: Signature([4; 64]) };
        for changed in [
            Record { clocked: true, ..plain.clone() },
            Record { invalid: true, ..plain.clone() },
            Record { carried: 1, ..plain.clone() },
            Record { carried: 77, ..plain.clone() },
            Record { record_signature: Some(signature), ..plain.clone() },
            Record { verified: Some(Digest::Sha256([5; 32])), ..plain.clone() },
            plain,
        ] {
            let row = Row { uri: String::new(), records: vec![Rc::new(changed)] };
            assert_eq!(Row::decode(&row.encode()), Some(row));
        }
    }

    #[test]
    fn a_row_of_another_version_or_with_more_behind_it_is_not_read() {
        let row = Row { uri: "http://a/".into(), records: vec![Rc::new(record(&[]))] };
        let bytes = row.encode();
        assert_eq!(Row::decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(Row::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Row::decode(&[&[bytes[0] + 1], &bytes[1..]].concat()), None);
        // Many offsets, of which none follows.
        let mut endless = bytes;
        let count = endless.len() - 8 - 4;
        endless[count..count + 4].fill(0xff);
        assert_eq!(Row::decode(&endless), None);
    }

    #[test]
    fn a_row_weighs_at_least_what_it_holds_and_more_for_each_thing() {
        let weight = |uri: &str, records: Vec<Record>| {
            Row { uri: uri.to_owned(), records: records.into_iter().map(Rc::new).collect() }
                .weight()
        };
        let plain = || record(&[]);
        let empty = weight("", vec![]);
        assert!((size_of::<Row>()..1000).contains(&empty));
        assert_eq!(weight("http://a.test/", vec![]), empty + 14);
        let one = weight("", vec![plain()]) - empty;
        assert!((size_of::<Record>()..1000).contains(&one), "{one}");
        assert_eq!(weight("", vec![plain(), plain()]), empty + 2 * one);
        let more = |record: Record| weight("", vec![record]) - empty - one;
        let short = more(record(&[("x-name", "v")]));
        assert_eq!(more(record(&[("x-longer-name", "v")])), short + 7);
        assert_eq!(more(record(&[("x-name", "value")])), short + 4);
        assert_eq!(more(record(&[("x-name", "v"), ("x-other-name", "v")])), 2 * short + 6);
        let selecting = vec![(header::ACCEPT, None); 3];
        let held = size_of_val(&selecting[..]);
        assert!((held..2 * held).contains(&more(Record { selecting, ..plain() })));
        assert_eq!(more(Record { offsets: vec![0, 1, 2, 3, 4], ..plain() }), 4 * size_of::<u64>());
    }

    #[test]
    fn a_file_is_for_requests_without_or_with_its_digest_and_an_error_for_all() {
        let [right, wrong] = [1, 2].map(|byte| Some(Digest::Sha256([byte; 32])));
        let file = Record { verified: right, ..record(&[]) };
        assert!(file.may_have(None) && file.may_have(right) && !file.may_have(wrong));
        let unseen = record(&[]);
        assert!(unseen.may_have(None) && !unseen.may_have(right));
        let error = Record { status: StatusCode::NOT_FOUND, ..file };
        let coded = Record { verified: right, ..record(&[("content-encoding", "gzip")]) };
        assert!(error.may_have(wrong) && !coded.may_have(wrong));
    }

    #[test]
    fn an_age_and_what_is_left_of_a_lifetime_are_told() {
        let given = record(&[("cache-control", "max-age=60"), ("age", "5")]);
        let at = |record: &Record, kind, now| {
            let verdict = Verdict { kind, ..Verdict::default() };
            record.age_and_freshness(&verdict, Date::from_unix(now))
        };
        assert_eq!(at(&given, Kind::Undecided, 1010), (15, 45));
        assert_eq!(at(&given, Kind::Undecided, 1100), (105, -45));
        let package = Kind::Immutable { digest: None };
        assert_eq!(at(&given, package, 1100), (105, 31_536_000));
        let index = Kind::Changing { lifetime: 200, stale: 0 };
        assert_eq!(at(&given, index, 1100), (105, -45), "the origin's own lifetime counts more");
        let silent = record(&[]);
        assert_eq!(at(&silent, index, 1100), (100, 100));
        let marked = Record { invalid: true, ..silent.clone() };
        assert_eq!((at(&marked, index, 1100).1, at(&marked, package, 1100).1), (0, -100));
        let asked = record(&[("cache-control", "no-cache, max-age=600")]);
        assert_eq!(at(&asked, Kind::Undecided, 1100), (100, 0));
    }

    #[test]
    fn a_record_is_selected_by_its_own_request() {
        let varied =
            Record { selecting: vec![(header::ACCEPT, Some(b"a".to_vec()))], ..record(&[]) };
        let asks = |value| varied.is_selected_by(&record(&[("accept", value)]).headers);
        assert!(asks("a") && !asks("b"));
    }

    #[test]
    fn an_alias_reads_back_what_it_stands_for() {
        let of = (ObjectKey([1; 32]), RecordId([2; 16]));
        let row = Row::alias_of(of.0, of.1);
        assert_eq!(Row::decode(&row.encode()).and_then(|row| row.alias()), Some(of));
        assert_eq!(Row { uri: "http://a/ b".into(), ..Row::default() }.alias(), None);
        assert_eq!(Row { records: vec![Rc::new(record(&[]))], ..row }.alias(), None);
    }

    #[test]
    fn a_row_is_bounded_and_replaces_the_same_variant() {
        let mut row = Row::default();
        for n in 0..20 {
            let mut next = record(&[]);
            next.id = RecordId([n; 16]);
            next.selecting = vec![(header::ACCEPT, Some(vec![n / 2]))];
            row.put(Rc::new(next));
        }
        assert_eq!(row.records.len(), Row::RECORDS_MAX);
        let kept: Vec<u8> = row.records.iter().map(|record| record.id.0[0]).collect();
        assert_eq!(kept, [19, 17, 15, 13, 11, 9, 7, 5]);
    }

    #[test]
    fn a_row_has_at_most_eight_records() {
        let of = |count: u8| {
            let numbered = |number| Record { id: RecordId([number; 16]), ..record(&[]) };
            let records = (0..count).map(|number| Rc::new(numbered(number))).collect();
            Row { uri: "http://a/".into(), records }
        };
        assert_eq!(Row::decode(&of(8).encode()), Some(of(8)));
        assert_eq!(Row::decode(&of(9).encode()), None);
    }

    #[test]
    fn segments_begin_at_rising_offsets_within_the_object() {
        let reads_back = |length, offsets: &[u64]| {
            let mut row = Row::default();
            row.put(Rc::new(Record { length, offsets: offsets.to_vec(), ..record(&[]) }));
            let read = Row::decode(&row.encode());
            assert!(read.is_none() || read == Some(row));
            read.is_some()
        };
        assert!(reads_back(0, &[0]), "an empty object has one segment");
        // The last segment may have nothing but the closing.
        assert!(reads_back(5, &[0, 5]) && !reads_back(5, &[0, 6]));
        assert!(reads_back(9, &[0, 3, 4]) && !reads_back(9, &[0, 3, 3]));
        assert!(!reads_back(9, &[0, 4, 3]) && !reads_back(9, &[1, 3]) && !reads_back(9, &[]));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_not_without_harm(bytes: Vec<u8>, at: prop::sample::Index, to: u8) {
            let _ = Row::decode(&bytes);
            let mut row = Row::default();
            row.put(Rc::new(record(&[("etag", "\"x\"")])));
            let mut good = row.encode();
            let at = at.index(good.len());
            good[at] = to;
            if let Some(row) = Row::decode(&good) {
                prop_assert_eq!(Row::decode(&row.encode()), Some(row));
            }
        }
    }
}
