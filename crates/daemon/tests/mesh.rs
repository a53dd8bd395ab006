//! The daemon in a mesh: where its port for peers is open, its identity, and what the commands show.

use std::fs;
use std::io::Read as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{self, Hearsay, Place, World, sh, wait_until};

/// A connection from a machine to a port, if the port is open.
fn connect(place: Place, address: &str) -> Option<TcpStream> {
    let address = address.parse().expect("an address with a port");
    there(place, || TcpStream::connect_timeout(&address, Duration::from_secs(5))).ok()
}

fn text(hearsay: &Hearsay, args: &[&str]) -> String {
    let output = hearsay.command(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn field(hearsay: &Hearsay, pointer: &str) -> String {
    let status = hearsay.status();
    let value = status.pointer(pointer).and_then(serde_json::Value::as_str);
    value.unwrap_or_else(|| panic!("no text {pointer} in {status}")).to_owned()
}

#[test]
fn the_port_for_peers_is_open_on_the_mesh_and_nowhere_else() {
    network::inside("the_port_for_peers_is_open_on_the_mesh_and_nowhere_else", || {
        let world = World::new();
        let _hearsay = Hearsay::start_with(&world, &["--mesh", "wan0", "--mesh", "wl7"]);
        wait_until("the port", || connect(ORIGIN, "10.2.0.1:3131").is_some());
        assert!(connect(ORIGIN, "[fd02::1]:3131").is_some());
        for address in ["10.1.0.1:3131", "10.2.0.1:3131", "[fd01::1]:3131", "[fd02::1]:3131"] {
            assert!(connect(CLIENT, address).is_none(), "a client reaches {address}");
        }
        assert!(connect(Place::Here, "127.0.0.1:3131").is_none());
        // wan0 returns with another interface index, and wl7 appears only now.
        sh("ip link del wan0
            ip link add wan0 type veth peer name eth0 netns origin
            ip addr add 10.2.0.1/24 dev wan0; ip link set wan0 up
            ip -n origin addr add 10.2.0.2/24 dev eth0; ip -n origin link set eth0 up
            ip link add wl7 type veth peer name eth7 netns origin
            ip addr add 10.7.0.1/24 dev wl7; ip link set wl7 up
            ip -n origin addr add 10.7.0.2/24 dev eth7; ip -n origin link set eth7 up");
        for address in ["10.2.0.1:3131", "10.7.0.1:3131"] {
            wait_until("the port", || connect(ORIGIN, address).is_some());
            assert!(connect(CLIENT, address).is_none(), "a client reaches {address}");
        }
    });
}

#[test]
fn a_daemon_that_stops_hangs_up() {
    network::inside("a_daemon_that_stops_hangs_up", || {
        let world = World::new();
        let mut hearsay = Hearsay::start_with(&world, &["--mesh", "wan0"]);
        wait_until("the port", || connect(ORIGIN, "10.2.0.1:3131").is_some());
        let mut peer = connect(ORIGIN, "10.2.0.1:3131").expect("the port answers");
        peer.set_read_timeout(Some(world::TIMEOUT)).expect("a timeout");
        hearsay.terminate();
        assert_eq!(peer.read(&mut [0; 1]).expect("an orderly end"), 0);
    });
}

#[test]
fn who_it_is_survives_a_restart() {
    let world = World::new();
    // No such interface: nothing on this machine can take its port.
    let mut hearsay = Hearsay::start_with(&world, &["--mesh", "wl7"]);
    let (id, key) = (field(&hearsay, "/mesh/id"), field(&hearsay, "/mesh/public_key"));
    assert_eq!((id.len(), key.len()), (32, 64));
    assert!(text(&hearsay, &["status"]).contains(&format!("public key   {key}\n")));
    let file = hearsay.store().join("identity");
    assert_eq!(fs::metadata(&file).expect("the file").permissions().mode() & 0o777, 0o600);
    hearsay.restart();
    assert_eq!(field(&hearsay, "/mesh/id"), id);

    let kept = fs::read(&file).expect("the file");
    fs::write(&file, "broken").expect("write");
    hearsay.restart();
    assert_ne!(field(&hearsay, "/mesh/id"), id);
    let why = field(&hearsay, "/mesh/is_temporary");
    assert!(why.contains(&file.display().to_string()) && why.contains("put a copy back"), "{why}");
    assert!(hearsay.log().contains(&why), "{}", hearsay.log());
    assert_eq!(fs::read(&file).expect("the file"), b"broken");
    fs::write(&file, kept).expect("write");
    hearsay.restart();
    assert_eq!(field(&hearsay, "/mesh/id"), id);
}

#[test]
fn without_peers_the_command_says_why() {
    let world = World::new();
    let hearsay = Hearsay::start(&world);
    assert!(text(&hearsay, &["peers"]).contains("there is no mesh here"));
    assert_eq!(text(&hearsay, &["peers", "--json"]), "[]\n");
    assert!(!text(&hearsay, &["status"]).contains("peers"));
    assert!(!hearsay.store().join("identity").exists());

    let world = World::new();
    let hearsay = Hearsay::start_with(&world, &["--mesh", "wl7", "--scheme", "thcp"]);
    let said = text(&hearsay, &["peers"]);
    // The default route does not lead over a mesh interface.
    assert!(said.starts_with("no peers: this is the gateway"), "{said}");
    let status = text(&hearsay, &["status"]);
    assert!(status.contains("peers        0 (thcp)"), "{status}");
}
