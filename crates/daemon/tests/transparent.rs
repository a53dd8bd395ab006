//! Interception: a client without proxy settings, a router that runs the daemon, and an origin, each in a network
//! namespace of its own, over IPv4 and IPv6.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::world::network::{self, CLIENT, ORIGIN, connect, there};
use crate::world::{
    self, Curl, Hearsay, Nginx, Reply, Script, TIMEOUT, World, assert_same, noise, sh, wait_until,
};

const INTERCEPT: [&str; 2] = ["--intercept", "lan0"];

/// The response that the client's curl gets without proxy settings.
fn get(url: &str) -> Reply {
    Curl::new(CLIENT, url).run()
}

/// As [`get`], over one address family.
fn get_by(family: &str, url: &str) -> Reply {
    Curl::new(CLIENT, url).args(&[family]).run()
}

/// An origin on port 80 of its namespace, for both families, that follows a script.
fn script(script: impl Fn(&mut world::Visit) + Send + Sync + 'static) -> Script {
    Script::on(there(ORIGIN, || TcpListener::bind("[::]:80")).expect("port 80 is free"), script)
}

#[test]
fn an_unmodified_client_is_served_from_the_store_the_second_time() {
    network::inside("an_unmodified_client_is_served_from_the_store_the_second_time", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        let hearsay = Hearsay::start_with(&world, &INTERCEPT);
        for (number, (family, name)) in [("-4", "four"), ("-6", "six")].into_iter().enumerate() {
            let file = noise(number as u64, 1_500_000);
            nginx.put(name, &file);
            let url = format!("http://origin.test/{name}");
            let first = get_by(family, &url).expect(200);
            assert!(first.cache_status().contains("stored"), "{first:?}");
            assert_same(&first.body, &file);
            assert_same(&get_by(family, &url).expect_hit().body, &file);
            // Both address families share one stored object.
            let other = if family == "-4" { "-6" } else { "-4" };
            assert_same(&get_by(other, &url).expect_hit().body, &file);
            assert_eq!(nginx.count(&format!("/{name}")), 1, "{:?}", nginx.asked());
        }
        assert_eq!(hearsay.number("/report/requests/hit"), 4);
        assert_eq!(hearsay.status()["intercept"]["works"], true);
    });
}

#[test]
fn an_address_in_place_of_a_name_is_served_too() {
    network::inside("an_address_in_place_of_a_name_is_served_too", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let _hearsay = Hearsay::start_with(&world, &INTERCEPT);
        for url in ["http://10.2.0.2/file", "http://[fd02::2]/file"] {
            assert_eq!(get(url).expect(200).text(), "hello");
            assert_eq!(get(url).expect_hit().text(), "hello");
        }
        assert_eq!(nginx.count("/file"), 2);
    });
}

#[test]
fn other_ports_and_other_interfaces_are_left_alone() {
    network::inside("other_ports_and_other_interfaces_are_left_alone", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let _hearsay = Hearsay::start_with(&world, &INTERCEPT);
        let other_port = get("http://origin.test:8080/file").expect(200);
        let router = Curl::new(world::Place::Here, "http://origin.test/file").run().expect(200);
        assert!(other_port.field("via").is_empty() && router.field("via").is_empty());
        // The interception port accepts no direct connections: it would be an open proxy.
        for url in ["http://10.1.0.1:3130/", "http://[fd01::1]:3130/"] {
            let reply = Curl::new(CLIENT, url).args(&["--connect-timeout", "2"]).run();
            assert!(reply.exit != 0 && reply.status == 0, "{reply:?}");
        }
    });
}

#[test]
fn a_host_that_is_not_at_the_dialled_address_is_relayed_and_never_stored() {
    network::inside(
        "a_host_that_is_not_at_the_dialled_address_is_relayed_and_never_stored",
        || {
            let world = World::new();
            let nginx = Nginx::start_in(&world, ORIGIN, "");
            nginx.put("file", b"forged");
            let hearsay = Hearsay::start_with(&world, &INTERCEPT);
            let mut asked = 0;
            for host in
                ["elsewhere.test", "unknown.test", "10.2.0.99", "[fd02::99]", "origin.test:81"]
            {
                for url in ["http://10.2.0.2/file", "http://[fd02::2]/file"] {
                    let ask = || Curl::new(CLIENT, url).field(&format!("Host: {host}")).run();
                    for _ in 0..2 {
                        let reply = ask().expect(200);
                        assert_eq!(
                            reply.text(),
                            "forged",
                            "the client's own choice was not respected"
                        );
                        assert!(!reply.is_hit(), "{host} at {url}: {reply:?}");
                        // No resolver answers here.
                        let is_unknown = reply.cache_status().ends_with("host-unknown");
                        assert_eq!(is_unknown, host == "unknown.test", "{reply:?}");
                        asked += 1;
                    }
                }
            }
            assert_eq!(nginx.count("/file"), asked);
            assert_eq!(hearsay.number("/report/requests/miss"), 0);
            let not_stored = &hearsay.status()["report"]["not_stored"];
            assert_eq!(not_stored["host-unknown"]["responses"], 4);
            assert_eq!(not_stored["host-mismatch"]["responses"], asked - 4);
            // The forged response is not stored, so no other client gets it.
            let list = hearsay.command(&["cache", "--json"]);
            assert_eq!(String::from_utf8_lossy(&list.stdout).trim(), "[]");
        },
    );
}

#[test]
fn a_target_that_contradicts_the_dialled_address_is_not_stored_either() {
    network::inside("a_target_that_contradicts_the_dialled_address_is_not_stored_either", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"forged");
        let hearsay = Hearsay::start_with(&world, &INTERCEPT);
        for _ in 0..2 {
            let mut client = connect("10.2.0.2:80");
            client.send("GET http://elsewhere.test/file HTTP/1.1\r\nHost: origin.test\r\n\r\n");
            let reply = client.reply().expect(200);
            assert!(reply.text() == "forged" && !reply.is_hit(), "{reply:?}");
        }
        let list = hearsay.command(&["cache", "--json"]);
        assert_eq!(String::from_utf8_lossy(&list.stdout).trim(), "[]");
    });
}

#[test]
fn an_old_client_that_names_no_host_is_served() {
    network::inside("an_old_client_that_names_no_host_is_served", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let _hearsay = Hearsay::start_with(&world, &INTERCEPT);
        for address in ["10.2.0.2:80", "[fd02::2]:80"] {
            let text = connect(address).send("GET /file HTTP/1.0\r\n\r\n").rest_text();
            assert!(text.starts_with("HTTP/1.") && text.ends_with("\r\n\r\nhello"), "{text}");
        }
    });
}

#[test]
fn the_client_keeps_its_connection_to_an_origin_that_is_down() {
    network::inside("the_client_keeps_its_connection_to_an_origin_that_is_down", || {
        let world = World::new();
        let _hearsay = Hearsay::start_with(&world, &INTERCEPT);
        let reply = get("http://origin.test/file").expect(502);
        assert!(reply.field("proxy-status").contains("destination_unavailable"), "{reply:?}");
        let reply = Curl::new(CLIENT, "http://10.2.0.2/").field("Host: 127.0.0.1").run();
        assert_eq!(reply.status, 502, "{reply:?}");
    });
}

#[test]
fn the_router_itself_is_not_reached_through_its_daemon() {
    network::inside("the_router_itself_is_not_reached_through_its_daemon", || {
        let world = World::new();
        let inner = Script::on(TcpListener::bind("[::]:80").expect("port 80 is free"), |visit| {
            if visit.head().is_some() {
                visit.send(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nContent-Length: 4\r\n\r\nhere",
                );
            }
        });
        let hearsay = Hearsay::start_with(&world, &INTERCEPT);
        // Requests to the router's own web page are not proxied, and nothing of it is stored.
        for url in ["http://10.1.0.1/", "http://[fd01::1]/", "http://10.2.0.1/"] {
            let reply = get(url);
            let direct = reply.status == 200 && reply.field("via").is_empty();
            assert!(direct || reply.status == 403, "{url}: {reply:?}");
        }
        let list = hearsay.command(&["cache", "--json"]);
        assert_eq!(String::from_utf8_lossy(&list.stdout).trim(), "[]");
        drop(inner);
    });
}

#[test]
fn what_is_not_http_is_relayed_when_the_client_speaks_first() {
    network::inside("what_is_not_http_is_relayed_when_the_client_speaks_first", || {
        let world = World::new();
        let greeting = b"\x00\x01binary\r\n\r\n\xff".to_vec();
        let length = greeting.len();
        let _origin = script(move |visit| {
            let said = visit.body(length).unwrap_or_default();
            visit.send([b"heard ", &said[..]].concat());
            visit.wait_for_end();
            visit.send("bye");
        });
        let hearsay = Hearsay::start_with(&world, &INTERCEPT);
        for address in ["10.2.0.2:80", "[fd02::2]:80"] {
            let mut client = connect(address);
            client.send(&greeting);
            assert_eq!(client.take(6 + length), [b"heard ", &greeting[..]].concat());
            assert_eq!(client.finish().rest_text(), "bye");
        }
        wait_until("the bytes to be counted", || {
            hearsay.number("/relayed_bytes") == 2 * (6 + 2 * length as u64 + 3)
        });
        assert_eq!(hearsay.number("/report/requests/error"), 0);
    });
}

#[test]
fn what_is_not_http_is_relayed_when_the_server_speaks_first() {
    network::inside("what_is_not_http_is_relayed_when_the_server_speaks_first", || {
        let world = World::new();
        let _origin = script(|visit| {
            visit.send("220 mail.test ESMTP\r\n");
            let said = visit.body(11).unwrap_or_default();
            visit.send([b"250 ", &said[..]].concat());
        });
        let _hearsay = Hearsay::start_with(&world, &INTERCEPT);
        for address in ["10.2.0.2:80", "[fd02::2]:80"] {
            let mut client = connect(address);
            assert_eq!(client.take(21), b"220 mail.test ESMTP\r\n");
            assert_eq!(client.send("EHLO me\r\nxx").take(15), b"250 EHLO me\r\nxx");
            assert!(client.rest().is_empty());
        }
    });
}

#[test]
fn an_upgraded_connection_carries_any_bytes() {
    network::inside("an_upgraded_connection_carries_any_bytes", || {
        let world = World::new();
        let origin = script(|visit| {
            let Some(_) = visit.head() else { return };
            visit.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n");
            // The new protocol's first bytes follow the head at once.
            visit.send("Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n\x01first");
            let said = visit.body(4).unwrap_or_default();
            visit.send([b"echo ", &said[..]].concat());
        });
        let hearsay = Hearsay::start_with(&world, &INTERCEPT);
        for address in ["10.2.0.2:80", "[fd02::2]:80"] {
            let mut client = connect(address);
            client.send(
                "GET /chat HTTP/1.1\r\nHost: origin.test\r\nConnection: keep-alive, Upgrade\r\n",
            );
            client.send("Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n");
            let head = client.reply();
            assert_eq!(head.status, 101, "{head:?}");
            assert_eq!(head.field("upgrade"), "websocket");
            assert_eq!(head.field("sec-websocket-accept"), "x");
            assert_eq!(client.take(6), b"\x01first");
            assert_eq!(client.send(b"\xff\0\r\n").rest(), b"echo \xff\0\r\n");
        }
        let heads = origin.heads();
        assert!(
            heads.iter().all(|head| head.to_lowercase().contains("upgrade: websocket")),
            "{heads:?}"
        );
        wait_until("the bytes to be counted", || hearsay.number("/relayed_bytes") >= 2 * 19);
    });
}

/// How a stream ends that has nothing more to say.
fn end_of(stream: &mut impl std::io::Read) -> Result<usize, ErrorKind> {
    stream.read(&mut [0]).map_err(|error| error.kind())
}

#[test]
fn what_a_killed_daemon_relayed_is_reset_and_looks_like_no_end() {
    network::inside("what_a_killed_daemon_relayed_is_reset_and_looks_like_no_end", || {
        let world = World::new();
        let (tell, ended) = mpsc::channel();
        let _origin = script(move |visit| {
            if visit.number == 0 {
                visit.send("220 ready\r\n");
            } else {
                let Some(_) = visit.head() else { return };
                visit.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n");
                visit.send("Upgrade: websocket\r\n\r\n220 ready\r\n");
            }
            let _ = tell.send(end_of(&mut visit.stream));
        });
        let mut hearsay = Hearsay::start_with(&world, &INTERCEPT);
        let mut plain = connect("10.2.0.2:80");
        assert_eq!(plain.take(11), b"220 ready\r\n");
        let mut upgraded = connect("10.2.0.2:80");
        upgraded.send("GET /chat HTTP/1.1\r\nHost: origin.test\r\nConnection: Upgrade\r\n");
        upgraded.send("Upgrade: websocket\r\n\r\n");
        assert_eq!(upgraded.reply().status, 101);
        assert_eq!(upgraded.take(11), b"220 ready\r\n");
        hearsay.kill();
        for client in [&mut plain, &mut upgraded] {
            assert_eq!(client.end(), Err(ErrorKind::ConnectionReset));
            let server = ended.recv_timeout(TIMEOUT).expect("it ends");
            assert_eq!(server, Err(ErrorKind::ConnectionReset));
        }
    });
}

#[test]
fn the_tail_of_what_is_relayed_reaches_a_client_that_reads_late() {
    network::inside("the_tail_of_what_is_relayed_reaches_a_client_that_reads_late", || {
        let world = World::new();
        // The client's kernel takes less than the daemon's: some of it waits there after the daemon has closed.
        sh("ip netns exec client sysctl -qw net.ipv4.tcp_rmem='4096 8192 8192'");
        let tail = noise(6, 20_000);
        let sent = tail.clone();
        let _origin = script(move |visit| {
            visit.wait_for_end();
            visit.send(&sent);
        });
        let hearsay = Hearsay::start_with(&world, &INTERCEPT);
        let mut client = connect("10.2.0.2:80");
        client.send("SSH-2.0\r\n").finish();
        wait_until("the daemon to have given it all to the kernel", || {
            hearsay.number("/relayed_bytes") == 9 + tail.len() as u64
        });
        assert_same(&client.rest(), &tail);
    });
}

#[test]
fn a_refused_upgrade_is_an_ordinary_response() {
    network::inside("a_refused_upgrade_is_an_ordinary_response", || {
        let world = World::new();
        let _origin = script(|visit| {
            if visit.head().is_some() {
                visit.send("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno");
            }
        });
        let _hearsay = Hearsay::start_with(&world, &INTERCEPT);
        let mut client = connect("10.2.0.2:80");
        client.send(
            "GET / HTTP/1.1\r\nHost: origin.test\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        );
        assert_eq!(client.reply().expect(426).text(), "no");
        assert!(client.rest().is_empty(), "what follows is not screened, so it must close");
    });
}

#[test]
fn a_killed_daemon_stops_nobody_and_finds_its_store_again() {
    network::inside("a_killed_daemon_stops_nobody_and_finds_its_store_again", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        let file = noise(1, 900_000);
        nginx.put("file", &file);
        let url = "http://origin.test/file";
        let mut hearsay = Hearsay::start_with(&world, &INTERCEPT);
        get(url).expect(200);
        hearsay.wait_until_durable();
        hearsay.kill();
        for family in ["-4", "-6"] {
            let straight = get_by(family, url).expect(200);
            assert!(straight.field("via").is_empty(), "{straight:?}");
            assert_same(&straight.body, &file);
        }
        assert_eq!(nginx.count("/file"), 3);

        hearsay.restart();
        for family in ["-4", "-6"] {
            assert_same(&get_by(family, url).expect_hit().body, &file);
        }
        assert_eq!(nginx.count("/file"), 3, "{:?}", nginx.asked());
    });
}

#[test]
fn a_stopped_daemon_leaves_no_rule_behind() {
    network::inside("a_stopped_daemon_leaves_no_rule_behind", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let before = rules();
        let mut hearsay = Hearsay::start_with(&world, &INTERCEPT);
        get("http://origin.test/file").expect(200);
        assert_ne!(rules(), before);
        hearsay.terminate();
        assert_eq!(rules(), before);
        assert!(get("http://origin.test/file").expect(200).field("via").is_empty());
        assert!(hearsay.log().contains("stopped"), "{}", hearsay.log());
    });
}

#[test]
fn a_stop_lets_a_transfer_that_is_under_way_finish() {
    network::inside("a_stop_lets_a_transfer_that_is_under_way_finish", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "limit_rate 1m;");
        let file = noise(2, 1_500_000);
        nginx.put("file", &file);
        let args = [&INTERCEPT[..], &["--drain", "1h"]].concat();
        let mut hearsay = Hearsay::start_with(&world, &args);
        let curl = Curl::new(CLIENT, "http://origin.test/file").start();
        wait_until("the transfer to begin", || curl.received() > 0);
        hearsay.terminate();
        assert_same(&curl.wait().expect(200).body, &file);
    });
}

#[test]
fn the_rules_can_be_set_looked_at_and_removed_by_hand() {
    network::inside("the_rules_can_be_set_looked_at_and_removed_by_hand", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let before = rules();
        let (code, said) = intercept(&["check", "--interface", "lan0"]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("hearsay intercept apply"), "no advice: {said}");

        let (code, said) = intercept(&["apply", "--interface", "lan0"]);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("lan0: port 80 is intercepted, to port 3130"), "{said}");
        assert_eq!(intercept(&["check", "--interface", "lan0"]).0, 0);
        let (_, json) = intercept(&["check", "--interface", "lan0", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(report["complete"], true, "{report}");
        assert_eq!(report["families"].as_array().map(Vec::len), Some(2), "{report}");
        let applied = rules();
        assert_eq!(intercept(&["apply", "--interface", "lan0"]).0, 0);
        assert_eq!(rules(), applied, "twice is not the same as once");
        // With the rules but without a daemon, traffic passes.
        assert!(get("http://origin.test/file").expect(200).field("via").is_empty());

        sh("ip -6 rule del priority 313");
        let (code, said) = intercept(&["check", "--interface", "lan0"]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("not complete"), "{said}");

        let (code, said) = intercept(&["remove"]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(rules(), before);
        assert_eq!(intercept(&["remove"]).0, 0, "removing what is not there");
    });
}

#[test]
fn a_head_that_is_too_large_for_us_reaches_an_intercepted_client_as_it_is() {
    let name = "a_head_that_is_too_large_for_us_reaches_an_intercepted_client_as_it_is";
    network::inside(name, || {
        let world = World::new();
        let body = noise(6, 300_000);
        let (content, many) = (body.clone(), "X-Many: a\r\n".repeat(150));
        let large = format!("X-Large: {}\r\n", "x".repeat(40_000));
        let origin = script(move |visit| {
            while let Some(head) = visit.head() {
                let more = match head.split(' ').nth(1) {
                    Some("/many") => &many,
                    Some("/large") => &large,
                    _ => "",
                };
                let length = format!("Content-Length: {}\r\n", content.len());
                visit.send(format!("HTTP/1.1 200 OK\r\n{more}{length}\r\n"));
                visit.send(&content);
                if head.to_lowercase().contains("connection: close") {
                    return;
                }
            }
        });
        let hearsay = Hearsay::start_with(&world, &INTERCEPT);
        for (family, path) in [("-4", "many"), ("-6", "many"), ("-4", "large"), ("-6", "large")] {
            let url = format!("http://origin.test/{path}");
            let reply = get_by(family, &url).expect(200);
            assert_same(&reply.body, &body);
            assert!(reply.field("via").is_empty(), "the response has a Via: {path}");
        }
        // The origin receives the request in the form that clients send without a proxy.
        let asked = origin.heads().into_iter().filter(|head| head.contains("/many"));
        assert!(asked.clone().all(|head| head.to_lowercase().contains("host: origin.test")));
        let relayed = hearsay.number("/relayed_bytes");
        assert!(relayed > 4 * body.len() as u64, "{relayed}");

        // After a response of ours the client's connection is closed instead, and the client must ask again on a new one.
        let mut client = connect("10.2.0.2:80");
        let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: origin.test\r\n\r\n");
        assert_same(&client.send(ask("/small")).reply().expect(200).body, &body);
        assert!(client.send(ask("/many")).rest().is_empty());
        // A client of the explicit proxy gets an error.
        let proxy = ["-x", &format!("http://{}", hearsay.proxy)];
        let here = Curl::new(world::Place::Here, "http://origin.test/many").args(&proxy);
        here.run().expect(502);
        wait_until("no exchange to be left", || hearsay.number("/report/exchanges") == 0);
    });
}

#[test]
fn rules_that_another_program_removes_are_set_again() {
    network::inside("rules_that_another_program_removes_are_set_again", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let hearsay = Hearsay::start_with(&world, &INTERCEPT);
        let is_served = || {
            let replies = ["-4", "-6"].map(|it| get_by(it, "http://origin.test/file").expect(200));
            replies.iter().all(|it| !it.field("via").is_empty())
        };
        // As systemd-networkd does when it starts, and as firewalls do when they are reloaded.
        for loss in ["ip rule del priority 313; ip -6 rule del priority 313", "nft flush ruleset"] {
            assert!(is_served());
            sh(loss);
            assert!(!is_served(), "{loss}");
            let begun = Instant::now();
            // What tells of the second is read every 30 s.
            while !is_served() {
                assert!(begun.elapsed() < 2 * TIMEOUT, "not noticed: {loss}");
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        // What was removed by hand stays so.
        assert!(hearsay.command(&["intercept", "remove"]).status.success());
        wait_until("the daemon to notice", || hearsay.log().contains("rules were removed"));
        assert!(!is_served());
        assert!(hearsay.command(&["intercept", "apply"]).status.success());
        assert!(is_served());
    });
}

#[test]
fn the_rules_are_held_against_what_the_running_daemon_has() {
    network::inside("the_rules_are_held_against_what_the_running_daemon_has", || {
        let world = World::new();
        let config = world.write("hearsay.toml", b"[intercept]\nhttp = [8080]\n");
        let config = config.display().to_string();
        let args = ["--config", &config, "--intercept", "lan0", "--intercept-port", "3140"];
        let _hearsay =
            Hearsay::start_with(&world, &[&args[..], &["--listen", "127.0.0.1:0"]].concat());
        let control = world.path("control").display().to_string();
        let intercept = |args: &[&str]| intercept_with(&["--control", &control], args);
        let (code, said) = intercept(&["check"]);
        assert!(code == 0 && said.contains("lan0: port 80 8080 to port 3140"), "{code}: {said}");
        let (_, json) = intercept(&["check", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!((&report["complete"], &report["listen_port"]), (&true.into(), &3140.into()));
        // The command line overrides the daemon's configuration, and applying the rules again changes nothing.
        assert_eq!(intercept(&["check", "--port", "3130"]).0, 1);
        let before = rules();
        assert_eq!(intercept(&["apply"]).0, 0);
        assert_eq!(rules(), before);
    });
}

#[test]
fn an_interface_that_is_not_there_is_named_and_served_once_it_is() {
    network::inside("an_interface_that_is_not_there_is_named_and_served_once_it_is", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let hearsay = Hearsay::start_with(&world, &["--intercept", "lan7"]);
        assert!(hearsay.log().contains("there is no interface lan7"), "{}", hearsay.log());
        let missing = || hearsay.status()["intercept"]["interfaces_missing"].clone();
        assert_eq!(missing(), serde_json::json!(["lan7"]));
        let page = hearsay.command(&["status"]).stdout;
        assert!(String::from_utf8_lossy(&page).contains("there is no interface lan7"));
        assert!(get_by("-4", "http://origin.test/file").expect(200).field("via").is_empty());

        sh("ip link set lan0 down; ip link set lan0 name lan7; ip link set lan7 up");
        wait_until("it to be intercepted", || {
            let reply = Curl::new(CLIENT, "http://origin.test/file").args(&["-4"]).run();
            !reply.field("via").is_empty()
        });
        assert_eq!(missing(), serde_json::json!([]));
    });
}

#[test]
fn impossible_rules_are_refused_as_wrong_usage() {
    network::inside("impossible_rules_are_refused_as_wrong_usage", || {
        let (code, said) = intercept(&["apply"]);
        assert_eq!(code, 2, "{said}");
        let (code, said) = intercept(&["apply", "--interface", "a name that is no name"]);
        assert_eq!(code, 2, "{said}");
        let (code, said) = intercept(&["check", "--interface", "ghost0"]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("ghost0"), "{said}");
    });
}

fn intercept(args: &[&str]) -> (i32, String) {
    intercept_with(&[], args)
}

/// As [`intercept`], with options of the program before the subcommand.
fn intercept_with(before: &[&str], args: &[&str]) -> (i32, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hearsay"));
    let output = command.args(before).arg("intercept").args(args).output().expect("it starts");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

/// The machine's packet-filter and routing rules, as text.
fn rules() -> String {
    sh("nft list ruleset; for f in -4 -6; do ip $f rule show
        ip $f route show table all | grep -v fe80 | sort; done")
}
