//! Content bytes by class and source: what clients were given, and what was brought in for it.

use crate::net::{Call, Net, Page};
use node::account::{ClassBytes, HostBytes};

const URL: &str = "http://o.test/a";
const LENGTH: usize = 100_000;

/// The only class of which anything was counted.
fn other(net: &mut Net) -> ClassBytes {
    let rows: Vec<_> =
        net.node.by_class().account.classes().map(|(id, row)| (id.0, *row)).collect();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0].0, 0);
    rows[0].1
}

#[test]
fn a_miss_is_the_origins_and_a_hit_is_local() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(LENGTH).fresh(60));
    net.call(Call::get(URL));
    net.settle();
    let miss = other(&mut net);
    let length = LENGTH as u64;
    let expected = ClassBytes { served_origin_bytes: length, fetched_origin_bytes: length, ..miss };
    assert_eq!(miss, expected);
    assert_eq!(miss.served_local_bytes, 0);
    net.call(Call::get(URL));
    net.settle();
    assert_eq!(other(&mut net), ClassBytes { served_local_bytes: length, ..miss });
    net.done();
}

#[test]
fn what_is_not_stored_is_the_origins_each_time() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(LENGTH).with("cache-control", "no-store"));
    for times in 1..3 {
        net.call(Call::get(URL));
        net.settle();
        let (sum, row) = (times * LENGTH as u64, other(&mut net));
        assert_eq!((row.served_origin_bytes, row.fetched_origin_bytes), (sum, sum));
    }
    net.done();
}

#[test]
fn hosts_are_counted_where_they_are_wanted() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(LENGTH).fresh(60));
    net.call(Call::get(URL));
    net.settle();
    assert!(net.node.by_class().account.take_hosts().is_empty(), "they were not wanted");
    net.node.by_class().account.count_hosts(true);
    net.call(Call::get(URL));
    net.settle();
    let hosts = net.node.by_class().account.take_hosts();
    assert_eq!(hosts["o.test"], HostBytes { served: LENGTH as u64, fetched: 0 });
    assert_eq!(hosts.len(), 1);
    net.done();
}
