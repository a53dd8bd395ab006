//! BCP and PH-BCP: copies beside the way to the gateway are found by broadcast (MeshCache §4.2.2, §4.3.2).

use crate::net::{Call, Mesh, PORT, Page, Plan, address, gateway, via};
use node::{Exit, Locating, Path, Route, RouteTable, SearchConfig};
use std::net::SocketAddr;
use std::time::Duration;
use wire::peer::{Envelope, Found, Locate, Search};
use wire::{Hint, Selection};

const URL: &str = "http://o.test/a";
const LENGTH: usize = 100_000;
const KEY: [u8; 32] = [7; 32];
/// At the end of one branch, two hops from the gateway …
const ASKER: usize = 2;
/// … and at the end of the other, where the asker hears it.
const HOLDER: usize = 4;

fn plan(selection: Selection) -> Plan {
    Plan { selection, ..Plan::default() }
}

/// A ring: 0 is the gateway, 1 and 2 are one branch, 3 and 4 the other. The holder has the page.
fn ring(plan: &Plan) -> Mesh {
    let mut mesh = Mesh::ring_of(plan);
    mesh.pass_seconds(1);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh.get(HOLDER, URL);
    // Only the holder has it now.
    for node in [3, 0] {
        mesh.restart_empty(node);
    }
    mesh.pass_seconds(5);
    mesh
}

/// How many requests of peers each node got.
fn asks(mesh: &Mesh) -> Vec<u64> {
    (0..5).map(|node| mesh.report(node).asks_in).collect()
}

#[test]
fn the_neighbour_on_another_branch_is_asked() {
    for selection in [Selection::Bcp, Selection::PhBcp] {
        let mut mesh = ring(&plan(selection));
        let id = mesh.get(ASKER, URL);
        assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
        assert_eq!(asks(&mesh), [0, 0, 0, 0, 1], "{selection}");
        assert_eq!(mesh.origin.askers(URL), [0], "the first time");
        let report = mesh.report(ASKER);
        assert_eq!((report.searches, report.searches_located, report.searches_in_vain), (1, 1, 0));
        mesh.done();
    }
}

#[test]
fn the_router_between_passes_the_request_on_and_keeps_what_comes() {
    for (selection, between) in [(Selection::PhBcp, 1), (Selection::Bcp, 0)] {
        // The asker's and the holder's only common neighbour is 5, which is behind the asker.
        let mut mesh = Mesh::tree_of(&plan(selection), &[0, 1, 0, 3, 2]);
        mesh.mend(5, HOLDER);
        mesh.chart();
        mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
        mesh.get(HOLDER, URL);
        for node in [3, 0] {
            mesh.restart_empty(node);
        }
        mesh.pass_seconds(5);
        let id = mesh.get(ASKER, URL);
        assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
        assert_eq!(mesh.report(HOLDER).asks_in, 1, "{selection}");
        assert_eq!((mesh.report(5).asks_in, mesh.report(1).asks_in), (between, 0), "{selection}");
        let behind = mesh.get(5, URL);
        assert_eq!(mesh.is_hit(behind), between == 1, "{selection}");
        assert_eq!(mesh.origin.askers(URL), [0], "the first time");
        mesh.done();
    }
}

#[test]
fn the_papers_setup_leads_the_request() {
    let locating = Locating::Paper { refresh: Duration::from_secs(60) };
    let search = SearchConfig { locating, ..SearchConfig::default() };
    let mut mesh = ring(&Plan { search, ..plan(Selection::PhBcp) });
    let id = mesh.get(ASKER, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(asks(&mesh), [0, 0, 0, 0, 1]);
    mesh.done();
}

#[test]
fn without_a_copy_a_search_costs_its_timeout() {
    let mut mesh = ring(&plan(Selection::PhBcp));
    let other = "http://o.test/b";
    mesh.origin.put(other, Page::of(1000).fresh(600));
    let id = mesh.get(ASKER, other);
    assert!(mesh.client(id).is_ok());
    assert_eq!(asks(&mesh), [1, 1, 0, 0, 0]);
    let took = mesh.took(id);
    assert!(took > Duration::from_millis(25) && took < Duration::from_millis(100), "{took:?}");
    mesh.done();
}

/// What the asker broadcasts when its client asks; the search goes on.
fn locate(mesh: &mut Mesh) -> (usize, Locate) {
    mesh.broadcasts.clear();
    let id = mesh.call(ASKER, Call::get(URL));
    mesh.pass_millis(1);
    let bytes = &mesh.broadcasts.iter().find(|(by, _)| *by == ASKER).expect("a search").1;
    let (_, call) = Envelope::read(bytes).expect("a datagram");
    match wire::peer::Call::decode(call) {
        Ok(wire::peer::Call::Locate(locate)) => (id, locate),
        other => panic!("{other:?}"),
    }
}

/// Somebody says that a router has it.
fn say_found(mesh: &mut Mesh, search: Search, holder: usize) {
    let mut bytes = Vec::new();
    Envelope::Open.write(&mut bytes);
    let found = Found { search, holder: address(holder), hops: 1 };
    bytes.extend(wire::peer::Call::Found(found).encode());
    mesh.send_datagram(1, SocketAddr::new(address(ASKER), PORT), bytes.into());
}

#[test]
fn who_is_found_and_has_nothing_costs_one_question() {
    for selection in [Selection::Bcp, Selection::PhBcp] {
        let mut mesh = ring(&plan(selection));
        mesh.restart_empty(HOLDER);
        mesh.pass_seconds(5);
        let (id, locate) = locate(&mut mesh);
        say_found(&mut mesh, locate.search, HOLDER);
        mesh.finish();
        assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
        let report = mesh.report(ASKER);
        assert_eq!((report.searches_located, report.searches_in_vain), (1, 1), "{selection}");
        assert_eq!(asks(&mesh)[HOLDER], 1);
        // The holder did not ask on: the second time, too, the gateway asks the origin.
        assert_eq!(mesh.origin.askers(URL), [0, 0]);
        mesh.done();
    }
}

#[test]
fn who_is_found_and_does_not_exist_costs_time_and_nothing_else() {
    let mut mesh = ring(&plan(Selection::PhBcp));
    mesh.power_off(HOLDER);
    let (id, locate) = locate(&mut mesh);
    say_found(&mut mesh, locate.search, HOLDER);
    mesh.finish();
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(mesh.origin.askers(URL), [0, 0]);
    mesh.done();
}

#[test]
fn what_the_gateway_did_not_sign_is_not_taken_from_a_router_off_the_way() {
    for selection in [Selection::Bcp, Selection::PhBcp] {
        let mut mesh = Mesh::ring_of(&plan(selection));
        mesh.pass_seconds(1);
        // For a while the holder is a gateway itself, and signs what it fetches.
        mesh.links.ground.uplinks.insert(HOLDER);
        mesh.route(HOLDER, gateway(HOLDER));
        mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
        mesh.get(HOLDER, URL);
        mesh.links.ground.uplinks.remove(&HOLDER);
        mesh.route(HOLDER, via(3, Some(0), 2));
        mesh.chart();
        mesh.pass_seconds(1);
        let id = mesh.get(ASKER, URL);
        assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
        let report = mesh.report(ASKER);
        assert_eq!((report.searches_located, report.searches_in_vain), (1, 1), "{selection}");
        assert_eq!(mesh.origin.askers(URL), [HOLDER, 0], "{selection}");
        mesh.done();
    }
}

#[test]
fn with_a_mesh_key_nobody_else_searches_or_answers() {
    let mut mesh = ring(&Plan { key: Some(KEY), ..plan(Selection::PhBcp) });
    mesh.broadcasts.clear();
    let id = mesh.get(ASKER, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(asks(&mesh), [0, 0, 0, 0, 1]);
    let (_, sent) = mesh.broadcasts.first().cloned().expect("a search");
    let (envelope, _) = Envelope::read(&sent).expect("a datagram");
    assert!(matches!(envelope, Envelope::Sealed { .. }), "{envelope:?}");
    // Played again, it is neither passed on nor answered.
    mesh.broadcasts.clear();
    let answered = mesh.report(HOLDER).locates_answered;
    for node in [1, HOLDER] {
        mesh.send_datagram(3, SocketAddr::new(address(node), PORT), sent.clone());
    }
    mesh.pass_millis(100);
    assert_eq!((mesh.broadcasts.len(), mesh.report(HOLDER).locates_answered), (0, answered));
    // In clear, it is not read.
    let search = Search { boot: u64::MAX, sequence: 0 };
    say_found(&mut mesh, search, HOLDER);
    mesh.pass_millis(100);
    assert_eq!(mesh.report(ASKER).datagrams_refused, 1);
    mesh.done();
}

#[test]
fn without_a_mesh_key_a_stranger_in_a_routers_name_silences_it_nowhere() {
    let mut mesh = ring(&plan(Selection::PhBcp));
    let mut bytes = Vec::new();
    Envelope::Open.write(&mut bytes);
    let search = Search { boot: u64::MAX, sequence: u32::MAX };
    let forged = Locate { origin: address(ASKER), search, name: Hint([7; 8]), ttl: 1, hops: 1 };
    bytes.extend(wire::peer::Call::Locate(forged).encode());
    for node in 0..5 {
        mesh.send_datagram(1, SocketAddr::new(address(node), PORT), bytes.clone().into());
    }
    mesh.pass_millis(100);
    let id = mesh.get(ASKER, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(asks(&mesh), [0, 0, 0, 0, 1], "the holder heard the search");
    mesh.done();
}

#[test]
fn without_an_address_there_is_no_search() {
    let mut mesh = Mesh::tree_of(&plan(Selection::PhBcp), &[0, 1]);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    let id = mesh.get(ASKER, URL);
    assert!(mesh.client(id).is_ok());
    assert_eq!((mesh.report(ASKER).searches, mesh.broadcasts.len()), (0, 0));
    mesh.done();
}

#[test]
fn a_request_that_goes_round_ends() {
    // Each of two routers believes that the other leads to the holder, which is nowhere.
    let mut mesh = ring(&plan(Selection::PhBcp));
    let nowhere = address(9);
    for (node, next_hop) in [(ASKER, HOLDER), (HOLDER, ASKER)] {
        let Exit::Mesh(route) = via(node - 1, Some(0), 2).exit else { panic!("into the mesh") };
        let exit = Exit::Mesh(Route { address: Some(address(node)), ..route });
        let path = Path { next_hop: address(next_hop), interface: 3, metric: None, hops: Some(2) };
        let paths = [(nowhere, path)].into_iter().collect();
        mesh.route(node, RouteTable { exit, paths, stopped: None });
    }
    mesh.restart_empty(HOLDER);
    mesh.pass_seconds(5);
    let (id, locate) = locate(&mut mesh);
    say_found(&mut mesh, locate.search, 9);
    mesh.finish();
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(asks(&mesh), [1, 1, 0, 0, 1]);
    mesh.done();
}
