//! What machines send each other: IPv4 packets with a TCP segment or a UDP datagram.
//!
//! *What this is:* packets as typed values; [`Packet::write`] makes their bytes when a capture needs them.
//! *Who calls it:* hosts make and take them, the world carries them. *What it never does:* fragment: a packet
//! is as large as its payload makes it. *Where to start:* [`Packet`].

use std::net::{Ipv4Addr, SocketAddrV4};

use bytes::Bytes;
pub use link::{Flags, Sack};

/// Length of an IPv4 header without options (RFC 791, section 3.1).
pub(super) const IP_HEADER: u32 = 20;
/// Length of a UDP header (RFC 768).
pub(super) const UDP_HEADER: u32 = 8;
/// Length of a TCP header without options (RFC 9293, section 3.1).
pub(super) const TCP_HEADER: u32 = 20;
/// Length of the options on each SYN: maximum segment size (4), window scale (3), one byte of padding.
pub(super) const SYN_OPTIONS: u32 = 8;
/// Length of the timestamps option with two bytes of padding (RFC 7323, section 3.2).
pub(super) const STAMPS_OPTION: u32 = 12;
/// Length of the SACK-permitted option with two bytes of padding (RFC 2018, section 2). Beside timestamps it
/// takes the place of their padding.
const SACK_PERMITTED: u32 = 4;
/// Length of the SACK option without its blocks, with two bytes of padding (RFC 2018, section 3).
const SACK_HEAD: u32 = 4;
/// Largest length of all options.
const OPTIONS_MAX: u32 = 40;
/// Length of a block in the SACK option.
const SACK_BLOCK: u32 = 8;

/// One IPv4 packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source address and port.
    pub from: SocketAddrV4,
    /// Destination address and port.
    pub to: SocketAddrV4,
    /// Time to live: how many more hops it may go.
    pub ttl: u8,
    /// The last interlay node that it passed, if link planes pace; routers without one leave it as it is.
    pub interlay: Option<link::Interlay>,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A segment of a TCP connection.
    Tcp(Segment),
    /// A UDP datagram.
    Udp(Datagram),
    /// A message between link planes, in place of a datagram.
    Link(link::Message),
}

/// A UDP datagram; its ports are the packet's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// What it carries.
    pub payload: Bytes,
}

/// A TCP segment; its ports are the packet's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of its first byte (or of its SYN or FIN).
    pub seq: u32,
    /// The next sequence number expected from the other side; valid only with [`Flags::ACK`].
    pub ack: u32,
    /// The control bits.
    pub flags: Flags,
    /// The receive window: how many bytes after `ack` its sender accepts, in bytes without scaling.
    pub window: u32,
    /// On a SYN, the largest payload that its sender accepts.
    pub mss: Option<u16>,
    /// On a SYN: its sender takes selective acknowledgements (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// Data that has arrived after a gap, or twice (RFC 2018 and RFC 2883).
    pub sack: Sack,
    /// Timestamps in milliseconds: its sender's clock (TSval), and the peer's value that it echoes (TSecr; RFC
    /// 7323, section 3.2).
    pub stamps: Option<(u32, u32)>,
    /// The data.
    pub payload: Bytes,
}

/// The length of a SACK option with this many blocks, padding included; 0 without blocks.
pub(super) const fn sack_option(blocks: usize) -> u32 {
    if blocks == 0 { 0 } else { SACK_HEAD + SACK_BLOCK * blocks as u32 }
}

impl Packet {
    /// A packet that has passed no interlay node yet.
    pub fn new(from: SocketAddrV4, to: SocketAddrV4, ttl: u8, body: Body) -> Self {
        Self { from, to, ttl, interlay: None, body }
    }

    /// A packet with a message between link planes.
    pub fn of_link_plane(from: Ipv4Addr, to: Ipv4Addr, message: link::Message) -> Self {
        let [from, to] = [from, to].map(|address| SocketAddrV4::new(address, 0));
        Self::new(from, to, link::Header::TTL, Body::Link(message))
    }

    /// Length of the IPv4 packet in bytes, headers included.
    pub fn bytes(&self) -> u32 {
        match &self.body {
            Body::Tcp(it) => IP_HEADER + it.header_bytes() + it.payload.len() as u32,
            Body::Udp(datagram) => IP_HEADER + UDP_HEADER + datagram.payload.len() as u32,
            Body::Link(message) => message.bytes(),
        }
    }
}

impl Segment {
    /// Length of the TCP header in bytes, with its options.
    pub fn header_bytes(&self) -> u32 {
        TCP_HEADER + self.fixed_options() + sack_option(self.sack_written().len())
    }

    /// Length of the options other than SACK.
    fn fixed_options(&self) -> u32 {
        let negotiating = match self.stamps {
            Some(_) => STAMPS_OPTION,
            None if self.sack_permitted => SACK_PERMITTED,
            None => 0,
        };
        negotiating + if self.mss.is_some() { SYN_OPTIONS } else { 0 }
    }

    /// The SACK blocks that fit in the header, whose options take 40 bytes at most (RFC 9293, section 3.1).
    pub(super) fn sack_written(&self) -> &[(u32, u32)] {
        let left = OPTIONS_MAX.saturating_sub(self.fixed_options() + SACK_HEAD) / SACK_BLOCK;
        let blocks = self.sack.blocks();
        &blocks[..blocks.len().min(left as usize)]
    }

    /// Number of sequence numbers that it takes: its data, and one each for SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        let marks = u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN));
        self.payload.len() as u32 + marks
    }
}
