//! Link types without an Ethernet or 802.11 frame, and PPPoE.

use wire::capture::{Refusal, pcap};

use super::{PAYLOAD, SEQ, hear, hear_ethernet, only, packet, payload};
use crate::common::frames::{
    DATA, IPV4, IPV6, data, ethernet, ipv4, ipv6, llc, pppoe, radiotap, sll, sll2, tcp,
};

const ETHER: u16 = 1;
const LOOPBACK: u16 = 772;
const RADIOTAP: u16 = 803;

/// The payload of the only segment that a frame yields.
fn heard(link_type: u32, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    payload(only(hear(link_type, bytes))).map(<[u8]>::to_vec)
}

fn v6() -> Vec<u8> {
    ipv6(6, &tcp(SEQ, PAYLOAD))
}

type Cooked = fn(u16, u16, &[u8]) -> Vec<u8>;

/// Both cooked headers with their link types.
const COOKED: [(u32, Cooked); 2] =
    [(pcap::LINKTYPE_LINUX_SLL, sll), (pcap::LINKTYPE_LINUX_SLL2, sll2)];

#[test]
fn cooked_frames_of_any_hardware_are_read() {
    for (link_type, cooked) in COOKED {
        for hardware in [ETHER, LOOPBACK, 512, 65534] {
            let v4 = heard(link_type, &cooked(hardware, IPV4, &packet()));
            assert_eq!(v4.as_deref(), Ok(PAYLOAD), "{link_type} {hardware}");
            let v6 = heard(link_type, &cooked(hardware, IPV6, &v6()));
            assert_eq!(v6.as_deref(), Ok(PAYLOAD), "{link_type} {hardware}");
        }
        // A VLAN tag, and LLC, whose number here is 4.
        let tagged = &ethernet(&[0x8100], IPV4, &packet())[14..];
        assert_eq!(heard(link_type, &cooked(ETHER, 0x8100, tagged)).as_deref(), Ok(PAYLOAD));
        let llc = llc(IPV4, &packet());
        assert_eq!(heard(link_type, &cooked(ETHER, 4, &llc)).as_deref(), Ok(PAYLOAD));
        let session = &pppoe(0x21, &packet())[14..];
        assert_eq!(heard(link_type, &cooked(ETHER, 0x8864, session)).as_deref(), Ok(PAYLOAD));
        // What a monitor interface brings, whatever the EtherType says.
        let monitor = radiotap(&[0], &[], &data(DATA, 0, 0, &llc));
        assert_eq!(heard(link_type, &cooked(RADIOTAP, 4, &monitor)).as_deref(), Ok(PAYLOAD));
    }
}

#[test]
fn what_is_wrong_with_a_cooked_frame_is_said() {
    for (link_type, cooked) in COOKED {
        let arp = cooked(ETHER, 0x0806, &[0; 28]);
        assert_eq!(heard(link_type, &arp), Err(Refusal::NotIp));
        let header = cooked(ETHER, IPV4, &[]);
        for length in 0..header.len() {
            assert_eq!(heard(link_type, &header[..length]), Err(Refusal::Short), "{length}");
        }
        assert_eq!(
            heard(link_type, &cooked(ETHER, IPV4, &ipv4(17, &[0; 8]))),
            Err(Refusal::NotTcp)
        );
    }
}

#[test]
fn a_family_of_either_byte_order_is_read() {
    let framed = |family: [u8; 4], packet: &[u8]| [&family, packet].concat();
    for order in [u32::to_le_bytes, u32::to_be_bytes] {
        let bytes = framed(order(2), &packet());
        assert_eq!(heard(pcap::LINKTYPE_NULL, &bytes).as_deref(), Ok(PAYLOAD));
        for family in [24, 28, 30] {
            let bytes = framed(order(family), &v6());
            assert_eq!(heard(pcap::LINKTYPE_NULL, &bytes).as_deref(), Ok(PAYLOAD), "{family}");
        }
        assert_eq!(heard(pcap::LINKTYPE_NULL, &framed(order(7), &[0; 40])), Err(Refusal::NotIp));
    }
    let bytes = framed(2u32.to_be_bytes(), &packet());
    assert_eq!(heard(pcap::LINKTYPE_LOOP, &bytes).as_deref(), Ok(PAYLOAD));
    let bytes = framed(2u32.to_le_bytes(), &packet());
    assert_eq!(heard(pcap::LINKTYPE_LOOP, &bytes), Err(Refusal::NotIp));
    for link_type in [pcap::LINKTYPE_NULL, pcap::LINKTYPE_LOOP] {
        assert_eq!(heard(link_type, &[2, 0, 0]), Err(Refusal::Short));
    }
}

#[test]
fn a_bare_packet_shows_its_version() {
    for link_type in [101, 228, 229, 12, 14] {
        assert_eq!(heard(link_type, &packet()).as_deref(), Ok(PAYLOAD), "{link_type}");
        assert_eq!(heard(link_type, &v6()).as_deref(), Ok(PAYLOAD), "{link_type}");
        assert_eq!(heard(link_type, &[0x50; 60]), Err(Refusal::NotIp));
        assert_eq!(heard(link_type, &[]), Err(Refusal::Short));
    }
}

#[test]
fn the_data_of_a_pppoe_session_is_read() {
    assert_eq!(payload(hear_ethernet(&pppoe(0x21, &packet()))), Ok(PAYLOAD));
    assert_eq!(payload(hear_ethernet(&pppoe(0x57, &v6()))), Ok(PAYLOAD));
    // Inside a VLAN, as providers have it.
    let session = &pppoe(0x21, &packet())[14..];
    assert_eq!(payload(hear_ethernet(&ethernet(&[0x8100], 0x8864, session))), Ok(PAYLOAD));
    // LCP; a code that is not data (termination of the session); discovery.
    assert_eq!(hear_ethernet(&pppoe(0xc021, &[9, 1, 0, 8])), Err(Refusal::NotIp));
    let mut ended = pppoe(0x21, &packet());
    ended[15] = 0xa7;
    assert_eq!(hear_ethernet(&ended), Err(Refusal::NotIp));
    assert_eq!(hear_ethernet(&ethernet(&[], 0x8863, session)), Err(Refusal::NotIp));
    assert_eq!(hear_ethernet(&pppoe(0x21, &[])[..21]), Err(Refusal::Short));
}
