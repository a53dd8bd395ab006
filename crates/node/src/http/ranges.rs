//! Byte ranges: those that requests ask for, and those that responses contain (RFC 9110 §14).

use http::{HeaderMap, HeaderValue, header};
use std::ops::Range;
use wire::peer::ByteRange;

/// A request with more ranges than this gets the whole content (§14.2 permits it).
const RANGES_MAX: usize = 16;

/// The ranges of content that a `Range` field asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// No ranges, or none that we honour: send the whole content.
    Whole,
    /// These ranges, in the order of the request; at least one, none of them empty.
    Some(Vec<Range<u64>>),
    /// All ranges are outside the content: respond with 416.
    Unsatisfiable,
}

/// Reads `Range` for content of `length` bytes.
pub fn parse(headers: &HeaderMap, length: u64) -> Ranges {
    let mut lines = headers.get_all(header::RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return Ranges::Whole };
    let Some(specs) = line.to_str().ok().and_then(specs) else { return Ranges::Whole };
    if specs.len() > RANGES_MAX {
        return Ranges::Whole;
    }
    let wanted: Vec<Range<u64>> =
        specs.into_iter().filter_map(|spec| spec.resolve(length)).collect();
    if wanted.is_empty() {
        return Ranges::Unsatisfiable;
    }
    // More bytes than the content has: overlapping ranges, which are more likely an attack than a need
    // (§14.2).
    let sum: u64 = wanted.iter().map(|range| range.end - range.start).sum();
    if sum > length { Ranges::Whole } else { Ranges::Some(wanted) }
}

/// The only range that `Range` asks for; `None` if it asks for none or several, or is not understood.
pub fn only_range(headers: &HeaderMap) -> Option<ByteRange> {
    let mut lines = headers.get_all(header::RANGE).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let specs = specs(line.to_str().ok()?)?;
    match specs[..] {
        [Spec::From(first, Some(last))] => Some(ByteRange::Between(first, last)),
        [Spec::From(first, None)] => Some(ByteRange::From(first)),
        [Spec::Last(count)] if count > 0 => Some(ByteRange::Last(count)),
        _ => None,
    }
}

/// The field `Range` that asks for this range.
pub fn range_field(range: ByteRange) -> HeaderValue {
    let text = match range {
        ByteRange::Between(first, last) => format!("bytes={first}-{last}"),
        ByteRange::From(first) => format!("bytes={first}-"),
        ByteRange::Last(count) => format!("bytes=-{count}"),
    };
    HeaderValue::try_from(text).expect("digits are ASCII")
}

/// `Content-Range` of a part.
pub fn content_range(range: &Range<u64>, length: u64) -> HeaderValue {
    let text = format!("bytes {}-{}/{length}", range.start, range.end - 1);
    HeaderValue::try_from(text).expect("digits are ASCII")
}

/// A parsed `Content-Range` field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The part's range; never empty.
    pub range: Range<u64>,
    /// The length of the whole content, if it is known; at least the end of the range.
    pub whole: Option<u64>,
}

impl ContentRange {
    /// Reads the field of a 206; `None` if it is absent, malformed or not in bytes (RFC 9110 §14.4).
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
        let (place, whole) = text.strip_prefix("bytes ")?.trim().split_once('/')?;
        let (first, last) = place.split_once('-')?;
        let range = number(first)?..number(last)?.checked_add(1)?;
        let whole = if whole == "*" { None } else { Some(number(whole)?) };
        let fits = range.start < range.end && whole.is_none_or(|whole| range.end <= whole);
        fits.then_some(Self { range, whole })
    }
}

enum Spec {
    From(u64, Option<u64>),
    Last(u64),
}

impl Spec {
    fn resolve(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From(first, last) => {
                first..last.map_or(length, |last| length.min(last.saturating_add(1)))
            }
            Self::Last(count) => length.saturating_sub(count)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

/// The range specs of `bytes=…`. `None` if one is malformed or the unit is another; the field is then
/// ignored.
fn specs(text: &str) -> Option<Vec<Spec>> {
    let (unit, set) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    set.split(',').map(str::trim).filter(|spec| !spec.is_empty()).map(spec).collect()
}

fn spec(text: &str) -> Option<Spec> {
    let (first, last) = text.split_once('-')?;
    match (first.is_empty(), last.is_empty()) {
        (true, _) => Some(Spec::Last(number(last)?)),
        (false, true) => Some(Spec::From(number(first)?, None)),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::From(first, Some(last)))
        }
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use proptest::prelude::*;

    fn parsed(value: &'static str) -> Ranges {
        parse(&record(&[("range", value)]).headers, 100)
    }

    fn one(range: Range<u64>) -> Ranges {
        Ranges::Some(Vec::from([range]))
    }

    #[test]
    fn ranges_are_cut_to_the_content() {
        assert_eq!(parsed("bytes=0-9"), one(0..10));
        assert_eq!(parsed("Bytes=90-"), one(90..100));
        assert_eq!(parsed("bytes=90-9999999999999999999999"), one(90..100));
        assert_eq!(parsed("bytes=-7"), one(93..100));
        assert_eq!(parsed("bytes=-700"), one(0..100));
        assert_eq!(parsed("bytes=5-6, 0-0,,500-"), Ranges::Some(vec![5..7, 0..1]));
        assert_eq!(parsed("bytes=100-, -0"), Ranges::Unsatisfiable);
    }

    #[test]
    fn what_is_not_understood_is_ignored() {
        for text in ["bytes", "bytes=a-b", "bytes=9-5", "lines=0-1", "bytes=-", "bytes=0-9,0-99"] {
            assert_eq!(parsed(text), Ranges::Whole, "{text}");
        }
        assert_eq!(parse(&HeaderMap::new(), 100), Ranges::Whole);
    }

    #[test]
    fn one_range_goes_through_the_peers_protocol_and_back() {
        let only = |text| only_range(&record(&[("range", text)]).headers);
        for text in ["bytes=0-9", "bytes=7-", "bytes=-7"] {
            assert_eq!(only(text).map(range_field).as_ref(), Some(&text.parse().unwrap()));
        }
        for text in ["bytes=0-1,3-4", "bytes=-0", "bytes=", "bytes=2-1", "lines=0-1"] {
            assert_eq!(only(text), None, "{text}");
        }
    }

    #[test]
    fn content_range_counts_inclusively() {
        assert_eq!(content_range(&(0..10), 100), "bytes 0-9/100");
    }

    #[test]
    fn a_part_says_where_it_is() {
        let read = |text| ContentRange::of(&record(&[("content-range", text)]).headers);
        assert_eq!(read("bytes 4-9/10"), Some(ContentRange { range: 4..10, whole: Some(10) }));
        assert_eq!(read("bytes 4-4/*"), Some(ContentRange { range: 4..5, whole: None }));
        for text in ["bytes 4-3/10", "bytes 4-9/9", "bytes */10", "bytes +4-9/10", "lines 4-9/10"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("bytes 0-18446744073709551615/*"), None);
        assert_eq!(ContentRange::of(&HeaderMap::new()), None);
    }

    proptest! {
        #[test]
        fn whatever_is_asked_stays_inside(text in "bytes=[-0-9, ]{0,40}", length in 0u64..200) {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, text.parse().unwrap());
            if let Ranges::Some(ranges) = parse(&headers, length) {
                prop_assert!(!ranges.is_empty());
                prop_assert!(ranges.iter().all(|r| r.start < r.end && r.end <= length));
            }
        }
    }

    #[test]
    fn sixteen_ranges_are_honoured_and_as_many_bytes_as_the_content_has() {
        let of = |count: usize| {
            let text = format!("bytes={}", vec!["0-0"; count].join(","));
            let headers = HeaderMap::from_iter([(header::RANGE, text.parse().unwrap())]);
            parse(&headers, 100)
        };
        assert_eq!(of(16), Ranges::Some(vec![0..1; 16]));
        assert_eq!(of(17), Ranges::Whole);
        assert_eq!(parsed("bytes=0-49,50-99"), Ranges::Some(vec![0..50, 50..100]));
        assert_eq!(parsed("bytes=0-50,50-99"), Ranges::Whole, "one byte twice");
        assert_eq!(parsed("bytes=99-99"), one(99..100));
        assert_eq!(parsed("bytes=100-100"), Ranges::Unsatisfiable);
    }

    #[test]
    fn two_fields_ask_for_nothing_that_is_understood() {
        let twice = record(&[("range", "bytes=0-1"), ("range", "bytes=0-1")]).headers;
        assert_eq!((parse(&twice, 100), only_range(&twice)), (Ranges::Whole, None));
        assert_eq!(only_range(&HeaderMap::new()), None);
    }

    #[test]
    fn of_no_content_no_range_is_satisfiable() {
        let of = |text| parse(&record(&[("range", text)]).headers, 0);
        for text in ["bytes=0-", "bytes=0-0", "bytes=-1"] {
            assert_eq!(of(text), Ranges::Unsatisfiable, "{text}");
        }
    }
}
