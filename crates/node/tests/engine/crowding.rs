//! Transfers that wait for memory go on when there is some again.

use crate::net::{Call, Net, Options, Page};

fn url(number: usize) -> String {
    format!("http://o.test/{number}")
}

#[test]
fn transfers_that_waited_for_the_disk_go_on_when_it_has_caught_up() {
    let mut net = Net::with(Options { memory_bytes: 1 << 20, ..Options::default() });
    net.disk.stuck = true;
    let count = 30;
    for number in 0..count {
        net.origin.put(&url(number), Page::of(600_000).fresh(60));
        net.call(Call::get(&url(number)));
        net.settle();
    }
    net.unstick();
    let waiting = net.clients().iter().filter(|client| client.end.is_none()).count();
    assert_eq!(waiting, 0, "they wait for ever");
    assert!(net.clients().iter().all(|client| client.is_ok()));
    net.done();
}

#[test]
fn many_transfers_at_once_share_the_memory() {
    let mut net = Net::with(Options { memory_bytes: 1 << 20, ..Options::default() });
    net.disk.stuck = true;
    for number in 0..60 {
        net.origin.put(&url(number), Page::of(300_000).fresh(60));
        net.call(Call::get(&url(number)));
    }
    net.settle();
    net.unstick();
    assert!(net.clients().iter().all(|client| client.is_ok()));
    net.done();
}
