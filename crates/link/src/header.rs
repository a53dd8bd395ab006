//! What the engines read of a packet: the fields of its IP and TCP headers.

use std::net::SocketAddr;
use std::ops::BitOr;

/// The largest number of SACK blocks that fit into a TCP header (RFC 2018, section 3).
pub const SACK_BLOCKS_MAX: usize = 4;

/// The fields of a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the IP packet, in bytes.
    pub bytes: u32,
    /// Its time to live as it is now. Senders begin with [`Header::TTL`].
    pub ttl: u8,
    /// Source; port 0 if its protocol has none.
    pub from: SocketAddr,
    /// Destination; port 0 if its protocol has none.
    pub to: SocketAddr,
    /// What it carries.
    pub kind: Kind,
}

/// What a packet carries, as far as the engines care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of a routing protocol, or of others that must not wait.
    Control,
    /// A segment of TCP.
    Tcp(Tcp),
    /// A message of the link plane itself.
    Message(crate::Message),
    /// Everything else.
    Other,
}

/// The fields of a TCP header (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number of its first byte.
    pub seq: u32,
    /// The next byte expected from the other side; valid only with [`Flags::ACK`].
    pub ack: u32,
    /// Length of its payload, in bytes.
    pub payload: u32,
    /// The control bits.
    pub flags: Flags,
    /// The window as in the header, without scaling.
    pub window: u32,
    /// Its SACK blocks.
    pub sack: Sack,
    /// Timestamps: value, and echo reply (RFC 7323).
    pub stamps: Option<(u32, u32)>,
    /// It has options that the engines do not know, such as MPTCP's, or control bits beyond [`Flags`], such as AccECN's.
    /// Such a segment is never dropped.
    pub has_other_options: bool,
}

/// SACK blocks of a segment (RFC 2018): each is the first sequence number of what arrived, and the one after
/// its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    blocks: [(u32, u32); SACK_BLOCKS_MAX],
    count: u8,
}

/// Control bits of a TCP segment, as in its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender sends no more data.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// Congestion was experienced (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// The congestion window was reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set here.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether this opens a connection: SYN without ACK or RST.
    pub const fn only_syn(self) -> bool {
        self.has(Self::SYN) && !self.has_any(Self(Self::ACK.0 | Self::RST.0))
    }

    /// Whether any bit of `other` is set here.
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Sack {
    /// Adds a block; a fifth is ignored.
    pub fn push(&mut self, block: (u32, u32)) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.count)) {
            *place = block;
            self.count += 1;
        }
    }

    /// The blocks, in their order in the header.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
}

impl Header {
    /// The time to live that senders begin with: that of Linux.
    pub const TTL: u8 = 64;

    /// How many hops it has come, if its sender began with [`Header::TTL`]: each router between them took one from it,
    /// so that a neighbour's packet has come one hop.
    pub fn hops(&self) -> u8 {
        Self::TTL.saturating_sub(self.ttl) + 1
    }

    /// Its TCP header, if it has one.
    pub fn tcp(&self) -> Option<&Tcp> {
        match &self.kind {
            Kind::Tcp(tcp) => Some(tcp),
            Kind::Control | Kind::Message(_) | Kind::Other => None,
        }
    }
}

impl Tcp {
    /// Whether it is an acknowledgement and nothing else: no data, no other control bit, no unknown option.
    pub fn is_pure_ack(&self) -> bool {
        self.flags == Flags::ACK && self.payload == 0 && !self.has_other_options
    }

    /// The sequence number after its payload.
    pub fn end(&self) -> u32 {
        self.seq.wrapping_add(self.payload)
    }
}

/// Whether sequence number `a` comes before `b` (RFC 9293, section 3.4; RFC 1982).
pub fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
