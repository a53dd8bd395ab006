//! What a monitor interface shows: 802.11 frames with a radiotap header, and files of them.

pub mod ieee80211;
pub mod pcap;
pub mod radiotap;
