//! What nobody reads any more stops, unless little of it remains.

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
