//! Where clients come in: an explicit proxy's port, and the transparent one.

use crate::client::Client;
use bytes::BytesMut;
use node::looks_like_http;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::{Ipv6Addr, Shutdown, SocketAddr};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

/// A client that says nothing for so long waits for the server to speak first: not HTTP.
const SILENCE: Duration = Duration::from_secs(3);
/// Connections that wait to be accepted, at most. All of them are taken in when a port stops listening, so they
/// must be few; who finds no place here asks again after a second (RFC 6298).
const BACKLOG: i32 = 128;

/// A client's socket keeps this much of what it sends, in bytes: requests are short, and content can wait.
const RECEIVE_BYTES: usize = 64 * 1024;
/// A client's socket keeps this much of what was sent and is not acknowledged yet, in bytes: enough for 100 Mbit/s
/// over 10 ms. Linux doubles both, for its own bookkeeping.
const SEND_BYTES: usize = 128 * 1024;
/// A client's socket takes more to be sent while less than this is unsent, in bytes: who does not read keeps
/// this much of ours and no more, while who reads has as much on its way as the limit above lets it.
const UNSENT_BYTES: u32 = 16 * 1024;

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
    cap(&socket)?;
    bind(socket, address)
}

/// Limits what the kernel keeps for each client that a port will accept: connections inherit it.
fn cap(socket: &Socket) -> io::Result<()> {
    socket.set_recv_buffer_size(RECEIVE_BYTES)?;
    socket.set_send_buffer_size(SEND_BYTES)?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES)
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
    cap(&socket)?;
    bind(socket, SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
}

fn transparent_v4(port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_ip_transparent_v4(true)?;
    cap(&socket)?;
    bind(socket, SocketAddr::from(([0, 0, 0, 0], port)))
}

pub(crate) fn bind(socket: Socket, address: SocketAddr) -> io::Result<TcpListener> {
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// A port that can stop listening for a while. Then TPROXY rules find no listener, and new connections go
/// straight to where they were meant to go. What was accepted goes on. No privilege is needed for either way.
#[derive(Debug)]
pub struct Gate {
    socket: Socket,
    /// The same socket for the loop; a new one each time, because a loop does not forget that a socket was shut.
    listener: Option<TcpListener>,
}

impl Gate {
    /// A port that listens.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        let socket = Socket::from(listener.into_std()?);
        let listener = Some(listener_of(&socket)?);
        Ok(Self { socket, listener })
    }

    /// The next client. Waits for ever while the port does not listen.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.listener {
            Some(listener) => listener.accept().await,
            None => std::future::pending().await,
        }
    }

    /// A client that has been waiting to be accepted, if there is one. What waits when the port stops listening
    /// is reset.
    pub fn accept_waiting(&self) -> Option<(TcpStream, SocketAddr)> {
        let (socket, address) = self.socket.accept().ok()?;
        socket.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(socket.into()).ok()?, address.as_socket()?))
    }

    /// Stops listening.
    ///
    /// # Errors
    /// If the kernel refuses: then the port still accepts.
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
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(TAKE_PATIENCE));
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
        // A port that the kernel chose would be another one each time.
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
        // Linux shuts only sockets that listen or are connected.
        gate.socket.shutdown(Shutdown::Read).unwrap();
        assert!(gate.close().is_err());
        assert_eq!(gate.listener.as_ref().map(|it| it.local_addr().unwrap()), Some(address));
    }
}
