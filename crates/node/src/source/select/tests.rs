use super::*;
use crate::copies::Copies;
use crate::input::{SearchConfig, Squares};
use crate::routes::{Exit, Interface, Route, RouteSource};

const HOP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
const GATEWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

/// A mesh without a key whose routers select so.
pub fn config(selection: Selection) -> MeshConfig {
    MeshConfig {
        selection,
        search: SearchConfig::default(),
        squares: Squares::default(),
        identity: [1; 32],
        key: None,
        gateways: Vec::new(),
        port: 3131,
        overhear: None,
    }
}

/// The peer that a scheme chooses for this request, if only these may be asked.
fn asked(selection: Selection, per_hop: Option<bool>, may: &[IpAddr]) -> Answer {
    let mut routes = Routes::default();
    let route = Route {
        next_hop: HOP,
        interface: Interface { name: "wl0".into(), index: 3 },
        gateway: Some(GATEWAY),
        metric: None,
        hops: Some(2),
        // Without an address, to which answers could come, no scheme searches.
        address: None,
        source: RouteSource::Config,
    };
    routes.set(Instant::ZERO, Exit::Mesh(route).into());
    let may = |address| may.contains(&address);
    let (id, key) = (FetchId(1), ObjectKey([0; 32]));
    let query = Query {
        now: Instant::ZERO,
        id,
        key,
        per_hop,
        routes: &routes,
        copies: &Copies::default(),
        referred: Vec::new(),
        may: &may,
    };
    of(&config(selection), &[1; 32]).choose(&query)
}

#[test]
fn our_own_clients_requests_go_as_the_scheme_has_it() {
    let both = [HOP, GATEWAY];
    assert_eq!(asked(Selection::PhThcp, None, &both), Answer::Found(HOP));
    assert_eq!(asked(Selection::Thcp, None, &both), Answer::Found(GATEWAY));
}

#[test]
fn a_peers_request_goes_as_the_peer_wishes() {
    for selection in Selection::ALL {
        let both = [HOP, GATEWAY];
        assert_eq!(asked(selection, Some(true), &both), Answer::Found(HOP));
        assert_eq!(asked(selection, Some(false), &both), Answer::Found(GATEWAY));
    }
}

#[test]
fn the_next_hop_is_never_asked_in_the_gateways_place() {
    assert_eq!(asked(Selection::PhThcp, None, &[GATEWAY]), Answer::Found(GATEWAY));
    assert_eq!(asked(Selection::Thcp, None, &[HOP]), Answer::Nobody);
    assert_eq!(asked(Selection::PhThcp, None, &[]), Answer::Nobody);
}
