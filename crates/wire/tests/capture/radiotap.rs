//! Radiotap headers (<https://www.radiotap.org>): fields, alignment, namespaces.

use wire::capture::radiotap::{Radiotap, Received};
use wire::capture::{Frame, Heard, Refusal, pcap};

use super::{PAYLOAD, hear, packet, payload};
use crate::common::frames::{DATA, IPV4, data, llc, radiotap};

const RADIOTAP_NAMESPACE: u32 = 1 << 29;
const VENDOR_NAMESPACE: u32 = 1 << 30;
const MORE: u32 = 1 << 31;

const SIGNAL: u32 = 1 << 5;
const NOISE: u32 = 1 << 6;

fn frame() -> Vec<u8> {
    data(DATA, 0, 0, &llc(IPV4, &packet()))
}

/// Reads the header; the frame after it must be found in any case.
fn read(present: &[u32], fields: &[u8]) -> Received {
    let bytes = radiotap(present, fields, &frame());
    let link_type = pcap::LINKTYPE_IEEE802_11_RADIOTAP;
    let heard = Heard::new(Frame { link_type, bytes: &bytes, length: bytes.len() });
    assert_eq!(payload(heard.clone().next().unwrap()), Ok(PAYLOAD));
    heard.radio
}

#[test]
fn what_the_lab_writes_is_read_back() {
    let written = Radiotap { tsft_us: 1 << 40, rate: 22, channel_mhz: 2412, signal_dbm: -60 };
    let bytes = [&written.to_bytes()[..], &frame()].concat();
    let link_type = pcap::LINKTYPE_IEEE802_11_RADIOTAP;
    let radio = Heard::new(Frame { link_type, bytes: &bytes, length: bytes.len() }).radio;
    let expected = Received {
        tsft_us: Some(1 << 40),
        rate: Some(22),
        channel_mhz: Some(2412),
        signal_dbm: Some(-60),
        ..Received::default()
    };
    assert_eq!(radio, expected);
}

#[test]
fn fields_are_aligned_from_the_headers_start() {
    // Three presence words end at 16, two at 12, so TSFT (8 bytes) needs no padding, or four bytes
    // of it. As drivers do for each antenna, the further words announce signal and antenna (bit
    // 11).
    let first = 0b1 | 1 << 3 | SIGNAL | 1 << 19 | RADIOTAP_NAMESPACE | MORE;
    let antenna = SIGNAL | 1 << 11;
    let fields = [
        1, 2, 3, 4, 5, 6, 7, 8, // TSFT
        0x6c, 0x09, 0xa0, 0,    // channel
        0xc4, // signal
        0x02, 0, 7, // MCS: index is known, flags, index
        0xb0, 0, // of one antenna
        0xb1, 1, // of another antenna
    ];
    let expected = Received {
        tsft_us: Some(0x0807_0605_0403_0201),
        channel_mhz: Some(2412),
        signal_dbm: Some(-60),
        mcs: Some(7),
        ..Received::default()
    };
    let three = [first, antenna | RADIOTAP_NAMESPACE | MORE, antenna];
    assert_eq!(read(&three, &fields), expected);
    let two = [first, antenna];
    assert_eq!(read(&two, &[&[0; 4][..], &fields].concat()), expected);
}

#[test]
fn every_field_has_its_size() {
    // Each field is tested by a noise field in a second word, right after it. The header is 12
    // bytes, so a field of alignment 8 needs four bytes of padding; sizes are those of
    // radiotap.org.
    let sizes = [
        (0, 4 + 8),   // TSFT
        (1, 1),       // flags
        (2, 1),       // rate
        (3, 4),       // channel
        (4, 2),       // FHSS
        (5, 1),       // antenna signal
        (7, 2),       // lock quality
        (8, 2),       // TX attenuation
        (9, 2),       // TX attenuation in dB
        (10, 1),      // TX power
        (11, 1),      // antenna
        (12, 1),      // antenna signal in dB
        (13, 1),      // antenna noise in dB
        (14, 2),      // RX flags
        (15, 2),      // TX flags
        (16, 1),      // RTS retries
        (17, 1),      // data retries
        (18, 8),      // XChannel
        (19, 3),      // MCS
        (20, 8),      // A-MPDU status
        (21, 12),     // VHT
        (22, 4 + 12), // timestamp
        (23, 12),     // HE
        (24, 12),     // HE-MU
        (25, 6),      // HE-MU, other user
        (26, 1),      // 0-length PSDU
        (27, 4),      // L-SIG
    ];
    for (bit, size) in sizes {
        let fields = [&vec![0; size][..], &[0xa1]].concat();
        let radio = read(&[1 << bit | RADIOTAP_NAMESPACE | MORE, NOISE], &fields);
        assert_eq!(radio.noise_dbm, Some(-95), "bit {bit}");
    }
}

#[test]
fn fields_behind_bit_22_are_found() {
    // The header of an 802.11ax driver: flags, channel, signal, timestamp, HE, L-SIG, then
    // antennas. Flags are at 12, channel at 14, signal at 18, timestamp at 24, HE at 36, L-SIG at
    // 48.
    let present = 1 << 1 | 1 << 3 | SIGNAL | 1 << 22 | 1 << 23 | 1 << 27;
    let mut fields = vec![0x00, 0xee, 0x3c, 0x14, 0x40, 0x01, 0xce];
    fields.extend([0xee; 5]);
    fields.extend([0x55; 12 + 12 + 4]);
    fields.extend([0xa0]);
    let radio = read(&[present | RADIOTAP_NAMESPACE | MORE, NOISE], &fields);
    assert_eq!((radio.channel_mhz, radio.signal_dbm), (Some(5180), Some(-50)));
    assert_eq!(radio.noise_dbm, Some(-96));
}

#[test]
fn vendor_namespaces_are_passed_over() {
    // Signal; a vendor's word with arbitrary bits; a standard word again. The signal is at 16; at
    // 18, aligned to two, stand organisation, sub-namespace and the length to skip, 5; noise
    // follows.
    let present =
        [SIGNAL | VENDOR_NAMESPACE | MORE, 0x00ff_ff00 | RADIOTAP_NAMESPACE | MORE, NOISE];
    let fields = [0xc4, 0xee, 0, 0x11, 0x22, 0, 5, 0, 1, 2, 3, 4, 5, 0xa1];
    let radio = read(&present, &fields);
    assert_eq!((radio.signal_dbm, radio.noise_dbm), (Some(-60), Some(-95)));
    // The vendor's length exceeds the header; the fields before it stay valid.
    let radio = read(&present, &[0xc4, 0xee, 0, 0x11, 0x22, 0, 200, 0, 1]);
    assert_eq!((radio.signal_dbm, radio.noise_dbm), (Some(-60), None));
}

#[test]
fn what_is_not_known_ends_the_fields() {
    let unknown = read(&[SIGNAL | 1 << 28 | RADIOTAP_NAMESPACE | MORE, NOISE], &[0xc4, 0, 0, 0, 9]);
    assert_eq!((unknown.signal_dbm, unknown.noise_dbm), (Some(-60), None));
    // Without a namespace bit, a second word announces fields 32 to 60.
    let beyond = read(&[SIGNAL | MORE, NOISE], &[0xc4, 0xa1]);
    assert_eq!((beyond.signal_dbm, beyond.noise_dbm), (Some(-60), None));
    // Both namespace bits at once.
    let both = RADIOTAP_NAMESPACE | VENDOR_NAMESPACE | MORE;
    assert_eq!(read(&[SIGNAL | both, NOISE], &[0xc4, 0xa1]).noise_dbm, None);
    // Fewer bytes than the fields need; presence words without an end.
    assert_eq!(read(&[1 | SIGNAL], &[0; 7]), Received::default());
    assert_eq!(read(&[SIGNAL | MORE; 3], &[]), Received::default());
}

#[test]
fn checksums_are_taken_off_and_damage_is_refused() {
    // Flag 0x10: the FCS follows; flag 0x40: it is wrong.
    let with_fcs = [&frame()[..], &[1, 2, 3, 4]].concat();
    let bytes = radiotap(&[1 << 1], &[0x10], &with_fcs);
    let link_type = pcap::LINKTYPE_IEEE802_11_RADIOTAP;
    assert_eq!(payload(hear(link_type, &bytes)[0]), Ok(PAYLOAD));
    // If only part of the FCS was captured, only that part is removed.
    for cut in 0..4 {
        let bytes = &bytes[..bytes.len() - cut];
        let heard = Heard::new(Frame { link_type, bytes, length: bytes.len() + cut });
        assert_eq!(heard.last().unwrap().unwrap().payload, PAYLOAD);
    }
    let damaged = radiotap(&[1 << 1], &[0x50], &with_fcs);
    assert_eq!(hear(link_type, &damaged), [Err(Refusal::BadFcs)]);
    // RX flag 0x02: the checksum of the physical header is wrong.
    let damaged = radiotap(&[1 << 14], &[0x02, 0], &frame());
    assert_eq!(hear(link_type, &damaged), [Err(Refusal::BadFcs)]);
}

#[test]
fn a_header_that_is_none_is_refused() {
    let link_type = pcap::LINKTYPE_IEEE802_11_RADIOTAP;
    let only = |bytes: &[u8]| hear(link_type, bytes).remove(0).map(|_| ());
    assert_eq!(only(&[]), Err(Refusal::Short));
    assert_eq!(only(&[0, 0, 8]), Err(Refusal::Short));
    assert_eq!(only(&[1, 0, 8, 0, 0, 0, 0, 0]), Err(Refusal::Radiotap));
    assert_eq!(only(&[0, 0, 7, 0, 0, 0, 0, 0]), Err(Refusal::Radiotap));
    assert_eq!(only(&[0, 0, 9, 0, 0, 0, 0, 0]), Err(Refusal::Short));
    assert_eq!(only(&[0, 0, 8, 0, 0, 0, 0, 0]), Err(Refusal::Short)); // no frame follows
}
