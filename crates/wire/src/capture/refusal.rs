//! Why a frame yields no segment.

/// Why a frame, or one packet of an aggregate, yields no segment. All of these are normal in
/// captures; the driver counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// A link type that is not supported.
    LinkType,
    /// The radiotap header contradicts itself.
    Radiotap,
    /// The capturing receiver reports a checksum error.
    BadFcs,
    /// An 802.11 management frame.
    Management,
    /// An 802.11 control frame.
    Control,
    /// An 802.11 data frame without data.
    Null,
    /// A reserved version or type of 802.11 frame, or an extension frame.
    Reserved,
    /// Encrypted at the link layer.
    Protected,
    /// A fragment of a packet that 802.11 divided.
    LinkFragment,
    /// Neither IPv4 nor IPv6: for example ARP, routing protocols, bridge protocols.
    NotIp,
    /// More than two VLAN tags.
    VlanTags,
    /// An IP header that contradicts itself.
    Ip,
    /// A fragment of a packet that IP divided.
    IpFragment,
    /// A transport protocol other than TCP.
    NotTcp,
    /// A TCP header that contradicts itself.
    Tcp,
    /// The bytes end before the headers do; or the frame was captured whole, and the headers
    /// announce more.
    Short,
}

impl Refusal {
    /// Each of them, in order: `ALL[refusal as usize] == refusal`.
    pub const ALL: [Self; 16] = [
        Self::LinkType,
        Self::Radiotap,
        Self::BadFcs,
        Self::Management,
        Self::Control,
        Self::Null,
        Self::Reserved,
        Self::Protected,
        Self::LinkFragment,
        Self::NotIp,
        Self::VlanTags,
        Self::Ip,
        Self::IpFragment,
        Self::NotTcp,
        Self::Tcp,
        Self::Short,
    ];

    /// For counters and reports: lower case with underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LinkType => "link_type",
            Self::Radiotap => "radiotap",
            Self::BadFcs => "bad_fcs",
            Self::Management => "management",
            Self::Control => "control",
            Self::Null => "null",
            Self::Reserved => "reserved",
            Self::Protected => "protected",
            Self::LinkFragment => "link_fragment",
            Self::NotIp => "not_ip",
            Self::VlanTags => "vlan_tags",
            Self::Ip => "ip",
            Self::IpFragment => "ip_fragment",
            Self::NotTcp => "not_tcp",
            Self::Tcp => "tcp",
            Self::Short => "short",
        }
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
