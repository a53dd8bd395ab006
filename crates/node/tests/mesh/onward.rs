//! Bodies that break off between a gateway and its origin: gone on with by range where that is certain to be
//! the same version, else ended honestly, and soon.

use crate::net::{Call, Mesh, Pace, Page, Plan, gateway, via};
use std::time::Duration;

const URL: &str = "http://o.test/a";
const LENGTH: usize = 4_000_000;

/// A page in whose middle the way out moves from 0 to 2, behind another address; what is asked of 1 is under
/// way, and nothing more of it gets through.
fn moved(plan: &Plan, page: Page) -> (Mesh, usize) {
    let mut mesh = Mesh::asleep(plan, &[0, 1]);
    mesh.links.ground.uplinks.insert(2);
    mesh.start_all();
    mesh.pass_seconds(1);
    mesh.origin.put(URL, page.fresh(600).steady());
    let id = mesh.call(1, Call::get(URL));
    mesh.pass_millis(300);
    assert!(!mesh.client(id).content.is_empty() && mesh.client(id).end.is_none());
    mesh.origin.lose(0);
    mesh.links.ground.uplinks.remove(&0);
    mesh.route(0, node::RouteTable::default());
    mesh.pass_seconds(1);
    mesh.route(2, gateway(2));
    mesh.route(1, via(2, Some(2), 1));
    mesh.route(0, via(1, Some(2), 2));
    (mesh, id)
}

#[test]
fn when_the_way_out_moves_a_body_goes_on_from_its_first_missing_byte() {
    for plan in [Plan::default(), Plan::thcp()] {
        for page in [Page::of(LENGTH), Page::of(LENGTH).chunked()] {
            let (mut mesh, id) = moved(&plan, page.etag("a"));
            mesh.finish();
            assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).end);
            assert!(mesh.took(id) < Duration::from_secs(20), "{:?}", mesh.took(id));
            assert_eq!(mesh.origin.askers(URL), [0, 0]);
            let asked = &mesh.origin.last().headers;
            assert_eq!(asked["if-range"], "\"a\"");
            assert!(!asked["range"].to_str().expect("text").starts_with("bytes=0-"));
            assert!(mesh.origin.sent < LENGTH as u64 + 500_000, "{}", mesh.origin.sent);
            mesh.done();
            // It is whole, and kept.
            let hit = mesh.get(0, URL);
            assert!(mesh.client(hit).is_ok() && mesh.is_hit(hit), "{}", mesh.cache(hit));
            mesh.done();
        }
    }
}

#[test]
fn what_nothing_promises_to_be_the_same_ends_soon() {
    for page in [Page::of(LENGTH), Page::of(LENGTH).chunked()] {
        let (mut mesh, id) = moved(&Plan::default(), page);
        mesh.finish();
        assert!(mesh.client(id).is_broken());
        assert!(mesh.took(id) < Duration::from_secs(20), "{:?}", mesh.took(id));
        mesh.done();
        assert_eq!(mesh.origin.askers(URL)[..1], [0]);
    }
}

#[test]
fn another_version_is_not_spliced_to_the_first() {
    let (mut mesh, id) = moved(&Plan::default(), Page::of(LENGTH).etag("a"));
    mesh.origin.put(URL, Page::of(LENGTH).etag("b").fresh(600));
    mesh.finish();
    assert!(mesh.client(id).is_broken());
    assert!(mesh.took(id) < Duration::from_secs(20), "{:?}", mesh.took(id));
    mesh.done();
    assert_eq!(mesh.origin.busy(), 0);
}

#[test]
fn a_rest_that_does_not_say_its_version_is_not_spliced_to_the_first() {
    let mut page = Page::of(1_000_000).etag("a").fresh(600).breaking_at(300_000);
    page.bare_parts = true;
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, page);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_broken(), "{:?}", mesh.client(id).end);
    assert!(mesh.client(id).content.len() <= 300_000);
    assert_eq!(mesh.origin.last().headers["if-range"], "\"a\"");
    mesh.done();
    let again = mesh.get(2, URL);
    assert!(!mesh.is_hit(again), "{}", mesh.cache(again));
    mesh.done();
}

#[test]
fn an_origin_that_breaks_off_again_and_again_is_gone_on_with() {
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, Page::of(1_000_000).etag("a").fresh(600).breaking_at(300_000));
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).end);
    assert_eq!(mesh.origin.askers(URL), [0; 4]);
    mesh.done();
}

#[test]
fn an_origin_that_says_nothing_more_of_a_body_is_not_waited_for_without_an_end() {
    let mut mesh = Mesh::chain(2);
    mesh.origin.put(URL, Page::of(1_000_000).etag("a").fresh(600).breaking_at(300_000));
    let id = mesh.call(1, Call::get(URL));
    mesh.pass_millis(300);
    mesh.origin.down = Some(node::FetchError::Unreachable);
    mesh.finish();
    assert!(mesh.client(id).is_broken());
    assert!(mesh.took(id) < Duration::from_secs(50), "{:?}", mesh.took(id));
    mesh.done();
}

#[test]
fn a_stream_that_pauses_is_left_alone_while_the_way_out_stays() {
    let page = Page::of(200_000).chunked().etag("a").fresh(600);
    let mut mesh = Mesh::chain(2);
    mesh.origin.put(URL, page.resting(100_000, Duration::from_secs(50)));
    let id = mesh.call(1, Call::get(URL));
    mesh.pass_seconds(5);
    // Another metric is not another way out.
    mesh.route(1, via(0, Some(0), 9));
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn a_body_that_has_all_come_owes_nothing_when_the_way_out_moves() {
    let mut plan = Plan::default();
    plan.node.object_bytes_max = 100_000;
    let mut mesh = Mesh::chain_of(&plan, 2);
    mesh.origin.put(URL, Page::of(200_000).chunked().etag("a").fresh(600));
    // It is too large to be kept, so that memory has all that its reader has not.
    let id = mesh.call(0, Call::get(URL).pace(Pace::Slow(10)));
    mesh.pass_seconds(2);
    assert_eq!((mesh.origin.busy(), mesh.origin.sent), (0, 200_000));
    mesh.route(0, via(1, Some(1), 1));
    mesh.finish();
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).end);
    mesh.done();
}

#[test]
fn a_body_that_is_being_gone_on_with_goes_on_though_its_reader_leaves_if_little_is_left() {
    let mut mesh = Mesh::chain(2);
    mesh.origin.put(URL, Page::of(1_000_000).etag("a").fresh(600).steady().breaking_at(600_000));
    let id = mesh.call(0, Call::get(URL));
    while mesh.client(id).content.len() < 500_000 {
        mesh.pass_millis(5);
    }
    mesh.origin.down = Some(node::FetchError::Unreachable);
    mesh.pass_seconds(1);
    assert!(mesh.client(id).end.is_none(), "it has broken off, and may go on");
    mesh.leave(id);
    mesh.origin.down = None;
    mesh.done();
    let again = mesh.get(0, URL);
    assert!(mesh.is_hit(again), "{}", mesh.cache(again));
    mesh.done();
}
