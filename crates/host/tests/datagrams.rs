//! Datagrams between routers on real interfaces:
//!
//! ```text
//!   router wl0 10.9.0.1, fd09::1 ── eth0 10.9.0.2 near
//!          wl1 fe80::…           ── eth0 fe80::… six
//!          lan0 10.8.0.1         ── eth0 10.8.0.2 lan
//! ```
//!
//! The mesh is on `wl0`, `wl1` and later `wl2`. Where namespaces are not permitted, the tests print `SKIPPED:` on
//! standard error, even when output is captured.

use std::cell::RefCell;
use std::fs::File;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use host::datagrams::Datagrams;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::task::LocalSet;

use crate::namespace::{inside, sh};

const PORT: u16 = 3131;
/// After this long a test that waits in vain is ended.
const PATIENCE: Duration = Duration::from_secs(120);

const MACHINES: &str = "mount -t tmpfs none /run; ip link set lo up
    for peer in 'near wl0' 'six wl1' 'lan lan0'; do
        set -- $peer
        ip netns add $1
        ip link add $2 type veth peer name eth0 netns $1
        echo 0 >/proc/sys/net/ipv6/conf/$2/accept_dad
        ip netns exec $1 sh -c 'echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad'
        ip link set $2 up; ip -n $1 link set eth0 up; ip -n $1 link set lo up
    done
    ip addr add 10.9.0.1/24 dev wl0; ip addr add fd09::1/64 dev wl0 nodad
    ip -n near addr add 10.9.0.2/24 dev eth0
    ip addr add 10.8.0.1/24 dev lan0; ip -n lan addr add 10.8.0.2/24 dev eth0
    ip -n lan route add default via 10.8.0.1; ip -n near route add default via 10.9.0.1";

/// Opens a socket on the peers' port in a namespace.
fn socket_in(name: &'static str) -> UdpSocket {
    let open = move || {
        let file = File::open(format!("/run/netns/{name}")).expect("a namespace");
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(file.as_fd(), kind).expect("setns");
        let socket = UdpSocket::bind(("::", PORT)).expect("a port");
        socket.set_nonblocking(true).expect("a socket can be");
        socket
    };
    thread::spawn(open).join().expect("it opens")
}

/// What a socket has received: bytes, and from which address.
fn heard(socket: &UdpSocket) -> Vec<(IpAddr, Vec<u8>)> {
    let mut buffer = [0; 2000];
    let next = || socket.recv_from(&mut buffer).ok().map(|(n, from)| (from, buffer[..n].to_vec()));
    std::iter::from_fn(next).map(|(from, bytes)| (from.ip().to_canonical(), bytes)).collect()
}

/// Waits until `look` returns a value, while the receivers run.
async fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The datagrams that a socket receives up to one of the word `last`, without the first ones `to all`.
async fn until_last(socket: &UdpSocket) -> Vec<(IpAddr, Vec<u8>)> {
    let mut all = Vec::new();
    wait_for("the last datagram", || {
        all.extend(heard(socket));
        all.iter().any(|it| it.1 == b"last").then_some(())
    })
    .await;
    all.retain(|it| it.1 != b"to all");
    all
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

type Given = Rc<RefCell<Vec<(SocketAddr, Vec<u8>)>>>;

/// Runs a test on the router; it gets the sockets and what they give.
fn on_router(test: &str, interfaces: &[&str], body: impl AsyncFnOnce(Datagrams, Given)) {
    inside(test, "true", || {
        sh(MACHINES);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        LocalSet::new().block_on(&runtime.expect("a runtime"), async {
            let interfaces: Vec<_> = interfaces.iter().map(ToString::to_string).collect();
            let (datagrams, receivers) = Datagrams::new(&interfaces, PORT);
            let given = Given::default();
            for receiver in receivers {
                let given = Rc::clone(&given);
                let tell = move |from, bytes: bytes::Bytes| {
                    given.borrow_mut().push((from, bytes.to_vec()));
                };
                tokio::task::spawn_local(receiver.run(tell));
            }
            body(datagrams, given).await;
        });
    });
}

#[test]
fn each_neighbour_hears_a_broadcast_once_and_others_do_not() {
    let test = "each_neighbour_hears_a_broadcast_once_and_others_do_not";
    on_router(test, &["wl0", "wl1"], async |datagrams, given| {
        let [near, six, lan] = ["near", "six", "lan"].map(socket_in);
        // IPv6 may still be tentative on wl1.
        wait_for("both interfaces", || {
            datagrams.broadcast(b"to all");
            let counts = datagrams.counts();
            (counts.sent >= 2 && !heard(&six).is_empty()).then_some(())
        })
        .await;
        let before = datagrams.counts();
        datagrams.broadcast(b"once");
        let counts = datagrams.counts();
        assert_eq!((counts.sent - before.sent, counts.sent_bytes - before.sent_bytes), (2, 8));
        // What has passed before the last datagram has arrived, too.
        datagrams.broadcast(b"last");
        let outside = UdpSocket::bind("10.8.0.1:0").expect("a port");
        outside.send_to(b"last", ("10.8.0.2", PORT)).expect("it is sent");
        let router = IpAddr::from([10, 9, 0, 1]);
        assert_eq!(
            until_last(&near).await,
            [(router, b"once".to_vec()), (router, b"last".to_vec())]
        );
        let by_six = until_last(&six).await;
        assert!(
            by_six.iter().map(|it| &it.1[..]).eq([&b"once"[..], b"last"])
                && by_six.iter().all(|it| is_link_local(it.0)),
            "{by_six:?}"
        );
        assert_eq!(until_last(&lan).await, [(IpAddr::from([10, 8, 0, 1]), b"last".to_vec())]);
        // The kernel has also given us what we broadcast over IPv4, and before what a neighbour sends now.
        near.send_to(b"heard", ("::ffff:10.9.0.1", PORT)).expect("it is sent");
        wait_for("a datagram", || (!given.borrow().is_empty()).then_some(())).await;
        assert_eq!(given.borrow()[0].1, b"heard");
        assert_eq!((datagrams.counts().received, given.borrow().len()), (1, 1));
    });
}

#[test]
fn only_the_interfaces_of_the_mesh_are_heard() {
    let test = "only_the_interfaces_of_the_mesh_are_heard";
    on_router(test, &["wl0", "wl2"], async |datagrams, given| {
        let [near, lan] = ["near", "lan"].map(socket_in);
        let to = |address: &str| SocketAddr::new(address.parse().expect("an address"), PORT);
        // To each address of the router, from outside of the mesh.
        lan.send_to(b"foreign", to("::ffff:10.8.0.1")).expect("it is sent");
        lan.send_to(b"foreign", to("::ffff:10.9.0.1")).expect("it is sent");
        // Another socket of the router is given what comes after them.
        let other = UdpSocket::bind("10.8.0.1:0").expect("a port");
        other.set_nonblocking(true).expect("a socket can be");
        let port = other.local_addr().expect("its address").port();
        lan.send_to(b"last", ("::ffff:10.8.0.1", port)).expect("it is sent");
        until_last(&other).await;
        wait_for("a datagram", || {
            near.send_to(b"neighbour", to("::ffff:10.9.0.1")).expect("it is sent");
            (!given.borrow().is_empty()).then_some(())
        })
        .await;
        let from_near = |it: &(SocketAddr, Vec<u8>)| it.0 == to("10.9.0.2") && it.1 == b"neighbour";
        assert!(given.borrow().iter().all(from_near), "{given:?}");
        // An answer goes to the neighbour, and nothing goes out of the mesh.
        let before = datagrams.counts();
        datagrams.send(to("10.9.0.2"), b"answer");
        datagrams.send(to("10.8.0.2"), b"answer");
        let answered = wait_for("the answer", || heard(&near).pop()).await;
        assert_eq!(answered, (IpAddr::from([10, 9, 0, 1]), b"answer".to_vec()));
        assert_eq!(heard(&lan), []);
        let counts = datagrams.counts();
        assert_eq!((counts.sent - before.sent, counts.send_errors - before.send_errors), (1, 1));
    });
}

#[test]
fn interfaces_come_and_go() {
    on_router("interfaces_come_and_go", &["wl0", "wl2"], async |datagrams, given| {
        let [near, six] = ["near", "six"].map(socket_in);
        let arrives = async |socket: &UdpSocket, to: &str| {
            given.borrow_mut().clear();
            let to = SocketAddr::new(to.parse().expect("an address"), PORT);
            wait_for("a datagram", || {
                // While the interface is away there is no route.
                let _ = socket.send_to(b"hello", to);
                (!given.borrow().is_empty()).then_some(())
            })
            .await;
        };
        arrives(&near, "::ffff:10.9.0.1").await;
        // It is down: what is sent is an error, and nothing else happens.
        sh("ip link set wl0 down");
        let before = datagrams.counts();
        datagrams.broadcast(b"nobody");
        assert_eq!(datagrams.counts().send_errors - before.send_errors, 1);
        sh("ip link set wl0 up");
        arrives(&near, "::ffff:10.9.0.1").await;
        // wl0 returns with another index, and wl2 appears only now.
        sh("ip link del wl0
            ip link add wl0 type veth peer name eth0 netns near
            ip addr add 10.9.0.1/24 dev wl0; ip link set wl0 up
            ip -n near addr add 10.9.0.2/24 dev eth0; ip -n near link set eth0 up
            ip link add wl2 type veth peer name eth2 netns six
            ip addr add 10.7.0.1/24 dev wl2; ip link set wl2 up
            ip -n six addr add 10.7.0.2/24 dev eth2; ip -n six link set eth2 up");
        arrives(&near, "::ffff:10.9.0.1").await;
        arrives(&six, "::ffff:10.7.0.1").await;
    });
}
