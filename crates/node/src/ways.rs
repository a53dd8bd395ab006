//! The routes towards the gateway (MeshCache §4.2.1, §4.3.1).
//!
//! A neighbour without our daemon is passed over: the gateway is asked instead, and if that fails
//! the origin.

use std::net::IpAddr;

/// The next hop and the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// The neighbour towards the gateway.
    pub next_hop: Option<IpAddr>,
    /// The gateway, if it is known.
    pub gateway: Option<IpAddr>,
}

impl Ways {
    /// The first of them that may be asked. With `per_hop` the next hop comes first; otherwise it
    /// is asked only if the gateway is unknown. `may` is false for addresses that were tried or are
    /// passed over.
    pub fn choose(self, per_hop: bool, may: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        let (first, second) = match (per_hop, self.gateway) {
            (true, gateway) => (self.next_hop, gateway),
            (false, None) => (self.next_hop, None),
            (false, gateway) => (gateway, None),
        };
        first.filter(|address| may(*address)).or(second.filter(|it| may(*it)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
    const GATEWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const BOTH: Ways = Ways { next_hop: Some(HOP), gateway: Some(GATEWAY) };

    #[test]
    fn per_hop_asks_the_next_hop_and_else_the_gateway() {
        assert_eq!(BOTH.choose(true, |_| true), Some(HOP));
        assert_eq!(BOTH.choose(false, |_| true), Some(GATEWAY));
    }

    #[test]
    fn who_may_not_be_asked_is_passed_over() {
        assert_eq!(BOTH.choose(true, |it| it != HOP), Some(GATEWAY));
        assert_eq!(BOTH.choose(false, |it| it != GATEWAY), None);
        assert_eq!(BOTH.choose(true, |_| false), None);
    }

    #[test]
    fn where_the_gateway_is_unknown_the_next_hop_will_know() {
        let ways = Ways { gateway: None, ..BOTH };
        assert_eq!(ways.choose(false, |_| true), Some(HOP));
        let nowhere = Ways { next_hop: None, gateway: None };
        assert_eq!(nowhere.choose(true, |_| true), None);
    }
}
