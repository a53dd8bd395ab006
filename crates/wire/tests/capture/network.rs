//! Ethernet, IP and TCP.

use wire::capture::{Frame, Refusal, pcap};

use super::{PAYLOAD, SEQ, hear, hear_ethernet, packet, payload};
use crate::common::checks;
use crate::common::frames::{IPV4, IPV6, ethernet, ipv4, ipv6, llc, tcp};

#[test]
fn every_field_of_a_segment_is_read() {
    let bytes = ethernet(&[], IPV4, &packet());
    let segment = hear_ethernet(&bytes).unwrap();
    assert_eq!(segment.from, "10.0.0.1:80".parse().unwrap());
    assert_eq!(segment.to, "10.0.0.2:4000".parse().unwrap());
    assert_eq!((segment.seq, segment.ack), (SEQ, Some(9)));
    assert_eq!((segment.syn, segment.fin, segment.rst), (false, false, false));
    assert_eq!((segment.payload, segment.missing), (PAYLOAD, 0));
}

#[test]
fn flags_are_told_apart() {
    // RFC 9293, 3.1: FIN 1, SYN 2, RST 4, PSH 8, ACK 16; flags are byte 13 of TCP's header.
    for (flags, expected) in [
        (0x01, (false, true, false, None)),
        (0x02, (true, false, false, None)),
        (0x04, (false, false, true, None)),
        (0x12, (true, false, false, Some(9))),
    ] {
        let mut bytes = ethernet(&[], IPV4, &packet());
        bytes[14 + 20 + 13] = flags;
        let segment = hear_ethernet(&bytes).unwrap();
        assert_eq!((segment.syn, segment.fin, segment.rst, segment.ack), expected);
    }
}

#[test]
fn tags_are_passed_over_up_to_two() {
    let tagged = |tags: &[u16]| ethernet(tags, IPV4, &packet());
    assert_eq!(payload(hear_ethernet(&tagged(&[0x8100]))), Ok(PAYLOAD));
    assert_eq!(payload(hear_ethernet(&tagged(&[0x88a8, 0x8100]))), Ok(PAYLOAD));
    assert_eq!(hear_ethernet(&tagged(&[0x88a8, 0x8100, 0x8100])), Err(Refusal::VlanTags));
    assert_eq!(hear_ethernet(&tagged(&[0x8100])[..16]), Err(Refusal::Short));
}

#[test]
fn a_length_in_the_place_of_the_type_means_llc() {
    let inner = llc(IPV4, &packet());
    assert_eq!(payload(hear_ethernet(&ethernet(&[], inner.len() as u16, &inner))), Ok(PAYLOAD));
    // A bridge's spanning-tree frame.
    assert_eq!(hear_ethernet(&ethernet(&[], 3, &[0x42, 0x42, 3])), Err(Refusal::NotIp));
    // Numbers between lengths and types are undefined.
    assert_eq!(hear_ethernet(&ethernet(&[], 1501, &inner)), Err(Refusal::NotIp));
}

#[test]
fn other_protocols_are_refused() {
    assert_eq!(hear_ethernet(&ethernet(&[], 0x0806, &[0; 28])), Err(Refusal::NotIp));
    assert_eq!(hear_ethernet(&ethernet(&[], IPV4, &ipv4(17, &[0; 8]))), Err(Refusal::NotTcp));
    assert_eq!(hear_ethernet(&ethernet(&[], IPV6, &ipv6(58, &[0; 8]))), Err(Refusal::NotTcp));
    // The EtherType and the version of IP must agree.
    assert_eq!(hear_ethernet(&ethernet(&[], IPV6, &ipv4(6, &[0; 60]))), Err(Refusal::Ip));
    assert_eq!(hear(147, &ethernet(&[], IPV4, &packet())), [Err(Refusal::LinkType)]);
}

#[test]
fn padding_is_no_payload() {
    // The shortest Ethernet frame is 60 bytes without its checksum, so an empty ACK is padded.
    let mut bytes = ethernet(&[], IPV4, &ipv4(6, &tcp(SEQ, &[])[..20]));
    bytes[14 + 20 + 12] = 0x50; // no options
    bytes.resize(60, 0xee);
    assert_eq!(payload(hear_ethernet(&bytes)), Ok(&[][..]));
}

#[test]
fn options_of_ip_are_passed_over() {
    // Router alert (RFC 2113) has four bytes, so the header has six words.
    let mut ip = packet();
    ip.splice(20..20, [0x94, 4, 0, 0]);
    ip[0] = 0x46;
    ip[3] += 4;
    assert_eq!(payload(hear_ethernet(&ethernet(&[], IPV4, &ip))), Ok(PAYLOAD));
}

#[test]
fn fragments_are_refused() {
    // RFC 791: bytes 6 and 7 hold flags and fragment offset; 0x2000 is "more fragments".
    for (high, low) in [(0x20, 0), (0x00, 1), (0x20, 185)] {
        let mut ip = packet();
        [ip[6], ip[7]] = [high, low];
        assert_eq!(hear_ethernet(&ethernet(&[], IPV4, &ip)), Err(Refusal::IpFragment));
    }
    // RFC 8200, 4.5: next header, reserved, offset and M, identification.
    let v6 = |offset: u8| {
        let packet = [&[6, 0, 0, offset, 0, 0, 0, 1], &tcp(SEQ, PAYLOAD)[..]].concat();
        ethernet(&[], IPV6, &ipv6(44, &packet))
    };
    assert_eq!(hear_ethernet(&v6(1)), Err(Refusal::IpFragment));
    assert_eq!(hear_ethernet(&v6(8)), Err(Refusal::IpFragment));
    // A fragment that is the whole packet is accepted (RFC 6946).
    assert_eq!(payload(hear_ethernet(&v6(0))), Ok(PAYLOAD));
}

#[test]
fn extension_headers_are_passed_over() {
    // RFC 8200, 4.3, 4.4 and 4.6: next header, then the length beyond the first eight bytes, in
    // units of eight bytes.
    let hop_by_hop = [43, 0, 1, 4, 0, 0, 0, 0];
    let routing = [60, 2, 4, 1, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
    let destination = [6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let tcp = tcp(SEQ, PAYLOAD);
    let packet = [&hop_by_hop[..], &routing, &destination, &tcp].concat();
    let bytes = ethernet(&[], IPV6, &ipv6(0, &packet));
    let segment = hear_ethernet(&bytes).unwrap();
    assert_eq!(segment.from, "[fd00::1]:80".parse().unwrap());
    assert_eq!((segment.seq, segment.payload), (SEQ, PAYLOAD));
    // Hop-by-hop options must come first; a header must not exceed the packet.
    let late = [&[0, 0, 1, 4, 0, 0, 0, 0][..], &hop_by_hop, &tcp].concat();
    assert_eq!(hear_ethernet(&ethernet(&[], IPV6, &ipv6(60, &late))), Err(Refusal::Ip));
    let long = [&[6, 200, 1, 4, 0, 0, 0, 0][..], &tcp].concat();
    assert_eq!(hear_ethernet(&ethernet(&[], IPV6, &ipv6(60, &long))), Err(Refusal::Ip));
}

#[test]
fn headers_that_contradict_themselves_are_refused() {
    let with = |at: usize, byte: u8| {
        let mut bytes = ethernet(&[], IPV4, &packet());
        bytes[at] = byte;
        hear_ethernet(&bytes).map(|_| ())
    };
    assert_eq!(with(14, 0x44), Err(Refusal::Ip)); // four words
    assert_eq!(with(14 + 3, 19), Err(Refusal::Ip)); // total length below the header's
    assert_eq!(with(14 + 2, 1), Err(Refusal::Short)); // and beyond the frame
    assert_eq!(with(14 + 20 + 12, 0x40), Err(Refusal::Tcp)); // four words
    assert_eq!(with(14 + 20 + 12, 0xf0), Err(Refusal::Tcp)); // 15 words, more than there are
    // Length zero means a jumbogram (RFC 2675), which no link of a mesh can carry.
    let mut v6 = ethernet(&[], IPV6, &ipv6(6, &tcp(SEQ, PAYLOAD)));
    [v6[18], v6[19]] = [0, 0];
    assert_eq!(hear_ethernet(&v6), Err(Refusal::Ip));
}

#[test]
fn what_was_cut_is_counted() {
    let v6 = ethernet(&[], IPV6, &ipv6(6, &tcp(SEQ, PAYLOAD)));
    for bytes in [ethernet(&[0x8100], IPV4, &packet()), v6] {
        let frame =
            Frame { link_type: pcap::LINKTYPE_ETHERNET, bytes: &bytes, length: bytes.len() };
        let part = Frame { bytes: &bytes[..bytes.len() - 4], ..frame };
        let [Ok(segment)] = checks::hear(part)[..] else { panic!("a segment") };
        assert_eq!((segment.payload, segment.missing), (&PAYLOAD[..PAYLOAD.len() - 4], 4));
        checks::cuts_agree(frame, &checks::hear(frame));
        // The frame was captured whole, so the sender is at fault.
        assert_eq!(hear(frame.link_type, part.bytes), [Err(Refusal::Short)]);
        let headers = Frame { bytes: &bytes[..bytes.len() - PAYLOAD.len() - 1], ..frame };
        assert_eq!(checks::hear(headers), [Err(Refusal::Short)]);
    }
}
