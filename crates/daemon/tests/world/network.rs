//! A private network, in namespaces of its own:
//!
//! ```text
//!   client 10.1.0.2 ── lan0 router wan0 ── 10.2.0.2 origin
//!          fd01::2                         fd02::2
//! ```
//!
//! The router's default route leads to the origin.
//!
//! A test starts itself again inside `unshare`; that process is the router. When it ends, the kernel removes the
//! network. `origin.test` is a name of the origin, `elsewhere.test` is not.

use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{Place, Raw, sh, skipped};

const INSIDE: &str = "HEARSAY_TEST_INSIDE_NAMESPACE";

pub const CLIENT: Place = Place::In("client");
pub const ORIGIN: Place = Place::In("origin");

/// Runs `body` as the router of a private network, or prints that this machine does not permit one.
pub fn inside(test: &str, body: fn()) {
    if std::env::var_os(INSIDE).is_some() {
        build();
        return body();
    }
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    let args =
        [if is_root { "-nm" } else { "-Urnm" }, "--pid", "--fork", "--mount-proc", "--kill-child"];
    let try_it = "PATH=$PATH:/usr/sbin:/sbin; mount -t tmpfs none /run && ip netns add try \
        && ip link add try0 type veth peer name try1 && nft list tables";
    let can = Command::new("unshare").args(args).args(["sh", "-c", try_it]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return skipped(test, "network namespaces or nft are not available here, as root or not");
    }
    // The harness names the thread of a test after it, with its modules.
    let whole_name = std::thread::current().name().expect("a test's thread").to_owned();
    let output = Command::new("unshare")
        .args(args)
        .arg(std::env::current_exe().expect("the test's own path"))
        .args(["--exact", &whole_name, "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .expect("unshare starts");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    // What the child skipped is said past the harness's capture of this test, too.
    for line in said.lines().filter(|line| line.starts_with("SKIPPED: ")) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    // With a wrong name the child would run no test, and succeed.
    assert!(output.status.success() && said.contains("1 passed"), "inside its namespace: {said}");
}

fn build() {
    sh("mount -t tmpfs none /run; mount -t sysfs none /sys; ip link set lo up
        sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
        for peer in 'client lan0 1' 'origin wan0 2'; do
            set -- $peer
            ip netns add $1
            ip link add $2 type veth peer name eth0 netns $1
            sysctl -qw net.ipv6.conf.$2.accept_dad=0
            ip netns exec $1 sysctl -qw net.ipv6.conf.eth0.accept_dad=0
            ip addr add 10.$3.0.1/24 dev $2; ip addr add fd0$3::1/64 dev $2 nodad; ip link set $2 up
            ip -n $1 link set lo up
            ip -n $1 addr add 10.$3.0.2/24 dev eth0; ip -n $1 addr add fd0$3::2/64 dev eth0 nodad
            ip -n $1 link set eth0 up
            ip -n $1 route add default via 10.$3.0.1; ip -n $1 route add default via fd0$3::1
        done
        ip route add default via 10.2.0.2; ip route add default via fd02::2
        printf '%s\\n' '127.0.0.1 localhost' '10.2.0.2 origin.test' 'fd02::2 origin.test' \
            '10.2.0.99 elsewhere.test' 'fd02::99 elsewhere.test' >/run/hosts
        mount --bind /run/hosts /etc/hosts
        # Nobody is there: what the file above does not know is unknown at once.
        echo 'nameserver 127.0.0.1' >/run/resolv.conf
        mount --bind /run/resolv.conf /etc/resolv.conf");
}

/// Runs `work` on a thread inside a namespace. Sockets opened there stay in that namespace.
pub fn there<T: Send>(place: Place, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let moved = scope.spawn(|| {
            if let Place::In(name) = place {
                let file = std::fs::File::open(format!("/run/netns/{name}")).expect("a namespace");
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), kind).expect("setns");
            }
            work()
        });
        moved.join().expect("the work there")
    })
}

/// A connection made by the client's machine.
pub fn connect(address: &str) -> Raw {
    let address = address.parse().expect("an address with a port");
    let connect = || TcpStream::connect_timeout(&address, super::TIMEOUT);
    Raw::new(there(CLIENT, connect).expect("the connection is accepted"))
}
