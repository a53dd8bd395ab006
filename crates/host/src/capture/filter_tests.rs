//! Runs the filters in the kernel, on frames sent through a pair of sockets, which needs no
//! privileges.

use super::{HEADERS, program};
use proptest::prelude::*;
use socket2::{Domain, Socket, Type};
use std::io::Read as _;
use wire::capture::{Frame, Heard, pcap};

use super::frames::*;

const ETHERNET: u32 = pcap::LINKTYPE_ETHERNET;
const PLAIN: u32 = pcap::LINKTYPE_IEEE802_11;
const RADIOTAP: u32 = pcap::LINKTYPE_IEEE802_11_RADIOTAP;

/// The ports of the test segments.
const FROM: u16 = 80;
const TO: u16 = 4000;

/// The bit for encryption in the second byte.
const ENCRYPTED: u8 = 0x40;

/// The number of accepted bytes of a frame.
fn passing(link_type: u32, port: u16, frame: &[u8]) -> usize {
    let (ours, theirs) = Socket::pair(Domain::UNIX, Type::DGRAM, None).unwrap();
    ours.attach_filter(&program(link_type, port).unwrap()).unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.send(frame).unwrap();
    let mut bytes = vec![0; 1 << 16];
    (&ours).read(&mut bytes).unwrap_or(0)
}

#[track_caller]
fn passes(link_type: u32, frame: &[u8]) {
    for port in [FROM, TO] {
        assert_eq!(passing(link_type, port, frame), frame.len(), "port {port}");
    }
    assert_eq!(passing(link_type, 81, frame), 0);
}

#[track_caller]
fn does_not_pass(link_type: u32, frame: &[u8]) {
    assert_eq!(passing(link_type, TO, frame), 0);
}

fn v4() -> Vec<u8> {
    ipv4(6, &tcp(1, b"payload"))
}

fn v6() -> Vec<u8> {
    ipv6(6, &tcp(1, b"payload"))
}

#[test]
fn of_ethernet_the_peers_segments_pass() {
    for tags in [&[][..], &[0x8100]] {
        passes(ETHERNET, &ethernet(tags, IPV4, &v4()));
        passes(ETHERNET, &ethernet(tags, IPV6, &v6()));
    }
    let mut options = v4();
    options[0] = 0x46;
    options.splice(20..20, [1, 1, 1, 1]);
    passes(ETHERNET, &ethernet(&[], IPV4, &options));
}

#[test]
fn what_is_none_does_not_pass() {
    does_not_pass(ETHERNET, &ethernet(&[], IPV4, &ipv4(17, &tcp(1, b"datagram"))));
    does_not_pass(ETHERNET, &ethernet(&[], IPV6, &ipv6(17, &tcp(1, b"datagram"))));
    does_not_pass(ETHERNET, &ethernet(&[], 0x0806, &v4()));
    let mut fragment = v4();
    for word in [0x2000_u16, 0x0001] {
        fragment[6..8].copy_from_slice(&word.to_be_bytes());
        does_not_pass(ETHERNET, &ethernet(&[], IPV4, &fragment));
    }
    let whole = ethernet(&[], IPV4, &v4());
    for length in 0..14 + 20 + 2 {
        does_not_pass(ETHERNET, &whole[..length]);
    }
}

/// Checks a frame with and without radiotap headers of several lengths; the longest needs both
/// bytes of the length.
#[track_caller]
fn all(frame: &[u8], check: fn(u32, &[u8])) {
    check(PLAIN, frame);
    for fields in [&[][..], &[0; 9], &[0; 1000]] {
        check(RADIOTAP, &radiotap(&[0], fields, frame));
    }
}

#[test]
fn of_802_11_the_peers_segments_pass_behind_any_header() {
    for body in [llc(IPV4, &v4()), llc(IPV6, &v6())] {
        for flags in [0, TO_DS, FROM_DS, TO_DS | FROM_DS, RETRY] {
            all(&data(DATA, flags, 0, &body), passes);
            all(&data(QOS_DATA, flags, 0, &body), passes);
            all(&data(QOS_DATA, flags | HT_CONTROL, 0, &body), passes);
            let padded = [&[0, 0][..], &body].concat();
            all(&data(QOS_DATA, flags, 0, &padded), passes);
        }
        for addresses in 0..3 {
            let body = [mesh_control(addresses), body.clone()].concat();
            all(&data(QOS_DATA, TO_DS | FROM_DS, MESH_CONTROL, &body), passes);
            all(&data(QOS_DATA, FROM_DS | HT_CONTROL, MESH_CONTROL, &body), passes);
        }
        // Towards an access point, the bit has another meaning.
        all(&data(QOS_DATA, TO_DS, MESH_CONTROL, &body), passes);
    }
}

#[test]
fn aggregates_pass_whole() {
    let frames = aggregate(&vec![llc(IPV4, &v4()); 3], whole_length);
    let frame = data(QOS_DATA, TO_DS, AGGREGATE, &frames);
    assert_eq!(passing(PLAIN, 81, &frame), frame.len());
}

#[test]
fn of_what_is_encrypted_the_headers_pass() {
    let frame = data(QOS_DATA, TO_DS | ENCRYPTED, 0, &[7; 1000]);
    assert_eq!(passing(PLAIN, TO, &frame), HEADERS as usize);
    assert_eq!(passing(RADIOTAP, TO, &radiotap(&[0], &[], &frame)), HEADERS as usize);
}

#[test]
fn of_802_11_nothing_else_passes() {
    let body = llc(IPV4, &v4());
    for kind in [0x80, 0xd4, 0x48, 0xc8, 0x0c] {
        all(&data(kind, 0, 0, &body), does_not_pass);
    }
    let more_fragments = 0x04;
    all(&data(DATA, more_fragments, 0, &body), does_not_pass);
    all(&data(DATA, 0, 0, &llc(0x0806, &v4())), does_not_pass);
    all(&data(DATA, 0, 0, &v4()), does_not_pass);
}

#[test]
fn for_other_link_types_there_is_none() {
    assert!(program(101, TO).is_none());
}

proptest! {
    /// For any frame of a mesh: if the parser finds a segment in it, the filter accepts all of it.
    #[test]
    fn what_brings_a_segment_passes(
        kind in prop_oneof![Just(DATA), Just(QOS_DATA)], flags: u8, qos: u16, control in 0..3_u8,
        is_mesh: bool, is_v6: bool,
    ) {
        let body = if is_v6 { llc(IPV6, &v6()) } else { llc(IPV4, &v4()) };
        let body = if is_mesh { [mesh_control(control), body].concat() } else { body };
        // HT control occurs only with QoS.
        let flags = if kind == DATA { flags & !HT_CONTROL } else { flags };
        let bytes = data(kind, flags, qos, &body);
        let frame = Frame { link_type: PLAIN, bytes: &bytes, length: bytes.len() };
        if Heard::new(frame).any(|it| it.is_ok()) {
            prop_assert_eq!(passing(PLAIN, TO, &bytes), bytes.len());
        }
    }
}
