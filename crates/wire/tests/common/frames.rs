//! Frames composed by hand, layer by layer.

use wire::capture::ieee80211::Mac;

pub const IPV4: u16 = 0x0800;
pub const IPV6: u16 = 0x86dd;

/// First bytes of 802.11 data frames, without and with a QoS field.
pub const DATA: u8 = 0x08;
pub const QOS_DATA: u8 = 0x88;

/// Bits of the second byte.
pub const TO_DS: u8 = 0x01;
pub const FROM_DS: u8 = 0x02;
pub const RETRY: u8 = 0x08;
pub const HT_CONTROL: u8 = 0x80;

/// Bits of the QoS field.
pub const AGGREGATE: u16 = 0x0080;
pub const MESH_CONTROL: u16 = 0x0100;

pub const RECEIVER: Mac = [2, 0, 0, 0, 0, 1];
pub const TRANSMITTER: Mac = [2, 0, 0, 0, 0, 2];
const OTHER: Mac = [2, 0, 0, 0, 0, 3];

/// A segment from port 80 to port 4000 with ACK and PSH, and a timestamp option after two options
/// of one byte (RFC 9293, 3.1; RFC 7323).
pub fn tcp(seq: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x00, 0x50, 0x0f, 0xa0];
    bytes.extend(seq.to_be_bytes());
    bytes.extend([0, 0, 0, 9]); // acknowledgement
    bytes.extend([0x80, 0x18, 0xff, 0xff]); // eight words, flags, window
    bytes.extend([0, 0, 0, 0]); // checksum, urgent pointer
    bytes.extend([1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 8]);
    bytes.extend(payload);
    bytes
}

/// A packet from 10.0.0.1 to 10.0.0.2 with "don't fragment" (RFC 791, 3.1).
pub fn ipv4(protocol: u8, packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0];
    bytes.extend((20 + packet.len() as u16).to_be_bytes());
    bytes.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(packet);
    bytes
}

/// A packet from fd00::1 to fd00::2 (RFC 8200, 3); extension headers are part of `packet`.
pub fn ipv6(next: u8, packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((packet.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    for last in [1, 2] {
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    bytes.extend(packet);
    bytes
}

/// A frame with these VLAN tags, given by their types.
pub fn ethernet(tags: &[u16], kind: u16, packet: &[u8]) -> Vec<u8> {
    let mut bytes = [RECEIVER, TRANSMITTER].concat();
    for tag in tags {
        bytes.extend(tag.to_be_bytes());
        bytes.extend([0x20, 7]); // priority 1, network 7
    }
    bytes.extend(kind.to_be_bytes());
    bytes.extend(packet);
    bytes
}

/// A frame of a PPPoE session (RFC 2516, 4), with PPP's number of a protocol.
pub fn pppoe(protocol: u16, packet: &[u8]) -> Vec<u8> {
    let length = 2 + packet.len() as u16;
    let session = [&[0x11, 0, 0, 7], &length.to_be_bytes()[..], &protocol.to_be_bytes(), packet];
    ethernet(&[], 0x8864, &session.concat())
}

/// Linux's cooked header, of a hardware type, with an address of six bytes.
pub fn sll(hardware: u16, kind: u16, packet: &[u8]) -> Vec<u8> {
    let [h0, h1] = hardware.to_be_bytes();
    let mut bytes = vec![0, 0, h0, h1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    bytes.extend(kind.to_be_bytes());
    bytes.extend(packet);
    bytes
}

/// The newer one, of interface 3.
pub fn sll2(hardware: u16, kind: u16, packet: &[u8]) -> Vec<u8> {
    let [h0, h1] = hardware.to_be_bytes();
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend([0, 0, 0, 0, 0, 3, h0, h1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
    bytes.extend(packet);
    bytes
}

/// LLC and SNAP (RFC 1042).
pub fn llc(kind: u16, packet: &[u8]) -> Vec<u8> {
    [&[0xaa, 0xaa, 3, 0, 0, 0][..], &kind.to_be_bytes(), packet].concat()
}

/// An 802.11 data frame with sequence number 0x123; it has a QoS field and HT control if its first
/// two bytes say so.
pub fn data(kind: u8, flags: u8, qos: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, flags, 44, 0];
    bytes.extend([RECEIVER, TRANSMITTER, OTHER].concat());
    bytes.extend([0x30, 0x12]);
    if flags & 3 == 3 {
        bytes.extend(OTHER);
    }
    if kind & 0x80 != 0 {
        bytes.extend(qos.to_le_bytes());
    }
    if flags & HT_CONTROL != 0 {
        bytes.extend([0, 0, 0, 0]);
    }
    bytes.extend(body);
    bytes
}

/// A mesh control field with this number of addresses: time to live 31, sequence number 5.
pub fn mesh_control(addresses: u8) -> Vec<u8> {
    let mut bytes = vec![addresses, 31, 5, 0, 0, 0];
    bytes.extend(OTHER.repeat(addresses.into()));
    bytes
}

/// An aggregate of these packets, each preceded by the bytes of `length`.
pub fn aggregate(packets: &[Vec<u8>], length: impl Fn(&[u8]) -> [u8; 2]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for packet in packets {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend([RECEIVER, TRANSMITTER].concat());
        bytes.extend(length(packet));
        bytes.extend(packet);
    }
    bytes
}

/// A packet's length, as in most aggregates: big-endian, of the whole packet.
pub fn whole_length(packet: &[u8]) -> [u8; 2] {
    (packet.len() as u16).to_be_bytes()
}

/// A radiotap header with these presence words and the bytes after them, followed by a frame.
pub fn radiotap(present: &[u32], fields: &[u8], frame: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend((4 + 4 * present.len() as u16 + fields.len() as u16).to_le_bytes());
    bytes.extend(present.iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(fields);
    bytes.extend(frame);
    bytes
}
