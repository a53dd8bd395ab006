//! 802.11 data frames (IEEE 802.11-2020, 9.3.2).

use wire::capture::ieee80211::{self, Data, Header};
use wire::capture::{Frame, Heard, Refusal, pcap};

use super::{PAYLOAD, hear, hear_80211, packet, payload};
use crate::common::frames::{
    AGGREGATE, DATA, FROM_DS, HT_CONTROL, IPV4, MESH_CONTROL, QOS_DATA, RECEIVER, RETRY, TO_DS,
    TRANSMITTER, aggregate, data, llc, mesh_control, radiotap, whole_length,
};

fn body() -> Vec<u8> {
    llc(IPV4, &packet())
}

fn header(bytes: &[u8]) -> Option<Header> {
    let link_type = pcap::LINKTYPE_IEEE802_11;
    Heard::new(Frame { link_type, bytes, length: bytes.len() }).header
}

#[test]
fn what_the_lab_writes_is_read_back() {
    let written = Data {
        to: RECEIVER,
        from: TRANSMITTER,
        bssid: [3; 6],
        duration_us: 314,
        sequence: 0xabc,
        retry: true,
    };
    let bytes = [&written.to_bytes([8, 0])[..], &packet()].concat();
    assert_eq!(payload(hear_80211(&bytes)), Ok(PAYLOAD));
    let expected =
        Header { receiver: RECEIVER, transmitter: TRANSMITTER, sequence: 0xabc, retry: true };
    assert_eq!(header(&bytes), Some(expected));
    assert_eq!(hear_80211(&ieee80211::ack([7; 6])), Err(Refusal::Control));
}

#[test]
fn every_direction_and_header_is_read() {
    for kind in [DATA, QOS_DATA] {
        for direction in [0, TO_DS, FROM_DS, TO_DS | FROM_DS] {
            for flags in [0, RETRY, HT_CONTROL, RETRY | HT_CONTROL] {
                // Without a QoS field, the bit of HT control has its old meaning, strict order.
                if kind == DATA && flags & HT_CONTROL != 0 {
                    continue;
                }
                let bytes = data(kind, direction | flags, 0, &body());
                assert_eq!(payload(hear_80211(&bytes)), Ok(PAYLOAD), "{direction} {flags}");
                let header = header(&bytes).unwrap();
                assert_eq!((header.receiver, header.transmitter), (RECEIVER, TRANSMITTER));
                assert_eq!((header.sequence, header.retry), (0x123, flags & RETRY != 0));
            }
        }
    }
    let ordered = data(DATA, 0, 0, &body()).tap(|bytes| bytes[1] = HT_CONTROL);
    assert_eq!(payload(hear_80211(&ordered)), Ok(PAYLOAD));
}

trait Tap: Sized {
    fn tap(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl Tap for Vec<u8> {}

#[test]
fn what_is_no_open_data_is_refused_by_its_name() {
    let with = |kind: u8, flags: u8| hear_80211(&data(kind, flags, 0, &body())).map(|_| ());
    assert_eq!(with(0x80, 0), Err(Refusal::Management)); // a beacon
    assert_eq!(with(0xb4, 0), Err(Refusal::Control)); // RTS
    assert_eq!(with(0x48, 0), Err(Refusal::Null));
    assert_eq!(with(0xc8, 0), Err(Refusal::Null)); // with QoS
    assert_eq!(with(0x0c, 0), Err(Refusal::Reserved)); // an extension, DMG beacon
    assert_eq!(with(0x09, 0), Err(Refusal::Reserved)); // version 1
    assert_eq!(with(DATA, 0x40), Err(Refusal::Protected));
    assert_eq!(with(DATA, 0x04), Err(Refusal::LinkFragment)); // more to come
    let last = data(DATA, 0, 0, &body()).tap(|bytes| bytes[22] |= 1); // fragment 1
    assert_eq!(hear_80211(&last), Err(Refusal::LinkFragment));
    for length in 0..26 {
        let qos = data(QOS_DATA, 0, 0, &[]);
        assert_eq!(hear_80211(&qos[..length]), Err(Refusal::Short));
    }
}

#[test]
fn llc_tells_what_is_carried() {
    let carry = |body: &[u8]| hear_80211(&data(DATA, 0, 0, body)).map(|_| ());
    assert_eq!(carry(&body()), Ok(()));
    // The header of 802.1H, for bridges.
    assert_eq!(carry(&body().tap(|body| body[5] = 0xf8)), Ok(()));
    // Another organisation, another protocol, no bytes.
    assert_eq!(carry(&body().tap(|body| body[5] = 1)), Err(Refusal::NotIp));
    assert_eq!(carry(&llc(0x888e, &[0; 4])), Err(Refusal::NotIp));
    assert_eq!(carry(&[]), Err(Refusal::Short));
    // A VLAN tag after the LLC header.
    let tagged = llc(0x8100, &[&[0, 7, 8, 0][..], &packet()].concat());
    assert_eq!(carry(&tagged), Ok(()));
}

#[test]
fn mesh_control_is_passed_over() {
    let mesh = TO_DS | FROM_DS;
    for addresses in [0, 1, 2] {
        let body = [mesh_control(addresses), body()].concat();
        let bytes = data(QOS_DATA, mesh, MESH_CONTROL, &body);
        assert_eq!(payload(hear_80211(&bytes)), Ok(PAYLOAD), "{addresses}");
    }
    // A frame to a group has three addresses.
    let body_to_group = [mesh_control(1), body()].concat();
    let to_group = data(QOS_DATA, FROM_DS, MESH_CONTROL, &body_to_group);
    assert_eq!(payload(hear_80211(&to_group)), Ok(PAYLOAD));
    // Outside a mesh, the same bit is part of a station's queue size (9.2.4.5.1).
    for direction in [TO_DS, mesh] {
        let infrastructure = data(QOS_DATA, direction, MESH_CONTROL, &body());
        assert_eq!(payload(hear_80211(&infrastructure)), Ok(PAYLOAD));
    }
    // The value 3 for the number of addresses is reserved.
    let reserved = data(QOS_DATA, mesh, MESH_CONTROL, &[mesh_control(3), body()].concat());
    assert_eq!(hear_80211(&reserved), Err(Refusal::NotIp));
}

#[test]
fn each_packet_of_an_aggregate_is_read() {
    let packets = [body(), llc(0x0806, &[0; 28]), body(), body()];
    let bytes = data(QOS_DATA, TO_DS, AGGREGATE, &aggregate(&packets, whole_length));
    let expected = [Ok(PAYLOAD), Err(Refusal::NotIp), Ok(PAYLOAD), Ok(PAYLOAD)];
    let heard = hear(pcap::LINKTYPE_IEEE802_11, &bytes);
    assert_eq!(heard.into_iter().map(payload).collect::<Vec<_>>(), expected);
    // An unannounced checksum is not taken for a packet.
    let with_fcs = [&bytes[..], &[1, 2, 3, 4]].concat();
    assert_eq!(hear(pcap::LINKTYPE_IEEE802_11, &with_fcs).len(), 4);
    // The last packet exceeds the frame.
    let torn = &bytes[..bytes.len() - 1];
    assert_eq!(hear(pcap::LINKTYPE_IEEE802_11, torn)[3], Err(Refusal::Short));
    // In a truncated frame, the captured part is returned.
    let link_type = pcap::LINKTYPE_IEEE802_11;
    let cut = Heard::new(Frame { link_type, bytes: torn, length: bytes.len() });
    let last = cut.last().unwrap().unwrap();
    assert_eq!((last.payload, last.missing), (&PAYLOAD[..PAYLOAD.len() - 1], 1));
}

type LengthOf = fn(&[u8]) -> [u8; 2];

/// The length of what follows a packet's mesh control field.
fn behind(packet: &[u8]) -> u16 {
    packet.len() as u16 - 6 * (u16::from(packet[0]) + 1)
}

#[test]
fn aggregates_of_a_mesh_are_read_as_they_are_sent() {
    let packets: Vec<_> = [0, 2, 0].map(|n| [mesh_control(n), body()].concat()).into();
    // The standard's: what follows the mesh control field, little-endian.
    let lengths: [LengthOf; 3] = [
        |packet| behind(packet).to_le_bytes(),
        |packet| behind(packet).to_be_bytes(),
        whole_length,
    ];
    for (number, length) in lengths.into_iter().enumerate() {
        let body = aggregate(&packets, length);
        let bytes = data(QOS_DATA, TO_DS | FROM_DS, AGGREGATE | MESH_CONTROL, &body);
        let heard = hear(pcap::LINKTYPE_IEEE802_11, &bytes);
        assert_eq!(
            heard.into_iter().map(payload).collect::<Vec<_>>(),
            [Ok(PAYLOAD); 3],
            "{number}"
        );
    }
    // Between access points, the bit may be set outside a mesh.
    let body = aggregate(&[body(), body()], whole_length);
    let bytes = data(QOS_DATA, TO_DS | FROM_DS, AGGREGATE | MESH_CONTROL, &body);
    assert_eq!(hear(pcap::LINKTYPE_IEEE802_11, &bytes).len(), 2);
    assert!(hear(pcap::LINKTYPE_IEEE802_11, &bytes).iter().all(Result::is_ok));
}

#[test]
fn padding_behind_the_header_is_passed_over() {
    // 26 bytes of header and two of padding, which flag 0x20 of radiotap announces.
    let frame = data(QOS_DATA, TO_DS, 0, &[&[0, 0][..], &body()].concat());
    let bytes = radiotap(&[1 << 1], &[0x20], &frame);
    let heard = hear(pcap::LINKTYPE_IEEE802_11_RADIOTAP, &bytes);
    assert_eq!(payload(heard[0]), Ok(PAYLOAD));
}
