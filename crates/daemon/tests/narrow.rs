//! Clients behind a link whose packets are smaller than those of the router's own interface, as behind a tunnel or PPPoE:
//!
//! ```text
//!   client eth0 ── near ──(1280 bytes)── far ── lan0 router wan0 ── origin
//!   10.1.2.2, fd01:2::2
//! ```
//!
//! What tells the sender of a packet that it is too big (RFC 1191, RFC 8201) is addressed to the origin, whose address
//! the router has borrowed.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};

use crate::bridged::{bridge, filter};
use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{Curl, Hearsay, Nginx, Script, Site, TIMEOUT, World, assert_same, noise, sh};

/// What needs many packets.
const LENGTH: usize = 300_000;

/// Puts the narrow link between the client and the router.
fn narrow() {
    sh("ip link del lan0
        for it in near far; do
            ip netns add $it
            ip -n $it link set lo up
            ip netns exec $it sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
        done
        ip link add lan0 type veth peer name top netns far
        ip -n far link add low mtu 1280 type veth peer name top mtu 1280 netns near
        ip -n near link add low type veth peer name eth0 netns client
        ip addr add 10.1.0.1/24 dev lan0; ip addr add fd01::1/64 dev lan0 nodad; ip link set lan0 up
        for end in 'far top 0 2' 'far low 1 1' 'near top 1 2' 'near low 2 1' 'client eth0 2 2'; do
            set -- $end
            ip -n $1 addr add 10.1.$3.$4/24 dev $2
            ip -n $1 addr add fd01:$3::$4/64 dev $2 nodad
            ip -n $1 link set $2 up
        done
        ip -n client route add default via 10.1.2.1; ip -n client route add default via fd01:2::1
        ip -n near route add default via 10.1.1.1; ip -n near route add default via fd01:1::1
        ip -n far route add default via 10.1.0.1; ip -n far route add default via fd01::1
        ip -n far route add 10.1.2.0/24 via 10.1.1.2; ip -n far route add fd01:2::/64 via fd01:1::2
        ip route add 10.1.0.0/16 via 10.1.0.2; ip route add fd01::/16 via fd01::2");
}

#[test]
fn clients_behind_a_narrow_link_get_every_byte() {
    network::inside("clients_behind_a_narrow_link_get_every_byte", || {
        narrow();
        every_byte_by("lan0");
    });
}

#[test]
fn a_bridge_that_filters_before_a_narrow_link_is_no_hindrance() {
    const TEST: &str = "a_bridge_that_filters_before_a_narrow_link_is_no_hindrance";
    network::inside(TEST, || {
        narrow();
        if bridge(TEST) {
            sh("ip route replace 10.1.0.0/16 via 10.1.0.2; ip route replace fd01::/16 via fd01::2");
            filter(true);
            every_byte_by("br-lan");
        }
    });
}

/// Fetches a file over both families and two ports, as a client on this interface of the router.
fn every_byte_by(interface: &str) {
    let world = World::new();
    let nginx = Nginx::start_in(&world, ORIGIN, "");
    let file = noise(1, LENGTH);
    nginx.put("file", &file);
    let config = format!("[intercept]\ninterfaces = [\"{interface}\"]\nhttp = [8080]\n");
    let config = world.write("conf", config.as_bytes());
    let config = config.display().to_string();
    let _hearsay = Hearsay::start_with(&world, &["--config", &config]);
    for family in ["-4", "-6"] {
        for port in [80, 8080] {
            let url = format!("http://origin.test:{port}/file");
            let get = || {
                // Each connection finds the size out anew.
                sh("ip route flush cache; ip -6 route flush cache");
                Curl::new(CLIENT, &url).args(&[family, "--max-time", "20"]).run().expect(200)
            };
            assert_same(&get().body, &file);
            assert_same(&get().expect_hit().body, &file);
        }
    }
}

#[test]
fn what_goes_by_the_far_end_fits_a_narrow_link_too() {
    network::inside("what_goes_by_the_far_end_fits_a_narrow_link_too", || {
        narrow();
        let _site = Site::up("ports = [80, 5432]");
        let said = noise(2, LENGTH);
        let listener = there(ORIGIN, || TcpListener::bind("[::]:5432")).expect("a free port");
        let dump = said.clone();
        let _server = Script::on(listener, move |visit| {
            visit.send(&dump);
        });
        for address in ["198.51.100.7:5432", "[2001:db8:5::7]:5432"] {
            let to = address.parse().expect("an address");
            let client = there(CLIENT, || TcpStream::connect_timeout(&to, TIMEOUT));
            let mut client = client.expect("it is accepted");
            client.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
            let mut got = Vec::new();
            client.read_to_end(&mut got).expect("all of it");
            assert_same(&got, &said);
        }
    });
}
