//! One Ethernet frame on its way from one TAP device to others.

use wire::capture::ieee80211::Mac;

use crate::tap::Tap;

/// Longest Ethernet frame: an MTU of 1500 bytes and the header.
const FRAME_MAX: usize = ETHERNET_HEADER + 1500;
const ETHERNET_HEADER: usize = 14;

/// One Ethernet frame.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8; FRAME_MAX]>,
    length: usize,
}

impl Buffer {
    /// An empty one.
    pub fn new() -> Self {
        Self { bytes: Box::new([0; FRAME_MAX]), length: 0 }
    }

    /// Takes the next frame of an interface, if there is one.
    pub fn receive(&mut self, tap: &Tap) -> bool {
        self.length = tap.receive(&mut self.bytes[..]).ok().flatten().unwrap_or(0);
        self.length >= ETHERNET_HEADER
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The link-layer address that it is for.
    pub fn destination(&self) -> Mac {
        std::array::from_fn(|at| self.bytes[at])
    }

    /// Broadcast and multicast.
    pub fn is_for_many(&self) -> bool {
        self.bytes[0] & 1 == 1
    }

    /// Whether it carries an IP packet, rather than ARP or the like.
    pub fn is_ip(&self) -> bool {
        matches!(self.ethertype(), [0x08, 0x00] | [0x86, 0xdd])
    }

    /// What it carries.
    pub fn ethertype(&self) -> [u8; 2] {
        [self.bytes[12], self.bytes[13]]
    }

    /// What the network layer sent.
    pub fn packet(&self) -> &[u8] {
        &self.bytes[ETHERNET_HEADER..self.length]
    }

    /// How long that is, in bytes.
    pub fn packet_length(&self) -> u32 {
        (self.length - ETHERNET_HEADER) as u32
    }
}
