//! What link planes read of a packet.

use link::{Header, Kind, Sack, Tcp};

use super::{Body, Packet, Segment};

impl link::Packet for Packet {
    fn interlay(&self) -> Option<link::Interlay> {
        self.interlay
    }

    fn header(&self) -> Header {
        let kind = match &self.body {
            Body::Tcp(segment) => Kind::Tcp(tcp(segment)),
            Body::Udp(_) => Kind::Other,
            Body::Link(message) => Kind::Message(*message),
        };
        let (from, to) = (self.from.into(), self.to.into());
        Header { bytes: self.bytes(), ttl: self.ttl, from, to, kind }
    }
}

fn tcp(segment: &Segment) -> Tcp {
    Tcp {
        seq: segment.seq,
        ack: segment.ack,
        payload: segment.payload.len() as u32,
        flags: segment.flags,
        window: segment.window,
        sack: sack(segment),
        stamps: segment.stamps,
        has_other_options: false,
    }
}

fn sack(segment: &Segment) -> Sack {
    let mut sack = Sack::default();
    segment.sack_written().iter().for_each(|block| sack.push(*block));
    sack
}
