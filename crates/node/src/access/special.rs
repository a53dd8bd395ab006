//! Addresses that look like those of hosts on the internet and are none.
//!
//! *What this is:* the blocks of IANA's special-purpose registries that are not globally reachable and not private, link-local
//! or loopback (the callers know those), and addresses of clouds at which a machine gets its own secrets.
//!
//! | block | what it is | source |
//! |---|---|---|
//! | 0.0.0.0/8 | this network | RFC 791 §3.2 |
//! | 168.63.129.16 | Azure's host of a virtual machine | Microsoft: What is IP address 168.63.129.16? |
//! | 192.0.0.0/24 | IETF protocols; 192.0.0.192 has served metadata (Oracle Cloud) | RFC 6890 §2.2.2 |
//! | 192.88.99.0/24 | relays of 6to4, deprecated | RFC 7526 |
//! | 240.0.0.0/4 | reserved; clouds number their insides from it | RFC 1112 §4 |
//! | 100::/64, 100:0:0:1::/64 | discarded; dummies | RFC 6666, RFC 9780 |
//! | 2001::/23 | IETF protocols: Teredo, ORCHID, benchmarks | RFC 2928, RFC 4380, RFC 7343 |
//! | 5f00::/16 | segments of SRv6 | RFC 9602 |
//! | fec0::/10 | private to a site, deprecated | RFC 3879 |
//!
//! An address of ISATAP (RFC 5214 §6.1) has an IPv4 address in it, in a network of any prefix. *Known by other rules:*
//! metadata at 169.254.0.0/16 (most clouds), 100.100.100.200 (Alibaba), fd00:ec2::254 (AWS) and fd20:ce::254 (Google) is
//! link-local, shared or unique local. *Left out:* documentation's blocks, which lead nowhere; 198.18.0.0/15, from which
//! routers answer names that they lead by tunnels; and prefixes of NAT64 that a network has chosen, which only it knows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Prefix, is_local};

const BLOCKS: [Prefix; 10] = [
    v4([0, 0, 0, 0], 8),
    v4([168, 63, 129, 16], 32),
    v4([192, 0, 0, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([240, 0, 0, 0], 4),
    v6([0x100, 0, 0, 0], 64),
    v6([0x100, 0, 0, 1], 64),
    v6([0x2001, 0, 0, 0], 23),
    v6([0x5f00, 0, 0, 0], 16),
    v6([0xfec0, 0, 0, 0], 10),
];

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> Prefix {
    Prefix { network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
}

const fn v6([a, b, c, d]: [u16; 4], bits: u8) -> Prefix {
    Prefix { network: IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)), bits }
}

/// Whether an address, as [`super::plain`] reads it, is one of these.
pub fn is_special(address: IpAddr) -> bool {
    BLOCKS.iter().any(|block| block.covers(address)) || isatap(address).is_some_and(is_inside)
}

/// Whether an IPv4 address within another leads to the inside of a network.
fn is_inside(address: IpAddr) -> bool {
    is_local(address) || BLOCKS.iter().any(|block| block.covers(address))
}

/// The IPv4 address within one of ISATAP.
fn isatap(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(v6) = address else { return None };
    match v6.segments() {
        [.., 0 | 0x200, 0x5efe, high, low] => {
            Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Access, Caller, Forbidden};
    use super::*;

    /// What a caller is told of an address whose port it may use.
    fn check(access: &Access, caller: Caller, text: &str) -> Result<(), Forbidden> {
        access.check(caller, (text.parse::<IpAddr>().expect("an address"), 443).into())
    }

    const STRANGERS: [Caller; 4] =
        [Caller::Explicit, Caller::Tunnel, Caller::Peer, Caller::Gateway];

    #[test]
    fn special_addresses_are_dialled_for_no_stranger() {
        let special = [
            "0.1.2.3",
            "168.63.129.16",
            "192.0.0.0",
            "192.0.0.192",
            "192.0.0.255",
            "192.88.99.1",
            "240.0.0.1",
            "255.255.255.254",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:1ff::1",
            "5f00::1",
            "fec0::1",
            "feff::1",
            "2001:db8::5efe:a00:1",
            "2001:db8::200:5efe:c0a8:1",
        ];
        // Teredo, NAT64, 6to4, mapped, compatible, translated, and ISATAP.
        let spelled = [
            "2001:0:a00:1::",
            "64:ff9b::168.63.129.16",
            "2002:a83f:8110::1",
            "::ffff:192.0.0.192",
            "::192.0.0.192",
            "::ffff:0:192.0.0.192",
            "2001:db8::200:5efe:a83f:8110",
        ];
        let own =
            Access { direct: vec!["168.63.129.16".parse().expect("one")], ..Access::default() };
        for caller in STRANGERS {
            for address in special.iter().chain(&spelled) {
                let checked = check(&Access::default(), caller, address);
                assert_eq!(checked, Err(Forbidden::Private), "{caller:?} {address}");
            }
            assert_eq!(check(&own, caller, "168.63.129.16"), Ok(()), "{caller:?}: it is permitted");
        }
        // What the kernel would forward for it, and what a program here could dial.
        for caller in [Caller::Intercepted, Caller::ThisMachine] {
            assert_eq!(check(&Access::default(), caller, "192.0.0.192"), Ok(()), "{caller:?}");
        }
    }

    #[test]
    fn metadata_of_clouds_is_dialled_for_no_machine_elsewhere() {
        for address in
            ["169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"]
        {
            for caller in [Caller::Explicit, Caller::Tunnel, Caller::Gateway] {
                let checked = check(&Access::default(), caller, address);
                assert!(checked.is_err(), "{caller:?} {address}");
            }
        }
    }

    #[test]
    fn neighbours_of_special_addresses_are_ordinary() {
        for address in [
            "1.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "191.255.255.255",
            "192.0.1.0",
            "192.88.98.255",
            "192.88.100.0",
            "198.18.0.1",
            "192.0.2.1",
            "2001:200::1",
            "2001:db8::1",
            "2606:4700::1",
            "100:0:0:2::1",
            "2001:db8::5efe:808:808",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ] {
            for caller in STRANGERS {
                assert_eq!(check(&Access::default(), caller, address), Ok(()), "{address}");
            }
        }
    }
}
