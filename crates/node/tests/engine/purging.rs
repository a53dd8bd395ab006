//! What an operator removes is asked for anew, whatever was going on with it.

use crate::net::{Call, Net, Options, Pace, Page};
use std::time::Duration;

const URL: &str = "http://o.test/a";
const OTHER: &str = "http://o.test/b";

fn slow() -> Options {
    Options { disk_delay: Duration::from_millis(3), ..Options::default() }
}

/// A network in which both are stored.
fn stored(options: Options) -> Net {
    let mut net = Net::with(options);
    for url in [URL, OTHER] {
        net.origin.put(url, Page::of(200_000).fresh(600).etag("1"));
        net.get(url);
    }
    net
}

/// The newest version is what a client gets now, from the origin, and the next from the store.
#[track_caller]
fn is_asked_for_anew(net: &mut Net, when: &str) {
    net.origin.put(URL, Page::of(100_000).fresh(600).etag("2"));
    for cache in ["fwd=uri-miss; fwd-status=200; stored", "hit; ttl=600"] {
        let id = net.get(URL);
        let client = net.client(id);
        assert!(client.is_ok(), "{when}");
        assert_eq!((client.header("etag"), client.cache()), ("\"2\"", cache), "{when}");
    }
    net.done();
}

#[test]
fn it_is_gone_from_memory_and_from_the_disk() {
    for restarts in [false, true] {
        let mut net = stored(Options::default());
        if restarts {
            net.restart(&Options::default());
        }
        net.purge(URL);
        net.settle();
        net.restart(&Options::default());
        is_asked_for_anew(&mut net, "after a restart");
        let other = net.get(OTHER);
        assert!(net.client(other).cache().starts_with("hit"), "the other one stays");
    }
}

#[test]
fn who_asks_while_the_disk_has_not_removed_it_yet_does_not_bring_it_back() {
    for moment in 0..40 {
        let mut net = stored(slow());
        net.restart_slowly(&slow());
        let early = net.call(Call::get(URL));
        net.pass(Duration::from_micros(200 * moment));
        net.purge(URL);
        let late = net.call(Call::get(URL));
        net.settle();
        assert!(net.client(early).is_ok() && net.client(late).is_ok());
        assert!(
            net.client(late).cache().starts_with("fwd"),
            "{moment}: {}",
            net.client(late).cache()
        );
        // What the later one fetched is stored; removed once more, the origin is asked.
        net.purge(URL);
        is_asked_for_anew(&mut net, &format!("after {moment}"));
    }
}

#[test]
fn what_is_under_way_reaches_its_client_and_is_not_stored() {
    let mut net = Net::with(slow());
    let page = || Page::of(200_000).fresh(600).etag("1").resting(100_000, Duration::from_secs(5));
    net.origin.put(URL, page());
    let client = net.call(Call::get(URL));
    net.pass(Duration::from_secs(1));
    assert!(net.client(client).status() == 200 && !net.client(client).is_whole());
    net.purge(URL);
    net.settle();
    assert!(net.client(client).is_ok());
    is_asked_for_anew(&mut net, "after a transfer");
}

#[test]
fn who_reads_it_gets_all_of_it() {
    let mut net = stored(Options::default());
    let reader = net.call(Call::get(URL).pace(Pace::Slow(5_000)));
    net.pass(Duration::from_millis(1));
    net.purge(URL);
    net.settle();
    assert!(net.client(reader).is_ok());
    is_asked_for_anew(&mut net, "after a reader");
}
