//! Which segments of a frame are passed on.

use super::super::Report;
use super::*;
use std::collections::BTreeMap;
use wire::capture::pcap;
use wire::counters::Reason as _;

use crate::capture::filter::frames::*;

/// The number of segments that were ignored, by reason.
fn refused(report: &Report) -> BTreeMap<&'static str, u64> {
    report.counts.refused.occurred().map(|(why, count)| (why.name(), count)).collect()
}

/// The segments of a frame, where the peers' port is 80, and the counters.
fn batch(own: &[&str], bytes: &[u8]) -> (Vec<Overheard>, Report) {
    let own = own.iter().map(|address| address.parse().unwrap()).collect();
    let frame = Frame { link_type: pcap::LINKTYPE_IEEE802_11, bytes, length: bytes.len() };
    let counters = Counters::default();
    let batch = SegmentFilter { port: 80, own }.batch([frame].into_iter(), bytes.len(), &counters);
    (batch, counters.report())
}

fn packet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let tcp = tcp(7, payload);
    llc(kind, &if kind == IPV4 { ipv4(6, &tcp) } else { ipv6(6, &tcp) })
}

#[test]
fn an_aggregate_brings_several_segments_and_what_is_none_is_counted() {
    let mut elsewhere = packet(IPV4, b"other");
    // The source port, after the LLC and IP headers; the destination port is a different one
    // anyway.
    elsewhere[8 + 20..8 + 22].copy_from_slice(&81_u16.to_be_bytes());
    let packets = [
        packet(IPV4, b"one"),
        elsewhere,
        packet(IPV6, b"two"),
        packet(IPV4, b""),
        llc(0x0806, b"who has"),
    ];
    let frame = data(QOS_DATA, TO_DS, AGGREGATE, &aggregate(&packets, whole_length));
    let (batch, report) = batch(&["10.0.0.9"], &frame);
    let payloads: Vec<_> = batch.iter().map(|segment| &segment.payload[..]).collect();
    assert_eq!(payloads, [&b"one"[..], b"two"]);
    assert_eq!((batch[0].seq, batch[0].from.port(), batch[0].to.port()), (7, 80, 4000));
    assert_eq!(report.counts.frames, 1);
    let expected = [("empty", 1), ("not_ip", 1), ("other_port", 1)];
    assert_eq!(refused(&report), expected.into());
}

#[test]
fn what_is_from_or_to_this_machine_is_none() {
    for own in ["10.0.0.1", "10.0.0.2", "fd00::2"] {
        let kind = if own.contains(':') { IPV6 } else { IPV4 };
        let (batch, report) = batch(&["127.0.0.1", own], &data(DATA, 0, 0, &packet(kind, b"x")));
        assert!(batch.is_empty() && refused(&report) == [("own", 1)].into(), "{report:?}");
    }
}
