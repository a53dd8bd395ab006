//! Captured frames, layer by layer, with bytes as the standards define them.

mod cooked;
mod files;
mod ieee80211;
mod network;
mod properties;
mod radiotap;

use crate::common::{self, checks};
use wire::capture::{Frame, Refusal, Segment, pcap};

/// The payload of the tests' segments, and its sequence number.
const PAYLOAD: &[u8] = b"what was said";
const SEQ: u32 = 0xffff_fff0;

/// What a frame that was captured whole yields.
fn hear(link_type: u32, bytes: &[u8]) -> Vec<Result<Segment<'_>, Refusal>> {
    checks::hear(Frame { link_type, bytes, length: bytes.len() })
}

/// The only item that an 802.11 frame yields.
fn hear_80211(bytes: &[u8]) -> Result<Segment<'_>, Refusal> {
    only(hear(pcap::LINKTYPE_IEEE802_11, bytes))
}

/// The only item that an Ethernet frame yields.
fn hear_ethernet(bytes: &[u8]) -> Result<Segment<'_>, Refusal> {
    only(hear(pcap::LINKTYPE_ETHERNET, bytes))
}

fn only<'a>(heard: Vec<Result<Segment<'a>, Refusal>>) -> Result<Segment<'a>, Refusal> {
    let [one] = heard[..] else { panic!("{heard:?}") };
    one
}

/// A packet with the tests' segment.
fn packet() -> Vec<u8> {
    common::frames::ipv4(6, &common::frames::tcp(SEQ, PAYLOAD))
}

fn payload<'a>(heard: Result<Segment<'a>, Refusal>) -> Result<&'a [u8], Refusal> {
    heard.map(|segment| segment.payload)
}
