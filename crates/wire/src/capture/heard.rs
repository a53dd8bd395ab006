//! One captured frame, and the TCP segments in it.
#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use super::cooked::Payload;
use super::ethernet::{self, Packet};
use super::ieee80211::{self, Body, Header, Msdus};
use super::radiotap::{self, Received};
use super::{Refusal, Segment, cooked, ip, pcap};

/// Length of the checksum after an 802.11 frame.
const FCS_LEN: usize = 4;

/// A captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The type of its first header: `pcap::LINKTYPE_...`.
    pub link_type: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// The original length in bytes. If it exceeds that of `bytes`, the frame was truncated.
    pub length: usize,
}

/// An iterator over the segments of one frame: usually one, several if packets were aggregated. A
/// packet that yields no segment yields the reason instead.
///
/// ```
/// use wire::capture::{Frame, Heard, Refusal, pcap};
///
/// let acknowledgement = [0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 1];
/// let link_type = pcap::LINKTYPE_IEEE802_11;
/// let frame = Frame { link_type, bytes: &acknowledgement, length: acknowledgement.len() };
/// for segment in Heard::new(frame) {
///     assert_eq!(segment, Err(Refusal::Control));
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Heard<'a> {
    /// The receiver's metadata; empty without a radiotap header.
    pub radio: Received,
    /// The header of an 802.11 data frame, if it could be parsed.
    pub header: Option<Header>,
    /// Whether part of the frame was not captured.
    cut: bool,
    left: Left<'a>,
}

/// The packets that are still to be returned.
#[derive(Clone, Debug)]
enum Left<'a> {
    Nothing,
    One(Result<Packet<'a>, Refusal>),
    Aggregate(Msdus<'a>),
}

impl<'a> Heard<'a> {
    /// Parses the headers below IP.
    pub fn new(frame: Frame<'a>) -> Self {
        let cut = frame.length.saturating_sub(frame.bytes.len());
        let mut heard =
            Self { radio: Received::default(), header: None, cut: cut > 0, left: Left::Nothing };
        heard.left = match frame.link_type {
            pcap::LINKTYPE_ETHERNET => Left::One(ethernet::frame(frame.bytes)),
            pcap::LINKTYPE_IEEE802_11 => heard.ieee80211(frame.bytes),
            pcap::LINKTYPE_IEEE802_11_RADIOTAP => heard.radiotap(frame.bytes, cut),
            pcap::LINKTYPE_LINUX_SLL => heard.cooked(cooked::sll(frame.bytes), cut),
            pcap::LINKTYPE_LINUX_SLL2 => heard.cooked(cooked::sll2(frame.bytes), cut),
            pcap::LINKTYPE_NULL => Left::One(cooked::null(frame.bytes)),
            pcap::LINKTYPE_LOOP => Left::One(cooked::loopback(frame.bytes)),
            link_type if pcap::LINKTYPES_RAW.contains(&link_type) => {
                Left::One(cooked::raw(frame.bytes))
            }
            _ => Left::One(Err(Refusal::LinkType)),
        };
        heard
    }

    fn cooked(&mut self, payload: Result<Payload<'a>, Refusal>, cut: usize) -> Left<'a> {
        match payload {
            Ok(Payload::Packet(packet)) => Left::One(Ok(packet)),
            Ok(Payload::Radiotap(frame)) => self.radiotap(frame, cut),
            Err(refusal) => Left::One(Err(refusal)),
        }
    }

    fn radiotap(&mut self, bytes: &'a [u8], cut: usize) -> Left<'a> {
        let (radio, mut frame) = match radiotap::read(bytes) {
            Ok(read) => read,
            Err(refusal) => return Left::One(Err(refusal)),
        };
        self.radio = radio;
        if radio.bad_fcs {
            return Left::One(Err(Refusal::BadFcs));
        }
        if radio.fcs {
            // Truncation removes the end of a frame first, and so the FCS.
            let there = FCS_LEN.saturating_sub(cut);
            frame = frame.get(..frame.len().saturating_sub(there)).unwrap_or_default();
        }
        self.ieee80211(frame)
    }

    fn ieee80211(&mut self, frame: &'a [u8]) -> Left<'a> {
        let (header, body) = match ieee80211::read(frame, self.radio.padded, self.cut) {
            Ok(read) => read,
            Err(refusal) => return Left::One(Err(refusal)),
        };
        self.header = Some(header);
        match body {
            Body::Msdu(msdu) => Left::One(ethernet::llc(msdu)),
            Body::Aggregate(msdus) => Left::Aggregate(msdus),
        }
    }
}

impl<'a> Iterator for Heard<'a> {
    type Item = Result<Segment<'a>, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        let packet = match &mut self.left {
            Left::Nothing => return None,
            Left::One(packet) => {
                let packet = *packet;
                self.left = Left::Nothing;
                packet
            }
            Left::Aggregate(msdus) => msdus.next()?.and_then(ethernet::llc),
        };
        Some(packet.and_then(|(version, packet)| ip::segment(version, packet, self.cut)))
    }
}
