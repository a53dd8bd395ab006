//! The connection of an uplink's pair: one long-lived TCP connection over the slow link.
//!
//! *What this is:* dialling, listening, and the options that such a connection wants: BBR where the kernel has
//! it, which neither falls back after each loss nor starts slowly after a pause, and little unsent data, so
//! that what is urgent does not wait behind what is not. *Who calls it:* the daemon's ends of the pair. *What
//! it never does:* look at the data.

use crate::listen::bind;
use crate::resolve::resolve;
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

/// Dials the far end, at each of its addresses in turn.
///
/// # Errors
/// If its name is not known, or none of its addresses answers.
pub async fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    let own = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let addresses = resolve(host, port, own).await.unwrap_or_default();
    let mut last = io::Error::new(ErrorKind::NotFound, "its name has no address");
    for address in addresses {
        match tokio::time::timeout(DIAL, TcpStream::connect(address)).await {
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
