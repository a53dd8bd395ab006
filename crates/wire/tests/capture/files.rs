//! Capture files of both formats.

use std::time::Duration;

use wire::Instant;
use wire::capture::records::{Cause, Decoder, FRAME_MAX, Record, RecordsError};
use wire::capture::{Frame, pcap};

use crate::common::checks;

/// All records, read at once and in pieces of several sizes, and the result at the end.
fn read(bytes: &[u8]) -> (Vec<Record<'_>>, Result<(), RecordsError>) {
    let (mut decoder, mut left, mut records) = (Decoder::new(), bytes, Vec::new());
    let end = loop {
        match decoder.take(&mut left) {
            Ok(Some(record)) => records.push(record),
            Ok(None) => break decoder.finish(left),
            Err(error) => break Err(error),
        }
    };
    for size in [1, 2, 7, 64, 4096] {
        assert_eq!(checks::in_pieces(bytes, size, &records), end);
    }
    (records, end)
}

fn record(nanos: u64, link_type: u32, bytes: &[u8], length: usize) -> Record<'_> {
    Record { time: Instant::from_nanos(nanos), frame: Frame { link_type, bytes, length } }
}

fn error(offset: u64, cause: Cause) -> Result<(), RecordsError> {
    Err(RecordsError { offset, cause })
}

#[test]
fn what_the_lab_writes_is_read_back() {
    let mut file = pcap::file_header(pcap::LINKTYPE_IEEE802_11_RADIOTAP).to_vec();
    let epoch = Duration::from_secs(1_700_000_000);
    for (nanos, frame) in [(5, &b"first"[..]), (2_000_000_007, b"")] {
        let length = frame.len() as u32;
        file.extend(pcap::record_header(epoch, Instant::from_nanos(nanos), length));
        file.extend(frame);
    }
    let expected = [
        record(1_700_000_000_000_000_005, 127, b"first", 5),
        record(1_700_000_002_000_000_007, 127, b"", 0),
    ];
    assert_eq!(read(&file), (expected.into(), Ok(())));
}

#[test]
fn the_classic_format_is_read_in_either_order_and_unit() {
    // draft-ietf-opsawg-pcap: magic, version, two unused fields, snapshot length, link type with
    // the bits about checksums; then seconds, microseconds, captured length, original length.
    let mut file = vec![0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([0, 0, 0, 64, 0x24, 0, 0, 1]);
    file.extend([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9, b'a', b'b', b'c']);
    assert_eq!(read(&file), (vec![record(1_000_002_000, 1, b"abc", 9)], Ok(())));
    let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([64, 0, 0, 0, 105, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'a']);
    assert_eq!(read(&file), (vec![record(1_000_000_002, 105, b"a", 1)], Ok(())));
}

#[test]
fn classic_files_that_are_wrong_say_where() {
    let header = pcap::file_header(1);
    assert_eq!(read(&[]).1, error(0, Cause::Torn));
    assert_eq!(read(&header[..23]).1, error(0, Cause::Torn));
    assert_eq!(read(b"GIF89a").1, error(0, Cause::Magic));
    let frame = |length: u32| pcap::record_header(Duration::ZERO, Instant::ZERO, length);
    let torn = [&header[..], &frame(1), b"a", &frame(5), b"abcd"].concat();
    assert_eq!(read(&torn), (vec![record(0, 1, b"a", 1)], error(24 + 17, Cause::Torn)));
    let long = [&header[..], &frame(FRAME_MAX as u32 + 1)].concat();
    assert_eq!(read(&long).1, error(24, Cause::FrameLength));
    let longest = [&header[..], &frame(FRAME_MAX as u32), &vec![0; FRAME_MAX]].concat();
    assert_eq!(read(&longest).1, Ok(()));
}

/// A block of the newer format, little-endian: type, length, body padded to four bytes, length.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = (12 + padded as u32).to_le_bytes();
    let padding = vec![0; padded - body.len()];
    [&kind.to_le_bytes()[..], &length, body, &padding, &length].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Byte-order magic, version 1.0, and a section of unknown length.
fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]))
}

/// Link type, snapshot length, options.
fn interface(link_type: u32, snap_length: u32, options: &[u8]) -> Vec<u8> {
    block(1, &[&words(&[link_type, snap_length]), options].concat())
}

/// Interface, time, captured and original length, the frame, options.
fn packet(interface: u32, units: u64, frame: &[u8], length: u32) -> Vec<u8> {
    let (high, low) = ((units >> 32) as u32, units as u32);
    let head = words(&[interface, high, low, frame.len() as u32, length]);
    let padding = vec![0; frame.len().next_multiple_of(4) - frame.len()];
    let comment = [1, 0, 2, 0, b'h', b'i', 0, 0, 0, 0, 0, 0];
    block(6, &[&head[..], frame, &padding, &comment].concat())
}

#[test]
fn the_newer_format_is_read() {
    // Times are in microseconds by default. Option 9 gives a power of ten, or of two if its highest
    // bit is set; option 14 gives seconds to add.
    let nanos = [9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let halves = [9, 0, 1, 0, 0x81, 0, 0, 0, 14, 0, 8, 0, 10, 0, 0, 0, 0, 0, 0, 0];
    let file = [
        section(),
        interface(1, 0, &[]),
        interface(127, 0, &nanos),
        interface(105, 0, &halves),
        block(5, &[0; 40]), // statistics
        packet(0, 3, b"abc", 7),
        packet(1, 1 << 33, b"de", 2),
        packet(2, 5, b"", 0),
        block(3, &[&words(&[2])[..], b"fg"].concat()),
        block(0x0bad_cafe, &[0; 5000]),
        // A new section starts without the interfaces of the one before.
        section(),
        interface(105, 2, &[]),
        block(3, &[&words(&[9])[..], b"hi"].concat()),
    ];
    let expected = [
        record(3_000, 1, b"abc", 7),
        record(1 << 33, 127, b"de", 2),
        record(12_500_000_000, 105, b"", 0),
        record(12_500_000_000, 1, b"fg", 2),
        record(0, 105, b"hi", 9),
    ];
    assert_eq!(read(&file.concat()), (expected.into(), Ok(())));
}

#[test]
fn the_other_byte_order_is_read() {
    let file = [
        0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28, // section
        0, 0, 0, 1, 0, 0, 0, 28, 0, 127, 0, 0, 0, 0, 0, 64, 0, 9, 0, 1, 3, 0, 0, 0, 0, 0, 0,
        28, // interface, in milliseconds
        0, 0, 0, 6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, b'a',
        0, 0, 0, 0, 0, 0, 36, // packet
    ];
    assert_eq!(read(&file), (vec![record(4_000_000, 127, b"a", 1)], Ok(())));
}

#[test]
fn impossible_times_stay_in_range() {
    let time = |option: &[u8]| {
        let file = [section(), interface(1, 0, option), packet(0, u64::MAX, b"", 0)].concat();
        let (records, end) = read(&file);
        assert_eq!(end, Ok(()));
        records[0].time.as_nanos()
    };
    assert_eq!(time(&[]), u64::MAX);
    assert_eq!(time(&[9, 0, 1, 0, 0, 0, 0, 0]), u64::MAX);
    assert_eq!(time(&[9, 0, 1, 0, 0x7f, 0, 0, 0]), 0);
    assert_eq!(time(&[9, 0, 1, 0, 0xff, 0, 0, 0]), 0);
    assert_eq!(time(&[14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0x80]), 0);
}

#[test]
fn newer_files_that_are_wrong_say_where() {
    let after = |blocks: &[Vec<u8>]| {
        let file = [section(), blocks.concat()].concat();
        read(&file).1
    };
    let start = section().len() as u64;
    assert_eq!(after(&[]), Ok(()));
    assert_eq!(after(&[packet(0, 0, b"", 0)]), error(start, Cause::NoInterface));
    assert_eq!(after(&[block(3, &words(&[1]))]), error(start, Cause::NoInterface));
    assert_eq!(after(&[words(&[5, 8, 8])]), error(start, Cause::BlockLength));
    assert_eq!(after(&[words(&[5, 13, 0])]), error(start, Cause::BlockLength));
    assert_eq!(after(&[words(&[1, 16, 1, 15])]), error(start, Cause::BlockLength));
    assert_eq!(after(&[words(&[6, 1 << 30])]), error(start, Cause::BlockLength));
    assert_eq!(after(&[block(1, &[1, 0])]), error(start, Cause::Block));
    assert_eq!(after(&[interface(1, 0, &[2, 0, 9, 0])]), error(start, Cause::Block));
    let ethernet = interface(1, 0, &[]);
    let second = start + ethernet.len() as u64;
    let beyond = block(6, &words(&[0, 0, 0, 100, 100]));
    assert_eq!(after(&[ethernet.clone(), beyond]), error(second, Cause::Block));
    let too_long = block(6, &words(&[0, 0, 0, FRAME_MAX as u32 + 1, 0]));
    assert_eq!(after(&[ethernet.clone(), too_long]), error(second, Cause::FrameLength));
    assert_eq!(after(&[ethernet[..19].to_vec()]), error(start, Cause::Torn));
    // A skipped block must be complete, however long it is.
    let huge = words(&[99, u32::MAX - 3, 0, 0, 0]);
    assert_eq!(after(&[huge]), error(start + 20, Cause::Torn));
    let many = vec![ethernet; 257];
    assert_eq!(after(&many), error(start + 256 * 20, Cause::Interfaces));
    let mut order = section();
    order[8] = 0;
    assert_eq!(read(&order).1, error(0, Cause::Magic));
}
