//! Captured frames: from the bytes of a frame to its TCP segments.
//!
//! *What this is:* [`Heard`], the TCP segments of one captured frame, and [`records`], the frames
//! of a capture file. Both are views of the given bytes, without copies. Beside them are the
//! headers that the lab writes on its monitor interfaces. *Who calls it:* the overhearing engine,
//! the driver that captures, the lab. *What it never does:* allocate per frame, trust a length,
//! verify checksums (the names of chunks are hashes, which detect errors better). *Where to start:*
//! `heard.rs`.

mod cooked;
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

/// Takes `N` bytes off the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*array)
}
