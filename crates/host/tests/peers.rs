//! The kernel's reaction to the options of connections with peers, in a network namespace without
//! other traffic.

use std::fs;
use std::process::Command;

use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::namespace::{self, inside};

/// Sends full segments, each after the previous one was read; returns the number of segments sent
/// in both directions.
async fn segments_for_a_row(sparingly: bool) -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_tcp_mss(1000).expect("small segments");
    socket.connect(&listener.local_addr().expect("bound").into()).expect("it listens");
    socket.set_nonblocking(true).expect("a socket can be");
    let sender = TcpStream::from_std(socket.into()).expect("a runtime");
    let (receiver, _) = listener.accept().await.expect("it dialled");
    let length = SockRef::from(&sender).tcp_mss().expect("it is connected") as usize;
    let before = segments_out();
    for _ in 0..40 {
        assert_eq!(sender.try_write(&vec![0; length]).expect("there is room"), length);
        let mut unread = length;
        while unread > 0 {
            receiver.readable().await.expect("it is open");
            if sparingly {
                host::peers::acknowledge_sparingly(&receiver);
            }
            unread -= receiver.try_read(&mut vec![0; unread]).unwrap_or(0);
        }
    }
    segments_out() - before
}

/// The number of TCP segments that the kernel has sent here.
fn segments_out() -> u64 {
    let snmp = fs::read_to_string("/proc/self/net/snmp").expect("the kernel counts");
    let mut rows = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (rows.next().expect("names"), rows.next().expect("values"));
    let mut pairs = names.split(' ').zip(values.split(' '));
    let (_, value) = pairs.find(|(name, _)| *name == "OutSegs").expect("it counts segments");
    value.parse().expect("a number")
}

/// Runs a test in a private namespace with a loopback interface.
fn alone(test: &str, body: impl Future<Output = ()>) {
    inside(test, "true", || {
        namespace::sh("ip link set lo up");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(body);
    });
}

#[test]
fn who_acknowledges_sparingly_sends_less() {
    alone("who_acknowledges_sparingly_sends_less", async {
        let each = segments_for_a_row(false).await;
        let sparing = segments_for_a_row(true).await;
        assert!(sparing + 5 <= each, "{sparing} segments instead of {each}");
    });
}

/// The retransmission timeouts of all connections here, in milliseconds.
fn timeouts() -> Vec<f64> {
    let shown = Command::new("ss").arg("-tinH").output().expect("iproute2 has it");
    let shown = String::from_utf8(shown.stdout).expect("ss says text");
    let told = shown.split_whitespace().filter_map(|word| word.strip_prefix("rto:"));
    told.map(|value| value.parse().expect("milliseconds")).collect()
}

/// Whether the kernel supports a timeout per socket.
fn kernel_knows_short_timeouts() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel has one");
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(15))
}

#[test]
fn both_ends_send_again_soon() {
    alone("both_ends_send_again_soon", async {
        let mut port = host::peers::PeerListener::new("lo".into(), 3131);
        let dialled = async {
            loop {
                if let Ok(stream) = host::peers::dial(([127, 0, 0, 1], 3131).into()).await {
                    break stream;
                }
            }
        };
        let (accepted, _dialled) = tokio::join!(port.accept(), dialled);
        let _accepted = accepted.expect("a peer");
        let told = timeouts();
        assert_eq!(told.len(), 2);
        let short = if kernel_knows_short_timeouts() { 0.0..100.0 } else { 200.0..1000.0 };
        assert!(told.iter().all(|it| short.contains(it)), "{told:?} ms");
    });
}
