//! Radiotap headers (<https://www.radiotap.org>): fields, alignment, namespaces.

use wire::capture::radiotap::{Radiotap, Received};
use wire::capture::{Frame, Heard, Refusal, pcap};

use crate::common::frames::{DATA, IPV4, data, llc, radiotap};
use crate::{PAYLOAD, hear, packet, payload};

const RADIOTAP_NAMESPACE: u32 = 1 << 29;
const VENDOR_NAMESPACE: u32 = 1 << 30;
const MORE: u32 = 1 << 31;

const SIGNAL: u32 = 1 << 5;
const NOISE: u32 = 1 << 6;

fn frame() -> Vec<u8> {
    data(DATA, 0, 0, &llc(IPV4, &packet()))
}

/// What the header says; whatever it is, the frame behind it is read.
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
    // Three words end at 16, two at 12: before TSFT (8 bytes) there is no padding, or four bytes. As
    // drivers do for each antenna, the further words have signal and antenna (bit 11).
    let first = 0b1 | 1 << 3 | SIGNAL | 1 << 19 | RADIOTAP_NAMESPACE | MORE;
    let antenna = SIGNAL | 1 << 11;
    let fields = [
        1, 2, 3, 4, 5, 6, 7, 8, // TSFT
        0x6c, 0x09, 0xa0, 0,    // channel
        0xc4, // signal
        0x02, 0, 7, // MCS: index is known, flags, index
        0xb0, 0, // of an antenna
        0xb1, 1, // and of another
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
    // Noise behind each field alone: in a second word, right where the field ends. The header is 12
    // bytes, so a field of alignment 8 has four bytes before it; sizes are those of radiotap.org.
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
    // An 802.11ax driver's: flags, channel, signal, timestamp, HE, L-SIG, then per antenna. Offsets
    // from 12: flags, a byte, channel at 14, signal at 18, timestamp at 24, HE at 36, L-SIG at 48.
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
    // Signal, a vendor's word with any bits, and the standard's again. At 16: signal; at 18, aligned
    // to two: organisation, part, length 5 of what is skipped; behind that, noise.
    let present =
        [SIGNAL | VENDOR_NAMESPACE | MORE, 0x00ff_ff00 | RADIOTAP_NAMESPACE | MORE, NOISE];
    let fields = [0xc4, 0xee, 0, 0x11, 0x22, 0, 5, 0, 1, 2, 3, 4, 5, 0xa1];
    let radio = read(&present, &fields);
    assert_eq!((radio.signal_dbm, radio.noise_dbm), (Some(-60), Some(-95)));
    // It goes beyond the header: what was read before counts.
    let radio = read(&present, &[0xc4, 0xee, 0, 0x11, 0x22, 0, 200, 0, 1]);
    assert_eq!((radio.signal_dbm, radio.noise_dbm), (Some(-60), None));
}

#[test]
fn what_is_not_known_ends_the_fields() {
    let unknown = read(&[SIGNAL | 1 << 28 | RADIOTAP_NAMESPACE | MORE, NOISE], &[0xc4, 0, 0, 0, 9]);
    assert_eq!((unknown.signal_dbm, unknown.noise_dbm), (Some(-60), None));
    // Without a word about namespaces, a second word is of fields 32 to 60.
    let beyond = read(&[SIGNAL | MORE, NOISE], &[0xc4, 0xa1]);
    assert_eq!((beyond.signal_dbm, beyond.noise_dbm), (Some(-60), None));
    // Both namespaces at once.
    let both = RADIOTAP_NAMESPACE | VENDOR_NAMESPACE | MORE;
    assert_eq!(read(&[SIGNAL | both, NOISE], &[0xc4, 0xa1]).noise_dbm, None);
    // Fewer bytes than fields; words without end.
    assert_eq!(read(&[1 | SIGNAL], &[0; 7]), Received::default());
    assert_eq!(read(&[SIGNAL | MORE; 3], &[]), Received::default());
}

#[test]
fn checksums_are_taken_off_and_damage_is_refused() {
    // Flags: 0x10 is the FCS at the end, 0x40 that it is wrong.
    let with_fcs = [&frame()[..], &[1, 2, 3, 4]].concat();
    let bytes = radiotap(&[1 << 1], &[0x10], &with_fcs);
    let link_type = pcap::LINKTYPE_IEEE802_11_RADIOTAP;
    assert_eq!(payload(hear(link_type, &bytes)[0]), Ok(PAYLOAD));
    // If part of the FCS was not captured, no more than the rest of it is taken off.
    for cut in 0..4 {
        let bytes = &bytes[..bytes.len() - cut];
        let heard = Heard::new(Frame { link_type, bytes, length: bytes.len() + cut });
        assert_eq!(heard.last().unwrap().unwrap().payload, PAYLOAD);
    }
    let damaged = radiotap(&[1 << 1], &[0x50], &with_fcs);
    assert_eq!(hear(link_type, &damaged), [Err(Refusal::BadFcs)]);
    // RX flags: 0x02 is a wrong checksum of the physical header.
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
    assert_eq!(only(&[0, 0, 8, 0, 0, 0, 0, 0]), Err(Refusal::Short)); // no frame behind it
}
