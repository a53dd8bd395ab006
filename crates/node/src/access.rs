//! Which clients may use a node, and what it may dial for them. It must never be an open proxy, nor
//! a way around the firewall of its own router.
//!
//! The daemon's connections pass the kernel's OUTPUT hook, so FORWARD rules and zones do not apply
//! to them. [`Access`] takes their place: it permits a connection only where the kernel's routes
//! lead out of the site, unless the operator permits more (decision 0027).

mod special;

use special::is_special;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The ports that a plain proxy is for; `CONNECT` is only for the second.
const PORT_HTTP: u16 = 80;
const PORT_HTTPS: u16 = 443;

/// A set of addresses: those with the same first `bits` bits as `network`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    network: IpAddr,
    bits: u8,
}

/// The text is not a prefix.
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

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

impl Prefix {
    /// Whether it is a set of IPv4 addresses.
    pub fn is_ipv4(&self) -> bool {
        self.network.is_ipv4()
    }

    /// Whether it contains an address.
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

/// The IPv4 address that an IPv6 address stands for, if it does: a translator on the path turns it
/// into that.
///
/// IPv4-mapped and IPv4-compatible (RFC 4291 §2.5.5), translated (RFC 2765 §2.1), the well-known
/// NAT64 prefix (RFC 6052 §2.1), and 6to4 (RFC 3056 §2).
pub fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::from([a, b, c, d])
    };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => address,
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        _ => address,
    }
}

/// The address of the host that is reached at another: the IPv4 address in one that is IPv4-mapped (RFC 4291 §2.5.5.2), or
/// that NAT64 translates at its well-known prefix (RFC 6052 §2.1).
pub fn translated(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0] => plain(address),
        _ => address.to_canonical(),
    }
}

/// Whether an address belongs to this machine, link or site. Addresses of a site's own NAT64 prefix
/// (RFC 8215) count: only the site knows where they lead.
pub fn is_local(address: IpAddr) -> bool {
    match plain(address) {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || is_shared(v4)
        }
        IpAddr::V6(v6) => {
            let of_own_nat64 = matches!(v6.segments(), [0x64, 0xff9b, 1, ..]);
            let of_site = v6.is_unicast_link_local() || v6.is_unique_local() || of_own_nat64;
            v6.is_loopback() || of_site
        }
    }
}

/// Whether an address may lead to the same node from elsewhere in the mesh: it is none of this machine or link alone.
pub fn leads_beyond_link(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    }
}

/// Whether a client may use the explicit proxy: local clients may, and those in `allowed`. A
/// private address behind the uplink belongs to another site, so it is not local.
pub fn may_use(client: IpAddr, behind_uplink: bool, allowed: &[Prefix]) -> bool {
    let is_ours = is_local(client) && !behind_uplink;
    is_ours || allowed.iter().any(|prefix| prefix.covers(plain(client)))
}

/// On whose behalf a connection is dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    /// A program on this machine, which could dial itself.
    ThisMachine,
    /// A client of the explicit proxy that sends a plain request.
    Explicit,
    /// A client of the explicit proxy that asks for a tunnel (`CONNECT`).
    Tunnel,
    /// A client whose own connection was intercepted.
    Intercepted,
    /// Another node of the mesh.
    Peer,
    /// A gateway whose far end this machine is. It reaches what strangers may reach, and besides the
    /// destinations in `direct`.
    Gateway,
}

/// Where the kernel's routes for an address lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// To this machine.
    Here,
    /// Out of the site: by an interface with a default route, or one that the operator has named.
    Out,
    /// To another zone of this router, or to where its rules forbid.
    Elsewhere,
    /// There is no route.
    Nowhere,
}

/// Why an address is not dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forbidden {
    /// Explicit clients and peers may not use this port.
    Port(u16),
    /// Explicit clients may not reach private addresses, and nobody else's machine special ones.
    Private,
    /// The address is this router's own, belongs to no host, or is in another zone.
    Inward,
    /// No route leads there now.
    Unroutable,
}

/// What the operator permits besides destinations outside the site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Private destinations that explicit clients may reach.
    pub private: Vec<Prefix>,
    /// Destinations inside the mesh, which every client and peer may reach.
    pub direct: Vec<Prefix>,
    /// Ports that explicit clients and peers may use besides 80 and 443, and with `CONNECT` besides
    /// 443.
    pub ports: Vec<u16>,
}

impl Access {
    /// Whether an origin with this address is inside the mesh.
    pub fn is_direct(&self, address: IpAddr) -> bool {
        covers(&self.direct, plain(address))
    }

    /// Whether only explicit clients may get responses from this address, because no other client
    /// may reach it.
    pub fn is_of_site(&self, address: IpAddr) -> bool {
        covers(&self.private, plain(address)) && !self.is_direct(address)
    }

    /// Checks a destination by the rules that do not depend on routes. This machine's own
    /// programs may reach its own addresses.
    ///
    /// # Errors
    /// If it is forbidden: why.
    pub fn check(&self, caller: Caller, to: SocketAddr) -> Result<(), Forbidden> {
        let address = plain(to.ip());
        let is_permitted = caller == Caller::Gateway && covers(&self.direct, address);
        let may_inward = caller == Caller::ThisMachine || is_permitted;
        if is_nowhere(address) || (is_inward(address) && !may_inward) {
            return Err(Forbidden::Inward);
        }
        let is_of_gateway = caller == Caller::Gateway && is_local(to.ip());
        // The kernel would forward an intercepted client's own connection.
        let is_strange = !may_inward && caller != Caller::Intercepted && is_special(address);
        let permitted = || covers(&self.private, address) || covers(&self.direct, address);
        if (is_of_gateway && !is_permitted) || (is_strange && !permitted()) {
            return Err(Forbidden::Private);
        }
        self.check_port(caller, to.port())?;
        let is_explicit = matches!(caller, Caller::Explicit | Caller::Tunnel);
        if is_explicit && is_local(to.ip()) && !permitted() {
            return Err(Forbidden::Private);
        }
        Ok(())
    }

    /// Checks whether a caller may use this port at all.
    ///
    /// # Errors
    /// If not.
    pub fn check_port(&self, caller: Caller, port: u16) -> Result<(), Forbidden> {
        let usual = match caller {
            Caller::ThisMachine | Caller::Intercepted | Caller::Gateway => return Ok(()),
            Caller::Explicit | Caller::Peer => port == PORT_HTTP || port == PORT_HTTPS,
            Caller::Tunnel => port == PORT_HTTPS,
        };
        if usual || self.ports.contains(&port) { Ok(()) } else { Err(Forbidden::Port(port)) }
    }

    /// Checks whether a destination may be dialled. `leads` tells where the kernel's routes for an
    /// address lead. It is called for the address as written, and for the one that it stands for.
    ///
    /// # Errors
    /// If not: why.
    pub fn may_dial(
        &self,
        caller: Caller,
        to: SocketAddr,
        leads: impl Fn(IpAddr) -> Leads,
    ) -> Result<(), Forbidden> {
        self.check(caller, to)?;
        if caller == Caller::ThisMachine {
            return Ok(());
        }
        // An IPv6 address may contain an IPv4 one, which a translator dials: both must be
        // permitted.
        let (spelled, meant) = (to.ip().to_canonical(), plain(to.ip()));
        if caller == Caller::Gateway && covers(&self.direct, meant) {
            return Ok(());
        }
        let is_explicit = matches!(caller, Caller::Explicit | Caller::Tunnel);
        let permitted =
            covers(&self.direct, meant) || (is_explicit && covers(&self.private, meant));
        let fits = |led: Leads| led == Leads::Out || (permitted && led != Leads::Here);
        let led = leads(spelled);
        if led == Leads::Nowhere {
            return Err(Forbidden::Unroutable);
        }
        // A router without IPv4 has no route to the address that a translator beyond its uplink
        // will use.
        let translated = || match leads(meant) {
            Leads::Nowhere => !is_local(meant),
            led => fits(led),
        };
        let all_fit = fits(led) && (spelled == meant || translated());
        if all_fit { Ok(()) } else { Err(Forbidden::Inward) }
    }
}

fn covers(prefixes: &[Prefix], address: IpAddr) -> bool {
    prefixes.iter().any(|prefix| prefix.covers(address))
}

/// Whether an address leads to this machine or link, independently of routes.
fn is_inward(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified(),
    }
}

/// Addresses that belong to no single host.
fn is_nowhere(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_multicast() || v4 == Ipv4Addr::BROADCAST,
        IpAddr::V6(v6) => v6.is_multicast() || v6 == Ipv6Addr::UNSPECIFIED,
    }
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

    fn to(text: &str) -> SocketAddr {
        let (address, port) = text.rsplit_once(' ').unwrap_or((text, "80"));
        (ip(address), port.parse().unwrap()).into()
    }

    /// The routes of a router with the addresses 10.0.0.1 and fd00::1, a LAN of 10.0.0.0/8,
    /// fd00::/8 and 2001:db8:1::/48, and everything else behind its uplink.
    fn leads(address: IpAddr) -> Leads {
        let lan = ["10.0.0.0/8", "fd00::/8", "2001:db8:1::/48"].map(|it| it.parse().unwrap());
        match address {
            _ if address == ip("10.0.0.1") || address == ip("fd00::1") => Leads::Here,
            _ if covers(&lan, address) => Leads::Elsewhere,
            _ => Leads::Out,
        }
    }

    fn dials(access: &Access, caller: Caller, address: &str) -> bool {
        access.may_dial(caller, to(address), leads).is_ok()
    }

    const OTHERS: [Caller; 4] =
        [Caller::Explicit, Caller::Tunnel, Caller::Intercepted, Caller::Peer];

    #[test]
    fn local_clients_may_use_us_and_others_may_not() {
        for local in ["127.0.0.1", "10.1.2.3", "192.168.0.9", "100.100.0.1", "169.254.1.1"] {
            assert!(may_use(ip(local), false, &[]), "{local}");
            assert!(may_use(ip(&format!("::ffff:{local}")), false, &[]), "{local}");
        }
        for local in ["::1", "fe80::1", "fd00::1"] {
            assert!(may_use(ip(local), false, &[]), "{local}");
        }
        for far in ["192.0.2.1", "100.128.0.1", "172.32.0.1", "2001:db8::1", "::ffff:8.8.8.8"] {
            assert!(!may_use(ip(far), false, &[]), "{far}");
        }
        let allowed = ["192.0.2.0/25".parse().unwrap(), "2001:db8::/32".parse().unwrap()];
        let allows = |client| may_use(ip(client), false, &allowed);
        assert!(allows("::ffff:192.0.2.1") && allows("2001:db8::1"));
        assert!(!allows("192.0.2.128") && !allows("2001:db9::1"));
    }

    #[test]
    fn a_private_address_behind_the_uplink_is_not_local_unless_it_is_allowed() {
        assert!(!may_use(ip("192.168.1.9"), true, &[]) && !may_use(ip("fd00::9"), true, &[]));
        assert!(may_use(ip("192.168.1.9"), true, &["192.168.1.0/24".parse().unwrap()]));
    }

    #[test]
    fn nobody_is_led_into_our_own_house() {
        let open = Access {
            private: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
            direct: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
            ports: vec![80],
        };
        let inward = ["127.0.0.1", "::1", "fe80::1", "0.0.0.0", "10.0.0.1", "fd00::1"];
        let spelled = ["::ffff:127.0.0.1", "64:ff9b::10.0.0.1", "::10.0.0.1", "2002:a00:1::1"];
        for caller in OTHERS {
            for address in inward.into_iter().chain(spelled) {
                assert!(!dials(&open, caller, address), "{caller:?} {address}");
            }
        }
        for own in ["127.0.0.1 8080", "10.0.0.1", "::1", "10.0.0.9 25"] {
            assert!(dials(&Access::default(), Caller::ThisMachine, own), "{own}");
        }
        for nobody in ["224.0.0.1", "255.255.255.255", "ff02::1"] {
            assert!(!dials(&open, Caller::ThisMachine, nobody), "{nobody}");
        }
    }

    #[test]
    fn what_does_not_lead_out_is_left_to_the_firewall() {
        for caller in OTHERS {
            for inside in ["10.0.0.9 443", "fd00::9 443", "2001:db8:1::9 443"] {
                assert!(!dials(&Access::default(), caller, inside), "{caller:?} {inside}");
            }
            assert!(dials(&Access::default(), caller, "192.0.2.1 443"), "{caller:?}");
            assert!(dials(&Access::default(), caller, "2001:db8::1 443"), "{caller:?}");
        }
    }

    #[test]
    fn other_spellings_count_as_the_address_they_mean() {
        for caller in OTHERS {
            for inside in ["::ffff:10.0.0.9", "64:ff9b::10.0.0.9", "::10.0.0.9", "2002:a00:9::1"] {
                let inside = format!("{inside} 443");
                assert!(!dials(&Access::default(), caller, &inside), "{caller:?} {inside}");
            }
            assert!(dials(&Access::default(), caller, "64:ff9b::192.0.2.1 443"), "{caller:?}");
        }
        let without_ipv4 = |address: IpAddr| match address {
            IpAddr::V4(_) => Leads::Nowhere,
            IpAddr::V6(_) => Leads::Out,
        };
        let dial = |address| {
            Access::default().may_dial(Caller::Intercepted, to(address), without_ipv4).is_ok()
        };
        assert!(dial("64:ff9b::192.0.2.1") && !dial("64:ff9b::192.168.0.1"));
        let nowhere = |address| {
            Access::default().may_dial(Caller::Intercepted, to(address), |_| Leads::Nowhere)
        };
        assert_eq!(nowhere("192.0.2.1"), Err(Forbidden::Unroutable));
    }

    #[test]
    fn explicit_clients_reach_private_addresses_only_where_that_is_permitted() {
        let behind_uplink = "192.168.1.1";
        assert!(dials(&Access::default(), Caller::Intercepted, behind_uplink));
        assert!(dials(&Access::default(), Caller::Peer, behind_uplink));
        let check = |access: &Access, address| access.check(Caller::Explicit, to(address));
        for private in [behind_uplink, "64:ff9b::192.168.1.1", "100.64.0.1", "fd77::1"] {
            assert_eq!(check(&Access::default(), private), Err(Forbidden::Private), "{private}");
        }
        assert_eq!(check(&Access::default(), "64:ff9b:1::8.8.8.8"), Err(Forbidden::Private));
        let private = Access {
            private: vec!["10.0.0.8/29".parse().unwrap(), "192.168.1.0/24".parse().unwrap()],
            ..Access::default()
        };
        assert!(dials(&private, Caller::Explicit, behind_uplink));
        assert!(dials(&private, Caller::Explicit, "10.0.0.9"));
        assert!(!dials(&private, Caller::Explicit, "10.0.0.99"));
        assert!(!dials(&private, Caller::Intercepted, "10.0.0.9"), "that is for explicit clients");
        let direct = Access { direct: vec!["10.0.0.8/29".parse().unwrap()], ..Access::default() };
        for caller in OTHERS {
            assert!(dials(&direct, caller, "10.0.0.9 443"), "{caller:?}");
        }
    }

    #[test]
    fn ports_are_those_of_the_web_unless_others_are_listed() {
        let access = Access { ports: vec![8080], ..Access::default() };
        let port = |caller, port| access.check_port(caller, port).is_ok();
        for caller in [Caller::Explicit, Caller::Peer] {
            assert!(port(caller, 80) && port(caller, 443) && port(caller, 8080), "{caller:?}");
            assert!(!port(caller, 25) && !port(caller, 22), "{caller:?}");
        }
        assert!(port(Caller::Tunnel, 443) && port(Caller::Tunnel, 8080));
        assert!(!port(Caller::Tunnel, 80) && !port(Caller::Tunnel, 25));
        assert!(port(Caller::ThisMachine, 25) && port(Caller::Intercepted, 8000));
    }

    #[test]
    fn prefixes_are_read_or_refused() {
        assert!("0.0.0.0/0".parse::<Prefix>().unwrap().covers(ip("1.2.3.4")));
        assert!("1.2.3.4".parse::<Prefix>().unwrap().covers(ip("1.2.3.4")));
        for text in ["", "1.2.3.4/33", "1.2.3/8", "::/129", "1.2.3.4/", "a/8"] {
            assert_eq!(text.parse::<Prefix>(), Err(PrefixError), "{text}");
        }
    }

    #[test]
    fn a_prefix_covers_the_addresses_that_share_its_bits() {
        let covers = |prefix: &str, address| prefix.parse::<Prefix>().unwrap().covers(ip(address));
        assert!(
            covers("192.0.2.128/25", "192.0.2.128") && !covers("192.0.2.128/25", "192.0.2.127")
        );
        assert!(covers("192.0.2.1/32", "192.0.2.1") && !covers("192.0.2.1/32", "192.0.2.0"));
        let site = "2001:db8:0:8000::/49";
        assert!(covers(site, "2001:db8:0:ffff::1") && !covers(site, "2001:db8:0:7fff::1"));
        assert!(covers("2001:db8::1/128", "2001:db8::1") && !covers("2001:db8::1", "2001:db8::"));
        assert!(!covers("::/0", "192.0.2.1") && !covers("0.0.0.0/0", "2001:db8::1"));
        assert!("::/128".parse::<Prefix>().is_ok() && "0.0.0.0/32".parse::<Prefix>().is_ok());
    }
}
