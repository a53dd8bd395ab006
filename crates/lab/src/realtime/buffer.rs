//! One Ethernet frame on its way from one TAP device to others.

use wire::capture::ieee80211::Mac;

use super::tap::Tap;

/// Longest Ethernet frame: its header, and an MTU of 1500 bytes.
const FRAME_MAX: usize = ETHERNET_HEADER + 1500;
const ETHERNET_HEADER: usize = 14;

/// The port of the Babel protocol (RFC 8966), which runs over UDP over IPv6.
const BABEL_PORT: [u8; 2] = 6696u16.to_be_bytes();

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// IP, of either version.
    Ip,
    /// A packet of the routing protocol.
    Routing,
    /// Neighbour discovery and address resolution: ARP, ICMPv6.
    Other,
}

/// One Ethernet frame.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8; FRAME_MAX]>,
    length: usize,
}

impl Buffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self { bytes: Box::new([0; FRAME_MAX]), length: 0 }
    }

    /// Reads the next frame of an interface. Returns whether there was one.
    pub fn receive(&mut self, tap: &Tap) -> bool {
        self.length = tap.receive(&mut self.bytes[..]).ok().flatten().unwrap_or(0);
        self.length >= ETHERNET_HEADER
    }

    /// All bytes of the frame.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The destination MAC address.
    pub fn destination(&self) -> Mac {
        std::array::from_fn(|at| self.bytes[at])
    }

    /// Whether it is broadcast or multicast.
    pub fn is_for_many(&self) -> bool {
        self.bytes[0] & 1 == 1
    }

    /// The kind of its packet.
    pub fn carries(&self) -> Carries {
        let packet = self.packet();
        match self.ethertype() {
            [0x08, 0x00] => Carries::Ip,
            [0x86, 0xdd] => match packet.get(6) {
                Some(17) if packet.get(42..44) == Some(&BABEL_PORT) => Carries::Routing,
                Some(58) => Carries::Other,
                _ => Carries::Ip,
            },
            _ => Carries::Other,
        }
    }

    /// The EtherType.
    pub fn ethertype(&self) -> [u8; 2] {
        [self.bytes[12], self.bytes[13]]
    }

    /// The packet after the Ethernet header.
    pub fn packet(&self) -> &[u8] {
        &self.bytes[ETHERNET_HEADER..self.length]
    }

    /// Length of the packet, in bytes.
    pub fn packet_length(&self) -> u32 {
        (self.length - ETHERNET_HEADER) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ethertype: u16, packet: &[u8]) -> Buffer {
        let mut frame = Buffer::new();
        frame.length = ETHERNET_HEADER + packet.len();
        frame.bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame.bytes[ETHERNET_HEADER..][..packet.len()].copy_from_slice(packet);
        frame
    }

    /// An IPv6 packet whose next header has this destination port.
    fn ipv6(next_header: u8, port: u16) -> [u8; 48] {
        let mut packet = [0; 48];
        packet[6] = next_header;
        packet[42..44].copy_from_slice(&port.to_be_bytes());
        packet
    }

    #[test]
    fn packets_are_told_apart() {
        for (ethertype, packet, carries) in [
            (0x0800, &[0; 20][..], Carries::Ip),
            (0x0806, &[0; 28], Carries::Other),
            (0x86dd, &ipv6(17, 6696), Carries::Routing),
            (0x86dd, &ipv6(17, 53), Carries::Ip),
            (0x86dd, &ipv6(6, 6696), Carries::Ip),
            (0x86dd, &ipv6(58, 0), Carries::Other),
            (0x86dd, &[], Carries::Ip),
            (0x0000, &[], Carries::Other),
        ] {
            assert_eq!(frame(ethertype, packet).carries(), carries, "{ethertype:04x} {packet:?}");
        }
    }
}
