//! A packet's bytes, for captures.
//!
//! *What this is:* [`Packet::write`]. *Who calls it:* code that writes captured packets to a file. *What it
//! never does:* run without a capture, since simulated machines exchange typed packets. *Where to start:*
//! there.

use super::segment::{IP_HEADER, UDP_HEADER};
use super::{Body, Flags, Packet, Segment};

/// Protocol numbers (RFC 9293, section 3.1, and RFC 768).
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Windows are in units of 2^7 bytes, as Linux chooses for buffers of some megabytes (RFC 7323, section 2.2).
const WINDOW_SHIFT: u8 = 7;

impl Packet {
    /// Appends the packet's bytes as they would go over a network: IPv4 header, TCP or UDP header with their
    /// checksums, payload. Their number is [`Packet::bytes`].
    ///
    /// A window is written in units of 128 bytes, as the SYN's window scale option says, and rounded up. The
    /// length field is wrong in packets longer than IPv4 allows.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_ip_header(out);
        let transport = out.len();
        out.extend_from_slice(&self.from.port().to_be_bytes());
        out.extend_from_slice(&self.to.port().to_be_bytes());
        let place = match &self.body {
            Body::Tcp(segment) => {
                segment.write(out);
                transport + 16
            }
            Body::Udp(datagram) => {
                let len = UDP_HEADER as usize + datagram.payload.len();
                out.extend_from_slice(&(len as u16).to_be_bytes());
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&datagram.payload);
                transport + 6
            }
            Body::Link(message) => {
                // Its format is not settled, so that captures show a datagram of its length.
                let len = message.bytes() - IP_HEADER;
                out.extend_from_slice(&(len as u16).to_be_bytes());
                out.resize(transport + len as usize, 0);
                transport + 6
            }
        };
        let len = out.len() - transport;
        let pseudo = sum(&out[start + 12..start + 20]) + u64::from(self.protocol()) + len as u64;
        let mut checksum = checksum(pseudo + sum(&out[transport..]));
        if checksum == 0 && self.protocol() == UDP {
            // A checksum of 0 would mean that there is none (RFC 768).
            checksum = 0xffff;
        }
        out[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
    }

    fn protocol(&self) -> u8 {
        match self.body {
            Body::Tcp(_) => TCP,
            Body::Udp(_) | Body::Link(_) => UDP,
        }
    }

    fn write_ip_header(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let header_words = (IP_HEADER / 4) as u8;
        out.extend_from_slice(&[4 << 4 | header_words, 0]);
        out.extend_from_slice(&(self.bytes() as u16).to_be_bytes());
        // A packet that is never fragmented needs no identification (RFC 6864, section 4.1).
        out.extend_from_slice(&[0, 0, 0x40, 0]);
        out.extend_from_slice(&[self.ttl, self.protocol(), 0, 0]);
        out.extend_from_slice(&self.from.ip().octets());
        out.extend_from_slice(&self.to.ip().octets());
        let checksum = checksum(sum(&out[start..]));
        out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
    }
}

impl Segment {
    /// Appends the header after the ports, without the checksum, and the payload.
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.extend_from_slice(&self.ack.to_be_bytes());
        let header_words = (self.header_bytes() / 4) as u8;
        out.extend_from_slice(&[header_words << 4, self.flags.0]);
        // The window of a SYN is never scaled (RFC 7323, section 2.2).
        let shift = if self.flags.has(Flags::SYN) { 0 } else { WINDOW_SHIFT };
        let window = self.window.div_ceil(1 << shift).min(u32::from(u16::MAX)) as u16;
        out.extend_from_slice(&window.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        self.write_options(out);
        out.extend_from_slice(&self.payload);
    }

    /// Appends the options, each padded to whole words by no-operations (1).
    fn write_options(&self, out: &mut Vec<u8>) {
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            out.extend_from_slice(&[2, 4, high, low, 1, 3, 3, WINDOW_SHIFT]);
        }
        if self.sack_permitted {
            out.extend_from_slice(&[4, 2]);
        }
        if self.stamps.is_some() != self.sack_permitted {
            out.extend_from_slice(&[1, 1]);
        }
        if let Some((value, echo)) = self.stamps {
            out.extend_from_slice(&[8, 10]);
            out.extend_from_slice(&value.to_be_bytes());
            out.extend_from_slice(&echo.to_be_bytes());
        }
        let blocks = self.sack_written();
        if !blocks.is_empty() {
            out.extend_from_slice(&[1, 1, 5, 2 + 8 * blocks.len() as u8]);
        }
        for (start, end) in blocks {
            out.extend_from_slice(&start.to_be_bytes());
            out.extend_from_slice(&end.to_be_bytes());
        }
    }
}

/// The sum of 16-bit words; a last odd byte is the high byte of its word.
fn sum(bytes: &[u8]) -> u64 {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let whole: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    whole + odd.first().map_or(0, |byte| u64::from(*byte) << 8)
}

/// The Internet checksum (RFC 1071) that belongs to this sum.
fn checksum(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::super::{Datagram, Sack};
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn packet(body: Body) -> Packet {
        let from = "10.0.0.1:49152".parse().unwrap();
        Packet::new(from, "192.168.7.9:80".parse().unwrap(), 64, body)
    }

    fn written(packet: &Packet) -> Vec<u8> {
        let mut out = Vec::new();
        packet.write(&mut out);
        out
    }

    /// Adds 16-bit words with end-around carry: the sum is all ones if the checksum is right.
    fn adds_up(bytes: &[u8]) -> bool {
        let mut total = 0u16;
        for pair in bytes.chunks(2) {
            let word = u16::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u16::from(*low));
            let (next, carry) = total.overflowing_add(word);
            total = next + u16::from(carry);
        }
        total == 0xffff
    }

    fn checksums_are_right(bytes: &[u8]) -> bool {
        let mut pseudo = bytes[12..20].to_vec();
        pseudo.extend([0, bytes[9]]);
        pseudo.extend(((bytes.len() - 20) as u16).to_be_bytes());
        pseudo.extend(&bytes[20..]);
        adds_up(&bytes[..20]) && adds_up(&pseudo)
    }

    #[test]
    fn a_syn_is_as_the_standards_have_it() {
        let syn = packet(Body::Tcp(Segment {
            seq: 0x0102_0304,
            ack: 0,
            flags: Flags::SYN,
            window: 131_072,
            mss: Some(1460),
            ..Segment::default()
        }));
        let bytes = written(&syn);
        assert_eq!(bytes.len(), 48);
        assert_eq!(bytes[..10], [0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 6]);
        assert_eq!(bytes[12..24], [10, 0, 0, 1, 192, 168, 7, 9, 0xc0, 0, 0, 80]);
        assert_eq!(bytes[24..36], [1, 2, 3, 4, 0, 0, 0, 0, 0x70, 0x02, 0xff, 0xff]);
        assert_eq!(bytes[38..], [0, 0, 2, 4, 0x05, 0xb4, 1, 3, 3, 7]);
        assert!(checksums_are_right(&bytes));
    }

    /// The bytes of a segment's options.
    fn options(segment: Segment) -> Vec<u8> {
        let header = segment.header_bytes() as usize;
        written(&packet(Body::Tcp(segment)))[40..20 + header].to_vec()
    }

    #[test]
    fn options_of_selective_acknowledgements_and_timestamps_are_as_the_standards_have_them() {
        let syn = Segment { mss: Some(1460), sack_permitted: true, ..Segment::default() };
        let mss_and_scale = [2, 4, 0x05, 0xb4, 1, 3, 3, 7];
        let expected = [&mss_and_scale[..], &[4, 2, 1, 1]].concat();
        assert_eq!(options(syn.clone()), expected);
        let stamps = Some((0x0102_0304, 5));
        let stamped = [8, 10, 1, 2, 3, 4, 0, 0, 0, 5];
        let expected = [&mss_and_scale[..], &[4, 2], &stamped].concat();
        assert_eq!(options(Segment { stamps, ..syn }), expected);
        let mut sack = Sack::default();
        sack.push((7, 0x0a0b_0c0d));
        let all = Segment { stamps, sack, ..Segment::default() };
        let block = [1, 1, 5, 10, 0, 0, 0, 7, 0x0a, 0x0b, 0x0c, 0x0d];
        assert_eq!(options(all.clone()), [&[1, 1], &stamped[..], &block].concat());
        // Four blocks fit in a header, but only three beside timestamps.
        (0..3).for_each(|_| sack.push((1, 2)));
        assert_eq!(Segment { sack, ..Segment::default() }.header_bytes(), 20 + 4 + 4 * 8);
        assert_eq!(Segment { sack, ..all }.header_bytes(), 20 + 12 + 4 + 3 * 8);
    }

    #[test]
    fn an_example_of_a_header_has_the_checksum_that_is_known_for_it() {
        // The example of RFC 1071, section 3: the words 0001, f203, f4f5, f6f7 add up to ddf2.
        let words = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(sum(&words)), !0xddf2);
    }

    #[test]
    fn a_datagram_without_a_checksum_of_its_own_is_never_written() {
        // Two bytes of payload can give the sum any value: here all ones.
        let without =
            written(&packet(Body::Udp(Datagram { payload: Bytes::from_static(&[0, 0]) })));
        let payload = Bytes::copy_from_slice(&without[26..28]);
        let bytes = written(&packet(Body::Udp(Datagram { payload })));
        assert_eq!(bytes[26..28], [0xff, 0xff]);
        assert!(checksums_are_right(&bytes));
    }

    proptest! {
        #[test]
        fn any_packet_is_as_long_as_it_says_and_its_checksums_are_right(
            udp: bool, seq: u32, ack: u32, window in 0..8_000_000u32, mss: Option<u16>,
            payload in prop::collection::vec(any::<u8>(), 0..200),
            sack_permitted: bool, stamps: Option<(u32, u32)>,
            blocks in prop::collection::vec(any::<(u32, u32)>(), 0..6),
        ) {
            let flags = if mss.is_some() { Flags::SYN } else { Flags::ACK | Flags::PSH };
            let mut sack = Sack::default();
            blocks.into_iter().for_each(|block| sack.push(block));
            let payload = Bytes::from(payload);
            let body = if udp {
                Body::Udp(Datagram { payload: payload.clone() })
            } else {
                let payload = payload.clone();
                let options = Segment { mss, sack_permitted, stamps, sack, ..Segment::default() };
                Body::Tcp(Segment { seq, ack, flags, window, payload, ..options })
            };
            let packet = packet(body);
            let bytes = written(&packet);
            prop_assert_eq!(bytes.len() as u32, packet.bytes());
            prop_assert_eq!(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), bytes.len());
            prop_assert!(checksums_are_right(&bytes));
            prop_assert!(bytes.ends_with(&payload));
            if let Body::Tcp(segment) = &packet.body {
                let header = 4 * usize::from(bytes[32] >> 4);
                prop_assert_eq!(header, segment.header_bytes() as usize);
                prop_assert_eq!(bytes.len(), 20 + header + payload.len());
            }
            if !udp && mss.is_none() {
                let shown = u32::from(u16::from_be_bytes([bytes[34], bytes[35]])) * 128;
                prop_assert!((window..window + 128).contains(&shown));
            }
        }
    }
}
