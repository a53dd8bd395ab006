//! Captures of a router's monitor interface.

use crate::lab::capture::{Record, read};
use crate::lab::{World, can_run};

const BYTES: usize = 50_000;

/// Checks that hold for all captures of a mesh of routers 0 to 2.
#[track_caller]
fn check(records: &[Record]) {
    assert!(records.iter().all(|it| it.radiotap_length == 23));
    assert!(records.iter().all(|it| it.is_data() || it.is_ack()));
    assert!(records.iter().any(Record::is_data) && records.iter().any(Record::is_ack));
    assert!(records.iter().filter(|it| it.is_ack()).all(|it| it.frame.len() == 10));
    assert!(records.is_sorted_by_key(|it| it.nanoseconds), "time goes back");
}

#[test]
fn a_router_hears_what_the_next_one_forwards() {
    if !can_run("a_router_hears_what_the_next_one_forwards") {
        return;
    }
    let world = World::new();
    let ended = world.run(&[
        "run",
        "chain",
        "--scheme",
        "default",
        "--set",
        "hops=2",
        "--set",
        "bytes=50000",
        "--pcap",
        "0=0.pcap",
        "--pcap",
        "1=1.pcap",
    ]);
    ended.expect(0);
    let (gateway, middle) = (read(&world.path("0.pcap")), read(&world.path("1.pcap")));
    check(&gateway);
    check(&middle);
    let heard = |capture: &[Record], from, to| {
        let frames = capture.iter().filter(|it| it.is_data() && it.from() == from && it.to() == to);
        frames.filter_map(|it| it.tcp_of_server().map(<[u8]>::len)).sum::<usize>()
    };
    // The gateway hears the second hop's copy of the file, although no address in it is the gateway's own. It
    // misses only frames that arrive while it sends.
    let overheard = heard(&gateway, 1, 2);
    assert!(overheard > BYTES * 4 / 5, "{overheard}");
    assert!(heard(&middle, 0, 1) > BYTES, "{}", heard(&middle, 0, 1));
    // Routers 400 m apart do not hear each other.
    assert!(gateway.iter().filter(|it| it.is_data()).all(|it| it.from() == 1));
    // A station does not hear its own frames.
    assert!(middle.iter().filter(|it| it.is_data()).all(|it| it.from() != 1));
    world.nothing_is_left();
}

#[test]
fn a_router_that_is_not_on_the_path_hears_what_is_in_its_range() {
    if !can_run("a_router_that_is_not_on_the_path_hears_what_is_in_its_range") {
        return;
    }
    let world = World::new();
    let capture = format!("2={}", world.text("2.pcap"));
    let ended = world.run(&[
        "run",
        "chain",
        "--scheme",
        "default",
        "--set",
        "hops=2",
        "--set",
        "receivers=1",
        "--set",
        "bytes=50000",
        "--pcap",
        &capture,
    ]);
    ended.expect(0);
    let records = read(&world.path("2.pcap"));
    check(&records);
    // TCP acknowledgements from router 1 to router 0, and 802.11 acknowledgements of frames that this router
    // cannot hear itself.
    let data: Vec<_> = records.iter().filter(|it| it.is_data() && it.to() == 0).collect();
    assert!(data.len() > 5 && data.iter().all(|it| it.from() == 1), "{data:?}");
    let acks = records.iter().filter(|it| it.is_ack() && it.to() == 0).count();
    assert!(acks > BYTES / 1500, "{acks}");
    world.nothing_is_left();
}
