//! Ages travel with what they are of; nothing is served as fresh that is not.

use crate::net::{Call, Mesh, Pace, Page, Plan, author};
use std::time::Duration;

const URL: &str = "http://o.test/a";
/// 1970, and a day ahead.
const WRONG: [i64; 2] = [-2_000_000_000, 86_400];

fn age(mesh: &Mesh, id: usize) -> u64 {
    mesh.client(id).header("age").parse().unwrap_or(0)
}

#[test]
fn the_age_at_a_far_client_is_the_time_since_the_origin_said_it() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::chain_of(&plan, 4);
        mesh.origin.put(URL, Page::of(50_000).fresh(600));
        mesh.get(0, URL);
        mesh.pass_seconds(100);
        let far = mesh.get(3, URL);
        assert!(mesh.client(far).is_ok());
        assert!((100..=102).contains(&age(&mesh, far)), "{}", age(&mesh, far));
        mesh.pass_seconds(50);
        let hit = mesh.get(3, URL);
        assert!(mesh.is_hit(hit));
        assert!((150..=153).contains(&age(&mesh, hit)), "{}", age(&mesh, hit));
        assert_eq!(mesh.origin.askers(URL), [0]);
        mesh.done();
    }
}

#[test]
fn nothing_is_served_past_its_freshness_wherever_it_was_kept() {
    let mut mesh = Mesh::chain(4);
    mesh.origin.put(URL, Page::of(50_000).fresh(20));
    mesh.get(1, URL);
    mesh.pass_seconds(15);
    mesh.get(3, URL);
    assert_eq!(mesh.origin.askers(URL).len(), 1);
    mesh.pass_seconds(6);
    let late = mesh.get(3, URL);
    assert!(mesh.client(late).is_ok() && age(&mesh, late) < 5);
    assert_eq!(mesh.origin.askers(URL), [0, 0]);
    mesh.done();
}

#[test]
fn a_confirmation_at_the_gateway_refreshes_the_access_router_and_no_unit_crosses() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::chain_of(&plan, 4);
        mesh.origin.put(URL, Page::of(500_000).fresh(20).etag("a"));
        mesh.get(3, URL);
        mesh.pass_seconds(30);
        let crossed = (mesh.data_out(0), mesh.data_out(1), mesh.data_out(2));
        let confirmed = mesh.get(3, URL);
        assert!(mesh.client(confirmed).is_ok());
        assert!(mesh.origin.last().headers.contains_key("if-none-match"));
        mesh.pass_seconds(15);
        let hit = mesh.get(3, URL);
        assert!(mesh.client(hit).is_ok() && mesh.is_hit(hit), "{}", mesh.cache(hit));
        assert_eq!(mesh.origin.askers(URL), [0, 0]);
        assert_eq!((mesh.data_out(0), mesh.data_out(1), mesh.data_out(2)), crossed);
        mesh.done();
    }
}

#[test]
fn who_has_an_older_confirmation_gets_the_newer_one_from_the_way() {
    let mut mesh = Mesh::chain(4);
    mesh.origin.put(URL, Page::of(500_000).fresh(20).etag("a"));
    mesh.get(3, URL);
    mesh.pass_seconds(30);
    mesh.get(1, URL);
    assert_eq!(mesh.origin.askers(URL), [0, 0]);
    let crossed = mesh.data_out(2);
    let id = mesh.get(3, URL);
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.origin.askers(URL), [0, 0]);
    assert_eq!(mesh.data_out(2), crossed);
    mesh.done();
}

#[test]
fn of_a_changed_object_only_what_differs_crosses() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::chain_of(&plan, 4);
        let page = Page::of(1_000_000);
        let mut changed = page.body.to_vec();
        changed[500_000..500_010].copy_from_slice(b"ten bytes!");
        mesh.origin.put(URL, page.fresh(20).etag("a"));
        mesh.get(3, URL);
        mesh.pass_seconds(30);
        mesh.origin.put(URL, Page::new(changed.into()).fresh(20).etag("b"));
        let crossed = mesh.data_out(0);
        let id = mesh.get(3, URL);
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.client(id).header("etag"), "\"b\"");
        let more = mesh.data_out(0) - crossed;
        assert!((1..120_000).contains(&more), "{more} bytes crossed");
        mesh.done();
    }
}

#[test]
fn a_client_that_wants_it_from_the_origin_gets_it_from_there() {
    let mut mesh = Mesh::chain(4);
    mesh.origin.put(URL, Page::of(50_000).fresh(600).etag("a"));
    mesh.get(3, URL);
    let id = mesh.call(3, Call::get(URL).with("cache-control", "no-cache"));
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.origin.askers(URL).len(), 2);
    mesh.done();
}

#[test]
fn clocks_that_are_wrong_make_nothing_stale_fresh() {
    for plan in [Plan::default(), Plan::thcp()] {
        for (gateway, relay, access) in [
            (0, WRONG[0], 0),
            (0, 0, WRONG[0]),
            (WRONG[0], 0, 0),
            (WRONG[0], WRONG[1], 0),
            (WRONG[1], 0, WRONG[0]),
            (0, WRONG[1], WRONG[1]),
            (WRONG[1], WRONG[0], 0),
        ] {
            let clocks = vec![gateway, relay, access];
            let mut mesh = Mesh::chain_of(&Plan { clocks, ..plan.clone() }, 3);
            mesh.origin.put(URL, Page::of(50_000).fresh(60));
            mesh.get(1, URL);
            mesh.pass_seconds(30);
            let young = mesh.get(2, URL);
            assert!(mesh.client(young).is_ok());
            mesh.pass_seconds(40);
            let asked = mesh.origin.askers(URL).len();
            let late = mesh.get(2, URL);
            assert!(mesh.client(late).is_ok());
            assert!(
                mesh.origin.askers(URL).len() > asked || asked > 1,
                "stale at {gateway} {relay} {access}"
            );
            mesh.done();
        }
    }
}

#[test]
fn a_restart_with_a_wrong_clock_makes_nothing_stale_fresh() {
    for ahead in WRONG {
        let mut mesh = Mesh::chain(3);
        mesh.origin.put(URL, Page::of(50_000).fresh(60));
        mesh.get(2, URL);
        mesh.kill(2);
        mesh.pass_seconds(100);
        mesh.plan(2).clocks = vec![0, 0, ahead];
        mesh.start(2);
        mesh.pass_seconds(1);
        let id = mesh.get(2, URL);
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.origin.askers(URL), [0, 0], "{ahead}: {}", mesh.cache(id));
        mesh.done();
    }
}

#[test]
fn a_clock_that_is_set_right_makes_nothing_stale_fresh() {
    for ahead in WRONG {
        let clocks = vec![0, ahead, ahead];
        let mut mesh = Mesh::chain_of(&Plan { clocks, ..Plan::default() }, 3);
        mesh.origin.put(URL, Page::of(50_000).fresh(60).etag("a"));
        mesh.get(2, URL);
        mesh.pass_seconds(30);
        (1..3).for_each(|node| mesh.set_clock(node, 0));
        mesh.pass_seconds(40);
        let id = mesh.get(2, URL);
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.origin.askers(URL).len(), 2, "{ahead}: {}", mesh.cache(id));
        mesh.done();
    }
}

#[test]
fn who_joined_a_revalidation_that_gets_no_answer_still_has_the_old_one() {
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, Page::of(500_000).fresh(20).etag("a"));
    mesh.get(2, URL);
    mesh.start_liar(1, author(|_, _| Vec::new()));
    mesh.pass_seconds(40);
    let ids = [2, 2, 2].map(|node| mesh.call(node, Call::get(URL)));
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert!(mesh.took(ids[1]) < Duration::from_secs(4), "{:?}", mesh.took(ids[1]));
    assert_eq!(mesh.data(0, 2), 0, "what was held came again");
    mesh.kill(1);
    mesh.done();
}

#[test]
fn who_joined_a_revalidation_gets_what_is_stale_if_nobody_can_be_reached() {
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, Page::of(500_000).fresh(20).etag("a"));
    mesh.get(2, URL);
    mesh.start_liar(1, author(|_, _| Vec::new()));
    mesh.pass_seconds(40);
    mesh.power_off(0);
    let ids = [2, 2, 2].map(|node| mesh.call(node, Call::get(URL)));
    mesh.finish();
    for id in ids {
        assert!(mesh.client(id).is_ok(), "{:?} after {:?}", mesh.client(id).head, mesh.took(id));
    }
    mesh.kill(1);
    mesh.done();
}

#[test]
fn what_changed_comes_whole_while_the_old_one_is_served() {
    for length in [100_000, 2_000_000] {
        let mut mesh = Mesh::chain_of(&Plan::thcp(), 3);
        let page = |tag| {
            let control = "max-age=30, stale-while-revalidate=600";
            Page::of(length).with("cache-control", control).etag(tag)
        };
        mesh.origin.put(URL, page("a"));
        mesh.get(2, URL);
        mesh.pass_seconds(40);
        mesh.origin.put(URL, page("b"));
        mesh.call(0, Call::get(URL).with("cache-control", "no-cache"));
        mesh.finish();
        let stale = mesh.get(2, URL);
        assert!(mesh.client(stale).is_ok() && mesh.is_hit(stale));
        assert_eq!(mesh.client(stale).header("etag"), "\"a\"");
        mesh.pass_seconds(5);
        assert_eq!(mesh.report(2).fetches, 0, "{length} bytes still come");
        let crossed = mesh.data(0, 2);
        let fresh = mesh.get(2, URL);
        assert!(mesh.client(fresh).is_ok() && mesh.is_hit(fresh), "{}", mesh.cache(fresh));
        assert_eq!(mesh.client(fresh).header("etag"), "\"b\"");
        assert_eq!(mesh.data(0, 2), crossed);
        mesh.done();
    }
}

#[test]
fn a_router_that_reads_an_old_version_slowly_gets_it_to_its_end() {
    let mut plan = Plan::default();
    (plan.node.memory_bytes, plan.node.store_bytes) = (1 << 20, 128 << 20);
    let mut mesh = Mesh::chain_of(&plan, 2);
    mesh.origin.put(URL, Page::of(9_000_000).fresh(600));
    mesh.get(0, URL);
    mesh.restart(0);
    mesh.pass_seconds(40);
    let slow = mesh.call(1, Call::get(URL).pace(Pace::Stalls(100_000)));
    mesh.pass_seconds(2);
    assert!(!mesh.client(slow).content.is_empty() && mesh.client(slow).end.is_none());
    mesh.origin.put(URL, Page::of(5_000).fresh(600));
    let new = mesh.call(0, Call::get(URL).with("cache-control", "no-cache"));
    mesh.pass_seconds(2);
    assert!(mesh.client(new).is_ok() && mesh.report(0).lingering == 1);
    mesh.hurry(slow);
    mesh.finish();
    assert!(mesh.client(slow).is_ok(), "{} bytes", mesh.client(slow).content.len());
    mesh.done();
    assert_eq!(mesh.report(0).lingering, 0);
}
