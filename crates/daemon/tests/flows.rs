//! TCP connections of any protocol that are intercepted and go by the far end of the uplink.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{self, Script, Site, TIMEOUT, assert_same, noise, sh, wait_until};

/// A server outside the site, on the origin's machine.
const SERVERS: [&str; 2] = ["198.51.100.7:5432", "[2001:db8:5::7]:5432"];

/// A server for both families that follows a script, and tells whom it saw.
fn server(
    script: impl Fn(&mut world::Visit) + Send + Sync + 'static,
) -> (Script, mpsc::Receiver<IpAddr>) {
    let (tell, seen) = mpsc::channel();
    let listener = there(ORIGIN, || TcpListener::bind("[::]:5432")).expect("a free port");
    let server = Script::on(listener, move |visit| {
        let _ = tell.send(visit.stream.peer_addr().expect("an address").ip().to_canonical());
        script(visit);
    });
    (server, seen)
}

fn dial(address: &str) -> TcpStream {
    let to = address.parse().expect("an address");
    let stream =
        there(CLIENT, || TcpStream::connect_timeout(&to, TIMEOUT)).expect("it is accepted");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream
}

#[track_caller]
fn take(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).expect("it comes");
    bytes
}

#[test]
fn either_side_speaks_first_and_ends_by_itself() {
    network::inside("either_side_speaks_first_and_ends_by_itself", || {
        let site = Site::up("ports = [80, 5432]");
        let (_server, seen) = server(|visit| {
            visit.send("220 ready\r\n");
            let said = visit.body(7).unwrap_or_default();
            visit.send([b"250 ", &said[..]].concat());
            visit.wait_for_end();
            visit.send("221 bye");
        });
        for address in SERVERS {
            let mut client = dial(address);
            assert_eq!(take(&mut client, 11), b"220 ready\r\n");
            client.write_all(b"HELO x\n").expect("sent");
            assert_eq!(take(&mut client, 11), b"250 HELO x\n");
            client.shutdown(Shutdown::Write).expect("half closed");
            let mut rest = String::new();
            client.read_to_string(&mut rest).expect("all of it");
            assert_eq!(rest, "221 bye");
            let (expected, _) = address.rsplit_once(':').expect("a port");
            let from = seen.recv_timeout(TIMEOUT).expect("it was dialled").to_string();
            assert_eq!(
                from,
                expected.trim_matches(['[', ']']),
                "the far end dialled, not the gateway"
            );
        }
        assert_eq!(site.counter("tcp_flows"), 2);
        let check = std::process::Command::new(env!("CARGO_BIN_EXE_hearsay"))
            .arg("--control")
            .arg(site.gateway.control())
            .args(["intercept", "check"])
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&check.stdout).into_owned();
        assert!(
            check.status.success() && said.contains("for the far end, lan0: port 5432"),
            "{said}"
        );
    });
}

/// A row of a dump: half of it is noise.
fn row(number: u64) -> Vec<u8> {
    let noise: String = noise(number, 10).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("INSERT INTO lessons VALUES ({number}, '{noise}');\n").into_bytes()
}

#[test]
fn what_a_server_says_again_crosses_as_a_reference() {
    network::inside("what_a_server_says_again_crosses_as_a_reference", || {
        let site = Site::up("ports = \"all\"");
        // Rows of text: content that does not shrink at first would not be kept.
        let dump: Vec<_> = (0..20_000u64).flat_map(row).collect();
        let said = dump.clone();
        let (_server, _seen) = server(move |visit| {
            let upload = visit.body(300_000).unwrap_or_default();
            visit.send(&said);
            visit.send(&upload[..1000]);
        });
        let mut crossed = Vec::new();
        for _ in 0..2 {
            let before = (site.counter("crossed_in_bytes"), site.counter("crossed_out_bytes"));
            let mut client = dial(SERVERS[0]);
            client.write_all(&dump[..300_000]).expect("sent");
            assert_same(&take(&mut client, dump.len()), &dump);
            assert_same(&take(&mut client, 1000), &dump[..1000]);
            assert_eq!(client.read(&mut [0]).expect("the end"), 0);
            crossed.push((
                site.counter("crossed_in_bytes") - before.0,
                site.counter("crossed_out_bytes") - before.1,
            ));
        }
        assert!(crossed[0].0 > 200_000 && crossed[0].1 > 60_000, "{crossed:?}");
        assert!(crossed[1].0 < 12_000 && crossed[1].1 < 6_000, "{crossed:?}");
        // The ledger counts what was given, and what did not cross for it.
        let status = site.gateway.status();
        let figure = |name: &str| status["classes"]["relayed"][name].as_u64().expect("a number");
        let given = figure("served_origin_bytes")
            + figure("served_far_reference_bytes")
            + figure("served_far_difference_bytes");
        let length = dump.len() as u64;
        assert_eq!(given, 2 * (length + 1000), "{status}");
        assert!(figure("fetched_far_reference_bytes") > length * 9 / 10, "{status}");
        assert!(figure("fetched_far_reference_bytes") < length * 11 / 10, "{status}");
    });
}

#[test]
fn a_server_that_refuses_or_resets_is_a_reset() {
    network::inside("a_server_that_refuses_or_resets_is_a_reset", || {
        let site = Site::up("ports = \"all\"");
        let mut client = dial("198.51.100.7:5433");
        let refused = client.read(&mut [0]).expect_err("nobody listens there");
        assert_eq!(refused.kind(), ErrorKind::ConnectionReset);
        let listener =
            there(ORIGIN, || TcpListener::bind("198.51.100.7:5432")).expect("a free port");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("it is dialled");
            stream.write_all(b"so far").expect("sent");
            // What is not read when it closes makes the kernel reset the connection.
            stream.read_exact(&mut [0]).expect("the first byte");
        });
        let mut client = dial(SERVERS[0]);
        assert_eq!(take(&mut client, 6), b"so far");
        client.write_all(b"go").expect("sent");
        let reset = client.read(&mut [0]).expect_err("it is reset");
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
        server.join().expect("no panic");
        wait_until("no connection to be left", || site.gateway.number("/clients/connections") == 0);
    });
}

#[test]
fn either_end_that_is_killed_is_a_reset_for_client_and_server() {
    network::inside("either_end_that_is_killed_is_a_reset_for_client_and_server", || {
        let mut site = Site::up("ports = \"all\"");
        let (tell, ended) = mpsc::channel();
        let (_server, _seen) = server(move |visit| {
            visit.send("220 ready\r\n");
            let _ = tell.send(visit.stream.read(&mut [0]).map_err(|error| error.kind()));
        });
        let open = || {
            let mut client = dial(SERVERS[0]);
            assert_eq!(take(&mut client, 11), b"220 ready\r\n");
            client
        };
        let are_reset = |mut client: TcpStream| {
            let reset = client.read(&mut [0]).expect_err("it is broken off");
            assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
            let server = ended.recv_timeout(TIMEOUT).expect("it ends");
            assert_eq!(server, Err(ErrorKind::ConnectionReset));
        };
        let client = open();
        site.gateway.kill();
        are_reset(client);
        site.gateway.restart();
        site.wait_for_rules(4);
        let client = open();
        site.far.process.kill();
        are_reset(client);
    });
}

#[test]
fn a_client_that_resets_resets_its_server() {
    network::inside("a_client_that_resets_resets_its_server", || {
        let site = Site::up("ports = \"all\"");
        let (tell, ended) = mpsc::channel();
        let (_server, _seen) = server(move |visit| {
            visit.send("220 ready\r\n");
            let mut heard = Vec::new();
            let end = visit.stream.read_to_end(&mut heard).map_err(|error| error.kind());
            let _ = tell.send((heard, end.map(drop)));
        });
        let mut client = dial(SERVERS[0]);
        client.write_all(b"half a li").expect("sent");
        assert!(client.peek(&mut [0]).is_ok(), "it is greeted");
        // What is not read when it closes makes the kernel reset the connection.
        drop(client);
        let (heard, end) = ended.recv_timeout(TIMEOUT).expect("it ends");
        assert_same(&heard, b"half a li");
        assert_eq!(end, Err(ErrorKind::ConnectionReset));
        wait_until("no connection to be left", || site.gateway.number("/clients/connections") == 0);
    });
}

#[test]
fn a_server_that_never_speaks_keeps_no_client_from_ending() {
    network::inside("a_server_that_never_speaks_keeps_no_client_from_ending", || {
        let site = Site::up("ports = \"all\"");
        let (_server, _seen) = server(|visit| visit.wait_for_end());
        let mut client = dial(SERVERS[0]);
        client.write_all(b"anybody there?").expect("sent");
        client.shutdown(Shutdown::Write).expect("half closed");
        assert_eq!(client.read(&mut [0]).expect("its end"), 0);
        // And one that says nothing either: both wait, and nothing is broken off.
        let silent = dial(SERVERS[0]);
        wait_until("it to be dialled", || site.counter("tcp_flows") == 2);
        assert_eq!(site.gateway.number("/clients/connections"), 1);
        drop(silent);
        wait_until("no connection to be left", || site.gateway.number("/clients/connections") == 0);
    });
}

#[test]
fn without_a_far_end_connections_go_straight_to_their_servers() {
    network::inside("without_a_far_end_connections_go_straight_to_their_servers", || {
        let mut site = Site::up("ports = \"all\"");
        let (_server, seen) = server(|visit| {
            visit.send("ready");
            visit.wait_for_end();
        });
        let mut open = dial(SERVERS[0]);
        assert_eq!(take(&mut open, 5), b"ready");
        let by_far = seen.recv_timeout(TIMEOUT).expect("it was dialled");
        assert_eq!(by_far.to_string(), "198.51.100.7");
        site.far.process.kill();
        let reset = open.read(&mut [0]).expect_err("it is broken off");
        assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
        // From then on the kernel forwards them; the rules of HTTP stay.
        site.wait_for_rules(2);
        let mut direct = dial(SERVERS[0]);
        assert_eq!(take(&mut direct, 5), b"ready");
        let from = seen.recv_timeout(TIMEOUT).expect("it was dialled");
        assert_eq!(from.to_string(), "10.1.0.2", "the client itself");
    });
}

#[test]
fn a_family_that_the_far_end_lacks_is_not_intercepted() {
    network::inside("a_family_that_the_far_end_lacks_is_not_intercepted", || {
        sh("ip -n origin -6 route del default");
        let site = Site::start("ports = \"all\"");
        site.wait_for_rules(3);
        let (_server, seen) = server(|visit| {
            visit.send("ready");
        });
        // Only the router's network knows the way back.
        sh("ip -n origin -6 route add fd01::/64 via fd02::1");
        for (address, from) in SERVERS.into_iter().zip(["198.51.100.7", "fd01::2"]) {
            assert_eq!(take(&mut dial(address), 5), b"ready");
            let saw = seen.recv_timeout(TIMEOUT).expect("it was dialled").to_string();
            assert_eq!(saw, from, "{address}");
        }
        drop(site);
    });
}

#[test]
fn encrypted_ports_and_private_servers_are_left_alone() {
    network::inside("encrypted_ports_and_private_servers_are_left_alone", || {
        let site = Site::up("ports = \"all\"");
        let (_server, seen) = server(|visit| {
            visit.send("ready");
        });
        assert_eq!(take(&mut dial("10.2.0.2:5432"), 5), b"ready");
        assert_eq!(seen.recv_timeout(TIMEOUT).expect("it was dialled").to_string(), "10.1.0.2");
        let listener = there(ORIGIN, || TcpListener::bind("0.0.0.0:443")).expect("a free port");
        let _client = dial("198.51.100.7:443");
        let (_, from) = listener.accept().expect("it was dialled");
        assert_eq!(from.ip().to_string(), "10.1.0.2");
        assert_eq!(site.counter("tcp_flows") + site.counter("tcp_flows_past"), 0);
    });
}

#[test]
fn a_server_inside_the_site_and_older_connections_are_left_alone() {
    network::inside("a_server_inside_the_site_and_older_connections_are_left_alone", || {
        let (_server, seen) = server(|visit| {
            visit.send("ready");
            while let Some(said) = visit.body(2) {
                visit.send(said);
            }
        });
        sh("ip -n origin addr add 198.51.100.7/32 dev lo");
        let mut older = dial(SERVERS[0]);
        assert_eq!(take(&mut older, 5), b"ready");
        assert_eq!(seen.recv_timeout(TIMEOUT).expect("it was dialled").to_string(), "10.1.0.2");
        sh("ip -n origin addr del 198.51.100.7/32 dev lo");
        let _site = Site::up("ports = \"all\"");
        older.write_all(b"hi").expect("sent");
        assert_eq!(take(&mut older, 2), b"hi", "what is older than the rules goes on");
        // A client outside reaches a server inside, whose answers come by an intercepted interface.
        let inside = there(CLIENT, || TcpListener::bind("10.1.0.2:7000")).expect("a free port");
        let to = "10.1.0.2:7000".parse().expect("an address");
        sh("ip -n origin route replace default via 10.2.0.1 src 198.51.100.7");
        let dialled = there(ORIGIN, || TcpStream::connect_timeout(&to, TIMEOUT));
        let mut caller = dialled.expect("it is accepted");
        let (mut accepted, from) = inside.accept().expect("it is dialled");
        assert_eq!(from.ip().to_string(), "198.51.100.7");
        accepted.write_all(b"hello").expect("sent");
        assert_eq!(take(&mut caller, 5), b"hello");
    });
}

#[test]
fn without_room_connections_go_straight_to_their_servers_and_none_is_refused() {
    network::inside(
        "without_room_connections_go_straight_to_their_servers_and_none_is_refused",
        || {
            let site = Site::up_with("memory = \"4MiB\"", "ports = \"all\"");
            let (_server, seen) = server(|visit| {
                visit.send("ready");
                visit.wait_for_end();
            });
            let mut clients = Vec::new();
            let mut ask = |count: usize| -> Vec<String> {
                let mut new: Vec<_> = (0..count).map(|_| dial(SERVERS[0])).collect();
                let ready = new.iter_mut().all(|client| take(client, 5) == b"ready");
                assert!(ready);
                clients.append(&mut new);
                let from = || seen.recv_timeout(TIMEOUT).expect("it was dialled").to_string();
                (0..count).map(|_| from()).collect()
            };
            // More at once than there is room for: all are served.
            ask(150);
            site.wait_for_rules(2);
            assert!(ask(50).iter().all(|from| from == "10.1.0.2"), "the clients themselves");
            drop(clients);
            // Once they have ended there is room again.
            site.wait_for_rules(4);
        },
    );
}

#[test]
fn where_the_far_end_has_no_room_connections_go_past_it_with_what_was_said() {
    network::inside(
        "where_the_far_end_has_no_room_connections_go_past_it_with_what_was_said",
        || {
            // A quarter of the descriptors is for connections with servers, and half of that for one gateway.
            let site = Site::start_under("ulimit -n 64 && exec", "", "ports = \"all\"");
            site.wait_for_rules(4);
            let (_server, seen) = server(|visit| {
                let said = visit.body(4).unwrap_or_default();
                visit.send([b"got ", &said[..]].concat());
                visit.wait_for_end();
            });
            let mut clients: Vec<_> = (0..20).map(|_| dial(SERVERS[0])).collect();
            for (number, client) in clients.iter_mut().enumerate() {
                client.write_all(format!("{number:04}").as_bytes()).expect("sent");
            }
            for (number, client) in clients.iter_mut().enumerate() {
                assert_eq!(take(client, 8), format!("got {number:04}").as_bytes());
            }
            let from = || seen.recv_timeout(TIMEOUT).expect("it was dialled").to_string();
            let from: Vec<_> = (0..20).map(|_| from()).collect();
            assert_eq!(from.iter().filter(|it| *it == "198.51.100.7").count(), 8, "{from:?}");
            assert_eq!(from.iter().filter(|it| *it == "10.2.0.1").count(), 12, "{from:?}");
            assert_eq!(site.counter("tcp_flows_past"), 12);
            drop(clients);
            // Once they have ended there is room again.
            wait_until("room at the far end", || {
                let mut client = dial(SERVERS[0]);
                client.write_all(b"more").expect("sent");
                assert_eq!(take(&mut client, 8), b"got more");
                seen.recv_timeout(TIMEOUT).expect("it was dialled").to_string() == "198.51.100.7"
            });
        },
    );
}
