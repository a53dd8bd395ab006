//! Who may use a node, and whom it may dial for them: never an open proxy, never a way in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A set of addresses: those whose first `bits` bits are the network's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    network: IpAddr,
    bits: u8,
}

/// Why a text is not a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address prefix: expected something like 192.0.2.0/24 or 2001:db8::/32")]
pub struct PrefixError;

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (network, bits) = text.split_once('/').unwrap_or((text, ""));
        let network: IpAddr = network.parse().map_err(|_| PrefixError)?;
        let max = if network.is_ipv4() { 32 } else { 128 };
        let bits = if text.contains('/') { bits.parse().map_err(|_| PrefixError)? } else { max };
        if bits > max { Err(PrefixError) } else { Ok(Self { network, bits }) }
    }
}

impl Prefix {
    /// Whether it covers an address.
    pub fn covers(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

/// An IPv4 address that came in IPv6's clothes, as on dual-stack sockets, is an IPv4 address.
pub fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Whether an address is of this machine, this link or this site.
pub fn is_local(address: IpAddr) -> bool {
    match plain(address) {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || is_shared(v4)
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unique_local(),
    }
}

/// Whether a client may use the proxy: local ones may, others if told.
pub fn may_use(client: IpAddr, allowed: &[Prefix]) -> bool {
    is_local(client) || allowed.iter().any(|prefix| prefix.covers(plain(client)))
}

/// Whether a node may dial `to` for `client`: not its own addresses, loopback or link-local ones,
/// unless the client is on the same machine and could dial them itself.
pub fn may_dial(client: IpAddr, to: IpAddr, own: impl Fn(IpAddr) -> bool) -> bool {
    let (client, to) = (plain(client), plain(to));
    let at_home = client.is_loopback() || own(client);
    let inward = match to {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified(),
    };
    let nowhere = match to {
        IpAddr::V4(v4) => v4.is_multicast() || v4 == Ipv4Addr::BROADCAST,
        IpAddr::V6(v6) => v6.is_multicast() || v6 == Ipv6Addr::UNSPECIFIED,
    };
    !nowhere && (at_home || !(inward || own(to)))
}

/// Shared address space between provider and customer (RFC 6598).
fn is_shared(address: Ipv4Addr) -> bool {
    matches!(address.octets(), [100, 64..=127, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn local_clients_may_use_us_and_others_may_not() {
        for local in ["127.0.0.1", "10.1.2.3", "192.168.0.9", "100.100.0.1", "169.254.1.1"] {
            assert!(may_use(ip(local), &[]), "{local}");
            assert!(may_use(ip(&format!("::ffff:{local}")), &[]), "{local}");
        }
        for local in ["::1", "fe80::1", "fd00::1"] {
            assert!(may_use(ip(local), &[]), "{local}");
        }
        for far in ["192.0.2.1", "100.128.0.1", "172.32.0.1", "2001:db8::1", "::ffff:8.8.8.8"] {
            assert!(!may_use(ip(far), &[]), "{far}");
        }
        let allowed = ["192.0.2.0/25".parse().unwrap(), "2001:db8::/32".parse().unwrap()];
        assert!(may_use(ip("::ffff:192.0.2.1"), &allowed) && may_use(ip("2001:db8::1"), &allowed));
        assert!(!may_use(ip("192.0.2.128"), &allowed) && !may_use(ip("2001:db9::1"), &allowed));
    }

    #[test]
    fn nobody_is_led_into_our_own_house() {
        let own = |address| address == ip("10.0.0.1");
        let may = |client: &str, to: &str| may_dial(ip(client), ip(to), own);
        assert!(may("10.0.0.2", "192.0.2.1") && may("10.0.0.2", "10.0.0.3"));
        for inward in ["127.0.0.1", "::1", "fe80::1", "0.0.0.0", "10.0.0.1", "::ffff:127.0.0.1"] {
            assert!(!may("10.0.0.2", inward), "{inward}");
        }
        assert!(may("127.0.0.1", "127.0.0.1") && may("10.0.0.1", "10.0.0.1"));
        assert!(!may("127.0.0.1", "224.0.0.1") && !may("::1", "255.255.255.255"));
    }

    #[test]
    fn prefixes_are_read_or_refused() {
        assert!("0.0.0.0/0".parse::<Prefix>().unwrap().covers(ip("1.2.3.4")));
        assert!("1.2.3.4".parse::<Prefix>().unwrap().covers(ip("1.2.3.4")));
        for text in ["", "1.2.3.4/33", "1.2.3/8", "::/129", "1.2.3.4/", "a/8"] {
            assert_eq!(text.parse::<Prefix>(), Err(PrefixError), "{text}");
        }
    }
}
