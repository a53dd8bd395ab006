//! The cost of extracting TCP payload from captured frames; throughput is in bytes of payload.
//!
//! `cargo bench -p benches --bench capture`.

#[allow(dead_code, reason = "not every kind of frame is measured")]
#[path = "../crates/wire/tests/common/frames.rs"]
mod frames;

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use frames::{
    AGGREGATE, DATA, IPV4, QOS_DATA, TO_DS, aggregate, data, ethernet, ipv4, llc, tcp, whole_length,
};
use wire::Instant;
use wire::capture::radiotap::Radiotap;
use wire::capture::records::{Decoder, Feeder};
use wire::capture::{Frame, Heard, pcap};

/// The payload of a full packet (1500 bytes) whose segment has a timestamp option.
const PAYLOAD: usize = 1448;
const FRAMES: usize = 1000;

/// The bytes that a driver reads at a time.
const PIECE: usize = 65_536;

/// Bytes of payload that a frame yields.
fn payload(frame: Frame<'_>) -> usize {
    Heard::new(frame).flatten().map(|segment| segment.payload.len()).sum()
}

fn packet() -> Vec<u8> {
    ipv4(6, &tcp(1, &[7; PAYLOAD]))
}

/// With a radiotap header, as on the lab's monitor interfaces.
fn shown(frame: &[u8]) -> Vec<u8> {
    let radio = Radiotap { tsft_us: 5, rate: 108, channel_mhz: 5180, signal_dbm: -60 };
    [&radio.to_bytes()[..], frame].concat()
}

fn single(c: &mut Criterion) {
    let body = llc(IPV4, &packet());
    let several = aggregate(&vec![body.clone(); 5], whole_length);
    let kinds = [
        ("ethernet", pcap::LINKTYPE_ETHERNET, 1, ethernet(&[], IPV4, &packet())),
        ("radiotap", pcap::LINKTYPE_IEEE802_11_RADIOTAP, 1, shown(&data(DATA, 0, 0, &body))),
        (
            "aggregate of 5",
            pcap::LINKTYPE_IEEE802_11_RADIOTAP,
            5,
            shown(&data(QOS_DATA, TO_DS, AGGREGATE, &several)),
        ),
    ];
    let mut group = c.benchmark_group("frame");
    for (name, link_type, packets, frame) in kinds {
        // Many frames, so that they are read from memory and not from a cache.
        let frames = vec![frame; FRAMES];
        group.throughput(Throughput::Bytes((FRAMES * packets * PAYLOAD) as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let heard = |bytes| payload(Frame { link_type, bytes, length: bytes.len() });
                let total: usize = frames.iter().map(|frame| heard(&frame[..])).sum();
                assert_eq!(total, FRAMES * packets * PAYLOAD);
            });
        });
    }
    group.finish();
}

fn files(c: &mut Criterion) {
    let frame = shown(&data(DATA, 0, 0, &llc(IPV4, &packet())));
    let mut file = pcap::file_header(pcap::LINKTYPE_IEEE802_11_RADIOTAP).to_vec();
    for _ in 0..FRAMES {
        let length = frame.len() as u32;
        file.extend(pcap::record_header(Duration::ZERO, Instant::ZERO, length));
        file.extend(&frame);
    }
    let mut group = c.benchmark_group("file");
    group.throughput(Throughput::Bytes((FRAMES * PAYLOAD) as u64));
    group.bench_function("at once", |b| {
        b.iter(|| {
            let (mut decoder, mut left, mut total) = (Decoder::new(), &file[..], 0);
            while let Some(record) = decoder.take(&mut left).expect("a file as the lab writes it") {
                total += payload(record.frame);
            }
            assert_eq!(total, FRAMES * PAYLOAD);
        });
    });
    group.bench_function("in pieces", |b| {
        b.iter(|| {
            let (mut feeder, mut total) = (Feeder::default(), 0);
            for piece in file.chunks(PIECE) {
                feeder.feed(piece);
                while let Some(record) = feeder.take().expect("a file as the lab writes it") {
                    total += payload(record.frame);
                }
            }
            assert_eq!(total, FRAMES * PAYLOAD);
        });
    });
    group.finish();
}

criterion_group!(benches, single, files);
criterion_main!(benches);
