//! What explicit clients of one node may dial by its `[access] private` stays out of the mesh.

use crate::net::{Call, Mesh, Page, Plan};

const URL: &str = "http://10.9.0.1/a";

fn mesh(plan: &Plan) -> Mesh {
    let mut mesh = Mesh::chain_of(plan, 3);
    mesh.origin.put(URL, Page::of(60_000).fresh(600));
    mesh
}

#[test]
fn no_peer_is_asked_for_it() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = mesh(&plan);
        mesh.permit(2, "10.9.0.0/24");
        let id = mesh.get(2, URL);
        assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
        assert_eq!(mesh.origin.askers(URL), [2], "another machine may have this address there");
        assert_eq!((mesh.report(0).asks_in, mesh.report(1).asks_in), (0, 0));
        let again = mesh.get(2, URL);
        assert!(mesh.is_hit(again));
        mesh.done();
    }
}

#[test]
fn no_peer_is_given_it() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = mesh(&plan);
        mesh.permit(0, "10.9.0.0/24");
        mesh.get(0, URL);
        let own = mesh.get(0, URL);
        assert!(mesh.is_hit(own));
        let asked = mesh.origin.asked(URL);
        mesh.call(2, Call::get(URL).dialling("10.9.0.1:80"));
        mesh.finish();
        assert_eq!(mesh.report(0).asks_in, 1);
        assert_eq!(mesh.origin.asked(URL), asked + 1, "what is stored was given away");
        mesh.done();
    }
}
