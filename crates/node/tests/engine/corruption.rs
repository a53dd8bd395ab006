//! A unit that the disk gives back wrong never reaches a client, and is fetched anew.

use crate::net::{Call, Net, Options, Pace, Page};

const URL: &str = "http://o.test/a";

/// Stored, and no longer in memory.
fn at_rest(length: usize) -> Net {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(length).fresh(600));
    net.get(URL);
    net.restart(&Options::default());
    net
}

/// Repeats a request until the response is complete; returns the number of requests.
fn asks_until_whole(net: &mut Net) -> usize {
    (1..10)
        .find(|_| {
            let id = net.get(URL);
            net.client(id).is_ok()
        })
        .expect("nobody is ever served")
}

#[test]
fn after_a_restart_an_object_comes_from_the_disk() {
    let mut net = at_rest(500_000);
    let hit = net.get(URL);
    assert!(net.client(hit).is_ok());
    assert_eq!(net.client(hit).cache(), "hit; ttl=600");
    assert_eq!(net.origin.asked(URL), 1);
    net.done();
}

#[test]
fn a_corrupt_unit_is_never_sent_and_is_fetched_anew() {
    for length in [100, 500_000] {
        let mut net = at_rest(length);
        net.disk.corrupt = true;
        let mended = net.get(URL);
        assert!(net.client(mended).is_ok());
        assert!(net.report().units_bad > 0);
        net.disk.corrupt = false;
        let sent = net.origin.sent;
        let hit = net.get(URL);
        assert!(net.client(hit).is_ok() && net.client(hit).cache().starts_with("hit"));
        assert_eq!(net.origin.sent, sent, "what was mended is stored");
        net.done();
    }
}

#[test]
fn a_disk_that_cannot_be_read_does_not_keep_anybody_from_the_origin() {
    let mut net = at_rest(500_000);
    net.disk.fail_reads = true;
    assert!(asks_until_whole(&mut net) <= 2);
    net.done();
}

#[test]
fn a_manifest_that_is_gone_is_as_if_nothing_had_been_stored() {
    let mut net = at_rest(500_000);
    net.disk.lose_segments = true;
    let id = net.get(URL);
    assert!(net.client(id).is_ok());
    assert_eq!(net.origin.asked(URL), 2);
    net.done();
}

#[test]
fn damage_far_inside_a_large_object_is_mended() {
    let mut net = at_rest(9_000_000);
    let half = net.call(Call::get(URL).pace(Pace::Stalls(8_000_000)));
    net.settle();
    let sent = net.origin.sent;
    net.disk.corrupt = true;
    net.hurry(half);
    assert!(net.client(half).is_ok());
    assert!((1..1_200_000).contains(&(net.origin.sent - sent)), "only the rest is sent again");
    net.done();
}

#[test]
fn what_the_index_takes_for_known_and_is_not_there_is_written_all_the_same() {
    let other = "http://origin.test/other";
    let mut net = Net::new();
    let page = Page::of(500_000).fresh(600);
    net.origin.put(URL, page.clone());
    net.origin.put(other, page);
    net.get(URL);
    net.restart(&Options::default());
    net.disk.corrupt = true;
    let slow = net.call(Call::get(other).pace(Pace::Slow(20_000)));
    net.settle();
    assert!(net.client(slow).is_ok());
    assert_eq!(net.origin.asked(other), 1, "nothing had to be mended");
    net.disk.corrupt = false;
    net.restart(&Options::default());
    let hit = net.get(other);
    assert!(net.client(hit).is_ok() && net.client(hit).cache().starts_with("hit"));
    net.done();
}

#[test]
fn a_later_manifest_segment_that_is_gone_breaks_it_once_and_not_for_ever() {
    let mut net = at_rest(9_000_000);
    let half = net.call(Call::get(URL).pace(Pace::Stalls(100_000)));
    net.settle();
    net.disk.lose_segments = true;
    net.hurry(half);
    assert!(net.client(half).is_broken());
    net.disk.lose_segments = false;
    assert!(asks_until_whole(&mut net) <= 1);
    net.done();
}

#[test]
fn a_hole_in_an_object_with_a_strong_tag_is_mended_for_its_reader() {
    for pace in [Pace::Fast, Pace::Slow(3_000)] {
        let mut net = Net::new();
        let mut page = Page::of(500_000).fresh(600).etag("a");
        page.piece = 1_000;
        net.origin.put(URL, page);
        net.get(URL);
        net.restart(&Options::default());
        net.disk.corrupt = true;
        let mended = net.call(Call::get(URL).pace(pace));
        net.settle();
        assert!(net.client(mended).is_ok() && net.client(mended).cache().starts_with("hit"));
        assert!(net.report().units_bad > 0);
        let asked = net.origin.asked(URL);
        // A slow reader finds one bad unit after another, of some sixty.
        assert!((2..80).contains(&asked), "each hole is asked for once: {asked}");
        assert!(net.origin.sent < 1_100_000, "{}", net.origin.sent);
        net.done();
    }
}

#[test]
fn a_hole_is_not_mended_with_bytes_of_another_version() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(500_000).fresh(600).etag("a"));
    net.get(URL);
    net.restart(&Options::default());
    net.disk.corrupt = true;
    // It says that it is the same, and is not.
    net.origin.put(URL, Page::of(500_000).fresh(600).etag("a"));
    let broken = net.get(URL);
    assert!(net.client(broken).is_broken() && net.client(broken).content.is_empty());
    net.disk.corrupt = false;
    assert!(asks_until_whole(&mut net) <= 1);
    net.done();
}
