//! A transfer without readers stops, unless little of it remains.

use crate::net::{Call, Mesh, Pace, Page, Plan};

const URL: &str = "http://o.test/a";

fn abandoned(plan: &Plan, page: Page, at: u64) -> Mesh {
    let mut mesh = Mesh::chain_of(plan, 4);
    mesh.origin.put(URL, page.fresh(600).steady());
    mesh.call(3, Call::get(URL).pace(Pace::Leaves(at)));
    mesh.finish();
    mesh
}

#[test]
fn a_client_that_leaves_stops_what_crosses_for_it() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = abandoned(&plan, Page::of(10_000_000), 600_000);
        mesh.pass_seconds(1);
        let crossed = mesh.data_out(0);
        assert!(crossed < 2_000_000, "{crossed} bytes crossed");
        mesh.pass_seconds(1);
        assert_eq!(mesh.data_out(0), crossed);
        mesh.done();
        assert_eq!(mesh.origin.busy(), 0);
        assert!(mesh.origin.sent < 4_000_000, "{} bytes", mesh.origin.sent);
    }
}

#[test]
fn with_a_mebibyte_left_it_finishes() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = abandoned(&plan, Page::of(1_500_000), 700_000);
        mesh.done();
        assert_eq!(mesh.origin.sent, 1_500_000);
        let id = mesh.get(3, URL);
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.origin.askers(URL), [0]);
        mesh.done();
    }
}

#[test]
fn what_is_relayed_is_broken_off() {
    let mut mesh = Mesh::chain(4);
    let page = Page::of(10_000_000).with("cache-control", "private").steady();
    mesh.origin.put(URL, page);
    mesh.call(3, Call::get(URL).pace(Pace::Leaves(100_000)));
    mesh.done();
    assert!(mesh.origin.sent < 2_000_000, "{} bytes", mesh.origin.sent);
    assert_eq!(mesh.origin.busy(), 0);
}

#[test]
fn who_leaves_before_the_head_leaves_nothing_behind() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::chain_of(&plan, 4);
        mesh.origin.put(URL, Page::of(100).waiting(std::time::Duration::from_secs(3)));
        for wait in [1, 5, 20, 1000] {
            let id = mesh.call(3, Call::get(URL));
            mesh.pass_millis(wait);
            mesh.leave(id);
            mesh.pass_millis(wait);
        }
        mesh.done();
        assert_eq!(mesh.origin.busy(), 0);
    }
}

#[test]
fn of_more_than_a_window_the_last_mebibyte_is_finished_too() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = abandoned(&plan, Page::of(2_500_000), 1_700_000);
        mesh.done();
        assert_eq!(mesh.origin.sent, 2_500_000);
        let crossed = |mesh: &Mesh| -> u64 { (0..3).map(|node| mesh.data_out(node)).sum() };
        let before = crossed(&mesh);
        let id = mesh.get(3, URL);
        assert!(mesh.client(id).is_ok() && mesh.is_hit(id), "{}", mesh.cache(id));
        assert_eq!(crossed(&mesh), before, "it was not whole");
        mesh.done();
    }
}

#[test]
fn who_leaves_what_is_all_here_already_leaves_nothing_behind() {
    let mut mesh = Mesh::chain(3);
    let page = Page::of(500_000).fresh(600);
    mesh.origin.put("http://o.test/b", page.clone());
    mesh.origin.put(URL, page);
    mesh.get(2, URL);
    let before = mesh.data(1, 2);
    let id = mesh.call(2, Call::get("http://o.test/b").pace(Pace::Stalls(100_000)));
    mesh.pass_seconds(2);
    mesh.leave(id);
    mesh.pass_seconds(1);
    assert_eq!(mesh.report(2).fetches, 0);
    assert!(mesh.data(1, 2) - before < 50_000, "{}", mesh.data(1, 2) - before);
    mesh.done();
    let hit = mesh.get(2, "http://o.test/b");
    assert!(mesh.client(hit).is_ok() && mesh.is_hit(hit), "{}", mesh.cache(hit));
}

#[test]
fn what_one_leaves_another_may_still_read() {
    // The same record comes twice, because one of the two insists.
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, Page::of(5_000_000).fresh(600).etag("a").steady());
    mesh.get(1, URL);
    let stays = mesh.call(2, Call::get(URL).pace(Pace::Slow(2_000)));
    mesh.pass_millis(300);
    let insists = Call::get(URL).with("cache-control", "no-cache").pace(Pace::Leaves(200_000));
    let leaves = mesh.call(2, insists);
    mesh.finish();
    assert!(mesh.client(leaves).content.len() < 1_000_000);
    assert!(mesh.client(stays).is_ok());
    mesh.restart(2);
    mesh.pass_seconds(1);
    let hit = mesh.get(2, URL);
    assert!(mesh.client(hit).is_ok() && mesh.is_hit(hit), "{}", mesh.cache(hit));
    mesh.done();
}
