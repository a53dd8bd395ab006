//! For arbitrary bytes, the parsers do not panic, return nothing from outside them, and give the
//! same result however a file is divided.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use wire::Instant;
use wire::capture::{Frame, pcap};

use crate::common::checks;
use crate::common::frames::{
    AGGREGATE, FROM_DS, HT_CONTROL, IPV4, IPV6, MESH_CONTROL, QOS_DATA, TO_DS, aggregate, data,
    ethernet, ipv4, ipv6, llc, mesh_control, pppoe, radiotap, sll, sll2, tcp, whole_length,
};

/// A frame of several layers, and the number of its link type as in [`checks::frame`]. Each yields
/// one segment, except aggregates.
fn valid() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let payload = prop::collection::vec(any::<u8>(), 0..100);
    let packet = (payload, any::<u32>(), any::<bool>()).prop_map(|(payload, seq, v6)| {
        let tcp = tcp(seq, &payload);
        if v6 { (IPV6, ipv6(6, &tcp)) } else { (IPV4, ipv4(6, &tcp)) }
    });
    (packet, 0..11_u8, 0..3_u8).prop_map(|((kind, packet), shape, addresses)| {
        let body = llc(kind, &packet);
        let mesh = [mesh_control(addresses), body.clone()].concat();
        let packets = if addresses == 0 {
            [body.clone(), body.clone()]
        } else {
            [mesh.clone(), mesh.clone()]
        };
        match shape {
            0 => (0, ethernet(&[0x88a8, 0x8100][..addresses.into()], kind, &packet)),
            1 => (1, data(0x08, addresses, 0, &body)),
            2 => (1, data(QOS_DATA, TO_DS | HT_CONTROL, 0, &body)),
            3 => (1, data(QOS_DATA, TO_DS | FROM_DS, MESH_CONTROL, &mesh)),
            4 => {
                let present = [1 << 1 | 1 << 5 | 1 << 23 | 1 << 29 | 1 << 31, 1 << 6];
                let fields = [&[0x10, 0xc4][..], &[0; 12], &[0xa1]].concat();
                let frame = [data(0x08, 0, 0, &body), vec![1, 2, 3, 4]].concat();
                (2, radiotap(&present, &fields, &frame))
            }
            5 => (3, sll(1, kind, &packet)),
            6 => (4, sll2(1, kind, &packet)),
            7 => (5, [&if kind == IPV4 { 2_u32 } else { 30 }.to_le_bytes(), &packet[..]].concat()),
            8 => (7 + addresses, packet),
            9 => (0, pppoe(if kind == IPV4 { 0x21 } else { 0x57 }, &packet)),
            _ => {
                let flags = if addresses == 0 { TO_DS } else { TO_DS | FROM_DS };
                let qos = if addresses == 0 { AGGREGATE } else { AGGREGATE | MESH_CONTROL };
                (1, data(QOS_DATA, flags, qos, &aggregate(&packets, whole_length)))
            }
        }
    })
}

fn spoil(bytes: &mut [u8], damage: &[(Index, u8)]) {
    for (at, byte) in damage {
        let at = at.index(bytes.len());
        bytes[at] ^= byte;
    }
}

/// A file with these frames; their times do not matter.
fn file(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = pcap::file_header(pcap::LINKTYPE_IEEE802_11).to_vec();
    for (_, frame) in frames {
        let length = frame.len() as u32;
        bytes.extend(pcap::record_header(Duration::ZERO, Instant::ZERO, length));
        bytes.extend(frame);
    }
    bytes
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        checks::frame(&bytes);
        checks::file(&bytes);
    }

    #[test]
    fn spoilt_frames_are_survived(
        (link_type, mut bytes) in valid(),
        cut in 0..20_u8,
        damage in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4),
        end in any::<Index>(),
    ) {
        spoil(&mut bytes, &damage);
        bytes.truncate(end.index(2 * bytes.len()));
        checks::frame(&[&[link_type, cut], &bytes[..]].concat());
    }

    #[test]
    fn parts_of_valid_frames_agree((link_type, bytes) in valid()) {
        let link_type = checks::LINK_TYPES[usize::from(link_type)];
        let frame = Frame { link_type, bytes: &bytes, length: bytes.len() };
        let heard = checks::hear(frame);
        prop_assert!(heard.iter().any(Result::is_ok), "{:?}", heard);
        checks::cuts_agree(frame, &heard);
    }

    #[test]
    fn spoilt_files_are_survived(
        frames in prop::collection::vec(valid(), 0..4),
        damage in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4),
        end in any::<Index>(),
    ) {
        let mut bytes = file(&frames);
        prop_assert!(checks::file(&bytes));
        spoil(&mut bytes, &damage);
        bytes.truncate(end.index(2 * bytes.len()));
        checks::file(&bytes);
    }
}
