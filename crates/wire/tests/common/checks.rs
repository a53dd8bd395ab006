//! Properties of the capture parsers that hold for any input.

use wire::capture::records::{Cause, Decoder, Feeder, Record, RecordsError};
use wire::capture::{Frame, Heard, Refusal, Segment, pcap};

/// The link types that are read.
pub const LINK_TYPES: [u32; 12] = [
    pcap::LINKTYPE_ETHERNET,
    pcap::LINKTYPE_IEEE802_11,
    pcap::LINKTYPE_IEEE802_11_RADIOTAP,
    pcap::LINKTYPE_LINUX_SLL,
    pcap::LINKTYPE_LINUX_SLL2,
    pcap::LINKTYPE_NULL,
    pcap::LINKTYPE_LOOP,
    pcap::LINKTYPES_RAW[0],
    pcap::LINKTYPES_RAW[1],
    pcap::LINKTYPES_RAW[2],
    pcap::LINKTYPES_RAW[3],
    pcap::LINKTYPES_RAW[4],
];

/// A frame. The first byte chooses its link type, the second is the number of bytes that were not
/// captured. Returns whether it yields a segment.
pub fn frame(bytes: &[u8]) -> bool {
    let Some(([link_type, cut], bytes)) = bytes.split_first_chunk() else { return false };
    let link_type = LINK_TYPES[usize::from(*link_type) % LINK_TYPES.len()];
    let whole = Frame { link_type, bytes, length: bytes.len() };
    let segments = hear(Frame { length: bytes.len() + usize::from(*cut), ..whole });
    if ![pcap::LINKTYPE_IEEE802_11, pcap::LINKTYPE_IEEE802_11_RADIOTAP].contains(&link_type) {
        cuts_agree(whole, &hear(whole));
    }
    segments.iter().any(Result::is_ok)
}

/// Everything that a frame yields.
pub fn hear(frame: Frame<'_>) -> Vec<Result<Segment<'_>, Refusal>> {
    let heard = Heard::new(frame);
    let segments: Vec<_> = heard.clone().collect();
    assert!(heard.eq(segments.iter().copied()), "reading twice gives the same");
    // A packet of an aggregate has a header of 14 bytes.
    assert!(segments.len() <= frame.bytes.len() / 14 + 1, "more packets than bytes");
    for segment in segments.iter().flatten() {
        assert!(lies_in(segment.payload, frame.bytes), "bytes that were not captured");
        assert!(segment.missing == 0 || frame.length > frame.bytes.len(), "nothing was cut");
    }
    segments
}

/// If a frame yields one segment, any prefix of the frame yields a prefix of it, or nothing.
pub fn cuts_agree(frame: Frame<'_>, whole: &[Result<Segment<'_>, Refusal>]) {
    let [Ok(whole)] = whole else { return };
    for length in 0..frame.bytes.len().min(200) {
        for part in hear(Frame { bytes: &frame.bytes[..length], ..frame }).into_iter().flatten() {
            assert_eq!(part.payload.len() + part.missing, whole.payload.len());
            let payload = &whole.payload[..part.payload.len()];
            assert_eq!(part, Segment { payload, missing: part.missing, ..*whole });
        }
    }
}

/// A capture file, read at once and in pieces whose size its bytes choose. Returns whether it can
/// be read to its end.
pub fn file(bytes: &[u8]) -> bool {
    let mut records = Vec::new();
    let mut left = bytes;
    let mut decoder = Decoder::new();
    let end = loop {
        match decoder.take(&mut left) {
            Ok(Some(record)) => records.push(record),
            Ok(None) => break decoder.finish(left),
            Err(error) => break Err(error),
        }
    };
    for record in &records {
        assert!(lies_in(record.frame.bytes, bytes), "bytes that are not in the file");
        hear(record.frame);
    }
    let offset = end.map_or_else(|error| error.offset, |()| bytes.len() as u64);
    assert!(offset <= bytes.len() as u64, "the error is in the file");
    let size = bytes.last().map_or(1, |last| usize::from(*last) + 1);
    assert_eq!(in_pieces(bytes, size, &records), end);
    end.is_ok()
}

/// Reads in pieces of this size, and expects these records.
pub fn in_pieces(bytes: &[u8], size: usize, records: &[Record<'_>]) -> Result<(), RecordsError> {
    let mut feeder = Feeder::default();
    let mut expected = records.iter();
    for piece in bytes.chunks(size) {
        feeder.feed(piece);
        while let Some(record) = feeder.take()? {
            assert_eq!(Some(&record), expected.next());
        }
    }
    assert_eq!(expected.next(), None, "records are lost");
    let end = feeder.finish();
    assert!(end.is_ok() || end.is_err_and(|error| error.cause == Cause::Torn));
    end
}

fn lies_in(part: &[u8], whole: &[u8]) -> bool {
    let (part, whole) = (part.as_ptr_range(), whole.as_ptr_range());
    part.is_empty() || (whole.start <= part.start && part.end <= whole.end)
}
