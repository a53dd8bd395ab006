//! What a capture interface shows, from a frame's bytes to TCP segments.
//!
//! *What this is:* [`Heard`], the TCP segments of one captured frame, and [`records`], the frames of
//! a capture file; each as views of the bytes that were given, with nothing copied. Beside them the
//! headers that a monitor interface of the lab writes. *Who calls it:* the overhearing engine, the
//! driver that captures, the lab. *What it never does:* allocate per frame, trust a length, judge
//! checksums (names are hashes, and hashes judge better). *Where to start:* `heard.rs`.

mod ethernet;
mod heard;
pub mod ieee80211;
mod ip;
pub mod pcap;
mod pcapng;
pub mod radiotap;
pub mod records;
mod refusal;

pub use heard::{Frame, Heard};
pub use ip::Segment;
pub use refusal::Refusal;

/// Takes so many bytes off the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*array)
}
