//! A client that reads a version gets all of it, even if another version replaces it meanwhile.

use crate::net::{Call, Net, Options, Pace, Page};
use http::Method;
use node::{Audience, OPEN_KEY, Row, Target};
use wire::{ObjectKey, RecordId};

const URL: &str = "http://o.test/a";
const LENGTH: usize = 9_000_000;
/// The number of the last segment of its manifest.
const LAST: u32 = 1;

fn options() -> Options {
    Options { store_bytes: 128 << 20, memory_bytes: 512 << 10, ..Options::default() }
}

fn key() -> ObjectKey {
    let uri: http::Uri = URL.parse().expect("a URL");
    Target::read(&uri).expect("a target").key(&OPEN_KEY, Audience::Everyone)
}

fn page() -> Page {
    Page::of(LENGTH).fresh(600)
}

/// The records that the catalogue names.
fn records(net: &Net) -> Vec<RecordId> {
    let row = net.disk.row(key()).and_then(|row| Row::decode(&row)).unwrap_or_default();
    row.records.iter().map(|record| record.id).collect()
}

/// A stored object, its record, and a client that has read a little of it and then stalls. Memory has next to
/// nothing of its manifest.
fn read_slowly(page: Page, call: Call) -> (Net, RecordId, usize) {
    let mut net = Net::with(options());
    net.origin.put(URL, page);
    net.call(call.clone());
    net.settle();
    net.restart(&options());
    let slow = net.call(call.pace(Pace::Stalls(100_000)));
    net.settle();
    assert!(net.client(slow).cache().starts_with("hit") && net.client(slow).end.is_none());
    let record = records(&net)[0];
    assert!(net.disk.has_segment(record, LAST));
    (net, record, slow)
}

/// The slow client reads on; the segments stay until it has left, and not for longer.
fn stays_until_it_is_read(mut net: Net, record: RecordId, slow: usize) {
    assert!(!records(&net).contains(&record), "it has not been replaced");
    assert!(net.disk.has_segment(record, LAST) && net.report().lingering == 1);
    net.hurry(slow);
    assert!(net.client(slow).is_ok(), "{} bytes", net.client(slow).content.len());
    assert!(!net.disk.has_segment(record, LAST) && !net.disk.has_segment(record, 0));
    assert_eq!(net.report().lingering, 0);
    net.done();
}

#[test]
fn a_new_version_leaves_the_old_one_to_its_readers() {
    let (mut net, record, slow) = read_slowly(page(), Call::get(URL));
    let other = net.call(Call::get(URL).pace(Pace::Stalls(200_000)));
    for version in 0..3 {
        net.origin.put(URL, page().etag(&version.to_string()));
        let new = net.call(Call::get(URL).with("cache-control", "no-cache"));
        net.settle();
        assert!(net.client(new).is_ok());
    }
    net.hurry(other);
    assert!(net.client(other).is_ok());
    stays_until_it_is_read(net, record, slow);
}

#[test]
fn a_change_of_the_resource_leaves_the_old_version_to_its_readers() {
    let (mut net, record, slow) = read_slowly(page(), Call::get(URL));
    // With another clock nothing is believed that memory has of rows.
    let date = net.date().plus(10);
    net.set_clock(date);
    net.call(Call { has_body: true, ..Call::new(Method::POST, URL) });
    net.settle();
    stays_until_it_is_read(net, record, slow);
}

#[test]
fn a_variant_that_leaves_for_others_stays_for_its_readers() {
    let call = |language: &str| Call::get(URL).with("accept-language", language);
    let page = page().with("vary", "accept-language");
    let (mut net, record, slow) = read_slowly(page, call("de"));
    net.origin.put(URL, Page::of(5_000).fresh(600).with("vary", "accept-language"));
    for number in 0..Row::RECORDS_MAX {
        net.call(call(&number.to_string()));
        net.settle();
    }
    stays_until_it_is_read(net, record, slow);
}

#[test]
fn a_reader_that_leaves_keeps_nothing() {
    let (mut net, record, slow) = read_slowly(page(), Call::get(URL));
    net.origin.put(URL, page());
    net.call(Call::get(URL).with("cache-control", "no-cache"));
    net.settle();
    assert!(net.disk.has_segment(record, LAST));
    net.leave(slow);
    assert!(!net.disk.has_segment(record, LAST) && net.report().lingering == 0);
    let hit = net.get(URL);
    assert!(net.client(hit).is_ok() && net.client(hit).cache().starts_with("hit"));
}

#[test]
fn what_a_loss_of_power_left_behind_goes_with_the_row() {
    let (mut net, record, _) = read_slowly(page(), Call::get(URL));
    for replaced in 1..3 {
        net.origin.put(URL, page());
        net.call(Call::get(URL).with("cache-control", "no-cache"));
        net.settle();
        assert_eq!(net.disk.has_segment(record, LAST), replaced == 1);
        // With the same seed it would draw the same records again.
        net.restart(&Options { seed: 100 + replaced, ..options() });
    }
}
