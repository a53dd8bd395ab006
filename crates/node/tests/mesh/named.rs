//! Files that are put at one node and asked for by name at another.

mod lies;
mod putting;

use crate::common::End;
use crate::net::{Call, Mesh, Page, Plan, noise, via};
use bytes::Bytes;
use node::named;
use wire::Oid;

/// 3 hangs below 2, 2 below 1, 1 below the gateway 0; 4 on another branch of it.
fn branches(plan: &Plan) -> Mesh {
    Mesh::tree_of(plan, &[0, 1, 2, 0])
}

fn both() -> [Plan; 2] {
    [Plan::default(), Plan::thcp()]
}

/// Asks for an object, and holds what came against what was put.
fn fetch(mesh: &mut Mesh, node: usize, name: &Oid, body: &Bytes) -> usize {
    let id = mesh.get(node, &named::uri(name));
    let client = mesh.client(id);
    assert!(client.is_ok(), "{:?} {:?}", client.head, client.end);
    assert!(client.content == body[..], "other bytes than were put");
    id
}

/// Asks for an object that no router in reach has.
fn miss(mesh: &mut Mesh, node: usize, name: &Oid) -> usize {
    let id = mesh.get(node, &named::uri(name));
    let text = String::from_utf8_lossy(&mesh.client(id).content).into_owned();
    assert_eq!(mesh.client(id).status(), 504, "{text}");
    assert!(text.contains("no router in reach has the object of this name"), "{text}");
    id
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
        // And again, without a request to any router.
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

#[test]
fn the_first_node_that_knows_the_way_turns_a_request_around() {
    // 3 and 4 behind 2, 2 behind 1, 1 behind 0.
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0, 1, 2, 2]);
    let body = noise(1, 300_000);
    let name = mesh.publish(3, Page::new(body.clone()));
    fetch(&mut mesh, 4, &name, &body);
    assert_eq!((mesh.report(1).asks_in, mesh.report(0).asks_in), (0, 0));
    mesh.done();
}

#[test]
fn hints_go_hop_by_hop_or_to_the_gateway_alone() {
    for (plan, expected) in both().into_iter().zip([[2, 2, 2, 0, 0], [2, 0, 0, 0, 0]]) {
        let mut mesh = branches(&plan);
        let names = [1, 2].map(|it| mesh.publish(3, Page::new(noise(it, 10_000))));
        let hints = |mesh: &Mesh| [0, 1, 2, 3, 4].map(|node| mesh.report(node).hints);
        assert_eq!(hints(&mesh), expected);
        assert_eq!(mesh.withdraw(3, names[0]), Ok(names[0]));
        assert_eq!(hints(&mesh), expected.map(|hints| hints / 2));
        miss(&mut mesh, 4, &names[0]);
        mesh.done();
    }
}

#[test]
fn a_gateway_that_begins_again_is_told_again() {
    for plan in both() {
        let mut mesh = branches(&plan);
        let body = noise(1, 300_000);
        let name = mesh.publish(3, Page::new(body.clone()));
        mesh.restart(0);
        mesh.pass_seconds(40);
        assert_eq!(mesh.report(0).hints, 1);
        fetch(&mut mesh, 4, &name, &body);
        mesh.done();
    }
}

#[test]
fn a_gateway_that_is_away_for_a_while_is_told_soon_after() {
    for plan in both() {
        let mut mesh = branches(&plan);
        let body = noise(1, 300_000);
        let name = mesh.publish(3, Page::new(body.clone()));
        for away in [1, 20, 100] {
            mesh.kill(0);
            mesh.pass_seconds(away);
            mesh.start(0);
            // It is looked for after 1 s, then after twice as long each time, up to 30.
            mesh.pass_seconds(2 + away.min(30));
            assert_eq!(mesh.report(0).hints, 1, "{away} s");
        }
        fetch(&mut mesh, 4, &name, &body);
        mesh.done();
    }
}

#[test]
fn a_publisher_restarts_and_still_publishes() {
    for plan in both() {
        let mut mesh = branches(&plan);
        let body = noise(1, 300_000);
        let name = mesh.publish(3, Page::new(body.clone()));
        mesh.kill(3);
        mesh.pass_seconds(1);
        assert_eq!(mesh.report(0).hints, 0);
        mesh.start(3);
        mesh.pass_seconds(40);
        assert_eq!((mesh.report(0).hints, mesh.shelf(3).len()), (1, 1));
        fetch(&mut mesh, 4, &name, &body);
        mesh.done();
    }
}

#[test]
fn another_way_towards_the_gateway_is_told_and_the_former_forgets() {
    let mut mesh = branches(&Plan::default());
    let body = noise(1, 300_000);
    let name = mesh.publish(3, Page::new(body.clone()));
    mesh.mend(3, 4);
    mesh.route(3, via(4, Some(0), 2));
    mesh.pass_seconds(5);
    let hints = [0, 1, 2, 3, 4].map(|node| mesh.report(node).hints);
    assert_eq!(hints, [1, 0, 0, 0, 1]);
    // 2 has it neither, and asks by way of 1, 0 and 4.
    fetch(&mut mesh, 2, &name, &body);
    assert!(mesh.report(4).asks_in > 0);
    mesh.done();
}

#[test]
fn a_relay_that_dies_does_not_cost_what_has_come() {
    let mut mesh = branches(&Plan { rate: 400_000, ..Plan::default() });
    let body = noise(1, 2_000_000);
    let name = mesh.publish(3, Page::new(body.clone()));
    let id = mesh.call(4, Call::get(&named::uri(&name)));
    mesh.pass_seconds(3);
    assert!(mesh.client(id).content.len() > 200_000);
    // The machine still forwards; only its daemon is gone.
    mesh.kill(2);
    mesh.finish();
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).end);
    assert!(mesh.client(id).content == body[..]);
    mesh.done();
}

#[test]
fn where_nobody_has_it_that_is_said_and_no_origin_is_asked() {
    for plan in both() {
        let mut mesh = branches(&plan);
        let name = mesh.publish(3, Page::new(noise(1, 300_000)));
        mesh.power_off(3);
        mesh.pass_seconds(60);
        for node in [4, 2, 0] {
            let id = miss(&mut mesh, node, &name);
            assert!(mesh.took(id) < std::time::Duration::from_secs(30), "{:?}", mesh.took(id));
        }
        assert!(mesh.origin.seen.is_empty());
        mesh.done();
    }
}

#[test]
fn a_name_can_only_be_asked_for_and_only_as_it_is_spelt() {
    let mut mesh = branches(&Plan::default());
    let body = noise(1, 300_000);
    let name = mesh.publish(3, Page::new(body.clone()));
    let uri = named::uri(&name);
    let statuses = [
        (Call::new(http::Method::POST, &uri), 405),
        (Call::get("http://oid.hearsay.invalid/"), 400),
        (Call::get(&uri[..uri.len() - 1]), 400),
        (Call::head(&uri), 200),
        // What is not here yet is brought whole.
        (Call::get(&uri).with("range", "bytes=0-9"), 200),
        (Call::get(&uri).with("range", "bytes=10-19"), 206),
        (Call::get(&uri.to_uppercase().replacen("HTTP", "http", 1)), 200),
        (Call::get(&uri).with("cache-control", "no-cache"), 200),
        (Call::get(&uri).with("if-none-match", &format!("\"{name}\"")), 304),
        (Call::head(&uri), 200),
    ];
    for (call, status) in statuses {
        let id = mesh.call(4, call.clone());
        mesh.finish();
        assert_eq!(mesh.client(id).status(), status, "{call:?}");
    }
    assert!(mesh.origin.seen.is_empty());
    mesh.done();
}

#[test]
fn a_mesh_key_hides_names_from_the_disk_and_all_works_the_same() {
    let mut mesh = branches(&Plan { key: Some([7; 32]), ..Plan::default() });
    let body = noise(1, 300_000);
    let name = mesh.publish(3, Page::new(body.clone()));
    fetch(&mut mesh, 4, &name, &body);
    mesh.restart(3);
    mesh.pass_seconds(40);
    assert!(mesh.shelf(3)[0].whole);
    mesh.done();
}

#[test]
fn what_came_by_http_need_not_come_again() {
    let mut mesh = branches(&Plan::default());
    let body = noise(1, 2_000_000);
    let mut changed = body.to_vec();
    changed[1_000_000] ^= 1;
    mesh.origin.put("http://o.test/a", Page::new(body).fresh(600));
    mesh.get(4, "http://o.test/a");
    let crossed = mesh.data(0, 4);
    let changed = Bytes::from(changed);
    let name = mesh.publish(3, Page::new(changed.clone()));
    fetch(&mut mesh, 4, &name, &changed);
    let again = mesh.data(0, 4) - crossed;
    assert!(again > 0 && again < 40_000, "{again} bytes for one that differs");
    mesh.done();
}

#[test]
fn a_holder_that_is_slow_is_waited_for_where_nobody_else_has_it() {
    for gateway_is_dead in [true, false] {
        // 1 hangs below the gateway 0, and 2 behind it publishes.
        let mut mesh = Mesh::tree_of(&Plan::default(), &[0, 1]);
        let body = noise(1, 100_000);
        let name = mesh.publish(2, Page::new(body.clone()));
        mesh.pass_seconds(40);
        if gateway_is_dead {
            mesh.kill(0);
        }
        mesh.cut(1, 2);
        let id = mesh.call(1, Call::get(&named::uri(&name)));
        mesh.pass_seconds(8);
        assert!(mesh.client(id).end.is_none(), "{:?}", mesh.client(id).head);
        mesh.mend(1, 2);
        mesh.finish();
        assert!(mesh.client(id).is_ok() && mesh.client(id).content == body[..]);
        mesh.done();
    }
}

#[test]
fn the_head_of_what_is_elsewhere_is_asked_for_like_the_rest_and_brings_nothing() {
    for plan in both() {
        let mut mesh = branches(&plan);
        let body = noise(1, 300_000);
        let name = mesh.publish(3, Page::new(body.clone()));
        let head = mesh.call(4, Call::head(&named::uri(&name)));
        mesh.finish();
        let client = mesh.client(head);
        assert_eq!((client.status(), client.header("content-length")), (200, "300000"));
        assert!(client.end == Some(End::Finished) && client.content.is_empty());
        mesh.pass_seconds(5);
        assert_eq!((mesh.data(0, 4), mesh.report(4).fetches), (0, 0));
        // All clients that read at the same time get all of it, in any order of their requests.
        let calls = [Call::head(&named::uri(&name)), Call::get(&named::uri(&name))];
        let ids = [0, 1, 0].map(|it| mesh.call(4, calls[it].clone()));
        mesh.finish();
        assert!(mesh.client(ids[1]).content == body[..]);
        for id in [ids[0], ids[2]] {
            let client = mesh.client(id);
            assert_eq!((client.status(), client.header("content-length")), (200, "300000"));
            assert!(client.end == Some(End::Finished) && client.content.is_empty());
        }
        assert_eq!(mesh.report(4).asks_out, 2, "one for the head alone, one for all three");
        // A HEAD for an object that no router has fails too.
        let id = mesh.call(4, Call::head(&named::uri(&Oid([7; 32]))));
        mesh.finish();
        assert_eq!(mesh.client(id).status(), 504);
        assert!(mesh.origin.seen.is_empty());
        mesh.done();
    }
}

/// One begins again under another mesh key.
fn under(mesh: &mut Mesh, node: usize, key: Option<[u8; 32]>) {
    mesh.kill(node);
    mesh.plan(node).key = key;
    mesh.start(node);
    mesh.pass_seconds(40);
}

#[test]
fn what_was_put_under_another_mesh_key_waits_for_that_key_or_is_taken_back() {
    let (first, second) = (Some([7; 32]), Some([8; 32]));
    let mut mesh = branches(&Plan { key: first, ..Plan::default() });
    let bodies = [noise(1, 300_000), Bytes::new()];
    let names = [0, 1].map(|it| mesh.publish(3, Page::new(bodies[it].clone())));
    for other in [second, None] {
        under(&mut mesh, 3, other);
        assert!(mesh.shelf(3).iter().all(|it| it.foreign && it.whole), "{:?}", mesh.shelf(3));
        assert_eq!(mesh.report(3).published_foreign, 2);
        let said = |(node, line): &(usize, String)| {
            *node == 3 && line.starts_with("2 of the published objects were sealed under another")
        };
        assert!(mesh.notices.iter().any(said), "{:?}", mesh.notices);
        assert_eq!(mesh.report(2).hints, 0);
        miss(&mut mesh, 3, &names[0]);
    }
    // The key is back, and so is what was promised.
    under(&mut mesh, 3, first);
    assert!(mesh.shelf(3).iter().all(|it| !it.foreign && it.whole));
    fetch(&mut mesh, 4, &names[0], &bodies[0]);
    // Or it is given up: nothing of it stays in the catalogue.
    under(&mut mesh, 3, second);
    let former = named::key(&names[0], &[7; 32]);
    assert!(mesh.disk(3).row(former).is_some());
    assert_eq!(mesh.withdraw(3, names[0]), Ok(names[0]));
    assert!(mesh.disk(3).row(former).is_none());
    // Without content nothing is sealed, and the name is the same.
    let former = named::key(&names[1], &[7; 32]);
    assert_eq!(mesh.publish(3, Page::new(bodies[1].clone())), names[1]);
    assert!(mesh.disk(3).row(former).is_none());
    assert!(!mesh.shelf(3)[0].foreign && mesh.shelf(3)[0].whole);
    fetch(&mut mesh, 3, &names[1], &bodies[1]);
    assert_ne!(mesh.publish(3, Page::new(bodies[0].clone())), names[0]);
    mesh.done();
}
