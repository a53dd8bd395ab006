//! Tests of recovery: each rule, chains of routers in virtual time, and hostile input.

mod acks;
mod bounds;
mod chain;
mod copies;
mod ends;
mod hostile;
mod middle;
mod rules;
mod timers;
mod verdicts;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::{Flags, Header, Kind, Packet, Sack, Tcp};

/// A packet whose payload is its sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plain(pub(super) Header);

impl Packet for Plain {
    fn header(&self) -> Header {
        self.0
    }
}

/// The address of a router.
pub(super) fn router(number: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, number as u8 + 1).into()
}

/// The TCP port of a router.
pub(super) fn end(number: usize) -> SocketAddr {
    (router(number), 80).into()
}

/// A TCP packet.
pub(super) fn packet(from: SocketAddr, to: SocketAddr, tcp: Tcp) -> Plain {
    Plain(Header { bytes: 40 + tcp.payload, ttl: 60, from, to, kind: Kind::Tcp(tcp) })
}

/// A plain segment.
pub(super) fn segment(seq: u32, payload: u32, ack: u32) -> Tcp {
    Tcp {
        seq,
        ack,
        payload,
        flags: Flags::ACK,
        window: 60_000,
        sack: Sack::default(),
        stamps: None,
        has_other_options: false,
    }
}
