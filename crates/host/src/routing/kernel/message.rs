//! The kernel's routing messages (rtnetlink(7)), as far as they are needed for the route to the
//! gateway.
//!
//! They are parsed here instead of by a library: only a dozen attributes are needed, the router's
//! binary stays small, and unknown attributes of newer kernels cannot cause errors. Truncated
//! messages and attributes are ignored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Forward;
use crate::routing::net::Net;

/// Message types and flags (linux/netlink.h, linux/rtnetlink.h).
pub const ERROR: u16 = 2;
pub const DONE: u16 = 3;
pub const NEWLINK: u16 = 16;
pub const DELLINK: u16 = 17;
pub const GETLINK: u16 = 18;
pub const NEWADDR: u16 = 20;
pub const DELADDR: u16 = 21;
pub const GETADDR: u16 = 22;
pub const NEWROUTE: u16 = 24;
pub const DELROUTE: u16 = 25;
pub const GETROUTE: u16 = 26;
const FLAG_REQUEST: u16 = 1;
const FLAG_DUMP: u16 = 0x300;
/// A flag of routes: not in the table, but learnt for one destination (`RTM_F_CLONED`).
const CLONED: u32 = 0x200;
/// The table changed during the listing.
pub const FLAG_INTERRUPTED: u16 = 0x10;

const HEADER: usize = 16;
const AF_UNSPEC: u8 = 0;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// Types of routes: to another machine, or to this one (`RTN_UNICAST`, `RTN_LOCAL`).
pub const UNICAST: u8 = 1;
pub const LOCAL: u8 = 2;

/// One message: its header and payload.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    /// The requesting socket; in a notification, the socket whose request caused it.
    pub port: u32,
    payload: &'a [u8],
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// Whether it is up, and whether it has a carrier.
    pub works: (bool, bool),
    pub kind: LinkKind,
    /// The index of the bridge (or the like) that it is a port of.
    pub master: Option<u32>,
}

/// What an operator sees of a network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The interface's name.
    pub name: String,
    /// Whether it is up, and whether it has a carrier.
    pub works: (bool, bool),
    /// The largest packet that it takes, in bytes.
    pub mtu: u32,
    /// The kind of its frames: an `ARPHRD_…` of linux/if_arp.h.
    pub frames: u16,
    /// Whether it is a mesh of batman-adv.
    pub is_batman_adv: bool,
    /// The index of the interface that it is a port of, if it is one.
    pub master: Option<u32>,
    /// Its index.
    pub index: u32,
}

/// The kind of an interface, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkKind {
    /// Any other.
    #[default]
    Other,
    /// A mesh of batman-adv.
    BatmanAdv,
    Bridge,
    /// A part of the traffic of another interface, which has this index.
    PartOf(u32),
}

/// A route of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub to: Net,
    pub table: u32,
    /// The protocol that installed it (`RTPROT_…`).
    pub protocol: u8,
    /// The type of the route (`RTN_…`).
    pub kind: u8,
    /// The metric: among routes to the same prefix the lowest is used.
    pub priority: u32,
    /// Whether it is for packets from any source, not only from one prefix.
    pub is_for_all: bool,
    /// The route's next hops; several for a multipath route.
    pub hops: Vec<Hop>,
}

/// A next hop of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// `None`: the destination is on the link.
    pub via: Option<IpAddr>,
    pub interface: u32,
    /// Whether the kernel marks it as dead, or its link has no carrier.
    pub is_dead: bool,
}

/// A request to list all links, addresses or routes.
pub fn dump(kind: u16, sequence: u32) -> Vec<u8> {
    // The kernel requires a payload of this length: `ifinfomsg` for links, otherwise at most
    // `rtmsg`.
    let payload = if kind == GETLINK { 16 } else { 12 };
    request(kind, FLAG_REQUEST | FLAG_DUMP, sequence, &[0; 16][..payload])
}

/// A request for the route of a packet to an address; with `from`, of a packet from that address
/// which arrives on the interface with that index; with `mark`, of one with these bits in its mark.
pub fn route_request(to: IpAddr, from: Option<(IpAddr, u32)>, mark: Option<u32>) -> Vec<u8> {
    let (family, bits) = if to.is_ipv4() { (AF_INET, 32) } else { (AF_INET6, 128) };
    let source_bits = if from.is_some() { bits } else { 0 };
    let mut payload = vec![family, bits, source_bits, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    payload.extend(attribute(1, &octets(to)));
    if let Some((from, interface)) = from {
        payload.extend(attribute(2, &octets(from)));
        payload.extend(attribute(3, &interface.to_ne_bytes()));
    }
    if let Some(mark) = mark {
        payload.extend(attribute(16, &mark.to_ne_bytes()));
    }
    request(GETROUTE, FLAG_REQUEST, 1, &payload)
}

/// A request by generic netlink, of version 1, with an attribute.
pub fn generic_request(family: u16, command: u8, (kind, value): (u16, &[u8])) -> Vec<u8> {
    let mut payload = vec![command, 1, 0, 0];
    payload.extend(attribute(kind, value));
    request(family, FLAG_REQUEST, 1, &payload)
}

fn request(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + payload.len()).unwrap_or(0);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend(payload);
    bytes
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(0);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

/// The messages of a datagram, up to the first truncated one.
pub fn messages(mut datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(datagram, 0)? as usize;
        let message = Message {
            kind: u16_at(datagram, 4)?,
            flags: u16_at(datagram, 6)?,
            sequence: u32_at(datagram, 8)?,
            port: u32_at(datagram, 12)?,
            payload: datagram.get(HEADER..length)?,
        };
        datagram = datagram.get(aligned(length)..).unwrap_or_default();
        Some(message)
    })
}

impl Message<'_> {
    /// The link in this message; `None` for a bridge's messages about its ports.
    pub fn link(&self) -> Option<Link> {
        let index = u32_at(self.payload, 4)?;
        let flags = u32_at(self.payload, 8)?;
        let (mut name, mut lower, mut master, mut kind) = (None, None, None, None);
        for (attribute, value) in attributes(self.payload.get(16..)?) {
            match attribute {
                3 => name = Some(text(value)),
                5 => lower = u32_at(value, 0),
                10 => master = u32_at(value, 0),
                // IFLA_LINKINFO, IFLA_INFO_KIND.
                18 => kind = attributes(value).find(|(kind, _)| *kind == 1).map(|(_, it)| text(it)),
                _ => {}
            }
        }
        let kind = match (kind.as_deref(), lower) {
            (Some("batadv"), _) => LinkKind::BatmanAdv,
            (Some("bridge"), _) => LinkKind::Bridge,
            (Some("vlan" | "macvlan"), Some(lower)) => LinkKind::PartOf(lower),
            _ => LinkKind::Other,
        };
        let works = (flags & 1 != 0, flags & (1 << 16) != 0);
        let link = Link { index, name: name?, works, kind, master };
        (self.payload.first() == Some(&AF_UNSPEC)).then_some(link)
    }

    /// What an operator sees of the link in this message.
    pub fn device(&self) -> Option<Device> {
        let Link { index, name, works, kind, master } = self.link()?;
        let (frames, rest) = (u16_at(self.payload, 2)?, self.payload.get(16..)?);
        let mtu = attributes(rest).find(|(attribute, _)| *attribute == 4);
        let mtu = mtu.and_then(|(_, value)| u32_at(value, 0))?;
        let is_batman_adv = kind == LinkKind::BatmanAdv;
        Some(Device { name, works, mtu, frames, is_batman_adv, master, index })
    }

    /// The attributes of a message of generic netlink (after `genlmsghdr`).
    pub fn generic(&self) -> impl Iterator<Item = (u16, &[u8])> {
        attributes(self.payload.get(4..).unwrap_or_default())
    }

    /// The address of this machine in this message, with the index of its interface.
    pub fn address(&self) -> Option<(u32, IpAddr)> {
        let interface = u32_at(self.payload, 4)?;
        let values = || self.payload.get(8..).map(attributes).into_iter().flatten();
        // On a point-to-point link `IFA_ADDRESS` is the other end, and `IFA_LOCAL` this one.
        let value = |wanted| values().find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
        Some((interface, ip(value(2).or_else(|| value(1))?)?))
    }

    /// The answer to a [`route_request`]; `None` if it is another message.
    pub fn forward(&self) -> Option<Forward> {
        if self.kind != NEWROUTE {
            return None;
        }
        let kind = *self.payload.get(7)?;
        let out = attributes(self.payload.get(12..)?).find(|(attribute, _)| *attribute == 4);
        match (kind, out.and_then(|(_, value)| u32_at(value, 0))) {
            (LOCAL, _) => Some(Forward::Here),
            (UNICAST, Some(interface)) => Some(Forward::Out(interface)),
            _ => Some(Forward::Nowhere),
        }
    }

    /// The route in this message; `None` if it depends on the type of service, or is no route of a
    /// table. The kernel lists with the tables what it learns from ICMP for single destinations,
    /// which anybody can send.
    pub fn route(&self) -> Option<Route> {
        let &[family, bits, source_bits, tos, table, protocol, _, kind, ..] = self.payload else {
            return None;
        };
        let flags = u32_at(self.payload, 8)?;
        let rest = self.payload.get(12..)?;
        let anywhere = match family {
            AF_INET => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            AF_INET6 => IpAddr::from(Ipv6Addr::UNSPECIFIED),
            _ => return None,
        };
        if tos != 0 || flags & CLONED != 0 {
            return None;
        }
        let (mut address, mut table, mut priority) = (anywhere, u32::from(table), 0);
        let mut hops = Vec::new();
        for (attribute, value) in attributes(rest) {
            match attribute {
                1 => address = ip(value)?,
                6 => priority = u32_at(value, 0)?,
                9 => hops = spread(value),
                15 => table = u32_at(value, 0)?,
                _ => {}
            }
        }
        // Without a multipath attribute, the route's own attributes describe its only next hop.
        if hops.is_empty() {
            hops.push(hop(flags, 0, rest));
        }
        let (to, is_for_all) = (Net::new(address, bits)?, source_bits == 0);
        Some(Route { to, table, protocol, kind, priority, is_for_all, hops })
    }
}

/// A next hop, from the attributes of a route or of one entry of a multipath route.
fn hop(flags: u32, interface: u32, bytes: &[u8]) -> Hop {
    // RTNH_F_DEAD, RTNH_F_LINKDOWN.
    let mut hop = Hop { interface, is_dead: flags & (1 | 16) != 0, via: None };
    for (attribute, value) in attributes(bytes) {
        match attribute {
            4 => hop.interface = u32_at(value, 0).unwrap_or(0),
            5 => hop.via = ip(value),
            // A next hop of another address family (RTA_VIA): the family, then the address.
            18 => hop.via = value.get(2..).and_then(ip),
            _ => {}
        }
    }
    hop
}

/// The next hops of a multipath route: `rtnexthop` entries, each with its own attributes.
fn spread(mut bytes: &[u8]) -> Vec<Hop> {
    let mut hops = Vec::new();
    while let (Some(length), Some(flags), Some(interface)) =
        (u16_at(bytes, 0), bytes.get(2), u32_at(bytes, 4))
    {
        let Some(rest) = bytes.get(8..usize::from(length)) else { break };
        hops.push(hop(u32::from(*flags), interface, rest));
        bytes = bytes.get(aligned(usize::from(length))..).unwrap_or_default();
    }
    hops
}

/// A string, without the zero byte at its end.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned()
}

/// Types and values, up to the first truncated attribute.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        // The upper two bits are flags about the value's encoding.
        let kind = u16_at(bytes, 2)? & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

fn aligned(length: usize) -> usize {
    (length + 3) & !3
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    pub fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(HEADER + payload.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn a_default_route_of_babeld_is_read() {
        // Family, prefix length, source prefix length, TOS, table, protocol (babel), scope,
        // unicast; flags: on-link.
        let mut payload = vec![AF_INET, 0, 0, 0, 254, 42, 0, 1];
        payload.extend(4u32.to_ne_bytes());
        payload.extend(attribute(15, &254u32.to_ne_bytes()));
        payload.extend(attribute(5, &[10, 77, 0, 2]));
        payload.extend(attribute(4, &7u32.to_ne_bytes()));
        let bytes = [message(NEWROUTE, &payload), message(DONE, &[0; 4])].concat();
        let all: Vec<_> = messages(&bytes).collect();
        assert_eq!((all.len(), all[0].kind, all[1].kind), (2, NEWROUTE, DONE));
        let hop = Hop { via: "10.77.0.2".parse().ok(), interface: 7, is_dead: false };
        let route = all[0].route().unwrap();
        assert_eq!((route.to, route.hops), ("0.0.0.0/0".parse().unwrap(), vec![hop]));
        assert_eq!((route.table, route.protocol, route.kind, route.priority), (254, 42, 1, 0));
    }

    #[test]
    fn a_next_hop_of_the_other_family_and_several_next_hops_are_read() {
        let via: Ipv6Addr = "fe80::2".parse().unwrap();
        let other = [&10u16.to_ne_bytes()[..], &via.octets()].concat();
        let mut inner = vec![32, 0, 1, 0];
        inner.extend(3u32.to_ne_bytes());
        inner.extend(attribute(18, &other));
        let mut payload = vec![AF_INET, 0, 0, 0, 254, 42, 0, 1, 0, 0, 0, 0];
        payload.extend(attribute(9, &inner));
        let bytes = message(NEWROUTE, &payload);
        let hops = messages(&bytes).next().unwrap().route().unwrap().hops;
        assert_eq!(hops, [Hop { via: Some(via.into()), interface: 3, is_dead: true }]);
    }

    #[test]
    fn what_the_kernel_learnt_for_one_destination_is_no_route() {
        let read = |flags: u32| {
            let mut payload = vec![AF_INET, 32, 0, 0, 254, 2, 0, 1];
            payload.extend(flags.to_ne_bytes());
            payload.extend(attribute(1, &[192, 0, 2, 1]));
            let bytes = message(NEWROUTE, &payload);
            messages(&bytes).next().unwrap().route().is_some()
        };
        assert_eq!((read(0), read(CLONED)), (true, false));
    }

    #[test]
    fn a_link_is_read() {
        let mut payload = vec![0; 4];
        payload.extend(7u32.to_ne_bytes());
        payload.extend((1u32 | 1 << 16).to_ne_bytes());
        payload.extend([0; 4]);
        payload.extend(attribute(3, b"wl0\0"));
        let bytes = message(NEWLINK, &payload);
        let link = messages(&bytes).next().unwrap().link().unwrap();
        assert_eq!(
            link,
            Link { index: 7, name: "wl0".into(), works: (true, true), ..Link::default() }
        );
    }

    /// What a kernel listed of a bridge, of a pair of virtual links, and of the one of them that is its
    /// port; without the attributes that are not read.
    const RECORDED: &[u8] = include_bytes!("links.bin");

    #[test]
    fn a_bridge_and_its_port_are_read() {
        let links: Vec<_> = messages(RECORDED).filter_map(|it| it.link()).collect();
        let expected = [
            ("br0", LinkKind::Bridge, None),
            ("far0", LinkKind::Other, None),
            ("wl0", LinkKind::Other, Some(links[0].index)),
        ];
        let read: Vec<_> = links.iter().map(|it| (it.name.as_str(), it.kind, it.master)).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn the_kinds_of_links_that_matter_are_read() {
        let read = |kind: &[u8]| {
            let mut payload = vec![0; 4];
            payload.extend(7u32.to_ne_bytes());
            payload.extend([0; 8]);
            payload.extend(attribute(3, b"wl0\0"));
            payload.extend(attribute(5, &6u32.to_ne_bytes()));
            // The data of a kind may come too, and the kernel marks what is nested.
            let info = [attribute(1, kind), attribute(2, &[1; 8])].concat();
            payload.extend(attribute(18 | 0x8000, &info));
            let bytes = message(NEWLINK, &payload);
            messages(&bytes).next().unwrap().link().unwrap().kind
        };
        for (kind, expected) in [
            (&b"batadv\0"[..], LinkKind::BatmanAdv),
            (b"bridge\0", LinkKind::Bridge),
            (b"vlan\0", LinkKind::PartOf(6)),
            (b"batadvx\0", LinkKind::Other),
            (b"", LinkKind::Other),
        ] {
            assert_eq!(read(kind), expected, "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_can_make_it_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..300), length: u16, family: bool,
        ) {
            // With a plausible header, so that random bytes reach the code after it.
            for whole in [false, true] {
                if whole && bytes.len() >= 24 {
                    let length = u32::from(length).min(300).to_ne_bytes();
                    bytes[..4].copy_from_slice(&length);
                    let family = if family { AF_INET } else { AF_INET6 };
                    let bits = bytes[17] % 33;
                    bytes[16..20].copy_from_slice(&[family, bits, 0, 0]);
                }
                for message in messages(&bytes).take(1000) {
                    let _ = (message.link(), message.route(), message.generic().count());
                }
            }
        }
    }
}
