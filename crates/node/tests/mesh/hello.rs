//! What nodes tell their peers of themselves, and of the gateway.

use crate::net::{Mesh, Plan, address, via};
use node::{Exit, Route, RouteTable};
use wire::peer::{Capability, Gateway};

/// A route of which only the next hop is known.
fn bare(next_hop: usize) -> RouteTable {
    let Exit::Mesh(route) = via(next_hop, None, 9).exit else { panic!("it leads into the mesh") };
    Exit::Mesh(Route { hops: None, ..route }).into()
}

/// A chain of four whose routers know their next hop alone.
fn chain() -> Mesh {
    let mut mesh = Mesh::chain(4);
    (1..4).for_each(|node| mesh.route(node, bare(node - 1)));
    mesh.pass_seconds(40);
    mesh
}

#[test]
fn hops_and_the_gateways_key_are_told_from_hop_to_hop() {
    let mut mesh = chain();
    let key = mesh.key(0);
    for (node, hops) in [(0, 0), (1, 1), (2, 2)] {
        let hello = mesh.told(node + 1, node);
        assert_eq!((hello.hops, hello.gateway_key), (Some(hops), Some(key)), "{node}");
        assert_eq!(hello.capabilities, Capability::ALL);
    }
    let (gateway, behind) = (mesh.told(1, 0), mesh.told(2, 1));
    assert_eq!((gateway.gateway, gateway.address), (Gateway::Here, Some(address(0))));
    assert_eq!((behind.gateway, behind.address), (Gateway::At(address(0)), None));
    mesh.done();
}

#[test]
fn a_change_is_told_to_those_behind() {
    let mut mesh = chain();
    // 1 becomes the gateway.
    mesh.route(1, crate::net::gateway(1));
    mesh.pass_seconds(1);
    let (hello, key) = (mesh.told(3, 2), mesh.key(1));
    assert_eq!((hello.hops, hello.gateway_key), (Some(1), Some(key)));
    mesh.done();
}

#[test]
fn two_that_are_each_others_next_hop_count_to_the_limit_and_stop() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::chain_of(&plan, 3);
        [1, 2].into_iter().for_each(|node| mesh.route(node, bare(node - 1)));
        mesh.pass_seconds(40);
        mesh.route(1, bare(2));
        mesh.pass_seconds(40);
        assert_eq!([mesh.told(1, 2).hops, mesh.told(2, 1).hops], [None, None]);
        // Nothing but pings goes to and fro.
        let before = mesh.control(1, 2);
        mesh.pass_seconds(60);
        let said = mesh.control(1, 2) - before;
        assert!(said < 1000, "{said} bytes in a minute");
        mesh.done();
    }
}
