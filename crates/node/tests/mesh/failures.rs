//! Nodes die, links break, routes change: clients see a delay, an answer by another way, or an honest
//! end, and never wrong bytes.

use crate::net::{Call, Mesh, Pace, Page, Plan, Port, via};
use node::{FetchError, Forbidden, RouteTable};
use std::time::Duration;

const URL: &str = "http://o.test/a";
const LENGTH: usize = 4_000_000;

fn with_page(mut mesh: Mesh) -> Mesh {
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600).steady());
    mesh
}

/// 3 has two ways to 0: over 1, which it uses, and over 2.
fn diamond(plan: &Plan) -> Mesh {
    let mut mesh = with_page(Mesh::tree_of(plan, &[0, 0, 1]));
    mesh.mend(3, 2);
    mesh
}

#[test]
fn a_next_hop_that_dies_in_mid_transfer_costs_a_delay() {
    let mut mesh = with_page(Mesh::chain(4));
    let id = mesh.call(3, Call::get(URL));
    mesh.pass_millis(500);
    assert!(!mesh.client(id).content.is_empty() && mesh.client(id).end.is_none());
    mesh.kill(2);
    mesh.finish();
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).end);
    assert_eq!((mesh.origin.askers(URL), mesh.report(3).resumes), (vec![0], 1));
    assert!(mesh.took(id) < Duration::from_secs(10), "{:?}", mesh.took(id));
    mesh.done();
}

#[test]
fn a_next_hop_that_falls_silent_costs_a_delay() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = diamond(&plan);
        let id = mesh.call(3, Call::get(URL));
        mesh.pass_millis(500);
        assert!(!mesh.client(id).content.is_empty() && mesh.client(id).end.is_none());
        mesh.power_off(1);
        mesh.pass_seconds(2);
        mesh.route(3, via(2, Some(0), 2));
        mesh.finish();
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.origin.askers(URL), [0]);
        assert!(mesh.took(id) < Duration::from_secs(30), "{:?}", mesh.took(id));
        mesh.done();
    }
}

#[test]
fn a_link_that_is_mended_soon_costs_a_delay() {
    let mut mesh = with_page(Mesh::chain(4));
    let id = mesh.call(3, Call::get(URL));
    mesh.pass_millis(500);
    mesh.cut(1, 2);
    mesh.pass_seconds(3);
    mesh.mend(1, 2);
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    mesh.done();
}

#[test]
fn a_new_way_does_not_disturb_what_is_under_way() {
    let mut mesh = diamond(&Plan::default());
    let id = mesh.call(3, Call::get(URL));
    mesh.pass_millis(500);
    mesh.route(3, via(2, Some(0), 2));
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn routes_that_flap_do_not_break_transfers() {
    let mut mesh = diamond(&Plan::default());
    let ids = [3, 3, 1].map(|node| mesh.call(node, Call::get(URL)));
    for round in 0..60 {
        mesh.route(3, via(1 + round % 2, Some(0), 2));
        mesh.pass_millis(100);
    }
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert!(mesh.origin.asked(URL) <= 2, "{:?}", mesh.origin.askers(URL));
    mesh.done();
}

#[test]
fn a_gateway_that_dies_in_mid_transfer_ends_it_honestly() {
    for silently in [false, true] {
        let mut mesh = with_page(Mesh::chain(4));
        let id = mesh.call(3, Call::get(URL));
        mesh.pass_millis(500);
        assert!(!mesh.client(id).content.is_empty());
        if silently {
            mesh.power_off(0)
        } else {
            mesh.kill(0)
        }
        mesh.finish();
        assert!(mesh.client(id).is_broken());
        mesh.done();
    }
}

#[test]
fn a_gateway_that_comes_back_has_forgotten_what_it_sent() {
    let mut mesh = with_page(Mesh::chain(3));
    let id = mesh.call(2, Call::get(URL));
    mesh.pass_millis(500);
    mesh.restart(0);
    mesh.finish();
    assert!(mesh.client(id).is_broken(), "two versions are never spliced");
    let again = mesh.get(2, URL);
    assert!(mesh.client(again).is_ok());
    mesh.done();
}

#[test]
fn with_nobody_reachable_the_client_is_told() {
    let mut mesh = with_page(Mesh::chain(4));
    mesh.origin.down = Some(FetchError::Unreachable);
    mesh.power_off(0);
    let id = mesh.get(3, URL);
    assert!((502..=504).contains(&mesh.client(id).status()), "{:?}", mesh.client(id));
    assert!(mesh.took(id) < Duration::from_secs(120), "{:?}", mesh.took(id));
    mesh.done();
}

#[test]
fn an_origin_that_refuses_is_told_of_as_by_a_single_node() {
    for (down, status) in [
        (FetchError::Unreachable, 502),
        (FetchError::Unresolved, 502),
        (FetchError::TimedOut, 504),
        (FetchError::Malformed, 502),
        (FetchError::Forbidden(Forbidden::Inward), 403),
    ] {
        let mut mesh = with_page(Mesh::chain(4));
        mesh.origin.down = Some(down);
        let id = mesh.get(3, URL);
        assert_eq!(mesh.client(id).status(), status, "{down:?}");
        mesh.done();
    }
}

#[test]
fn what_is_stale_stands_in_for_an_origin_that_cannot_be_reached() {
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, Page::of(60_000).fresh(5));
    mesh.get(2, URL);
    mesh.pass_seconds(20);
    mesh.origin.down = Some(FetchError::Unreachable);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    mesh.done();
}

#[test]
fn where_the_gateway_has_no_daemon_one_goes_directly() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = with_page(Mesh::chain_of(&plan, 3));
        mesh.kill(0);
        let id = mesh.get(2, URL);
        assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
        mesh.done();
    }
}

#[test]
fn a_neighbour_without_a_daemon_is_passed_over() {
    for (port, timeout) in [(Port::Refuses, 3), (Port::Hole, 20)] {
        let mut mesh = Mesh::asleep(&Plan::default(), &[0, 1]);
        mesh.start(0);
        mesh.start(2);
        mesh.links.ground.ports[1] = port;
        mesh.pass_seconds(1);
        let mut mesh = with_page(mesh);
        let id = mesh.get(2, URL);
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.origin.askers(URL), [0], "the gateway was asked");
        assert!(mesh.took(id) < Duration::from_secs(timeout), "{port:?}: {:?}", mesh.took(id));
        mesh.done();
    }
}

#[test]
fn a_neighbour_that_begins_later_is_asked_then() {
    let mut mesh = Mesh::asleep(&Plan::default(), &[0, 1]);
    mesh.start(0);
    mesh.start(2);
    mesh.links.ground.ports[1] = Port::Refuses;
    let mut mesh = with_page(mesh);
    mesh.get(2, URL);
    mesh.start(1);
    mesh.pass_seconds(60);
    mesh.origin.put("http://o.test/b", Page::of(50_000).fresh(600));
    let id = mesh.get(2, "http://o.test/b");
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.report(1).asks_in, 1);
    mesh.done();
}

#[test]
fn without_any_route_one_goes_directly() {
    let mut mesh = with_page(Mesh::chain(3));
    mesh.route(2, RouteTable::default());
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.origin.askers(URL), [2]);
    mesh.done();
}

#[test]
fn where_the_gateway_is_not_known_the_next_hop_says_where_it_is() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = with_page(Mesh::chain_of(&plan, 4));
        mesh.route(3, via(2, None, 3));
        mesh.pass_seconds(1);
        let id = mesh.get(3, URL);
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.origin.askers(URL), [0]);
        mesh.done();
    }
}

#[test]
fn without_a_known_gateway_and_a_next_hop_that_answers_one_goes_directly() {
    let mut mesh = with_page(Mesh::asleep(&Plan::default(), &[0, 1]));
    // 1 never runs, so no node tells 2 the address of the gateway.
    mesh.start(0);
    mesh.start(2);
    mesh.route(2, via(1, None, 2));
    mesh.pass_seconds(1);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.origin.askers(URL), [2]);
    mesh.done();
}

#[test]
fn what_a_relay_kept_outlives_its_restart() {
    let mut mesh = with_page(Mesh::chain(3));
    mesh.get(2, URL);
    mesh.restart(1);
    mesh.pass_seconds(1);
    let crossed = mesh.data(0, 1);
    let hit = mesh.get(1, URL);
    assert!(mesh.client(hit).is_ok() && mesh.is_hit(hit), "{}", mesh.cache(hit));
    // And it serves it to others again.
    mesh.kill(2);
    mesh.plan(2).node.seed += 50;
    mesh.forget_disk(2);
    mesh.start(2);
    mesh.pass_seconds(1);
    let far = mesh.get(2, URL);
    assert!(mesh.client(far).is_ok());
    assert_eq!((mesh.origin.askers(URL), mesh.data(0, 1)), (vec![0], crossed));
    mesh.done();
}

#[test]
fn routes_in_a_circle_still_lead_to_an_answer() {
    for gateway in [Some(0), None] {
        let mut mesh = with_page(Mesh::chain(4));
        mesh.route(2, via(3, gateway, 1));
        mesh.route(3, via(2, gateway, 1));
        let ids = [2, 3].map(|node| mesh.call(node, Call::get(URL)));
        mesh.finish();
        for id in ids {
            assert!(mesh.client(id).is_ok(), "{gateway:?}: {:?}", mesh.client(id).head);
            assert!(mesh.took(id) < Duration::from_secs(20), "{:?}", mesh.took(id));
        }
        mesh.done();
    }
}

#[test]
fn a_node_that_is_its_own_next_hop_goes_elsewhere() {
    let mut mesh = with_page(Mesh::chain(3));
    mesh.route(2, via(2, Some(0), 1));
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    mesh.done();
}

#[test]
fn of_two_gateways_each_asks_for_those_whose_way_leads_to_it() {
    let mut mesh = Mesh::asleep(&Plan::default(), &[0, 1, 2]);
    mesh.links.ground.uplinks.insert(3);
    mesh.start_all();
    mesh.route(3, crate::net::gateway(3));
    mesh.route(2, via(3, Some(3), 1));
    mesh.pass_seconds(1);
    let mut mesh = with_page(mesh);
    let ids = [1, 2].map(|node| mesh.call(node, Call::get(URL)));
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    let mut askers = mesh.origin.askers(URL);
    askers.sort_unstable();
    assert_eq!(askers, [0, 3]);
    mesh.done();
}

/// The uplink moves from one end of a row to the other, while a transfer is under way.
#[test]
fn when_the_gateway_moves_what_runs_goes_on_and_what_is_new_goes_the_new_way() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::asleep(&plan, &[0, 1]);
        mesh.links.ground.uplinks.insert(2);
        mesh.start_all();
        mesh.pass_seconds(1);
        let mut mesh = with_page(mesh);
        mesh.origin.put("http://o.test/b", Page::of(100_000).fresh(600));
        let id = mesh.call(1, Call::get(URL));
        mesh.pass_millis(500);
        assert!(!mesh.client(id).content.is_empty() && mesh.client(id).end.is_none());
        mesh.route(2, crate::net::gateway(2));
        mesh.route(1, via(2, Some(2), 1));
        mesh.route(0, via(1, Some(2), 2));
        mesh.finish();
        assert!(mesh.client(id).is_ok());
        let other = [0, 1].map(|node| mesh.get(node, "http://o.test/b"));
        assert!(other.iter().all(|id| mesh.client(*id).is_ok()));
        assert_eq!(mesh.origin.askers(URL), [0]);
        assert_eq!(mesh.origin.askers("http://o.test/b"), [2]);
        mesh.done();
    }
}

#[test]
fn a_partition_ends_what_it_cuts_honestly() {
    let mut mesh = with_page(Mesh::chain(4));
    let id = mesh.call(3, Call::get(URL));
    mesh.pass_millis(500);
    mesh.cut(0, 1);
    mesh.finish();
    assert!(mesh.client(id).is_broken());
    let other = mesh.get(3, "http://o.test/b");
    assert!(mesh.client(other).status() >= 500, "{:?}", mesh.client(other).head);
    mesh.mend(0, 1);
    mesh.pass_seconds(60);
    let again = mesh.get(3, URL);
    assert!(mesh.client(again).is_ok(), "{:?}", mesh.client(again).head);
    mesh.done();
}

#[test]
fn meshes_with_different_keys_exchange_nothing() {
    for keys in [[Some([1; 32]), Some([2; 32])], [Some([1; 32]), None], [None, Some([2; 32])]] {
        let mut mesh = Mesh::asleep(&Plan::default(), &[0, 1]);
        for node in 0..3 {
            mesh.plan(node).key = keys[usize::from(node == 2)];
        }
        mesh.start_all();
        let mut mesh = with_page(mesh);
        let ids = [1, 2].map(|node| mesh.get(node, URL));
        assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
        assert_eq!(mesh.origin.askers(URL), [0, 2], "{keys:?}");
        assert_eq!((mesh.report(2).peers, mesh.report(1).peers), (0, 1));
        assert_eq!(mesh.data(0, 2) + mesh.data(1, 2) + mesh.data_out(2), 0);
        mesh.done();
    }
}

#[test]
fn a_mesh_with_a_key_works_as_one_without() {
    let plan = Plan { key: Some([3; 32]), ..Plan::default() };
    let mut mesh = with_page(Mesh::chain_of(&plan, 4));
    let ids = [3, 1].map(|node| mesh.get(node, URL));
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert_eq!(mesh.origin.askers(URL), [0]);
    assert!(mesh.report(3).recent.is_empty(), "what it is stays hidden");
    mesh.done();
}

#[test]
fn a_relay_that_is_cut_off_gives_on_what_is_stale() {
    let plan = Plan { configured: true, ..Plan::default() };
    let mut mesh = Mesh::chain_of(&plan, 3);
    mesh.origin.put(URL, Page::of(300_000).fresh(5));
    mesh.get(1, URL);
    mesh.kill(0);
    mesh.pass_seconds(100);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert!(mesh.took(id) < Duration::from_secs(2), "{:?}", mesh.took(id));
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn what_comes_from_a_peer_is_not_said_to_be_stored_where_the_store_fails() {
    let mut mesh = Mesh::chain(2);
    for number in 0..2 {
        mesh.origin.put(&format!("http://o.test/{number}"), Page::of(300_000).fresh(600));
    }
    mesh.disk(1).fail_appends = true;
    let ids = [0, 1].map(|number| mesh.get(1, &format!("http://o.test/{number}")));
    assert!(!mesh.report(1).store_works && ids.iter().all(|id| mesh.client(*id).is_ok()));
    let said = mesh.cache(ids[1]);
    let (gateway, own) = said.split_once(", ").expect("two members");
    assert!(gateway.ends_with("; stored") && own.ends_with("fwd-status=200"), "{said}");
    mesh.done();
}

#[test]
fn a_relay_that_has_everything_needs_nobody_above_it() {
    for silently in [false, true] {
        let mut mesh = Mesh::chain(3);
        mesh.origin.put(URL, Page::of(1_000_000).fresh(600));
        let far = mesh.call(2, Call::get(URL).pace(Pace::Stalls(100_000)));
        mesh.pass_millis(100);
        let near = mesh.call(1, Call::get(URL));
        mesh.pass_seconds(2);
        assert!(mesh.client(near).is_ok() && mesh.client(far).end.is_none());
        if silently {
            mesh.power_off(0)
        } else {
            mesh.kill(0)
        }
        mesh.pass_seconds(60);
        mesh.hurry(far);
        mesh.finish();
        assert!(mesh.client(far).is_ok(), "{:?}", mesh.client(far).end);
        let hit = mesh.get(1, URL);
        assert!(mesh.client(hit).is_ok() && mesh.is_hit(hit), "{}", mesh.cache(hit));
        mesh.done();
    }
}
