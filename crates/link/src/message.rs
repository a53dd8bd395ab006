//! Messages between the link planes of routers, and the header that packets carry between them.

use std::net::{IpAddr, SocketAddr};

/// Length of the header that names the last interlay node, in bytes: a type with two flags, an IPv4 address, and the
/// two numbers; padded (WINE, section 2.3, leaves the format open).
pub const SHIM_BYTES: u32 = 8;

/// The header of the interlay: who sent a packet on last, and how many of the addressee's packets are no longer there.
///
/// The paper's names the node alone. The numbers are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interlay {
    /// The interlay node that the packet passed last.
    pub node: IpAddr,
    /// Which of its packets to the next interlay node this is, modulo 256.
    pub number: Option<u8>,
    /// The last number of the next interlay node's packets that has left this one.
    pub left: Option<u8>,
}

impl From<IpAddr> for Interlay {
    /// The paper's header.
    fn from(node: IpAddr) -> Self {
        Self { node, number: None, left: None }
    }
}

/// A message between link planes. It travels as an IP packet, along the routes of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Asks a neighbouring interlay node to answer at once (WINE, section 2.2).
    Probe(Probe),
    /// The answer, with the probe's number.
    Echo(Probe),
    /// Nothing but its header, which says what has left its sender.
    Left,
    /// A packet was sent again: routers nearer to its sender need not do so (InPCM, section 3.7).
    Notice(Notice),
}

/// A probe of the path between two neighbouring interlay nodes, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The interlay node that sends it.
    pub from: IpAddr,
    /// Its number; an answer repeats the probe's.
    pub number: u32,
    /// In a probe: a destination whose packets came with the addressee's header. Its packets come through
    /// the prober. `None` if it is not known.
    pub towards: Option<IpAddr>,
    /// In an answer: how many hops the probe came.
    pub hops: u8,
    /// Length of the IP packet, in bytes. An answer is as long as the probe.
    pub bytes: u16,
}

/// A packet that a router has sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Source of the packet: the notice goes towards it.
    pub from: SocketAddr,
    /// Destination of the packet.
    pub to: SocketAddr,
    /// Which packet.
    pub lost: Lost,
}

/// Which packet of a flow a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Data up to this sequence number, the one after its last byte.
    Data(u32),
    /// The acknowledgement with this number.
    Ack(u32),
}

impl Message {
    /// Length of the IP packet that carries it, in bytes: IPv4 and UDP headers, and the message.
    pub fn bytes(&self) -> u32 {
        match self {
            Self::Probe(probe) | Self::Echo(probe) => u32::from(probe.bytes),
            Self::Left => 28,
            Self::Notice(_) => 28 + 24,
        }
    }
}
