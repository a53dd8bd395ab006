//! Routers in a row that serve each other: real daemons, a real kernel between them, and a client without
//! configuration.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketType, eth, recv, socket};
use serde_json::Value;

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{Curl, Hearsay, Nginx, Place, Reply, Script, World};
use crate::world::{assert_same, noise, row, wait_until};

fn get(url: &str) -> Reply {
    Curl::new(CLIENT, url).args(&["-4"]).run()
}

/// A router's peers, as `hearsay peers --json` prints them.
fn peers(hearsay: &Hearsay) -> Value {
    let output = hearsay.command(&["peers", "--json"]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn names(hearsay: &Hearsay) -> Vec<String> {
    let peers = peers(hearsay);
    let names = peers.as_array().expect("a list").iter().map(|peer| peer["name"].to_string());
    names.map(|name| name.trim_matches('"').to_owned()).collect()
}

/// Starts three daemons in a row, and waits until each has a route.
fn start(worlds: &[World; 3], mesh: &str) -> [Hearsay; 3] {
    let names = ["r1", "r2", "r3"];
    let routers = [0, 1, 2].map(|at| row::router(&worlds[at], names[at], mesh));
    for router in &routers {
        wait_until("a route", || router.status()["route"]["up"] == true);
    }
    routers
}

/// Captures every packet of a machine, on all its interfaces.
struct Tap {
    ended: Arc<AtomicBool>,
    ear: JoinHandle<Vec<u8>>,
}

impl Tap {
    fn on(place: Place) -> Self {
        let open = || socket(AddressFamily::PACKET, SocketType::RAW, Some(eth::ALL));
        let socket = there(place, open).expect("a socket for packets");
        let often = Some(Duration::from_millis(20));
        sockopt::set_socket_timeout(&socket, Timeout::Recv, often).expect("a timeout");
        // A large buffer loses fewer packets. Without the right to set one, the default must do.
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, 32 << 20);
        let ended = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ended);
        let ear = std::thread::spawn(move || {
            let (mut heard, mut packet) = (Vec::new(), vec![0; 128 << 10]);
            loop {
                match recv(&socket, &mut packet[..], RecvFlags::empty()) {
                    Ok((bytes, _)) => heard.extend_from_slice(&packet[..bytes]),
                    Err(_) if end.load(Ordering::Relaxed) => return heard,
                    Err(_) => {}
                }
            }
        });
        Self { ended, ear }
    }

    /// Ends the capture, and returns all bytes.
    fn end(self) -> Vec<u8> {
        self.ended.store(true, Ordering::Relaxed);
        self.ear.join().expect("it ends well")
    }
}

/// How often these bytes occur in the files below a directory.
fn times_kept(dir: &Path, words: &[u8]) -> usize {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten();
    let kept = |entry: std::fs::DirEntry| match entry.path() {
        path if path.is_dir() => times_kept(&path, words),
        path => times(&std::fs::read(path).unwrap_or_default(), words),
    };
    entries.map(kept).sum()
}

fn times(bytes: &[u8], words: &[u8]) -> usize {
    memchr::memmem::find_iter(bytes, words).count()
}

const PATH: &str = "a-path-that-nobody-else-may-read";
const MARK: &str = "words that nobody else may read";

/// Three routers forward and store a text, and serve it again and in part. Returns how often [`MARK`], then
/// [`PATH`], is found in the middle router's packets and in all stores.
fn found_of_a_text(nginx: &Nginx, mesh: &str) -> [[usize; 2]; 2] {
    let text: String = (0..40_000).map(|at| format!("{at}: {MARK}; ")).collect();
    let url = format!("http://origin.test/{PATH}");
    nginx.put(PATH, text.as_bytes());
    let before = nginx.asked().len();
    let tap = Tap::on(Place::In("r2"));
    let worlds = [World::new(), World::new(), World::new()];
    let [mut first, second, gateway] = start(&worlds, mesh);
    assert_same(&get(&url).expect(200).body, text.as_bytes());
    first.wait_until_durable();
    first.restart();
    assert_same(&get(&url).expect_hit().body, text.as_bytes());
    let part = Curl::new(CLIENT, &url).args(&["-4", "-r", "123456-234567"]).run().expect(206);
    assert_same(&part.body, &text.as_bytes()[123_456..=234_567]);
    second.wait_until_durable();
    gateway.wait_until_durable();
    let kept = [&first, &second, &gateway]
        .map(|router| [MARK, PATH].map(|words| times_kept(router.store(), words.as_bytes())));
    let sealed = if mesh.is_empty() { "sealing is off" } else { "sealing is on" };
    assert!(first.log().contains(sealed), "{}", first.log());
    let page = String::from_utf8_lossy(&first.command(&["status"]).stdout).into_owned();
    assert!(page.contains(if mesh.is_empty() { "sealing      off" } else { "sealing      on" }));

    // The first router gets an empty store; the second keeps its own.
    let sent = gateway.number("/report/peer_units_out_bytes");
    drop(first);
    let empty = World::new();
    let first = row::router(&empty, "r1", mesh);
    wait_until("a route", || first.status()["route"]["up"] == true);
    assert_same(&get(&url).expect(200).body, text.as_bytes());
    assert_eq!(gateway.number("/report/peer_units_out_bytes"), sent);
    assert_eq!(nginx.asked().len(), before + 1, "{:?}", nginx.asked());

    let heard = tap.end();
    // The text crossed one link twice and the other once; the capture may have lost some packets.
    assert!(heard.len() > 2 * text.len() && times(&heard, b"HSCH\x02") > 100, "{}", heard.len());
    let sum = |at: usize| kept.iter().map(|kept| kept[at]).sum();
    [[times(&heard, MARK.as_bytes()), sum(0)], [times(&heard, PATH.as_bytes()), sum(1)]]
}

#[test]
fn with_a_key_nothing_crosses_or_rests_in_clear() {
    network::inside("with_a_key_nothing_crosses_or_rests_in_clear", || {
        row::build();
        let origin = World::new();
        let nginx = Nginx::start_in(&origin, ORIGIN, "");
        let [of_text, of_path] = found_of_a_text(&nginx, "key = \"the key of this mesh\"");
        assert_eq!((of_text, of_path), ([0, 0], [0, 0]), "heard and kept");
        // The same without a key, to show that the search finds the text when it is there.
        let [[heard, kept], [_, paths_kept]] = found_of_a_text(&nginx, "");
        assert!(heard > 40_000 && kept > 100_000, "heard {heard} times, kept {kept} times");
        assert!(paths_kept >= 3, "{paths_kept} paths");
    });
}

#[test]
fn what_a_router_on_the_way_holds_is_not_fetched_again() {
    network::inside("what_a_router_on_the_way_holds_is_not_fetched_again", || {
        row::build();
        let worlds = [World::new(), World::new(), World::new()];
        let origin = World::new();
        let nginx = Nginx::start_in(&origin, ORIGIN, "");
        let [first, second, gateway] = start(&worlds, "");
        let file = noise(1, 3_000_000);
        nginx.put("file", &file);
        let url = "http://origin.test/file";
        assert_same(&get(url).expect(200).body, &file);
        assert_eq!(nginx.count("/file"), 1, "{:?}", nginx.asked());
        assert_eq!(names(&first), ["r2"], "{}", first.log());
        assert_eq!(names(&gateway), ["r2"]);
        assert_eq!(names(&second).len(), 2);
        assert_eq!(gateway.number("/report/origin_bytes"), 3_000_000);
        assert_eq!(first.number("/report/peer_units_in_bytes"), 3_000_000);
        assert_same(&get(url).expect_hit().body, &file);

        // The first router gets an empty store; the second keeps its own.
        let sent = gateway.number("/report/peer_units_out_bytes");
        drop(first);
        let empty = World::new();
        let first = row::router(&empty, "r1", "");
        wait_until("a route", || first.status()["route"]["up"] == true);
        assert_same(&get(url).expect(200).body, &file);
        assert_eq!(first.number("/report/peer_units_in_bytes"), 3_000_000);
        // Bytes that the client reads after the transfer has ended may count as local.
        assert!(first.number("/report/served_peer_bytes") > 2_500_000, "{}", first.status());
        assert_eq!(gateway.number("/report/peer_units_out_bytes"), sent);
        assert_eq!(nginx.count("/file"), 1, "{:?}", nginx.asked());

        let page = String::from_utf8_lossy(&first.command(&["status"]).stdout).into_owned();
        assert!(page.contains("2.9 MiB  r2 "), "{page}");
        let table = String::from_utf8_lossy(&first.command(&["peers"]).stdout).into_owned();
        assert!(table.contains("r2    10.77.0.2"), "{table}");
    });
}

#[test]
fn with_thcp_the_gateway_is_asked_end_to_end() {
    network::inside("with_thcp_the_gateway_is_asked_end_to_end", || {
        row::build();
        let worlds = [World::new(), World::new(), World::new()];
        let origin = World::new();
        let nginx = Nginx::start_in(&origin, ORIGIN, "");
        let [first, second, gateway] = start(&worlds, "scheme = \"thcp\"\ngateway = \"10.77.0.3\"");
        nginx.put("file", &noise(2, 1_000_000));
        assert_same(&get("http://origin.test/file").expect(200).body, &noise(2, 1_000_000));
        // The router between may be connected as a neighbour, but it is asked nothing and sends nothing.
        assert!(names(&first).contains(&"r3".to_owned()), "{}", peers(&first));
        assert_eq!(gateway.number("/report/asks_in"), 1);
        assert_eq!(gateway.number("/report/peer_units_out_bytes"), 1_000_000);
        let given = ["asks_in", "peer_units_in_bytes", "peer_units_out_bytes"];
        let given = given.map(|name| second.number(&format!("/report/{name}")));
        assert_eq!(given, [0; 3], "{}", second.status());
    });
}

#[test]
fn a_router_with_another_key_is_no_peer_and_traffic_goes_on() {
    network::inside("a_router_with_another_key_is_no_peer_and_traffic_goes_on", || {
        row::build();
        let [near, middle, far, origin] = [(); 4].map(|()| World::new());
        let nginx = Nginx::start_in(&origin, ORIGIN, "");
        let first = row::router(&near, "r1", "key = \"the key of this mesh\"");
        let second = row::router(&middle, "r2", "key = \"the key of another mesh\"");
        let key = far.write_secret("key", b"the key of this mesh\n").display().to_string();
        let third = row::router(&far, "r3", &format!("key-file = \"{key}\""));
        wait_until("a route", || first.status()["route"]["up"] == true);
        nginx.put("file", &noise(3, 300_000));
        assert_same(&get("http://origin.test/file").expect(200).body, &noise(3, 300_000));
        assert_eq!(names(&second), [] as [&str; 0]);
        // With a key, no recent objects are listed.
        assert_eq!(first.status()["report"]["recent"], serde_json::json!([]));
        assert!(first.log().contains("refuses us"), "{}", first.log());
        drop(third);
    });
}

#[test]
fn without_a_daemon_on_the_way_the_origin_is_asked() {
    network::inside("without_a_daemon_on_the_way_the_origin_is_asked", || {
        row::build();
        let [world, origin] = [World::new(), World::new()];
        let nginx = Nginx::start_in(&origin, ORIGIN, "");
        let first = row::router(&world, "r1", "");
        wait_until("a route", || first.status()["route"]["up"] == true);
        nginx.put("file", b"hello");
        assert_eq!(get("http://origin.test/file").expect(200).text(), "hello");
        assert_eq!(first.number("/report/origin_bytes"), 5);
        let output = first.command(&["peers"]).stdout;
        let said = String::from_utf8_lossy(&output);
        assert!(said.contains("no peers: 10.77.0.2 is the next hop"), "{said}");
    });
}

#[test]
fn a_router_that_dies_on_the_way_costs_no_bytes() {
    network::inside("a_router_that_dies_on_the_way_costs_no_bytes", || {
        row::build();
        let worlds = [World::new(), World::new(), World::new()];
        // Small, regular writes: the origin is slow, but does not pause.
        let listener = there(ORIGIN, || TcpListener::bind("0.0.0.0:80")).expect("port 80 is free");
        let origin = Script::on(listener, |visit| {
            if visit.head().is_some() {
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 4000000\r\n\
                            cache-control: max-age=60\r\n\r\n";
                visit.send(head);
                let portions = noise(4, 4_000_000);
                for portion in portions.chunks(16_000) {
                    std::thread::sleep(Duration::from_millis(8));
                    visit.send(portion);
                }
            }
        });
        let [first, mut second, _gateway] = start(&worlds, "gateway = \"10.77.0.3\"");
        let client = Curl::new(CLIENT, "http://origin.test/slow").args(&["-4"]).start();
        wait_until("half of it", || client.received() > 2_000_000);
        second.kill();
        let reply = client.wait();
        assert_same(&reply.expect(200).body, &noise(4, 4_000_000));
        assert!(first.number("/report/resumes") > 0, "{}", first.status());
        assert_eq!(names(&first), ["r3"]);
        assert_eq!(origin.heads().len(), 1);
    });
}
