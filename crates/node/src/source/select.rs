//! Whom to ask for what is not here: the next hop or the gateway (MeshCache §4.2.1, §4.3.1).
//!
//! THCP asks the gateway, PH-THCP the next hop towards it; per hop or not is a flag of the request.
//! A neighbour without our daemon is passed over: the gateway is asked, and where that fails too, the
//! origin itself.

use std::net::IpAddr;

/// What leads towards the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// The neighbour on the way.
    pub next_hop: Option<IpAddr>,
    /// The gateway, if it is known.
    pub gateway: Option<IpAddr>,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The node with this address.
    Peer(IpAddr),
    /// The origin.
    Origin,
}

impl Ways {
    /// The first that may be asked. `per_hop` begins with the next hop; without it, that is asked only
    /// where the gateway is not known. `may` says no to those that were tried, or are passed over.
    pub fn choose(self, per_hop: bool, may: impl Fn(IpAddr) -> bool) -> Choice {
        let (first, second) = match (per_hop, self.gateway) {
            (true, gateway) => (self.next_hop, gateway),
            (false, None) => (self.next_hop, None),
            (false, gateway) => (gateway, None),
        };
        let chosen = first.filter(|address| may(*address)).or(second.filter(|it| may(*it)));
        chosen.map_or(Choice::Origin, Choice::Peer)
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
        assert_eq!(BOTH.choose(true, |_| true), Choice::Peer(HOP));
        assert_eq!(BOTH.choose(false, |_| true), Choice::Peer(GATEWAY));
    }

    #[test]
    fn who_may_not_be_asked_is_passed_over() {
        assert_eq!(BOTH.choose(true, |it| it != HOP), Choice::Peer(GATEWAY));
        assert_eq!(BOTH.choose(false, |it| it != GATEWAY), Choice::Origin);
        assert_eq!(BOTH.choose(true, |_| false), Choice::Origin);
    }

    #[test]
    fn where_the_gateway_is_unknown_the_next_hop_will_know() {
        let ways = Ways { gateway: None, ..BOTH };
        assert_eq!(ways.choose(false, |_| true), Choice::Peer(HOP));
        let nowhere = Ways { next_hop: None, gateway: None };
        assert_eq!(nowhere.choose(true, |_| true), Choice::Origin);
    }
}
