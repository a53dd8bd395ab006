//! Network prefixes: an address and the length of its prefix.

use std::net::IpAddr;
use std::str::FromStr;

/// A network prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Net {
    address: IpAddr,
    bits: u8,
}

impl Net {
    /// `None` if the prefix is longer than the address.
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        (bits <= width(address)).then_some(Self { address, bits })
    }

    /// The length of the prefix in bits.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether it is an IPv4 prefix.
    pub fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// The address, if the prefix covers it alone.
    pub fn host(&self) -> Option<IpAddr> {
        (self.bits == width(self.address)).then_some(self.address)
    }

    /// Whether the prefix covers an address.
    pub fn covers(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                (a.to_bits() ^ b.to_bits()).leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                (a.to_bits() ^ b.to_bits()).leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }

    /// Whether a route to this prefix leads to the target: a host, or for `None` the default route.
    pub fn leads_to(&self, target: Option<IpAddr>) -> bool {
        target.map_or(self.bits == 0, |target| self.covers(target))
    }
}

impl FromStr for Net {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = text.split_once('/').ok_or(())?;
        Self::new(address.parse().map_err(drop)?, bits.parse().map_err(drop)?).ok_or(())
    }
}

/// Whether an address can be another router's: one that packets are routed to.
pub fn can_be_router(address: IpAddr) -> bool {
    let is_no_host = match address {
        IpAddr::V4(it) => it.is_link_local() || it.is_broadcast(),
        IpAddr::V6(it) => it.is_unicast_link_local() || it.to_ipv4_mapped().is_some(),
    };
    !(is_no_host || address.is_unspecified() || address.is_loopback() || address.is_multicast())
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}
