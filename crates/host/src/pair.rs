//! The connection of an uplink's pair: one long-lived TCP connection over the slow link.
//!
//! *What this is:* dialling, listening, and the options that such a connection wants: BBR where the kernel has
//! it, which neither falls back after each loss nor starts slowly after a pause, and little unsent data, so
//! that what is urgent does not wait behind what is not. *Who calls it:* the daemon's ends of the pair. *What
//! it never does:* look at the data.

use crate::listen::bind;
use crate::resolve::resolve;
use crate::timeouts::{Flight, flight};
use node::Looked;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// How long a dial to one address may take.
const DIAL: Duration = Duration::from_secs(10);
/// A connection whose other end acknowledges nothing for this time is closed. The engine notices a silent end
/// long before; this is for the kernel's memory.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(60);
/// The socket takes more while less than this is unsent, in bytes.
const UNSENT_BYTES: u32 = 4 * 1024;

/// As long as the rate is not known, this many bytes may be in flight.
const IN_FLIGHT_MIN: u64 = 16 * 1024;
/// On a short path the kernel may hold what it sends in this time.
const SPAN_MIN: Duration = Duration::from_millis(20);

/// Whether a connection wants more bytes to send: it has at most a quarter more in flight than its path holds.
/// Congestion control alone would fill the queue of the slow link, and an urgent answer would wait behind it.
pub fn wants_more(stream: &TcpStream) -> bool {
    flight(stream).is_none_or(|it| it.bytes < in_flight_max(it))
}

fn in_flight_max(Flight { rate, round_trip, .. }: Flight) -> u64 {
    let span = (round_trip + round_trip / 4).max(SPAN_MIN);
    let held = u128::from(rate) * span.as_nanos() / 1_000_000_000;
    IN_FLIGHT_MIN.max(u64::try_from(held).unwrap_or(u64::MAX))
}

/// Dials the far end, at each of its addresses in turn.
///
/// # Errors
/// If its name is not known, or none of its addresses answers.
pub async fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    let own = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let (addresses, none) = match resolve(host, own).await {
        Looked::Addresses(found) => (found, "its name has no address"),
        Looked::Unanswered | Looked::NotAsked => (Vec::new(), "the resolver does not answer"),
    };
    let mut last = io::Error::new(ErrorKind::NotFound, none);
    for address in addresses {
        match tokio::time::timeout(DIAL, TcpStream::connect((address, port))).await {
            Ok(Ok(stream)) => {
                settle(&stream);
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

/// Opens the far end's port, on both address families if the address is `[::]`.
///
/// # Errors
/// If the port is taken, or the address not this machine's.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    // Connections inherit it from the port, so that they need no rights of their own.
    let _ = socket.set_tcp_congestion(b"bbr");
    bind(socket, address)
}

/// Sets the options of a pair's connection. Those that the kernel lacks are skipped.
pub fn settle(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_congestion(b"bbr");
    let _ = socket.set_tcp_notsent_lowat(UNSENT_BYTES);
    let _ = socket.set_tcp_user_timeout(Some(ACKNOWLEDGE_TIMEOUT));
}

/// Whether BBR controls a connection. Unless the administrator permits it to all (`tcp_allowed_congestion_control`),
/// choosing it takes CAP_NET_ADMIN.
pub fn has_bbr(stream: &TcpStream) -> bool {
    SockRef::from(stream)
        .tcp_congestion()
        .is_ok_and(|name| name.starts_with(b"bbr\0") || name == b"bbr")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thin_path_holds_little_and_a_fast_one_is_not_held_up() {
        let max = |rate, millis| {
            let round_trip = Duration::from_millis(millis);
            in_flight_max(Flight { bytes: 0, rate, round_trip })
        };
        assert_eq!(max(0, 200), 16 * 1024, "the beginning");
        assert_eq!(
            max(64_000, 200),
            16 * 1024,
            "512 kbit/s: 16,000 bytes and a quarter of a round trip"
        );
        assert_eq!(max(1_000_000, 200), 250_000);
        assert_eq!(max(1_000_000_000, 0), 20_000_000, "loopback");
    }

    #[tokio::test]
    async fn the_kernel_tells_what_is_in_flight() {
        let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        let (stream, accepted) = tokio::join!(dial("127.0.0.1", address.port()), listener.accept());
        let (stream, _accepted) = (stream.unwrap(), accepted.unwrap());
        assert!(wants_more(&stream));
        let told = flight(&stream).expect("a kernel since 4.9");
        assert_eq!(told.bytes, 0);
        // Nobody reads at the other end.
        while stream.try_write(&[0; 65536]).is_ok() {}
        assert!(flight(&stream).expect("told").bytes > 0);
    }
}
