//! `https` URLs in a mesh: the gateway's far end fetches them for the gateway's own clients, and peers have no part.

use crate::common::Options;
use crate::net::{Call, Heard, Mesh, Page, Plan, ask};
use wire::peer::{Message, Outcome, Request};

const URL: &str = "https://o.test/a";
const PLAIN: &str = "http://o.test/a";

fn plan() -> Plan {
    Plan { node: Options { has_far_end: true, ..Options::default() }, ..Plan::default() }
}

#[test]
fn only_the_gateway_fetches_it() {
    for plan in [plan(), Plan { node: plan().node, ..Plan::thcp() }] {
        let mut mesh = Mesh::chain_of(&plan, 3);
        mesh.origin.put(URL, Page::of(60_000).fresh(600));
        let id = mesh.get(0, URL);
        assert!(mesh.client(id).is_ok());
        let id = mesh.get(2, URL);
        assert_eq!(mesh.client(id).status(), 400);
        let told = String::from_utf8(mesh.client(id).content.clone()).unwrap();
        assert!(told.contains("only the gateway of this mesh fetches https://"), "{told}");
        assert_eq!(mesh.origin.askers(URL), [0]);
        assert_eq!((mesh.report(0).asks_in, mesh.report(1).asks_in), (0, 0));
        mesh.done();
    }
}

#[test]
fn peers_do_not_get_what_was_fetched() {
    let mut mesh = Mesh::tree_of(&plan(), &[0]);
    let heard = Heard::default();
    mesh.start_liar(1, heard.play());
    mesh.pass_seconds(40);
    mesh.origin.put(URL, Page::of(60_000).fresh(600));
    mesh.origin.put(PLAIN, Page::of(0).status(404));
    mesh.get(0, URL);
    let asks = [(1, URL), (2, "HTTPS://o.test:443/a")];
    let asks = asks.map(|(number, url)| Message::Get(Box::new(ask(number, url))));
    mesh.liar_says(1, 0, asks.into());
    mesh.pass_seconds(1);
    for number in [1, 2] {
        let end = Message::End(Request(number), Outcome::Malformed);
        assert_eq!(heard.of(number), [end]);
    }
    mesh.liar_says(1, 0, vec![Message::Get(Box::new(ask(3, PLAIN)))]);
    mesh.pass_seconds(1);
    assert_eq!(mesh.origin.asked(PLAIN), 1, "what is stored by https was given away");
    mesh.done();
}

#[test]
fn a_mesh_without_a_route_leaves_it_to_the_far_end() {
    let mut mesh = Mesh::chain_of(&plan(), 2);
    mesh.origin.put(URL, Page::of(60_000).fresh(600));
    mesh.route(1, node::RouteTable::Nowhere);
    mesh.call(1, Call::get(URL));
    mesh.finish();
    assert_eq!(mesh.origin.askers(URL), [1]);
    mesh.done();
}
