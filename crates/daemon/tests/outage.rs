//! The uplink, or the resolver, goes away and comes back, under a client without proxy settings.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::world::network::{self, CLIENT, ORIGIN};
use crate::world::{Curl, Hearsay, Nginx, Reply, World, sh, wait_until};

/// A class whose files are stale after a second, and may then stand in for new ones.
const CLASS: &str = "name = \"news\"\nhosts = [\"origin.test\"]\n\n\
    [[changing]]\npaths = [\"/news/**\"]\nlifetime = \"1s\"\nstale = \"1d\"\n";

const LOCATIONS: &str = "location /news { }
    location /hour { add_header Cache-Control max-age=3600; }
    location /second { add_header Cache-Control max-age=1; }";

/// A world with an origin and a daemon that intercepts.
fn start(world: &World) -> (Nginx, Hearsay) {
    world.write("classes.d/news.toml", CLASS.as_bytes());
    let config = world.write("hearsay.toml", b"[intercept]\ninterfaces = [\"lan0\"]\n");
    let nginx = Nginx::start_in(world, ORIGIN, LOCATIONS);
    for name in ["hour", "second", "news/today"] {
        nginx.put(name, name.as_bytes());
    }
    let config = config.to_str().expect("a path in UTF-8");
    (nginx, Hearsay::start_with(world, &["--config", config]))
}

fn get(name: &str) -> Reply {
    // The client's own resolver knows the name, whatever happens to the router's.
    let at = ["--resolve", "origin.test:80:10.2.0.2"];
    Curl::new(CLIENT, &format!("http://origin.test/{name}")).args(&at).run()
}

fn store_all() {
    for name in ["hour", "second", "news/today"] {
        let first = get(name).expect(200);
        assert!(first.cache_status().ends_with("stored"), "{first:?}");
    }
}

#[test]
fn without_an_uplink_what_is_stored_is_served_and_it_is_said_until_it_is_back() {
    network::inside(
        "without_an_uplink_what_is_stored_is_served_and_it_is_said_until_it_is_back",
        || {
            let world = World::new();
            let (nginx, hearsay) = start(&world);
            store_all();
            assert_eq!(hearsay.metric("hearsay_uplink_up").as_deref(), Some("1"));
            hearsay.wait_until_stale("/second");
            sh("ip link set wan0 down");
            // Without a route, nothing but the daemon answers, once it has seen that.
            wait_until("the rules to follow", || get("hour").status == 200);
            get("hour").expect_hit();
            let reply = get("second").expect(200);
            assert!(reply.cache_status().ends_with("fwd=stale; detail=unreachable"), "{reply:?}");
            wait_until("the uplink to be missed", || {
                hearsay.metric("hearsay_uplink_up").as_deref() == Some("0")
            });
            get("hour").expect_hit();
            let reply = get("second").expect(200);
            assert!(reply.cache_status().ends_with("hit; detail=unreachable"), "{reply:?}");
            assert!(get("never").status >= 502, "what is not stored cannot be had");
            wait_until("the page to say so", || {
                let page = String::from_utf8(hearsay.command(&["status"]).stdout).expect("text");
                let line = page.lines().find(|line| line.starts_with("uplink "));
                line.is_some_and(|line| line.contains("down for"))
            });
            let warned = |words: &str| hearsay.log().matches(words).count();
            assert_eq!(warned("the uplink is down"), 1, "{}", hearsay.log());
            sh("ip link set wan0 up
                ip addr add fd02::1/64 dev wan0 nodad
                ip route add default via 10.2.0.2; ip route add default via fd02::2");
            wait_until("the uplink to be back", || {
                hearsay.metric("hearsay_uplink_up").as_deref() == Some("1")
            });
            wait_until("the rules to follow, and a revalidation", || {
                let reply = get("second").expect(200);
                reply.field("cache-status").contains("fwd=stale; fwd-status=304")
            });
            assert_eq!(warned("the uplink is back"), 1, "{}", hearsay.log());
            assert_eq!(nginx.count("/hour"), 1);
        },
    );
}

#[test]
fn an_uplink_that_swallows_everything_holds_nobody_up() {
    network::inside("an_uplink_that_swallows_everything_holds_nobody_up", || {
        let world = World::new();
        let (_nginx, hearsay) = start(&world);
        store_all();
        hearsay.wait_until_stale("/news/today");
        sh("ip netns exec origin nft 'add table inet t; \
            add chain inet t c { type filter hook input priority 0; policy drop; }'");
        // The connection is kept, and nobody has noticed.
        let begun = Instant::now();
        let reply = get("news/today").expect(200);
        assert!(reply.cache_status().contains("detail=unreachable"), "{reply:?}");
        let first = begun.elapsed();
        // TCP alone would wait for a minute, and the request for as long.
        assert!(first < Duration::from_secs(20), "{first:?}");
        let asked = |hearsay: &Hearsay| hearsay.number("/report/requests/stale");
        let before = asked(&hearsay);
        let reply = get("news/today").expect(200);
        assert!(reply.cache_status().ends_with("hit; detail=unreachable"), "{reply:?}");
        assert_eq!(asked(&hearsay), before + 1);
        sh("ip netns exec origin nft delete table inet t");
        wait_until("the file to be new again", || {
            !get("news/today").expect(200).cache_status().contains("unreachable")
        });
    });
}

#[test]
fn a_name_that_the_resolver_does_not_know_yet_is_fetched_where_the_client_dialled() {
    network::inside(
        "a_name_that_the_resolver_does_not_know_yet_is_fetched_where_the_client_dialled",
        || {
            let world = World::new();
            let (nginx, hearsay) = start(&world);
            // The resolver takes all questions, and answers none.
            let resolver = UdpSocket::bind("127.0.0.1:53").expect("nobody else is there");
            let other = |name: &str| {
                let at = ["--resolve", "other.test:80:10.2.0.2"];
                Curl::new(CLIENT, &format!("http://other.test/{name}")).args(&at).run()
            };
            for _ in 0..2 {
                let reply = other("hour").expect(200);
                assert!(reply.cache_status().ends_with("detail=host-unknown"), "{reply:?}");
            }
            assert_eq!(nginx.count("/hour"), 2);
            assert_eq!(hearsay.metric("hearsay_uplink_up").as_deref(), Some("1"));
            // As soon as the name is known, its files are stored.
            sh("echo 10.2.0.2 other.test >>/etc/hosts");
            drop(resolver);
            wait_until("the name to be known", || {
                other("hour").expect(200).cache_status().ends_with("stored")
            });
        },
    );
}

#[test]
#[ignore = "takes the minute for which a name's addresses are used; scripts/test --long runs it"]
fn without_a_resolver_who_dials_what_was_the_host_has_what_is_stored_also_after_a_restart() {
    network::inside(
        "without_a_resolver_who_dials_what_was_the_host_has_what_is_stored_also_after_a_restart",
        || {
            let world = World::new();
            let (nginx, mut hearsay) = start(&world);
            store_all();
            let before = nginx.count("/second");
            // What is new is written after a minute; that it is durable then, a sync says.
            std::thread::sleep(Duration::from_secs(61));
            hearsay.wait_until_synced();
            sh("echo 127.0.0.1 localhost >/etc/hosts");
            for restarts in [false, true] {
                if restarts {
                    hearsay.restart();
                }
                get("hour").expect_hit();
                let reply = get("news/today").expect(200);
                assert!(reply.cache_status().ends_with("hit; detail=unreachable"), "{reply:?}");
                let reply = get("second").expect(200);
                assert!(reply.cache_status().ends_with("detail=host-unknown"), "{reply:?}");
            }
            assert_eq!(nginx.count("/second"), before + 2);
            assert_eq!(nginx.count("/hour"), 1);
        },
    );
}
