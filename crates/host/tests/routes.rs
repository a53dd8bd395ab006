//! The table of routes, while a real kernel and a program that speaks as babeld change them.
//!
//! Each test starts itself again in a private namespace. This router is 10.77.0.2, with the mesh
//! at `wl0`. Where namespaces are not permitted, the tests print `SKIPPED:`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use host::routing::{Routing, Settings};
use node::RouteTable;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::timeout;
use wire::Date;

use crate::namespace::{self, sh, skipped};

/// After this long a test that waits in vain is ended.
const PATIENCE: Duration = Duration::from_secs(120);

const GREETING: &[u8] = b"BABEL 1.0\nversion babeld-1.12.1\nhost vm\nok\n";
const NEIGHBOUR: &str = "add neighbour 1 address fe80::3 if wl0 reach ffff ureach 0000 rxcost 256 \
    txcost 256 rtt 1.3 cost 256\n";
const OWN: &str = "add xroute a prefix 10.77.0.2/32 from 0.0.0.0/0 metric 0\n";

/// Runs `body` on the router, which has a link to the mesh.
fn on_router<F: Future<Output = ()>>(test: &str, body: impl FnOnce() -> F) {
    namespace::inside(test, "true", || {
        sh("ip link set lo up
            ip link add wl0 type veth peer name far0
            for name in wl0 far0; do
                sysctl -qw net.ipv6.conf.$name.accept_dad=0
                ip link set $name up
            done
            ip addr add 10.77.0.2/32 dev wl0; ip addr add fd77::2/128 dev wl0
            ip route add 10.77.0.3 dev wl0 proto 42");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        LocalSet::new().block_on(&runtime.expect("a runtime"), body());
    });
}

/// Follows the routes; the table is read from what is returned.
fn follow(babeld: SocketAddr) -> watch::Receiver<RouteTable> {
    let settings = Settings { interfaces: vec!["wl0".into()], babeld, gateway: None };
    let (routing, routes) = Routing::open(settings).expect("netlink");
    spawn_local(routing.run());
    routes
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("its address");
    (listener, address)
}

/// A line about a route, which the neighbour announces.
fn told(number: u8, to: &str, metric: u32) -> String {
    format!(
        "add route {number:x} prefix {to} from 0.0.0.0/0 installed yes id 40:d3:c5:cd:65:31:90:49 \
         metric {metric} refmetric 0 via fe80::3 if wl0\n"
    )
}

/// Answers as babeld, with these lines as its list.
async fn answer(listener: &TcpListener, list: &str) -> TcpStream {
    let mut stream = listener.accept().await.expect("a connection").0;
    stream.write_all(GREETING).await.expect("greeting");
    let mut asked = [0; 8];
    stream.read_exact(&mut asked).await.expect("a request");
    assert_eq!(&asked, b"monitor\n");
    say(&mut stream, &format!("{list}ok\n")).await;
    stream
}

async fn say(stream: &mut TcpStream, lines: &str) {
    stream.write_all(lines.as_bytes()).await.expect("lines");
}

/// The paths as text: next hop, metric and hops by address.
fn paths(table: &RouteTable) -> BTreeMap<String, String> {
    let text = |it: node::Path| {
        let known = |it: Option<u32>| it.map_or("-".to_owned(), |it| it.to_string());
        format!("{} {} {}", it.next_hop, known(it.metric), known(it.hops))
    };
    table.paths.iter().map(|(host, path)| (host.to_string(), text(path))).collect()
}

/// Waits until these are the paths.
async fn wait_for(routes: &mut watch::Receiver<RouteTable>, expected: &[(&str, &str)]) {
    let expected = expected.iter().map(|(host, path)| (host.to_string(), path.to_string()));
    let expected: BTreeMap<_, _> = expected.collect();
    let is_it = routes.wait_for(|table| paths(table) == expected);
    let found = timeout(PATIENCE, is_it).await.is_ok();
    let last = paths(&routes.borrow());
    assert!(found, "{last:?}, and not {expected:?}");
}

#[test]
fn paths_follow_the_kernel_and_babeld() {
    on_router("paths_follow_the_kernel_and_babeld", || async {
        let (listener, address) = listener().await;
        let mut routes = follow(address);
        wait_for(&mut routes, &[("10.77.0.3", "10.77.0.3 - 1")]).await;
        sh("ip route add 10.77.0.4 via 10.77.0.3 proto static
            ip route add 10.77.0.5 via 10.77.0.3 proto 42
            ip -6 route add fd77::5 via fe80::3 dev wl0 proto 42");
        let beside = ("10.77.0.3", "10.77.0.3 - 1");
        let fixed = ("10.77.0.4", "10.77.0.3 - -");
        let alone = [beside, fixed, ("10.77.0.5", "10.77.0.3 - -"), ("fd77::5", "fe80::3 - -")];
        wait_for(&mut routes, &alone).await;

        // babeld adds metrics to what it installed.
        let list = [
            NEIGHBOUR.to_owned(),
            OWN.to_owned(),
            told(1, "10.77.0.3/32", 256),
            told(2, "10.77.0.5/32", 512),
            told(3, "fd77::5/128", 513),
            // Ourselves, and a router to which the kernel has no route.
            told(4, "10.77.0.2/32", 1),
            told(5, "10.77.0.6/32", 1),
        ];
        let mut babeld = answer(&listener, &list.concat()).await;
        let near = ("10.77.0.3", "10.77.0.3 256 1");
        let far = ("10.77.0.5", "10.77.0.3 512 -");
        wait_for(&mut routes, &[near, fixed, far, ("fd77::5", "fe80::3 513 -")]).await;
        say(&mut babeld, &told(3, "fd77::5/128", 65535)).await;
        wait_for(&mut routes, &[near, fixed, far]).await;
        say(&mut babeld, &NEIGHBOUR.replace("txcost 256", "txcost 65535")).await;
        wait_for(&mut routes, &[fixed]).await;

        sh("ip link set far0 down");
        wait_for(&mut routes, &[]).await;
    });
}

#[test]
fn a_stream_of_metrics_wakes_nobody_more_than_once_a_second() {
    on_router("a_stream_of_metrics_wakes_nobody_more_than_once_a_second", || async {
        let (listener, address) = listener().await;
        let mut routes = follow(address);
        let list = [NEIGHBOUR, &told(1, "10.77.0.3/32", 256)].concat();
        let mut babeld = answer(&listener, &list).await;
        wait_for(&mut routes, &[("10.77.0.3", "10.77.0.3 256 1")]).await;
        let (mut seen, mut metric, begun) = (0, 300, Instant::now());
        while seen < 3 {
            metric += 1;
            say(&mut babeld, &told(1, "10.77.0.3/32", metric)).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            seen += u32::from(routes.has_changed().expect("it runs"));
            routes.mark_unchanged();
            assert!(begun.elapsed() < PATIENCE, "{seen} tables");
        }
        // The first may come at once.
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(2), "{seen} tables in {took:?}");
        // The last one is not forgotten.
        wait_for(&mut routes, &[("10.77.0.3", &format!("10.77.0.3 {metric} 1"))]).await;
    });
}

#[test]
fn a_babeld_that_stops_is_believed_as_long_as_the_kernel_has_its_routes() {
    let name = "a_babeld_that_stops_is_believed_as_long_as_the_kernel_has_its_routes";
    on_router(name, || async {
        sh("ip route add 10.77.0.5 via 10.77.0.3 proto 42");
        let (listener, address) = listener().await;
        let mut routes = follow(address);
        let list =
            [NEIGHBOUR, OWN, &told(1, "10.77.0.3/32", 256), &told(2, "10.77.0.5/32", 512)].concat();
        let (near, far) = (("10.77.0.3", "10.77.0.3 256 1"), ("10.77.0.5", "10.77.0.3 512 -"));
        let babeld = answer(&listener, &list).await;
        wait_for(&mut routes, &[near, far]).await;
        assert_eq!(routes.borrow().stopped, None);

        drop(babeld);
        let stopped = wait_until_stopped(&mut routes, true).await;
        assert_eq!(paths(&routes.borrow()).len(), 2, "babeld has gone at {stopped:?}");
        // The clock alone wakes nobody.
        routes.mark_unchanged();
        let woken = timeout(Duration::from_millis(2500), routes.changed()).await;
        assert!(woken.is_err(), "{:?}", routes.borrow());
        // The kernel loses one, and gets another of which babeld never spoke.
        sh("ip route del 10.77.0.5; ip route add 10.77.0.6 via 10.77.0.3 proto 42");
        wait_for(&mut routes, &[near, ("10.77.0.6", "10.77.0.3 - -")]).await;
        assert_eq!(routes.borrow().stopped, stopped);

        // While babeld lists its routes again, the old ones count, then only the new ones.
        let mut babeld = listener.accept().await.expect("a connection").0;
        say(&mut babeld, &String::from_utf8_lossy(GREETING)).await;
        let new = [NEIGHBOUR, &told(7, "10.77.0.6/32", 700)].concat();
        say(&mut babeld, &new).await;
        // What the kernel tells later shows that it was read.
        sh("ip route add 10.77.0.7 via 10.77.0.3 proto static");
        let fixed = ("10.77.0.7", "10.77.0.3 - -");
        wait_for(&mut routes, &[near, ("10.77.0.6", "10.77.0.3 - -"), fixed]).await;
        say(&mut babeld, "ok\n").await;
        wait_for(&mut routes, &[("10.77.0.6", "10.77.0.3 700 -"), fixed]).await;
        assert_eq!(routes.borrow().stopped, None);

        // It leaves in good order: its routes are gone.
        drop(babeld);
        wait_until_stopped(&mut routes, true).await;
        sh("ip route del 10.77.0.7; ip route flush proto 42");
        wait_for(&mut routes, &[]).await;
        assert_eq!(routes.borrow().stopped, None);
        // And forgotten: another that comes later has no metric of its.
        sh("ip route add 10.77.0.6 dev wl0 proto 42");
        let known = routes.wait_for(|table| table.paths.len() == 1).await.expect("it runs").clone();
        assert_eq!(known.paths.iter().next().and_then(|(_, path)| path.metric), None);
    });
}

/// Waits until babeld's last routes are used, or are not; returns since when.
async fn wait_until_stopped(routes: &mut watch::Receiver<RouteTable>, is: bool) -> Option<Date> {
    let stopped = routes.wait_for(|table| table.stopped.is_some() == is);
    let table = timeout(PATIENCE, stopped).await.expect("in time").expect("it runs");
    table.stopped
}

#[test]
fn lies_and_rubbish_from_babeld_are_survived() {
    on_router("lies_and_rubbish_from_babeld_are_survived", || async {
        let (listener, address) = listener().await;
        let mut routes = follow(address);
        let list = [NEIGHBOUR, OWN, &told(1, "10.77.0.3/32", 256)].concat();
        let near = ("10.77.0.3", "10.77.0.3 256 1");
        let mut babeld = answer(&listener, &list).await;
        wait_for(&mut routes, &[near]).await;
        // A metric that nobody can have, and routes that only babeld knows: to us, to loopback, to
        // everything, over an interface that is not the mesh's.
        let lies = [
            told(2, "10.77.0.2/32", 1),
            told(3, "127.0.0.1/32", 1),
            told(4, "0.0.0.0/0", 1),
            told(5, "10.77.0.9/32", 1).replace("if wl0", "if lo"),
            "add xroute b prefix 10.77.0.3/32 from 0.0.0.0/0 metric 0\n".to_owned(),
            told(1, "10.77.0.3/32", 0),
        ];
        say(&mut babeld, &lies.concat()).await;
        wait_for(&mut routes, &[("10.77.0.3", "10.77.0.3 - 1")]).await;
        assert_eq!(routes.borrow().exit, node::Exit::Nowhere);
        say(&mut babeld, &told(1, "10.77.0.3/32", 256)).await;
        wait_for(&mut routes, &[near]).await;
        // What it says after rubbish does not count, and what it said before does.
        let rubbish = format!("{}\n{}", "x".repeat(2000), told(1, "10.77.0.3/32", 65535));
        say(&mut babeld, &rubbish).await;
        wait_until_stopped(&mut routes, true).await;
        wait_for(&mut routes, &[near]).await;
    });
}

/// What a packet too long for the path makes the sender learn (RFC 792), as an attacker would forge it.
const TOO_LONG: &str = r#"
import socket, struct
def checksum(b):
    s = sum(struct.unpack("!%dH" % (len(b) // 2), b)); s = (s >> 16) + (s & 0xffff); s += s >> 16
    return struct.pack("!H", ~s & 0xffff)
def sealed(b, at):
    return b[:at] + checksum(b) + b[at + 2:]
ours, theirs = socket.inet_aton("10.77.0.2"), socket.inet_aton("192.0.2.9")
sent = sealed(struct.pack("!BBHHHBBH", 0x45, 0, 28, 1, 0x4000, 64, 1, 0) + ours + theirs, 10) + bytes(8)
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s.sendto(sealed(struct.pack("!BBHHH", 3, 4, 0, 0, 1000) + sent, 2), ("10.77.0.2", 0))
"#;

#[test]
fn what_icmp_teaches_the_kernel_is_no_path() {
    on_router("what_icmp_teaches_the_kernel_is_no_path", || async {
        sh("ip route add default via 10.77.0.3");
        let (_listener, address) = listener().await;
        let mut routes = follow(address);
        let beside = ("10.77.0.3", "10.77.0.3 - 1");
        wait_for(&mut routes, &[beside]).await;
        let Ok(sent) = Command::new("python3").args(["-c", TOO_LONG]).status() else {
            return skipped("what_icmp_teaches_the_kernel_is_no_path", "there is no python3");
        };
        assert!(sent.success());
        sh("ip route get 192.0.2.9 | grep -q 'mtu 1000'
            ip route add 10.77.0.4 via 10.77.0.3");
        wait_for(&mut routes, &[beside, ("10.77.0.4", "10.77.0.3 - -")]).await;
    });
}
