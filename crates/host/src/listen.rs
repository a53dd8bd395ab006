//! Where clients come in: an explicit proxy's port, and the transparent one.

use bytes::BytesMut;
use node::looks_like_http;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

/// A client that says nothing for so long waits for the server to speak first: not HTTP.
const SILENCE: Duration = Duration::from_secs(3);
/// Connections that wait to be accepted, at most.
const BACKLOG: i32 = 1024;

/// A peer that says nothing for so long is asked whether it is still there …
const ALIVE_AFTER: Duration = Duration::from_secs(60);
/// … again after so long …
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// … and so often before it is given up.
const ALIVE_PROBES: u32 = 4;
/// A peer that takes nothing of what we send for so long has left.
const TAKE_PATIENCE: Duration = Duration::from_secs(600);

/// Sets what every connection needs: that whole messages go at once, and that a peer which vanishes,
/// or never reads, ends it. A kernel that knows less of this has the connection all the same.
pub fn settle(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let alive = TcpKeepalive::new()
        .with_time(ALIVE_AFTER)
        .with_interval(ALIVE_EVERY)
        .with_retries(ALIVE_PROBES);
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_keepalive(&alive);
    let _ = socket.set_tcp_user_timeout(Some(TAKE_PATIENCE));
}

/// Opens the port of an explicit proxy.
pub fn explicit(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    bind(socket, address)
}

/// Opens the port that TPROXY rules point to, for both families. The local address of a connection
/// accepted there is the one that the client dialled.
pub fn transparent(port: u16) -> io::Result<TcpListener> {
    let socket = match Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP)) {
        Ok(socket) => socket,
        // A kernel without IPv6.
        Err(_) => return transparent_v4(port),
    };
    socket.set_only_v6(false)?;
    socket.set_ip_transparent_v6(true)?;
    socket.set_ip_transparent_v4(true)?;
    bind(socket, SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
}

fn transparent_v4(port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_ip_transparent_v4(true)?;
    bind(socket, SocketAddr::from(([0, 0, 0, 0], port)))
}

pub(crate) fn bind(socket: Socket, address: SocketAddr) -> io::Result<TcpListener> {
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// What the first bytes of an intercepted connection turned out to be.
#[derive(Debug)]
pub enum First {
    /// HTTP/1, as far as it can be told; these bytes have been read.
    Http(BytesMut),
    /// Something else, or silence; these bytes have been read.
    Other(BytesMut),
    /// The client left.
    Gone,
}

/// Reads until it is clear whether a client speaks HTTP/1.
pub async fn first_bytes(stream: &mut TcpStream) -> First {
    let mut bytes = BytesMut::with_capacity(4096);
    loop {
        match tokio::time::timeout(SILENCE, stream.read_buf(&mut bytes)).await {
            Err(_) => return First::Other(bytes),
            Ok(Ok(0) | Err(_)) if bytes.is_empty() => return First::Gone,
            Ok(Ok(0) | Err(_)) => return First::Other(bytes),
            Ok(Ok(_)) => {}
        }
        match looks_like_http(&bytes) {
            Some(true) => return First::Http(bytes),
            Some(false) => return First::Other(bytes),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_settled_connection_notices_that_its_peer_is_gone() {
        let listener = explicit(([127, 0, 0, 1], 0).into()).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        settle(&stream);
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), ALIVE_AFTER);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(TAKE_PATIENCE));
    }
}
