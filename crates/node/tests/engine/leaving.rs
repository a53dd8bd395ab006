//! A client may leave at any time; nothing is left of it.

use crate::net::{Call, End, Net, Options, Page};
use std::time::Duration;

const URL: &str = "http://o.test/a";

/// Asks for something, and leaves after each of many moments.
fn leaves_at_every_moment(prepare: impl Fn(&mut Net), call: impl Fn() -> Call) {
    for moment in 0..60 {
        let mut net =
            Net::with(Options { disk_delay: Duration::from_millis(3), ..Options::default() });
        net.names.insert("o.test".into(), vec![[192, 0, 2, 1].into()]);
        prepare(&mut net);
        let id = net.call(call());
        net.pass(Duration::from_micros(300 * moment));
        net.leave(id);
        net.settle();
        net.done();
        assert_eq!(net.origin.busy(), 0);
        let next = net.get(URL);
        assert!(net.client(next).is_ok(), "after {moment}");
        net.done();
    }
}

fn page() -> Page {
    Page::of(200_000).etag("a").waiting(Duration::from_millis(3)).steady()
}

#[test]
fn during_a_miss() {
    leaves_at_every_moment(|net| net.origin.put(URL, page().fresh(60)), || Call::get(URL));
}

#[test]
fn during_interception() {
    leaves_at_every_moment(
        |net| net.origin.put(URL, page().fresh(60)),
        || Call::get(URL).dialling("192.0.2.1:80"),
    );
}

#[test]
fn during_what_is_relayed() {
    leaves_at_every_moment(
        |net| net.origin.put(URL, page()),
        || Call::get(URL).with("range", "bytes=5-"),
    );
}

#[test]
fn during_a_hit_from_the_disk() {
    let prepare = |net: &mut Net| {
        net.origin.put(URL, page().fresh(60));
        net.get(URL);
        net.restart_slowly(&Options { disk_delay: Duration::from_millis(3), ..Options::default() });
    };
    leaves_at_every_moment(prepare, || Call::get(URL));
}

#[test]
fn during_revalidation() {
    let prepare = |net: &mut Net| {
        net.origin.put(URL, page().fresh(5));
        net.get(URL);
        net.pass_seconds(10);
    };
    leaves_at_every_moment(prepare, || Call::get(URL));
}

#[test]
fn twice_or_after_its_end_means_nothing() {
    let mut net = Net::new();
    net.origin.put(URL, page().fresh(60));
    let id = net.get(URL);
    net.leave(id);
    assert_eq!(net.client(id).end, Some(End::Finished));
    net.node.handle_input(
        wire::Instant::ZERO,
        node::Input::Client(node::ClientInput::Gone(node::ExchangeId(id as u64))),
    );
    net.done();
}
