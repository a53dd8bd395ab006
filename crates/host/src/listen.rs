//! Where clients come in: an explicit proxy's port, and the transparent one.

use bytes::BytesMut;
use node::looks_like_http;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

/// A client that says nothing for so long waits for the server to speak first: not HTTP.
const SILENCE: Duration = Duration::from_secs(3);
/// Connections that wait to be accepted, at most.
const BACKLOG: i32 = 1024;

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

fn bind(socket: Socket, address: SocketAddr) -> io::Result<TcpListener> {
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
