//! More clients than the daemon has memory for, clients that leave, and a daemon that stops: no client's traffic
//! stops.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{
    self, Curl, Hearsay, Nginx, Raw, Script, Visit, World, assert_same, noise, sh, wait_until,
};

/// The smallest memory budget that the daemon accepts: few connections fill it.
const SMALL: [&str; 2] = ["--memory", "4MiB"];
/// How many requests this budget admits at once: three quarters of it, at 64 KiB each.
const ROOM: usize = 48;
/// The memory budget without an option, in bytes.
const MEMORY: u64 = 16 << 20;
/// The origin of the private network.
const PORT_80: &str = "10.2.0.2:80";
const FRESH: &str = "Cache-Control: max-age=3600\r\n";

/// An origin that does not answer until `answer` is called.
struct Slow {
    script: Script,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Slow {
    fn on(listener: TcpListener) -> Self {
        let gate = Arc::<(Mutex<bool>, Condvar)>::default();
        let held = Arc::clone(&gate);
        let script = Script::on(listener, move |visit: &mut Visit| {
            while let Some(head) = visit.head() {
                if head.contains("/slow") {
                    let open = held.0.lock().unwrap();
                    drop(held.1.wait_while(open, |open| !*open).unwrap());
                }
                visit.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 2\r\n\r\nok"));
            }
        });
        Self { script, gate }
    }

    fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a port on loopback"))
    }

    fn answer(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.answer();
    }
}

fn ask(client: &mut Raw, url: &str) {
    client.send(format!("GET {url} HTTP/1.1\r\nHost: origin.test\r\n\r\n"));
}

/// Fills the daemon with clients of the explicit port whose requests wait for the origin.
fn fill(hearsay: &Hearsay, origin: &Slow) -> Vec<Raw> {
    let mut clients = Vec::new();
    for number in 0..ROOM {
        let mut client = Raw::connect(hearsay.proxy);
        ask(&mut client, &origin.script.url(&format!("slow{number}")));
        clients.push(client);
    }
    wait_until("all of them to be under way", || {
        hearsay.number("/report/exchanges") == ROOM as u64
    });
    clients
}

#[test]
fn the_explicit_port_says_that_it_is_full_and_serves_again() {
    let world = World::new();
    let origin = Slow::start();
    let hearsay = Hearsay::start_with(&world, &SMALL);
    let mut clients = fill(&hearsay, &origin);
    let mut late = Raw::connect(hearsay.proxy);
    ask(&mut late, &origin.script.url("a"));
    let reply = late.reply();
    assert_eq!(reply.status, 503, "{reply:?}");
    assert_eq!(reply.field("connection"), "close");
    assert!(reply.field("retry-after").parse::<u32>().is_ok(), "{reply:?}");
    late.rest();
    assert_eq!(hearsay.number("/clients/refused"), 1);
    assert_eq!(hearsay.number("/clients/connections"), ROOM as u64, "a client was closed");
    origin.answer();
    for client in &mut clients {
        assert_eq!(client.reply().expect(200).text(), "ok");
    }
    assert_eq!(hearsay.get(&origin.script.url("a")).expect(200).text(), "ok");
}

#[test]
fn an_index_is_asked_for_only_if_there_is_room_to_unpack_it() {
    network::inside("an_index_is_asked_for_only_if_there_is_room_to_unpack_it", || {
        let world = World::new();
        let origin = Slow::start();
        let mirror = "127.0.0.1:3142".parse().expect("an address");
        let text = format!("listen = [\"127.0.0.1:0\"]\n[mirror]\nlisten = [\"{mirror}\"]");
        let file = world.write("hearsay.toml", text.as_bytes()).display().to_string();
        let hearsay = Hearsay::start_with(&world, &[&SMALL[..], &["--config", &file]].concat());
        let index = || {
            let mut client = Raw::connect(mirror);
            client.send("GET /pypi/simple/six/ HTTP/1.1\r\nHost: mirror.test\r\n\r\n").reply()
        };
        assert_ne!(index().status, 503, "nobody has its host here");
        let mut clients = Vec::new();
        // An index takes as much as six of these.
        for number in 0..ROOM - 5 {
            let mut client = Raw::connect(hearsay.proxy);
            ask(&mut client, &origin.script.url(&format!("slow{number}")));
            clients.push(client);
        }
        wait_until("all of them to be under way", || {
            hearsay.number("/report/exchanges") == clients.len() as u64
        });
        let reply = index();
        assert_eq!(reply.status, 503, "{reply:?}");
        assert_eq!(hearsay.number("/clients/refused"), 1);
    });
}

#[test]
fn who_idles_longest_goes_before_who_does_not_finish_a_head() {
    let world = World::new();
    let origin = Slow::start();
    let hearsay = Hearsay::start_with(&world, &SMALL);
    let mut heads: Vec<_> = (0..ROOM - 2).map(|_| Raw::connect(hearsay.proxy)).collect();
    for client in &mut heads {
        client.send("GET http://a/ HTTP/1.1\r\nHost: ");
    }
    let mut idle = Raw::connect(hearsay.proxy);
    ask(&mut idle, &origin.script.url("a"));
    idle.reply().expect(200);
    // Beside the idle client there is memory for one request and a part of another. The next client's request
    // takes the first; the last client's needs more than the part.
    let mut others: Vec<_> = (0..2).map(|_| Raw::connect(hearsay.proxy)).collect();
    for client in &mut others {
        ask(client, &origin.script.url("b"));
        client.reply().expect(200);
    }
    wait_until("one that idled to go", || hearsay.number("/clients/closed_idle") > 0);
    assert_eq!(hearsay.number("/clients/closed_head"), 0);
    // It idled longest.
    idle.wait_for_end();
    let mut busy = fill_heads(&hearsay, ROOM);
    wait_until("heads to go", || hearsay.number("/clients/closed_head") > 0);
    // Its head was incomplete longest.
    heads[0].wait_for_end();
    for client in &mut busy {
        client.finish();
    }
    assert_eq!(hearsay.get(&origin.script.url("a")).expect(200).text(), "ok");
}

fn fill_heads(hearsay: &Hearsay, count: usize) -> Vec<Raw> {
    let mut clients: Vec<_> = (0..count).map(|_| Raw::connect(hearsay.proxy)).collect();
    for client in &mut clients {
        client.send("GET http://a/ HTTP/1.1\r\nX: ");
    }
    clients
}

/// An origin of the private network, on port 80. It answers nothing under /slow until `answer` is called.
fn slow_origin() -> Slow {
    Slow::on(there(ORIGIN, || TcpListener::bind("[::]:80")).expect("port 80 is free"))
}

/// Ten more addresses for the client's machine.
fn ten_addresses() -> Vec<String> {
    let addresses: Vec<_> = (10..20).map(|last| format!("10.1.0.{last}")).collect();
    for address in &addresses {
        sh(&format!("ip -n client addr add {address}/24 dev eth0"));
    }
    addresses
}

/// Connections that the client's machine makes from several addresses in turn; each sends `words` at once.
fn connect_from(addresses: &[String], to: &str, count: usize, words: &[u8]) -> Vec<TcpStream> {
    let to: SocketAddr = to.parse().expect("an address");
    let connect = |from: &String| {
        let socket = socket_at(from);
        rustix::net::connect(&socket, &to).ok()?;
        let mut stream = TcpStream::from(socket);
        // A connection that the daemon closed in favour of others accepts no bytes.
        let _ = stream.write_all(words);
        Some(stream)
    };
    there(CLIENT, || addresses.iter().cycle().take(count).filter_map(connect).collect())
}

fn socket_at(address: &str) -> OwnedFd {
    use rustix::net::{AddressFamily, SocketType, bind, socket};
    let from: SocketAddr = format!("{address}:0").parse().expect("an address");
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&socket, &from).expect("bind");
    socket
}

/// A connection from an address to another, with a small receive buffer.
fn connect_small(from: &str, to: SocketAddr) -> TcpStream {
    let socket = socket_at(from);
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 2048).expect("a small buffer");
    rustix::net::connect(&socket, &to).expect("it accepts connections");
    TcpStream::from(socket)
}

fn get(path: &str) -> world::Reply {
    Curl::new(CLIENT, &format!("http://origin.test/{path}")).run()
}

#[test]
fn idle_connections_from_ten_addresses_do_not_stop_port_80() {
    network::inside("idle_connections_from_ten_addresses_do_not_stop_port_80", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let hearsay = Hearsay::start_with(&world, &["--intercept", "lan0"]);
        let addresses = ten_addresses();
        for round in 0..2 {
            let idle = connect_from(&addresses, PORT_80, 2048, b"");
            for _ in 0..5 {
                assert_eq!(get("file").expect(200).text(), "hello", "round {round}");
            }
            drop(idle);
        }
        assert!(hearsay.number("/clients/closed_head") > 1000, "{}", hearsay.status());
    });
}

#[test]
fn when_nobody_can_go_new_connections_go_straight_and_come_back_later() {
    network::inside("when_nobody_can_go_new_connections_go_straight_and_come_back_later", || {
        let world = World::new();
        let origin = slow_origin();
        let hearsay = Hearsay::start_with(&world, &[&["--intercept", "lan0"][..], &SMALL].concat());
        assert!(!get("a").expect(200).field("via").is_empty(), "it is not intercepted");
        let mut clients: Vec<_> =
            connect_from(&ten_addresses(), PORT_80, ROOM, b"").into_iter().map(Raw::new).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            ask(client, &format!("/slow{number}"));
        }
        wait_until("all to be under way", || hearsay.number("/report/exchanges") == ROOM as u64);
        // The first connection over the limit is still served; later ones bypass the daemon.
        wait_until("new connections to go straight", || {
            get("b").expect(200).field("via").is_empty()
        });
        assert_eq!(get("c").expect(200).text(), "ok");
        assert_eq!(hearsay.number("/clients/past"), 1);
        origin.answer();
        for client in &mut clients {
            assert_eq!(client.reply().expect(200).text(), "ok");
        }
        wait_until("new connections to be intercepted again", || {
            !get("d").expect(200).field("via").is_empty()
        });
    });
}

#[test]
fn who_leaves_before_the_head_is_gone_and_so_is_its_origin() {
    let world = World::new();
    let origin = Slow::start();
    let hearsay = Hearsay::start(&world);
    let connect = |number| {
        let mut client = Raw::connect(hearsay.proxy);
        ask(&mut client, &origin.script.url(&format!("slow{number}")));
        client
    };
    // It asks first and stays: the others do not go because of a time that all have.
    let mut stays = connect(0);
    wait_until("its request to reach the origin", || origin.script.heads().len() == 1);
    let mut leave: Vec<_> = (1..=100).map(connect).collect();
    wait_until("all requests to reach the origin", || origin.script.heads().len() == 101);
    // Half of the clients close only their sending side.
    for client in leave.iter_mut().take(50) {
        client.finish();
    }
    drop(leave.split_off(50));
    wait_until("all of them to be gone", || {
        hearsay.number("/report/exchanges") == 1 && hearsay.number("/report/fetches") == 1
    });
    origin.answer();
    assert_eq!(stays.reply().expect(200).text(), "ok");
}

#[test]
fn a_stop_gives_what_is_under_way_its_time_and_nothing_else() {
    network::inside("a_stop_gives_what_is_under_way_its_time_and_nothing_else", || {
        let world = World::new();
        let origin = slow_origin();
        let args = ["--intercept", "lan0", "--drain", "1h"];
        let mut hearsay = Hearsay::start_with(&world, &args);
        let mut idle = network::connect("10.2.0.2:80");
        ask(&mut idle, "/a");
        idle.reply().expect(200);
        let mut busy = network::connect("10.2.0.2:80");
        ask(&mut busy, "/slow");
        wait_until("it to be under way", || hearsay.number("/report/exchanges") == 1);
        hearsay.signal("TERM");
        // An idle connection is closed at once, and new connections bypass the daemon.
        assert!(idle.rest().is_empty());
        wait_until("new connections to go straight", || {
            get("b").expect(200).field("via").is_empty()
        });
        assert!(!hearsay.has_ended(), "{}", hearsay.log());
        origin.answer();
        let reply = busy.reply().expect(200);
        assert_eq!(
            (reply.text().as_str(), reply.field("connection")),
            ("ok", "close"),
            "{reply:?}"
        );
        assert!(busy.rest().is_empty());
        wait_until("the daemon to end", || hearsay.has_ended());
        assert!(hearsay.log().contains("open=1"), "{}", hearsay.log());
        assert!(!sh("nft list ruleset").contains("hearsay"), "its rules are left");
    });
}

#[test]
fn who_reads_slowly_gets_all_of_an_answer_after_a_stop() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let file = noise(1, 60_000);
    nginx.put("file", &file);
    let mut hearsay = Hearsay::start_with(&world, &["--drain", "1h"]);
    let mut client = Raw::new(connect_small("127.0.0.1", hearsay.proxy));
    ask(&mut client, &nginx.url("file"));
    // The engine has output the whole response; the client has read nothing.
    wait_until("its answer to be over", || {
        hearsay.number("/report/exchanges") == 0 && hearsay.number("/report/requests/miss") == 1
    });
    hearsay.signal("TERM");
    wait_until("it to wait", || hearsay.log().contains("waiting for open connections"));
    assert_same(&client.reply().expect(200).body, &file);
    assert!(client.rest().is_empty());
    wait_until("the daemon to end", || hearsay.has_ended());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let world = World::new();
    let origin = Slow::start();
    let mut hearsay = Hearsay::start_with(&world, &["--drain", "1h"]);
    let mut client = Raw::connect(hearsay.proxy);
    ask(&mut client, &origin.script.url("slow"));
    wait_until("it to be under way", || hearsay.number("/report/exchanges") == 1);
    hearsay.signal("TERM");
    wait_until("it to wait", || hearsay.log().contains("waiting for open connections"));
    assert!(!hearsay.has_ended());
    hearsay.signal("TERM");
    wait_until("the daemon to end", || hearsay.has_ended());
    assert!(hearsay.log().contains("a second signal: stopping at once"), "{}", hearsay.log());
}

#[test]
fn a_tunnel_has_its_time_too() {
    let world = World::new();
    let echo = Script::start(|visit| {
        while let Some(byte) = visit.body(1) {
            visit.send(byte);
        }
    });
    let mut hearsay = Hearsay::start_with(&world, &["--drain", "1h"]);
    let mut client = Raw::connect(hearsay.proxy);
    client.send(format!("CONNECT {} HTTP/1.1\r\nHost: h\r\n\r\n", echo.address));
    client.reply().expect(200);
    assert_eq!(client.send("a").take(1), b"a");
    hearsay.signal("TERM");
    wait_until("it to wait", || hearsay.log().contains("waiting for open connections"));
    assert_eq!(client.send("b").take(1), b"b");
    assert!(!hearsay.has_ended());
    client.finish();
    assert!(client.rest().is_empty());
    wait_until("the daemon to end", || hearsay.has_ended());
}

#[test]
#[ignore = "takes the minute over which a client's pace is measured; scripts/test --long runs it"]
fn who_does_not_read_goes_after_a_minute_when_half_of_the_room_is_taken() {
    let world = World::new();
    let origin = Slow::start();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(1, 3_000_000));
    let hearsay = Hearsay::start_with(&world, &SMALL);
    let begun = Instant::now();
    let mut stuck = Raw::connect(hearsay.proxy);
    ask(&mut stuck, &nginx.url("file"));
    let mut waiting: Vec<_> = (0..ROOM / 2).map(|_| Raw::connect(hearsay.proxy)).collect();
    for client in &mut waiting {
        ask(client, &origin.script.url("slow"));
    }
    while hearsay.number("/clients/closed_slow") == 0 {
        assert!(begun.elapsed() < Duration::from_secs(600), "it stays");
        std::thread::sleep(Duration::from_secs(1));
    }
    assert!(begun.elapsed() > Duration::from_secs(55), "it had no minute: {:?}", begun.elapsed());
    assert!(stuck.rest().len() < 3_000_000, "it got all of it");
    origin.answer();
    for client in &mut waiting {
        assert_eq!(client.reply().expect(200).text(), "ok");
    }
    assert_eq!(hearsay.number("/clients/closed_slow"), 1);
}

/// Makes 2000 connections from ten addresses; each sends `words`, then neither reads nor writes. Checks that the
/// daemon never promises them more memory than there is.
fn crowd(hearsay: &Hearsay, to: &str, words: &[u8]) -> Vec<TcpStream> {
    let addresses = ten_addresses();
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.extend(connect_from(&addresses, to, 100, words));
        let promised = hearsay.number("/clients/bytes");
        assert!(promised <= MEMORY, "{promised} bytes");
    }
    streams
}

#[test]
fn half_heads_are_promised_no_more_memory_than_there_is() {
    network::inside("half_heads_are_promised_no_more_memory_than_there_is", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let hearsay = Hearsay::start_with(&world, &["--intercept", "lan0"]);
        let half = format!("GET /a HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(31_000));
        let _streams = crowd(&hearsay, PORT_80, half.as_bytes());
        assert_eq!(get("file").expect(200).text(), "hello");
        wait_until("old heads to go", || hearsay.number("/clients/closed_head") > 1000);
        assert_eq!(hearsay.number("/clients/past"), 0, "nobody could go");
    });
}

#[test]
fn clients_that_do_not_read_are_promised_no_more_memory_than_there_is() {
    network::inside("clients_that_do_not_read_are_promised_no_more_memory_than_there_is", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        let file = noise(1, 3_000_000);
        nginx.put("file", &file);
        let args = ["--intercept", "lan0", "--listen", "10.1.0.1:3128"];
        let hearsay = Hearsay::start_with(&world, &args);
        assert_same(&get("file").expect(200).body, &file);
        let request = b"GET http://origin.test/file HTTP/1.1\r\nHost: origin.test\r\n\r\n";
        let _streams = crowd(&hearsay, "10.1.0.1:3128", request);
        wait_until("most to be refused", || hearsay.number("/clients/refused") > 1000);
        // Intercepted clients are still served.
        assert_same(&get("file").expect(200).body, &file);
    });
}

#[test]
fn one_client_does_not_get_all_that_memory_admits_and_is_told_so() {
    network::inside("one_client_does_not_get_all_that_memory_admits_and_is_told_so", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", &noise(1, 3_000_000));
        let args = ["--intercept", "lan0", "--listen", "10.1.0.1:3128"];
        let hearsay = Hearsay::start_with(&world, &[&args[..], &SMALL].concat());
        get("file").expect(200);
        let request = b"GET http://origin.test/file HTTP/1.1\r\nHost: origin.test\r\n\r\n";
        let addresses = ten_addresses();
        let connect =
            |at: usize, count| connect_from(&addresses[at..=at], "10.1.0.1:3128", count, request);
        let _streams = connect(0, ROOM / 2);
        wait_until("half of the room to be taken", || {
            hearsay.number("/report/requests/hit") == ROOM as u64 / 2
        });
        let mut late = Raw::new(connect(0, 1).remove(0));
        let reply = late.reply().expect(503);
        assert!(reply.text().contains(" 503: you have your share"), "{reply:?}");
        assert_eq!(hearsay.number("/clients/over_share"), 1);
        assert_eq!(Raw::new(connect(1, 1).remove(0)).reply().expect(200).body.len(), 3_000_000);
    });
}

/// The daemon's resident memory and the kernel's memory for sockets, in bytes. `/proc/net/sockstat` would also
/// count other namespaces' sockets.
fn memory(hearsay: &Hearsay) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", hearsay.id())).expect("status");
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("RssAnon");
    let kib: u64 = own.trim().trim_end_matches(" kB").parse().expect("a number");
    (kib << 10) + sockets_memory(&sh("ss -Htmn"))
}

/// Memory of the sockets in a table of ss(8): receive queues, send queues and memory allocated in advance (`r`,
/// `w` and `f`).
fn sockets_memory(table: &str) -> u64 {
    let queues = table.split("skmem:(").skip(1).filter_map(|it| it.split(')').next());
    let is_meant = |it: &&str| ["r", "w", "f"].contains(&it.trim_end_matches(char::is_numeric));
    let figures = queues.flat_map(|queue| queue.split(',').filter(is_meant));
    figures.map(|it| it[1..].parse::<u64>().expect("a number")).sum()
}

/// The largest memory use until it stops growing.
fn settled_memory(hearsay: &Hearsay) -> u64 {
    let mut most = 0;
    wait_until("nothing to grow any more", || {
        let now = memory(hearsay);
        let before = most;
        most = most.max(now);
        now <= before
    });
    most
}

/// More than the daemon and its sockets take in all, in bytes, with the default `memory` and without the pages of the
/// program's file. A debug build takes 26 MiB in this test; with a `memory` that admits all clients, 94 MiB.
const MEMORY_MAX: u64 = 34 << 20;

/// The only test that measures memory: small answers that nobody reads take more of it than half heads, and than
/// large answers.
#[test]
fn small_answers_that_are_not_read_take_no_more_memory_than_there_is() {
    network::inside("small_answers_that_are_not_read_take_no_more_memory_than_there_is", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "location /each/ { rewrite ^ /file break; }");
        let file = noise(1, 60_000);
        nginx.put("file", &file);
        let hearsay = Hearsay::start_with(&world, &["--intercept", "lan0"]);
        let to: SocketAddr = PORT_80.parse().expect("an address");
        let addresses = ten_addresses();
        let (mut streams, mut most) = (Vec::new(), 0);
        for number in 0..800 {
            let from = &addresses[number % addresses.len()];
            let mut stream = there(CLIENT, || connect_small(from, to));
            // A connection that the daemon closed in favour of others accepts no bytes.
            let _ = write!(stream, "GET /each/{number} HTTP/1.1\r\nHost: 10.2.0.2\r\n\r\n");
            streams.push(stream);
            if number % 50 == 49 {
                wait_until("all answers to be given", || hearsay.number("/report/exchanges") == 0);
                most = most.max(memory(&hearsay));
            }
        }
        most = most.max(settled_memory(&hearsay));
        println!("small answers: {} KiB", most >> 10);
        assert!(most < MEMORY_MAX, "{most} bytes: {}", hearsay.status());
        drop(streams);
        wait_until("all to be gone", || hearsay.number("/clients/bytes") == 0);
    });
}
