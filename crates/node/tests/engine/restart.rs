//! What was stored outlives the daemon.

use crate::net::{Call, Net, Options, Page};

#[test]
fn objects_variants_and_validators_outlive_a_restart() {
    let mut net = Net::new();
    net.origin.put("http://o.test/a", Page::of(300_000).fresh(600).etag("a"));
    net.origin.put("http://o.test/old", Page::of(3_000).fresh(5).etag("o"));
    for language in ["de", "fr"] {
        let page = Page::of(5_000).fresh(600).with("vary", "accept-language");
        net.origin.add("http://o.test/v", page.only_for("accept-language", language));
        net.call(Call::get("http://o.test/v").with("accept-language", language));
        net.settle();
    }
    net.get("http://o.test/a");
    net.get("http://o.test/old");
    net.pass_seconds(100);
    net.restart(&Options::default());
    for language in ["de", "fr"] {
        net.call(Call::get("http://o.test/v").with("accept-language", language));
        net.settle();
    }
    let hit = net.get("http://o.test/a");
    assert_eq!(net.client(hit).header("age"), "100");
    let confirmed = net.get("http://o.test/old");
    assert_eq!(net.client(confirmed).cache(), "fwd=stale; fwd-status=304");
    assert!(net.clients().iter().all(|client| client.is_ok()));
    assert_eq!(net.origin.seen.len(), 5);
    net.done();
}

#[test]
fn an_object_of_many_segments_is_read_back() {
    let mut net = Net::new();
    net.origin.put("http://o.test/a", Page::of(9_000_000).fresh(600));
    net.get("http://o.test/a");
    net.restart(&Options { memory_bytes: 1 << 20, ..Options::default() });
    let hit = net.get("http://o.test/a");
    assert!(net.client(hit).is_ok());
    let part = net.call(Call::get("http://o.test/a").with("range", "bytes=8000000-8000009"));
    net.settle();
    assert_eq!((net.client(part).status(), net.client(part).is_whole()), (206, true));
    assert_eq!(net.origin.seen.len(), 1);
    net.done();
}
