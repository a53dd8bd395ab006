//! Files that are put at one node and asked for by name at another.

use crate::net::{Call, Mesh, Page, Plan, noise, via};
use bytes::Bytes;
use content::Root;
use node::{PutError, named};
use wire::Oid;

/// 3 hangs below 2, 2 below 1, 1 below the gateway 0; 4 on another branch of it.
fn branches(plan: &Plan) -> Mesh {
    Mesh::tree_of(plan, &[0, 1, 2, 0])
}

fn both() -> [Plan; 2] {
    [Plan::default(), Plan::thcp()]
}

fn file(number: u64, length: usize) -> Page {
    Page::new(noise(number, length))
}

/// Asks for an object, and holds what came against what was put.
fn fetch(mesh: &mut Mesh, node: usize, name: &Oid, body: &Bytes) -> usize {
    let id = mesh.get(node, &named::uri(name));
    let client = mesh.client(id);
    assert!(client.is_ok(), "{:?} {:?}", client.head, client.end);
    assert_eq!(client.content, body[..]);
    id
}

#[test]
fn what_is_put_here_is_got_here() {
    let mut mesh = Mesh::chain(1);
    for length in [0, 1, 16_384, 300_000, 9_000_000] {
        let body = noise(length as u64, length);
        let name = mesh.publish(0, Page::new(body.clone()));
        let id = fetch(&mut mesh, 0, &name, &body);
        assert!(mesh.is_hit(id), "{}", mesh.cache(id));
        let root = mesh.client(id).header(named::ROOT).to_owned();
        assert_eq!(Root::name_of(&root), name);
        let root = Root::decode(&root).expect("it is one");
        assert_eq!((root.length, root.content), (length as u64, Root::digest(&body)));
    }
    assert!(mesh.origin.seen.is_empty());
    mesh.done();
}

#[test]
fn what_hangs_two_hops_below_the_gateway_is_got_on_another_branch() {
    for plan in both() {
        let mut mesh = branches(&plan);
        let body = noise(1, 300_000);
        let name = mesh.publish(3, Page::new(body.clone()));
        let id = fetch(&mut mesh, 4, &name, &body);
        assert_eq!(mesh.report(4).served_peer_bytes, body.len() as u64);
        assert!(mesh.cache(id).contains("n3; hit"), "{}", mesh.cache(id));
        // And again, without asking anybody.
        let asked = mesh.report(4).asks_out;
        let id = fetch(&mut mesh, 4, &name, &body);
        assert!(mesh.is_hit(id) && mesh.report(4).asks_out == asked);
        // And at the gateway, which has it by now.
        let asked = mesh.report(0).asks_out;
        let id = fetch(&mut mesh, 0, &name, &body);
        assert!(mesh.is_hit(id) && mesh.report(0).asks_out == asked);
        assert!(mesh.origin.seen.is_empty());
        mesh.done();
    }
}
