//! What machines send each other: IPv4 packets with a TCP segment or a UDP datagram.
//!
//! *What this is:* packets as typed values; [`Packet::write`] makes their bytes when a capture needs them.
//! *Who calls it:* hosts make and take them, the world carries them. *What it never does:* fragment: a packet
//! is as large as its payload makes it. *Where to start:* [`Packet`].

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::ops::BitOr;

use bytes::Bytes;

/// Length of an IPv4 header without options (RFC 791, section 3.1).
pub(super) const IP_HEADER: u32 = 20;
/// Length of a UDP header (RFC 768).
pub(super) const UDP_HEADER: u32 = 8;
/// Length of a TCP header without options (RFC 9293, section 3.1).
pub(super) const TCP_HEADER: u32 = 20;
/// Length of the options on a SYN: maximum segment size (4), window scale (3), one byte of padding.
pub(super) const SYN_OPTIONS: u32 = 8;

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
    pub interlay: Option<IpAddr>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The data.
    pub payload: Bytes,
}

/// Control bits of a TCP segment, as in its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// The sender sends no more data.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push: no more data waits to be sent after this.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);

    /// Whether all bits of `other` are set here.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether this opens a connection: SYN without ACK or RST.
    pub const fn only_syn(self) -> bool {
        self.has(Self::SYN) && self.0 & (Self::ACK.0 | Self::RST.0) == 0
    }

    /// The bits as in the header.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
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
    /// Length of the TCP header in bytes, with the options of a SYN.
    pub fn header_bytes(&self) -> u32 {
        TCP_HEADER + if self.mss.is_some() { SYN_OPTIONS } else { 0 }
    }

    /// Number of sequence numbers that it takes: its data, and one each for SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        let marks = u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN));
        self.payload.len() as u32 + marks
    }
}
