//! The interception rules in a real kernel, in private network namespaces.
//!
//! Each test starts itself again inside `unshare`, with its own network, mounts, process ids and
//! /run. That process is the router; when it ends, the kernel removes everything. Inside there are
//!
//! ```text
//!   client (lan) 10.1.0.2 ── lan0 router wan0 ── 10.2.0.2 origin
//!            fd01::2                              fd02::2
//! ```
//!
//! Where namespaces are not permitted, the tests print `SKIPPED:` on standard error, even when
//! output is captured.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use host::intercept::{Family, Rules};

use crate::namespace::{self, sh, skipped};

/// A server that answers every connection with its own name and the address that the client
/// dialled. Its arguments: name, port, and `transparent` if it plays the daemon's listener.
const SERVER: &str = r#"
import socket, sys
name, port, transparent = sys.argv[1], int(sys.argv[2]), "transparent" in sys.argv[3:]
s = socket.socket(socket.AF_INET6)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
if transparent:
    s.setsockopt(socket.SOL_IP, 19, 1)
    s.setsockopt(socket.IPPROTO_IPV6, 75, 1)
s.bind(("::", port)); s.listen(16)
print("ready", flush=True)
while True:
    c = s.accept()[0]
    c.recv(4096)
    body = f"{name} for {c.getsockname()[0]}".encode()
    c.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    c.close()
"#;

#[test]
fn applying_twice_is_applying_once_and_removal_leaves_the_rest() {
    inside("applying_twice_is_applying_once_and_removal_leaves_the_rest", || {
        sh("nft add table inet operator; nft add chain inet operator keep");
        sh(
            "ip rule add priority 313 fwmark 0x1/0x1 lookup 100; ip -6 rule add priority 90 lookup 99",
        );
        let before = everything();
        let rules = rules();

        rules.apply().expect("first");
        let once = everything();
        assert!(rules.check().unwrap().is_complete(), "{}", rules.check().unwrap());
        assert_ne!(before, once);

        rules.apply().expect("second");
        assert_eq!(once, everything(), "applying twice changed something");

        rules.remove().expect("remove");
        assert_eq!(before, everything(), "a rule was left, or another program's was removed");
        assert!(rules.check().unwrap().is_absent());
        rules.remove().expect("removing what is not there");
        assert_eq!(before, everything());
    });
}

#[test]
fn without_a_listener_clients_reach_the_origin_directly() {
    inside("without_a_listener_clients_reach_the_origin_directly", || {
        let Some(_origin) = Server::start("origin", "origin", 80, "") else { return };
        rules().apply().expect("apply");
        assert_eq!(fetch("http://10.2.0.2/"), "origin for ::ffff:10.2.0.2");
        assert_eq!(fetch("http://[fd02::2]/"), "origin for fd02::2");
    });
}

#[test]
fn a_listener_gets_the_connections_and_their_original_destination() {
    inside("a_listener_gets_the_connections_and_their_original_destination", || {
        let Some(_origin) = Server::start("origin", "origin", 80, "") else { return };
        let Some(_other) = Server::start("origin", "origin", 3130, "") else { return };
        let Some(daemon) = Server::start("router", "daemon", 3130, "transparent") else { return };
        rules().apply().expect("apply");
        assert_eq!(fetch("http://10.2.0.2/"), "daemon for ::ffff:10.2.0.2");
        assert_eq!(fetch("http://[fd02::2]/"), "daemon for fd02::2");
        // Connections to port 3130 of another machine are not intercepted …
        assert_eq!(fetch("http://10.2.0.2:3130/"), "origin for ::ffff:10.2.0.2");
        assert_eq!(fetch("http://[fd02::2]:3130/"), "origin for fd02::2");
        // … and the listener cannot be reached at the router's own address: it would be an open
        // proxy.
        assert!(!curl("http://10.1.0.1:3130/", 1).0, "the listener answered on its own address");

        drop(daemon);
        assert_eq!(fetch("http://10.2.0.2/"), "origin for ::ffff:10.2.0.2", "after its death");
        assert_eq!(fetch("http://[fd02::2]/"), "origin for fd02::2", "after its death");
    });
}

#[test]
fn what_the_route_does_not_send_out_is_left_to_the_kernel() {
    inside("what_the_route_does_not_send_out_is_left_to_the_kernel", || {
        let Some(_origin) = Server::start("origin", "origin", 80, "") else { return };
        let Some(_daemon) = Server::start("router", "daemon", 3130, "transparent") else { return };
        for out in [&[][..], &["lan0".to_owned()]] {
            let rules = Rules { out: out.to_vec(), ..rules() };
            let applied = rules.apply().expect("apply");
            assert_eq!(applied.notes.is_empty(), !out.is_empty(), "{:?}", applied.notes);
            assert_eq!(fetch("http://10.2.0.2/"), "origin for ::ffff:10.2.0.2");
            assert_eq!(fetch("http://[fd02::2]/"), "origin for fd02::2");
        }
        let direct = vec!["10.2.0.0/24".parse().unwrap(), "fd02::/64".parse().unwrap()];
        Rules { out: Vec::new(), direct, ..rules() }.apply().expect("apply");
        assert_eq!(fetch("http://10.2.0.2/"), "daemon for ::ffff:10.2.0.2");
        assert_eq!(fetch("http://[fd02::2]/"), "daemon for fd02::2");
        // A packet's mark can change its route, and the rules respect that.
        sh("ip rule add fwmark 0x10 lookup 100; ip route add 10.2.0.0/24 dev lan0 table 100
            nft add table inet operator
            nft add chain inet operator steer '{ type filter hook prerouting priority -160; }'
            nft add rule inet operator steer iifname lan0 tcp dport 80 meta mark set 0x10");
        rules().apply().expect("apply");
        assert!(
            !curl("http://10.2.0.2/", 1).0,
            "it was intercepted although its route does not lead out"
        );
    });
}

#[test]
fn strict_checks_of_return_paths_are_no_hindrance() {
    inside("strict_checks_of_return_paths_are_no_hindrance", || {
        let Some(_daemon) = Server::start("router", "daemon", 3130, "transparent") else { return };
        sh("sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.lan0.rp_filter=1
            # As firewalld does it, for IPv6 by default.
            nft add table inet firewalld
            nft add chain inet firewalld filter_PREROUTING '{ type filter hook prerouting priority filter + 10; }'
            nft add rule inet firewalld filter_PREROUTING icmpv6 type '{ nd-router-advert, nd-neighbor-solicit }' accept
            nft add rule inet firewalld filter_PREROUTING fib saddr . mark . iif oif missing drop");
        rules().apply().expect("apply");
        assert_eq!(fetch("http://10.2.0.2/"), "daemon for ::ffff:10.2.0.2");
        assert_eq!(fetch("http://[fd02::2]/"), "daemon for fd02::2");
    });
}

#[test]
fn a_firewall_that_refuses_what_comes_in_can_accept_by_the_mark() {
    inside("a_firewall_that_refuses_what_comes_in_can_accept_by_the_mark", || {
        let Some(_daemon) = Server::start("router", "daemon", 3130, "transparent") else { return };
        rules().apply().expect("apply");
        sh("nft add table inet operator
            nft add chain inet operator input '{ type filter hook input priority filter; policy accept; }'
            nft add rule inet operator input iifname lan0 meta l4proto tcp reject");
        assert!(!curl("http://10.2.0.2/", 2).0, "the page `trouble` says that it is refused");
        // The line of that page.
        sh("nft insert rule inet operator input 'meta mark & 0x04000000 != 0 accept'");
        assert_eq!(fetch("http://10.2.0.2/"), "daemon for ::ffff:10.2.0.2");
        assert_eq!(fetch("http://[fd02::2]/"), "daemon for fd02::2");
        assert!(!curl("http://10.1.0.1:3130/", 1).0, "the router itself is open");
    });
}

#[test]
fn marks_and_destinations_that_other_programs_set_count() {
    inside("marks_and_destinations_that_other_programs_set_count", || {
        let Some(_portal) = Server::start("router", "portal", 80, "") else { return };
        let Some(_daemon) = Server::start("router", "daemon", 3130, "transparent") else { return };
        // A portal that answers in place of servers, and a policy rule at the priority where others set marks.
        sh("nft add table inet operator
            nft add chain inet operator portal '{ type nat hook prerouting priority dstnat; }'
            nft add rule inet operator portal iifname lan0 ip daddr 10.2.0.2 redirect
            nft add chain inet operator steer '{ type filter hook prerouting priority mangle; }'
            nft add rule inet operator steer iifname lan0 ip6 daddr fd02::2 meta mark set 0x10
            ip -6 rule add fwmark 0x10 lookup 100; ip -6 route add fd02::2 dev lan0 table 100");
        rules().apply().expect("apply");
        assert_eq!(fetch("http://10.2.0.2/"), "portal for ::ffff:10.1.0.1");
        assert!(!curl("http://[fd02::2]/", 1).0, "it was intercepted on a route that leads back");
    });
}

#[test]
fn without_the_rule_or_the_route_clients_reach_the_origin_directly() {
    inside("without_the_rule_or_the_route_clients_reach_the_origin_directly", || {
        let Some(_origin) = Server::start("origin", "origin", 80, "") else { return };
        let Some(_daemon) = Server::start("router", "daemon", 3130, "transparent") else { return };
        for loss in ["rule del priority 313", "route flush table 3130"] {
            for (family, url, address) in [
                ("-4", "http://10.2.0.2/", "::ffff:10.2.0.2"),
                ("-6", "http://[fd02::2]/", "fd02::2"),
            ] {
                rules().apply().expect("apply");
                assert!(rules().delivers_marked());
                assert_eq!(fetch(url), format!("daemon for {address}"));
                sh(&format!("ip {family} {loss}"));
                assert!(!rules().delivers_marked(), "{family} {loss}");
                assert_eq!(fetch(url), format!("origin for {address}"), "{family} {loss}");
            }
        }
    });
}

#[test]
fn the_check_names_what_is_missing() {
    inside("the_check_names_what_is_missing", || {
        let rules = rules();
        rules.apply().expect("apply");
        sh("ip -6 rule del priority 313; ip -4 route flush table 3130");
        sh("sysctl -qw net.ipv4.conf.lan0.src_valid_mark=1");
        let wanted = Rules { interfaces: vec!["lan0".into(), "ghost0".into()], ..rules.clone() };
        let report = wanted.check().unwrap();
        let [v4, v6] = report.families[..] else { panic!("{report}") };
        assert!(!v4.redirect && v4.rule && !v4.route, "{report}");
        assert!(!v6.redirect && !v6.rule && v6.route, "{report}");
        assert_eq!(report.interfaces_missing, ["ghost0"]);
        assert!(report.warnings.iter().any(|w| w.contains("lan0.src_valid_mark")), "{report}");

        rules.apply().expect("apply mends it");
        assert!(rules.check().unwrap().is_complete());
    });
}

#[test]
fn the_source_mark_trap_is_real() {
    inside("the_source_mark_trap_is_real", || {
        let Some(_daemon) = Server::start("router", "daemon", 3130, "transparent") else { return };
        rules().apply().expect("apply");
        sh("sysctl -qw net.ipv4.conf.lan0.src_valid_mark=1");
        assert!(
            !curl("http://10.2.0.2/", 1).0,
            "the kernel no longer drops these: the warning can be removed"
        );
        sh("sysctl -qw net.ipv4.conf.lan0.src_valid_mark=0");
        assert_eq!(fetch("http://10.2.0.2/"), "daemon for ::ffff:10.2.0.2");
    });
}

#[test]
fn a_kernel_without_ipv6_is_served_in_ipv4_alone() {
    inside("a_kernel_without_ipv6_is_served_in_ipv4_alone", || {
        sh("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.lo.disable_ipv6=1");
        let Some(_daemon) = Server::start("router", "daemon", 3130, "transparent") else { return };
        let applied = rules().apply().expect("apply");
        assert_eq!(applied.notes, ["IPv6 is off in this kernel: not intercepted"]);
        let report = rules().check().unwrap();
        assert!(report.is_complete(), "{report}");
        assert!(!Family::V6.is_available());
        assert_eq!(fetch("http://10.2.0.2/"), "daemon for ::ffff:10.2.0.2");
        rules().remove().expect("remove");
        assert!(rules().check().unwrap().is_absent());
    });
}

#[test]
fn a_part_that_fails_takes_back_the_parts_before_it() {
    inside("a_part_that_fails_takes_back_the_parts_before_it", || {
        // With `lo` down the kernel accepts the rule and route of IPv4, then refuses those of IPv6.
        sh("ip link set lo down");
        let before = everything();
        let error = rules().apply().expect_err("lo is down").to_string();
        assert!(error.contains("ip -6 route add local default dev lo table 3130"), "{error}");
        assert_eq!(before, everything());

        sh("ip link set lo up");
        rules().apply().expect("apply");
        let before = everything();
        let broken = Rules { table: 3132, listen_port: 3131, ..rules() };
        sh("mount --bind /bin/false /usr/sbin/nft");
        broken.apply().expect_err("nft fails");
        sh("umount /usr/sbin/nft");
        assert_eq!(before, everything(), "the new rules are undone, the old ones kept");
    });
}

#[test]
fn a_process_without_the_right_is_told_what_to_do() {
    inside("a_process_without_the_right_is_told_what_to_do", || {
        sh("cat > /run/nft <<'END'
#!/bin/sh
echo 'Operation not permitted (you must be root)' >&2; exit 1
END
            chmod +x /run/nft; mount --bind /run/nft /usr/sbin/nft");
        let error = rules().apply().expect_err("not permitted").to_string();
        assert!(error.contains("CAP_NET_ADMIN"), "{error}");
    });
}

fn rules() -> Rules {
    Rules { interfaces: vec!["lan0".into()], out: vec!["wan0".into()], ..Rules::default() }
}

/// Runs `body` as the router of a private network, or reports that this is not possible here.
fn inside(test: &str, body: fn()) {
    namespace::inside(test, "nft list tables", || {
        build_network();
        body();
    });
}

fn build_network() {
    sh("mount -t tmpfs none /run; mount -t sysfs none /sys; ip link set lo up
        sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
        for peer in 'client lan0 1' 'origin wan0 2'; do
            set -- $peer
            ip netns add $1
            ip link add $2 type veth peer name eth0 netns $1
            ip addr add 10.$3.0.1/24 dev $2; ip addr add fd0$3::1/64 dev $2 nodad; ip link set $2 up
            ip -n $1 link set lo up
            ip -n $1 addr add 10.$3.0.2/24 dev eth0; ip -n $1 addr add fd0$3::2/64 dev eth0 nodad
            ip -n $1 link set eth0 up
            ip -n $1 route add default via 10.$3.0.1; ip -n $1 route add default via fd0$3::1
        done");
}

/// All rules of the machine, as text for comparison.
fn everything() -> String {
    let show = "nft list ruleset; for f in -4 -6; do ip $f rule show; ip $f route show table all | grep -v fe80 | sort; done";
    let output = Command::new("sh").args(["-c", show]).output().expect("sh starts");
    String::from_utf8(output.stdout).expect("text")
}

/// The client's response; the test fails if there is none.
fn fetch(url: &str) -> String {
    let (is_ok, text) = curl(url, 10);
    assert!(is_ok, "no answer from {url}: {text}");
    text
}

fn curl(url: &str, seconds_max: u32) -> (bool, String) {
    let output = Command::new("ip")
        .args(["netns", "exec", "client", "curl", "-sS", "--noproxy", "*", "--max-time"])
        .args([&seconds_max.to_string(), url])
        .output()
        .expect("ip starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// A server process; it ends when this is dropped.
struct Server(Child);

impl Server {
    /// Starts one in a namespace, and waits until it listens. `None`: python3 is missing.
    fn start(place: &str, name: &str, port: u16, kind: &str) -> Option<Self> {
        let port = port.to_string();
        let python = ["python3", "-c", SERVER, name, &port, kind];
        let mut command = if place == "router" {
            Command::new("env")
        } else {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", place]);
            command
        };
        let mut child = command.args(python).stdout(Stdio::piped()).spawn().ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
        if line.trim() == "ready" {
            return Some(Self(child));
        }
        let _ = child.wait();
        skipped(name, "python3, which plays the servers, does not start here");
        None
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
