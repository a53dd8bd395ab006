//! The content of a block of the ring (`linux/if_packet.h`, version 3): a sequence of frames, each
//! preceded by the kernel's metadata. Offsets are checked against the block's length.
#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use wire::capture::{Frame, pcap};

use super::ring::SHOWN_FROM;

/// Offsets, in the visible part of a block, of the number of its frames, and of the position of the
/// first.
const COUNT_AT: usize = 12 - SHOWN_FROM;
const FIRST_AT: usize = 16 - SHOWN_FROM;
/// The offset of the number of used bytes.
const USED_AT: usize = 20 - SHOWN_FROM;

/// Offsets in `struct tpacket3_hdr`: captured length, original length, start of the frame; and in
/// the address after it (`struct sockaddr_ll`), the kind of interface. The offset of the next frame
/// comes first.
const CAPTURED_AT: usize = 12;
const LENGTH_AT: usize = 16;
const START_AT: usize = 24;
const KIND_AT: usize = 48 + 8;

/// Kinds of interfaces (`linux/if_arp.h`).
const ETHERNET: u16 = 1;
const LOOPBACK: u16 = 772;
const IEEE80211: u16 = 801;
const RADIOTAP: u16 = 803;

/// Not a link type.
const UNREADABLE: u32 = u32::MAX;

/// The link type of an interface's frames; `None` if it is not supported.
pub fn link_type(kind: u16) -> Option<u32> {
    match kind {
        ETHERNET | LOOPBACK => Some(pcap::LINKTYPE_ETHERNET),
        IEEE80211 => Some(pcap::LINKTYPE_IEEE802_11),
        RADIOTAP => Some(pcap::LINKTYPE_IEEE802_11_RADIOTAP),
        _ => None,
    }
}

/// The frames in the visible part of a block, up to the first inconsistency.
pub fn frames(block: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let count = u32_at(block, COUNT_AT).unwrap_or(0);
    let first = u32_at(block, FIRST_AT).and_then(|it| (it as usize).checked_sub(SHOWN_FROM));
    let mut rest = first.and_then(|first| block.get(first..));
    (0..count).map_while(move |_| {
        let head = rest?;
        let next = u32_at(head, 0)? as usize;
        rest = head.get(next..).filter(|_| next > 0);
        let (start, captured) = (u16_at(head, START_AT)?, u32_at(head, CAPTURED_AT)?);
        let bytes = head.get(usize::from(start)..)?.get(..captured as usize)?;
        let link_type = link_type(u16_at(head, KIND_AT)?).unwrap_or(UNREADABLE);
        Some(Frame { link_type, bytes, length: u32_at(head, LENGTH_AT)? as usize })
    })
}

/// The greatest total length of the frames in a block.
pub fn used(block: &[u8]) -> usize {
    block.len().min(u32_at(block, USED_AT).unwrap_or(0) as usize)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
        bytes[at..at + field.len()].copy_from_slice(field);
    }

    /// The visible part of a block whose header has 48 bytes, with these frames, aligned to 16
    /// bytes.
    fn block(frames: &[&[u8]]) -> Vec<u8> {
        let mut block = vec![0; 48 - SHOWN_FROM];
        put(&mut block, COUNT_AT, &(frames.len() as u32).to_ne_bytes());
        put(&mut block, FIRST_AT, &48_u32.to_ne_bytes());
        for (number, frame) in frames.iter().enumerate() {
            let mut head = vec![0; 82];
            let length = frame.len() as u32;
            put(&mut head, CAPTURED_AT, &length.to_ne_bytes());
            put(&mut head, LENGTH_AT, &(length + 5).to_ne_bytes());
            put(&mut head, START_AT, &82_u16.to_ne_bytes());
            put(&mut head, KIND_AT, &RADIOTAP.to_ne_bytes());
            head.extend(*frame);
            head.resize(head.len().next_multiple_of(16), 0);
            let next = if number + 1 == frames.len() { 0 } else { head.len() as u32 };
            put(&mut head, 0, &next.to_ne_bytes());
            block.extend(head);
        }
        block
    }

    #[test]
    fn each_frame_is_found() {
        let block = block(&[b"one", b"", b"three"]);
        let found: Vec<_> = frames(&block).collect();
        let bytes: Vec<_> = found.iter().map(|frame| frame.bytes).collect();
        assert_eq!(bytes, [&b"one"[..], b"", b"three"]);
        assert_eq!((found[0].length, found[0].link_type), (8, pcap::LINKTYPE_IEEE802_11_RADIOTAP));
        assert_eq!(frames(&[]).count(), 0);
    }

    #[test]
    fn what_is_cut_off_is_not_given_out() {
        let whole = block(&[b"one", b"two"]);
        for length in 0..whole.len() {
            assert!(frames(&whole[..length]).all(|frame| frame.bytes.len() == 3));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_can_make_it_panic_or_go_on_for_ever(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..400), count: u8, first: u8,
        ) {
            if bytes.len() >= 48 {
                put(&mut bytes, COUNT_AT, &u32::from(count).to_ne_bytes());
                put(&mut bytes, FIRST_AT, &u32::from(first).to_ne_bytes());
            }
            prop_assert!(frames(&bytes).all(|frame| frame.bytes.len() <= bytes.len()));
        }
    }
}
