//! Access for tests and fuzz targets to internals of the crate; no stable interface.
//!
//! Contains properties that must hold for any bytes, shared by fuzz targets and the tests over
//! their corpus, and the engine of peer connections, with which tests act as a misbehaving peer.

mod overheard;
mod uplink;

pub use crate::identity::verify;
pub use crate::peers::{Down, Event, Peers};
pub use crate::uplink::fetch::Asked;
pub use crate::uplink::messages::{Batch, Coding, Hello, Literals};
pub use crate::uplink::tcp::Dialled;
pub use overheard::segments as overheard;
pub use uplink::{
    Heard, PairEnd, uplink_control, uplink_encoded, uplink_handshake, uplink_listing,
    uplink_messages, uplink_proven, uplink_published, uplink_record,
};

use crate::http::{self, CacheControl, Ranges, Record, Row, Screen, Verdict};
use ::http::{HeaderMap, HeaderValue, StatusCode, header};
use std::rc::Rc;
use wire::{Date, RecordId};

/// A screen's verdict does not depend on how the bytes are split, and is always reached.
///
/// # Panics
/// If that does not hold.
pub fn screen(bytes: &[u8]) {
    for make in [Screen::requests, Screen::responses] {
        let whole = pass(make(), bytes, usize::MAX);
        let split = pass(make(), bytes, 1);
        assert_eq!(whole, split, "a verdict depends on how the bytes were split");
    }
}

/// How many bytes pass, and whether the rest is refused.
fn pass(mut screen: Screen, bytes: &[u8], piece: usize) -> (usize, bool) {
    let (mut passed, mut shown) = (0, 0);
    while shown < bytes.len() {
        shown = bytes.len().min(shown.saturating_add(piece));
        loop {
            match screen.judge(&bytes[passed..shown]) {
                Verdict::Pass(count) => {
                    assert!((1..=shown - passed).contains(&count), "no progress, or too much");
                    passed += count;
                }
                Verdict::More => break,
                Verdict::Refuse(_) => return (passed, true),
            }
        }
    }
    (passed, false)
}

/// A decoded row is encoded again with the same meaning.
///
/// # Panics
/// If that does not hold.
pub fn row(bytes: &[u8]) {
    if let Some(row) = Row::decode(bytes) {
        assert_eq!(Row::decode(&row.encode()), Some(row));
    }
}

/// Any content of header fields is parsed or ignored, with results in range. Each line of the bytes
/// is the value of one field.
///
/// # Panics
/// If that does not hold.
pub fn fields(bytes: &[u8]) {
    const LENGTH: u64 = 1000;
    let names = [
        header::CACHE_CONTROL,
        header::RANGE,
        header::EXPIRES,
        header::VARY,
        header::IF_NONE_MATCH,
        header::CONNECTION,
        header::AGE,
        header::VIA,
    ];
    let mut headers = HeaderMap::new();
    for (name, line) in names.into_iter().zip(bytes.split(|byte| *byte == b'\n')) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(name, value);
        }
    }
    let _ = CacheControl::of_request(&headers);
    if let Ranges::Some(ranges) = http::parse_ranges(&headers, LENGTH) {
        assert!(ranges.iter().all(|range| range.start < range.end && range.end <= LENGTH));
        assert!(ranges.iter().map(|range| range.end - range.start).sum::<u64>() <= LENGTH);
    }
    let _ = http::vary(&headers).map(|names| http::selecting(names, &headers));
    let record = Rc::new(of_length(LENGTH, &headers));
    let _ = http::not_modified(&headers, &record);
    let _ = http::range_holds(&headers, &record);
    let row = Row { records: vec![record], ..Row::default() };
    let _ = http::decide(&row, &headers, &classes::Verdict::default(), Date::from_unix(2000), true);
    let _ = http::passed(&headers, "name (x)");
    let _ = http::wants_upgrade(&headers);
    http::strip_hop_by_hop(&mut headers);
    assert!(!headers.contains_key(header::CONNECTION));
}

fn of_length(length: u64, headers: &HeaderMap) -> Record {
    let mut headers = headers.clone();
    headers.insert(header::ETAG, HeaderValue::from_static("\"a,b\""));
    Record {
        id: RecordId([0; 16]),
        status: StatusCode::OK,
        headers,
        selecting: Vec::new(),
        requested: Date::from_unix(1000),
        received: Date::from_unix(1001),
        clocked: true,
        invalid: false,
        carried: 0,
        record_signature: None,
        verified: None,
        length,
        offsets: vec![0],
    }
}
