//! What a host does with a packet that arrives.

use std::net::{Ipv4Addr, SocketAddrV4};

use bytes::Bytes;
use rand_xoshiro::rand_core::RngCore;
use wire::Instant;

use super::{Event, Host, Interface, WAITING_MAX};
use crate::net::tcp::{Connection, State, before};
use crate::net::{Body, Flags, Packet, Segment};

impl Host {
    /// Takes a packet that arrived on an interface. Returns it, with its time to live reduced, if it is
    /// neither for this host nor intercepted; drops it if its time to live is used up.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        interface: Interface,
        packet: Packet,
    ) -> Option<Packet> {
        self.now = now;
        let Packet { from, to, ttl, interlay, body } = packet;
        match body {
            Body::Tcp(segment) => {
                let segment = self.handle_segment(interface, from, to, segment)?;
                self.forward(Packet { from, to, ttl, interlay, body: Body::Tcp(segment) })
            }
            Body::Udp(datagram) if self.is_for_us(*to.ip()) => {
                self.handle_datagram(interface, from, to, datagram.payload);
                None
            }
            Body::Link(_) if self.is_for_us(*to.ip()) => None,
            body @ (Body::Udp(_) | Body::Link(_)) => {
                self.forward(Packet { from, to, ttl, interlay, body })
            }
        }
    }

    /// Broadcast and multicast packets are for every host that receives them; none forwards them.
    fn is_for_us(&self, address: Ipv4Addr) -> bool {
        self.addresses.contains(&address) || address.is_broadcast() || address.is_multicast()
    }

    fn forward(&mut self, mut packet: Packet) -> Option<Packet> {
        if packet.ttl <= 1 {
            self.expired += 1;
            return None;
        }
        packet.ttl -= 1;
        Some(packet)
    }

    fn handle_datagram(
        &mut self,
        interface: Interface,
        from: SocketAddrV4,
        to: SocketAddrV4,
        payload: Bytes,
    ) {
        if self.taking_datagrams.contains(&to.port()) && self.events.len() < WAITING_MAX {
            self.events.push_back(Event::Datagram { from, to, interface, payload });
        }
    }

    /// Gives a segment to its connection, opens a connection, or refuses it. Returns a segment that is for
    /// another host.
    fn handle_segment(
        &mut self,
        interface: Interface,
        from: SocketAddrV4,
        to: SocketAddrV4,
        segment: Segment,
    ) -> Option<Segment> {
        let opens = segment.flags.only_syn();
        if let Some(index) = self.sockets.find(to, from)
            && !(opens && self.make_way(index, &segment))
        {
            if let Some(socket) = self.sockets.at(index) {
                socket.connection.handle_segment(self.now, segment);
            }
            self.report_events(index);
            self.sockets.mark_busy(index);
            return None;
        }
        // The segment belongs to no connection. A listener or an interception may accept it; otherwise it
        // is refused if it was for this host, or forwarded.
        let ours = self.addresses.contains(to.ip());
        let wanted = match ours {
            true => self.listening.contains(&to.port()),
            false => self.intercepts(to.port(), interface),
        };
        if opens && wanted {
            self.accept(from, to, &segment, (interface, !ours));
        } else if !ours {
            return Some(segment);
        } else if !segment.flags.has(Flags::RST) {
            let body = Body::Tcp(refusal(&segment));
            self.send(Packet::new(to, from, self.config.ttl, body));
        }
        None
    }

    fn intercepts(&self, port: u16, interface: Interface) -> bool {
        self.intercepting.iter().any(|(other, by)| *other == port && by.contains(&interface))
    }

    /// A SYN may replace a connection in TIME-WAIT if its sequence number is ahead (RFC 1122, section
    /// 4.2.2.13).
    fn make_way(&mut self, index: u32, syn: &Segment) -> bool {
        let Some(socket) = self.sockets.at(index) else { return false };
        let over = socket.connection.state() == State::TimeWait && socket.reported_closed;
        let ahead = before(socket.connection.expected(), syn.seq);
        if over && ahead {
            self.sockets.remove(index);
        }
        over && ahead
    }

    /// A host with no free socket does not answer a SYN; the peer sends it again.
    fn accept(
        &mut self,
        from: SocketAddrV4,
        to: SocketAddrV4,
        syn: &Segment,
        accepted: (Interface, bool),
    ) {
        if self.sockets.len() < self.config.sockets_max {
            let iss = self.chance.next_u64() as u32;
            let connection = Connection::accept(self.config.tcp, self.now, iss, syn);
            let id = self.sockets.insert(to, from, connection, Some(accepted));
            self.sockets.mark_busy(id.index);
        }
    }
}

/// The RST to a segment that belongs to no connection (RFC 9293, section 3.10.7.1).
fn refusal(segment: &Segment) -> Segment {
    let (seq, ack, flags) = if segment.flags.has(Flags::ACK) {
        (segment.ack, 0, Flags::RST)
    } else {
        (0, segment.seq.wrapping_add(segment.sequence_len()), Flags::RST | Flags::ACK)
    };
    Segment { seq, ack, flags, ..Segment::default() }
}
