//! Bodies that pause, and go on: clients get what has come, soon, and all of it in the end.

use crate::net::{Call, Mesh, Pace, Page, Plan, via};
use std::time::Duration;

const URL: &str = "http://o.test/a";

/// A stream that pauses behind byte `at` for this time.
fn resting(length: usize, at: usize, time: Duration) -> Page {
    Page::of(length).fresh(600).chunked().resting(at, time)
}

#[test]
fn a_pause_and_then_a_burst_come_whole() {
    for (at, length) in [(10_000, 200_000), (1, 500_000), (300_000, 400_000)] {
        for pace in [Pace::Fast, Pace::Slow(1_000)] {
            let mut mesh = Mesh::chain(4);
            mesh.origin.put(URL, resting(length, at, Duration::from_millis(300)));
            let id = mesh.call(3, Call::get(URL).pace(pace));
            mesh.finish();
            assert!(mesh.client(id).is_ok(), "{at} of {length}, {pace:?}");
            assert!(mesh.took(id) < Duration::from_secs(12), "{:?}", mesh.took(id));
            mesh.done();
        }
    }
}

#[test]
fn a_download_that_stutters_is_kept_at_every_hop() {
    let mut mesh = Mesh::chain(4);
    let mut page = Page::of(100_000).fresh(600);
    (page.piece, page.pause) = (20_000, Duration::from_millis(700));
    mesh.origin.put(URL, page);
    let first = mesh.call(3, Call::get(URL));
    mesh.finish();
    assert!(mesh.client(first).is_ok());
    for node in [1, 2, 3] {
        let asked = mesh.report(node).asks_out;
        let id = mesh.call(node, Call::get(URL));
        mesh.finish();
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.report(node).asks_out, asked, "router {node} did not keep it");
    }
    mesh.done();
}

#[test]
fn who_is_far_behind_when_a_stream_pauses_gets_all_of_it() {
    for length in [600_001, 640_000, 1_200_000] {
        let mut mesh = Mesh::chain(4);
        mesh.origin.put(URL, resting(length, 600_000, Duration::from_millis(300)));
        let ahead = mesh.call(2, Call::get(URL));
        let behind = mesh.call(3, Call::get(URL).pace(Pace::Stalls(40_000)));
        mesh.pass_seconds(3);
        mesh.hurry(behind);
        mesh.finish();
        assert!(mesh.client(ahead).is_ok() && mesh.client(behind).is_ok(), "{length}");
        assert!(mesh.took(behind) < Duration::from_secs(8), "{:?}", mesh.took(behind));
        mesh.done();
    }
}

#[test]
fn a_stream_whose_way_breaks_while_it_pauses_goes_on_by_another() {
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0, 0, 1]);
    mesh.mend(3, 2);
    let mut page = Page::of(60_000).fresh(600).chunked();
    (page.piece, page.pause) = (1_000, Duration::from_millis(300));
    mesh.origin.put(URL, page);
    let id = mesh.call(3, Call::get(URL));
    mesh.pass_seconds(4);
    mesh.kill(1);
    mesh.route(3, via(2, Some(0), 2));
    mesh.finish();
    assert!(!mesh.has_expelled(3, 2) && !mesh.has_expelled(3, 0), "{:?}", mesh.notices);
    assert!(mesh.client(id).is_ok(), "{} bytes", mesh.client(id).content.len());
    mesh.done();
}

/// How many bytes an origin may have sent when its reader stalls and then the body pauses.
fn sent_at_a_stall(page: Page) -> (Mesh, usize) {
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, page);
    mesh.call(2, Call::get(URL).pace(Pace::Stalls(50_000)));
    mesh.pass_seconds(5);
    let sent = mesh.origin.sent as usize;
    (mesh, sent)
}

#[test]
fn a_pause_where_the_grant_ends_is_noticed_once_more_is_granted() {
    let page = Page::of(2_000_000).fresh(600).chunked();
    let (_, sent) = sent_at_a_stall(page.clone());
    let (mut mesh, again) = sent_at_a_stall(page.resting(sent, Duration::from_secs(60)));
    assert_eq!(again, sent);
    mesh.hurry(0);
    mesh.pass_seconds(5);
    assert_eq!(mesh.client(0).content.len(), sent);
    mesh.finish();
    assert!(mesh.client(0).is_ok());
    mesh.done();
}

#[test]
fn who_comes_while_a_stream_pauses_gets_all_that_has_come() {
    const AT: usize = 100_000;
    for first in [0, 1, 2] {
        let mut mesh = Mesh::chain(3);
        mesh.origin.put(URL, resting(300_000, AT, Duration::from_secs(30)));
        let early = mesh.call(first, Call::get(URL));
        mesh.pass_seconds(5);
        let late = [1, 2].map(|node| mesh.call(node, Call::get(URL)));
        mesh.pass_seconds(8);
        for id in [early].into_iter().chain(late) {
            let got = mesh.client(id).content.len();
            assert_eq!(got, AT, "client {id} of those after one at {first}");
        }
        mesh.finish();
        assert!(mesh.clients().iter().all(crate::net::Client::is_ok));
        mesh.done();
    }
}

#[test]
fn what_comes_in_no_unit_is_counted_as_a_peer_s() {
    const LENGTH: usize = 200_000;
    let mut mesh = Mesh::chain(4);
    mesh.origin.put(URL, resting(LENGTH, 10_000, Duration::from_millis(300)));
    let id = mesh.get(3, URL);
    assert!(mesh.client(id).is_ok());
    let report = mesh.report(3);
    let served = (report.served_peer_bytes, report.served_local_bytes, report.served_origin_bytes);
    assert_eq!(served, (LENGTH as u64, 0, 0));
    mesh.done();
}
