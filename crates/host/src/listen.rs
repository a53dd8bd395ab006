//! The ports for clients: that of the explicit proxy, and the transparent one.

use crate::client::Client;
use bytes::BytesMut;
use node::looks_like_http;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::{Ipv6Addr, Shutdown, SocketAddr};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

/// A client that sends nothing for this time waits for the server to speak first: it is not HTTP.
const SILENCE: Duration = Duration::from_secs(3);
/// Connections waiting to be accepted. All of them are accepted when a port stops listening, so
/// there must be few; a client that finds the queue full tries again after a second (RFC 6298).
const BACKLOG: i32 = 128;

/// Receive buffer of a client's socket in bytes: requests are short, and content can wait.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Send buffer of a client's socket in bytes: enough for 100 Mbit/s at a round-trip time of 10 ms.
/// Linux doubles both sizes for its own bookkeeping.
const SEND_BYTES: usize = 128 * 1024;
/// A client's socket accepts more data while less than this is unsent, in bytes. A client that does
/// not read therefore occupies no more than this, while one that reads can use the whole send
/// buffer.
const UNSENT_BYTES: u32 = 16 * 1024;

/// Idle time before the first keepalive probe …
const ALIVE_AFTER: Duration = Duration::from_secs(60);
/// … time between probes …
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// … and the number of unanswered probes after which the connection is closed.
const ALIVE_PROBES: u32 = 4;
/// A connection whose peer acknowledges nothing for this time is closed.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(600);

/// Sets the options of every connection: data is sent at once (no Nagle), and a peer that vanishes
/// or never reads is detected. Options that the kernel lacks are skipped.
pub fn settle(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let alive = TcpKeepalive::new()
        .with_time(ALIVE_AFTER)
        .with_interval(ALIVE_EVERY)
        .with_retries(ALIVE_PROBES);
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_keepalive(&alive);
    let _ = socket.set_tcp_user_timeout(Some(ACKNOWLEDGE_TIMEOUT));
}

/// Opens the port of the explicit proxy.
pub fn explicit(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    cap(&socket)?;
    bind(socket, address)
}

/// Limits the kernel's buffers for each client; accepted connections inherit the limits.
fn cap(socket: &Socket) -> io::Result<()> {
    socket.set_recv_buffer_size(RECEIVE_BYTES)?;
    socket.set_send_buffer_size(SEND_BYTES)?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES)
}

/// Opens the port that the TPROXY rules name, for both address families. The local address of a
/// connection accepted there is the address that the client dialled.
pub fn transparent(port: u16) -> io::Result<TcpListener> {
    TcpListener::from_std(transparent_socket(port)?.into())
}

/// As [`transparent`], for a process without an event loop.
pub(crate) fn transparent_socket(port: u16) -> io::Result<Socket> {
    let socket = match Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP)) {
        Ok(socket) => socket,
        // A kernel without IPv6.
        Err(_) => return transparent_v4(port),
    };
    socket.set_only_v6(false)?;
    socket.set_ip_transparent_v6(true)?;
    socket.set_ip_transparent_v4(true)?;
    cap(&socket)?;
    bound(socket, SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
}

fn transparent_v4(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_ip_transparent_v4(true)?;
    cap(&socket)?;
    bound(socket, SocketAddr::from(([0, 0, 0, 0], port)))
}

pub(crate) fn bind(socket: Socket, address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::from_std(bound(socket, address)?.into())
}

fn bound(socket: Socket, address: SocketAddr) -> io::Result<Socket> {
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// A port that can stop listening for a while. The TPROXY rules then find no listener, and new
/// connections go directly to their destinations. Accepted connections continue. Neither change
/// needs privileges.
#[derive(Debug)]
pub struct Gate {
    socket: Socket,
    /// The socket, registered with the event loop. Each opening registers it again, because the
    /// loop remembers that a socket was shut down.
    listener: Option<TcpListener>,
}

impl Gate {
    /// A gate for a listening port.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        let socket = Socket::from(listener.into_std()?);
        let listener = Some(listener_of(&socket)?);
        Ok(Self { socket, listener })
    }

    /// Accepts a client. Never returns while the port does not listen.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.listener {
            Some(listener) => listener.accept().await,
            None => std::future::pending().await,
        }
    }

    /// Accepts a client that is already waiting, if there is one. Clients still waiting when the
    /// port stops listening are reset.
    pub fn accept_waiting(&self) -> Option<(TcpStream, SocketAddr)> {
        let (socket, address) = self.socket.accept().ok()?;
        socket.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(socket.into()).ok()?, address.as_socket()?))
    }

    /// Stops listening.
    ///
    /// # Errors
    /// If the kernel refuses; the port then continues to accept.
    pub fn close(&mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Read)?;
        self.listener = None;
        Ok(())
    }

    /// Listens again.
    pub fn open(&mut self) -> io::Result<()> {
        self.socket.listen(BACKLOG)?;
        self.listener = Some(listener_of(&self.socket)?);
        Ok(())
    }
}

fn listener_of(socket: &Socket) -> io::Result<TcpListener> {
    TcpListener::from_std(socket.try_clone()?.into())
}

/// What the first bytes of an intercepted connection show.
#[derive(Debug)]
pub enum First {
    /// Apparently HTTP/1; with the bytes that were read.
    Http(BytesMut),
    /// Another protocol, or silence; with the bytes that were read.
    Other(BytesMut),
    /// The client closed the connection.
    Gone,
}

/// Reads until it is known whether a client speaks HTTP/1.
pub async fn first_bytes(stream: &mut Client) -> First {
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
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(ACKNOWLEDGE_TIMEOUT));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_that_does_not_read_gets_little_into_the_kernel() {
        let listener = explicit(([127, 0, 0, 1], 0).into()).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let socket = SockRef::from(&stream);
        assert_eq!(socket.send_buffer_size().unwrap(), 2 * SEND_BYTES);
        assert_eq!(socket.recv_buffer_size().unwrap(), 2 * RECEIVE_BYTES);
        assert_eq!(socket.tcp_notsent_lowat().unwrap(), UNSENT_BYTES);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_gate_refuses_while_it_is_closed_and_accepts_again() {
        // If the kernel chose the port, it would choose a different one each time.
        let free = explicit(([127, 0, 0, 1], 0).into()).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut gate = Gate::new(explicit(address).unwrap()).unwrap();
        for _ in 0..2 {
            let _waiting = TcpStream::connect(address).await.unwrap();
            assert!(gate.accept_waiting().is_some() && gate.accept_waiting().is_none());
            gate.close().unwrap();
            assert!(TcpStream::connect(address).await.is_err(), "it listens");
            gate.open().unwrap();
            let (client, accepted) = tokio::join!(TcpStream::connect(address), gate.accept());
            assert_eq!(client.unwrap().local_addr().unwrap(), accepted.unwrap().1);
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_gate_that_cannot_be_closed_still_accepts() {
        let mut gate = Gate::new(explicit(([127, 0, 0, 1], 0).into()).unwrap()).unwrap();
        let address = gate.socket.local_addr().unwrap().as_socket().unwrap();
        // Linux shuts down only sockets that listen or are connected.
        gate.socket.shutdown(Shutdown::Read).unwrap();
        assert!(gate.close().is_err());
        assert_eq!(gate.listener.as_ref().map(|it| it.local_addr().unwrap()), Some(address));
    }
}
