//! Requests for one object that meet anywhere are merged there.

use crate::net::{Call, Mesh, Pace, Page, Plan};
use std::time::Duration;

const URL: &str = "http://o.test/a";
const LENGTH: usize = 2_000_000;

/// 2, 3 and 4 behind 1, 1 behind 0.
fn star(plan: &Plan) -> Mesh {
    let mut mesh = Mesh::tree_of(plan, &[0, 1, 1, 1]);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600).steady());
    mesh
}

#[test]
fn clients_at_several_routers_at_once_cost_one_copy() {
    let mut mesh = star(&Plan::default());
    let ids: Vec<_> = [2, 3, 4, 1, 2].map(|node| mesh.call(node, Call::get(URL))).into();
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert_eq!((mesh.origin.askers(URL), mesh.origin.sent), (vec![0], LENGTH as u64));
    assert!(mesh.data_out(0) < LENGTH as u64 * 11 / 10, "{} bytes", mesh.data_out(0));
    mesh.done();
}

#[test]
fn clients_in_a_row_at_once_cost_one_copy_a_hop() {
    let mut mesh = Mesh::chain(5);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600).steady());
    let ids: Vec<_> = [4, 3, 2, 4, 0].map(|node| mesh.call(node, Call::get(URL))).into();
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert_eq!((mesh.origin.askers(URL), mesh.origin.sent), (vec![0], LENGTH as u64));
    for node in 0..4 {
        let data = mesh.data_out(node);
        assert!(data < LENGTH as u64 * 11 / 10, "{data} bytes from {node}");
    }
    mesh.done();
}

#[test]
fn end_to_end_the_gateway_asks_once_and_sends_a_copy_to_each() {
    let mut mesh = star(&Plan::thcp());
    let ids = [2, 3, 4].map(|node| mesh.call(node, Call::get(URL)));
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert_eq!((mesh.origin.askers(URL), mesh.origin.sent), (vec![0], LENGTH as u64));
    assert!(mesh.data_out(0) > LENGTH as u64 * 3);
    mesh.done();
}

#[test]
fn who_comes_later_gets_all_from_the_beginning() {
    let mut mesh = star(&Plan::default());
    let mut ids = Vec::new();
    for node in [2, 3, 4, 1, 2] {
        ids.push(mesh.call(node, Call::get(URL)));
        mesh.pass_millis(100);
    }
    assert!(ids.iter().all(|id| mesh.client(*id).head.is_some()), "nobody waits for the end");
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert_eq!((mesh.origin.askers(URL), mesh.origin.sent), (vec![0], LENGTH as u64));
    mesh.done();
}

#[test]
fn a_slow_reader_holds_back_nobody_else() {
    let mut mesh = star(&Plan::default());
    let slow = mesh.call(2, Call::get(URL).pace(Pace::Slow(100)));
    let stalled = mesh.call(4, Call::get(URL).pace(Pace::Stalls(50_000)));
    let fast = mesh.call(3, Call::get(URL));
    mesh.pass_seconds(3);
    assert!(mesh.client(fast).is_ok(), "{} bytes", mesh.client(fast).content.len());
    assert!(mesh.client(slow).end.is_none() && mesh.client(stalled).end.is_none());
    mesh.hurry(stalled);
    mesh.finish();
    assert!(mesh.client(slow).is_ok() && mesh.client(stalled).is_ok());
    assert_eq!((mesh.origin.askers(URL), mesh.origin.sent), (vec![0], LENGTH as u64));
    mesh.done();
}

#[test]
fn a_reader_who_stalls_holds_back_the_way_to_the_origin() {
    let mut mesh = Mesh::chain(4);
    mesh.origin.put(URL, Page::of(20_000_000).fresh(600));
    let stalled = mesh.call(3, Call::get(URL).pace(Pace::Stalls(100_000)));
    mesh.pass_seconds(15);
    assert!(mesh.origin.sent < 4_000_000, "{} bytes", mesh.origin.sent);
    mesh.leave(stalled);
    mesh.done();
    assert_eq!(mesh.origin.busy(), 0);
}

#[test]
fn when_the_first_asker_leaves_the_others_go_on() {
    let mut mesh = star(&Plan::default());
    let leaves = mesh.call(2, Call::get(URL).pace(Pace::Leaves(100_000)));
    let stays = mesh.call(3, Call::get(URL));
    let beside = mesh.call(2, Call::get(URL).pace(Pace::Slow(4_000)));
    mesh.finish();
    assert!(mesh.client(leaves).content.len() < LENGTH);
    assert!(mesh.client(stays).is_ok() && mesh.client(beside).is_ok());
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn an_origin_that_takes_its_time_is_waited_for() {
    let mut mesh = star(&Plan::default());
    let page = Page::of(LENGTH).fresh(600).waiting(Duration::from_secs(5));
    mesh.origin.put(URL, page);
    let ids = [2, 3, 3].map(|node| mesh.call(node, Call::get(URL)));
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert!(mesh.origin.askers(URL).iter().all(|node| *node == 0));
    mesh.done();
}

#[test]
fn the_same_content_under_another_name_does_not_cross_again() {
    let mut mesh = Mesh::chain(4);
    let page = Page::of(1_000_000).fresh(600);
    mesh.origin.put("http://o.test/b", page.clone());
    mesh.origin.put(URL, page);
    mesh.get(3, URL);
    let before = mesh.data(2, 3);
    let id = mesh.get(3, "http://o.test/b");
    assert!(mesh.client(id).is_ok());
    assert!(mesh.data(2, 3) - before < 50_000, "{} more bytes", mesh.data(2, 3) - before);
    mesh.done();
}

#[test]
fn who_joined_what_cannot_be_shared_is_answered_once() {
    for wait in [500, 1_500, 1_900] {
        let mut mesh = Mesh::chain(3);
        let page = Page::of(300_000).with("cache-control", "private");
        mesh.origin.put(URL, page.waiting(Duration::from_millis(wait)));
        let slow = || Call::get(URL).pace(Pace::Slow(100));
        let ids = [slow(), Call::get(URL), slow()].map(|call| mesh.call(2, call));
        mesh.finish();
        assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
        assert_eq!(mesh.origin.asked(URL), 3);
        mesh.done();
    }
}

#[test]
fn all_who_joined_get_what_has_no_content_though_the_store_fails() {
    let mut mesh = Mesh::chain(3);
    mesh.disk(2).fail_appends = true;
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh.get(2, URL);
    assert!(!mesh.report(2).store_works);
    let page = Page::of(0).status(301).fresh(600).waiting(Duration::from_millis(100));
    mesh.origin.put("http://o.test/b", page);
    let ids = [2, 2, 2].map(|node| mesh.call(node, Call::get("http://o.test/b")));
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_whole() && mesh.client(*id).status() == 301));
    assert!(ids.iter().all(|id| mesh.took(*id) < Duration::from_secs(2)));
    mesh.done();
}
