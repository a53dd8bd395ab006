//! Why a frame yields no segment.

crate::reasons! {
    /// Why a frame, or one packet of an aggregate, yields no segment. All of these are normal in
    /// captures; the driver counts them.
    pub enum Refusal {
        /// A link type that is not supported.
        LinkType = "link_type",
        /// The radiotap header contradicts itself.
        Radiotap = "radiotap",
        /// The capturing receiver reports a checksum error.
        BadFcs = "bad_fcs",
        /// An 802.11 management frame.
        Management = "management",
        /// An 802.11 control frame.
        Control = "control",
        /// An 802.11 data frame without data.
        Null = "null",
        /// A reserved version or type of 802.11 frame, or an extension frame.
        Reserved = "reserved",
        /// Encrypted at the link layer.
        Protected = "protected",
        /// A fragment of a packet that 802.11 divided.
        LinkFragment = "link_fragment",
        /// Neither IPv4 nor IPv6: for example ARP, routing protocols, bridge protocols.
        NotIp = "not_ip",
        /// More than two VLAN tags.
        VlanTags = "vlan_tags",
        /// An IP header that contradicts itself.
        Ip = "ip",
        /// A fragment of a packet that IP divided.
        IpFragment = "ip_fragment",
        /// A transport protocol other than TCP.
        NotTcp = "not_tcp",
        /// A TCP header that contradicts itself.
        Tcp = "tcp",
        /// The bytes end before the headers do; or the frame was captured whole, and the headers
        /// announce more.
        Short = "short",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counts_for_itself() {
        for (number, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, number);
        }
    }
}
