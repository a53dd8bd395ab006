//! One Ethernet frame on its way from one TAP device to others.

use wire::capture::ieee80211::Mac;

use super::tap::Tap;

/// Longest Ethernet frame: an MTU of 1500 bytes and the header.
const FRAME_MAX: usize = ETHERNET_HEADER + 1500;
const ETHERNET_HEADER: usize = 14;

/// The port of the Babel protocol (RFC 8966), which runs over UDP over IPv6.
const BABEL_PORT: [u8; 2] = 6696u16.to_be_bytes();

/// A kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// IP, of either version.
    Ip,
    /// The routing protocol's.
    Routing,
    /// Whatever finds neighbours and announces addresses: ARP, ICMPv6.
    Other,
}

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

    /// What kind of packet it carries.
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

    /// Its type, as in its header.
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

    /// An IPv6 packet of a protocol whose header has this destination port.
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
