//! Connections with other nodes of the mesh: the listening port on the mesh's interfaces, and
//! outgoing connections.
//!
//! *What this is:* a [`PeerListener`] listens on one interface only, and follows it: interfaces of a mesh
//! may appear late, vanish, and return with another index. *Who calls it:* the daemon's links.
//! *What it never does:* look at the data, or know who the peer is. *Where to start:*
//! [`PeerListener::accept`].

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::unix::net::UnixDatagram;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use node::driver::links::DIAL;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::listen::bind;
use crate::routing::addresses;
use crate::timeouts;

/// How often the interface is checked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A connection whose peer acknowledges nothing for this time is closed.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(20);

/// The port for peers on one interface.
pub struct PeerListener {
    interface: String,
    port: u16,
    /// Unbinds a connection from the interface, where this process may not.
    unbind: Box<dyn Fn(&TcpStream)>,
    open: Option<Open>,
    /// The last problem that was logged, so that each is logged once.
    trouble: Option<String>,
}

#[derive(Debug)]
struct Open {
    /// The index of the interface.
    index: u32,
    /// The interface's addresses, if the port is bound to them instead of to the device.
    addresses: Option<Vec<IpAddr>>,
    listeners: Vec<TcpListener>,
}

impl PeerListener {
    /// A port that is not open yet.
    pub fn new(interface: String, port: u16) -> Self {
        Self { interface, port, unbind: Box::new(|_| {}), open: None, trouble: None }
    }

    /// As it was, with a way to unbind a connection from the interface which has the right to.
    #[must_use]
    pub fn unbinding(self, unbind: impl Fn(&TcpStream) + 'static) -> Self {
        Self { unbind: Box::new(unbind), ..self }
    }

    /// Accepts a connection, and returns its peer; waits for the interface too. The future may be
    /// dropped at any time.
    pub async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            self.follow();
            let accepted = tokio::time::timeout(LOOK_EVERY, self.accept_now()).await;
            let Ok(accepted) = accepted else { continue };
            let (stream, peer) = accepted?;
            // From here on the connection's packets may leave by other interfaces when routes change.
            // Without permission to unbind, the connection ends with its route.
            if SockRef::from(&stream).bind_device(None).is_err() {
                (self.unbind)(&stream);
            }
            settle(&stream);
            return Ok((stream, plain(peer)));
        }
    }

    async fn accept_now(&self) -> io::Result<(TcpStream, SocketAddr)> {
        poll_fn(|cx| {
            for listener in self.open.iter().flat_map(|open| &open.listeners) {
                if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Opens the port, or opens it again if the interface has changed.
    fn follow(&mut self) {
        let index = index(&self.interface);
        // An interface may return with another index, or change its addresses.
        let is_same = |open: &Open| {
            let addresses_now = || addresses(open.index).ok();
            index.as_ref().is_ok_and(|index| *index == open.index)
                && (open.addresses.is_none() || open.addresses == addresses_now())
        };
        if self.open.as_ref().is_some_and(is_same) {
            return;
        }
        self.open = None;
        match index.and_then(|index| open(&self.interface, index, self.port)) {
            Ok(open) => {
                let by_address = open.addresses.is_some();
                let (interface, port) = (&self.interface, self.port);
                tracing::info!(interface, port, by_address, "peers can connect");
                (self.open, self.trouble) = (Some(open), None);
            }
            Err(error) => {
                let text = error.to_string();
                if self.trouble.as_ref() != Some(&text) {
                    let (interface, port) = (&self.interface, self.port);
                    tracing::warn!(interface, port, %error, "peers cannot connect yet");
                }
                self.trouble = Some(text);
            }
        }
    }
}

/// Connects to a peer's port. A link-local address needs its scope.
pub async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    timeouts::shorten(&socket);
    let dialled = tokio::time::timeout(DIAL, socket.connect(address)).await;
    let stream = dialled.map_err(|_| io::Error::from(ErrorKind::TimedOut))??;
    settle(&stream);
    Ok(stream)
}

/// Whether `leaves`, given the number of unread bytes, decides to leave them in the socket. The
/// stream is then not readable until more bytes arrive.
pub fn is_left(stream: &TcpStream, leaves: impl FnOnce(u64) -> bool) -> io::Result<bool> {
    let look = || match leaves(rustix::io::ioctl_fionread(stream)?) {
        true => Err(ErrorKind::WouldBlock.into()),
        false => Ok(()),
    };
    match stream.try_io(Interest::READABLE, look) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        looked => looked.map(|()| false),
    }
}

/// Reads the unread bytes, up to `most`, even from a stream that [`is_left`] made unreadable; empty
/// if there are none.
pub fn take_unread(stream: &TcpStream, most: u64) -> io::Result<Bytes> {
    let unread = rustix::io::ioctl_fionread(stream)?.min(most);
    let mut bytes = vec![0; usize::try_from(unread).unwrap_or(0)];
    let read = rustix::io::read(stream, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes.into())
}

/// Lets the kernel delay acknowledgements of what is read, even where it expects an interactive
/// exchange and would acknowledge every packet. The setting is not permanent: it must be repeated
/// for each read.
pub fn acknowledge_sparingly(stream: &TcpStream) {
    // Errors do not matter: the setting is optional.
    let _ = SockRef::from(stream).set_tcp_quickack(false);
}

/// Declares that nothing will be sent on this connection, and restores Linux's default timeouts.
/// With short timeouts the kernel also delays acknowledgements less, and so sends more of them,
/// because Linux supposes that the other end has the same timeouts.
pub fn only_receives(stream: &TcpStream) {
    timeouts::restore(stream);
}

/// Data is sent at once (no Nagle), and a vanished peer is detected. There is no keepalive: peers
/// ping each other, and in combination with a user timeout Linux would close an idle connection
/// after one lost probe.
fn settle(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_user_timeout(Some(ACKNOWLEDGE_TIMEOUT));
}

/// Converts IPv4-mapped addresses, which dual-stack sockets report, to IPv4.
pub(crate) fn plain(peer: SocketAddr) -> SocketAddr {
    match peer.ip().to_canonical() {
        IpAddr::V4(v4) => (v4, peer.port()).into(),
        IpAddr::V6(_) => peer,
    }
}

/// The index of an interface, which is the scope of link-local addresses on it (RFC 4007 §6).
///
/// # Errors
/// If there is no such interface.
pub fn index(interface: &str) -> io::Result<u32> {
    // Any socket can be used for the query.
    let socket = UnixDatagram::unbound()?;
    let index = rustix::net::netdevice::name_to_index(&socket, interface);
    index.map_err(|_| io::Error::new(ErrorKind::NotFound, "there is no such interface"))
}

fn open(interface: &str, index: u32, port: u16) -> io::Result<Open> {
    let open = match on_device(interface, port) {
        Ok(listener) => Open { index, addresses: None, listeners: vec![listener] },
        // Kernels before 5.7 permit binding to a device only to root.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => by_address(index, port)?,
        Err(error) => return Err(error),
    };
    open.listeners.iter().for_each(timeouts::shorten);
    Ok(open)
}

/// Opens a port that only packets of this interface reach, for both address families.
fn on_device(interface: &str, port: u16) -> io::Result<TcpListener> {
    let open = |domain| Socket::new(domain, Type::STREAM, Some(Protocol::TCP));
    let (socket, address): (_, IpAddr) = match open(Domain::IPV6) {
        Ok(socket) => {
            socket.set_only_v6(false)?;
            (socket, Ipv6Addr::UNSPECIFIED.into())
        }
        // A kernel without IPv6.
        Err(_) => (open(Domain::IPV4)?, Ipv4Addr::UNSPECIFIED.into()),
    };
    socket.bind_device(Some(interface.as_bytes()))?;
    bind(socket, (address, port).into())
}

/// Opens a port on each address of an interface.
fn by_address(index: u32, port: u16) -> io::Result<Open> {
    let addresses = addresses(index)?;
    let listen = |address: &IpAddr| {
        let address = match *address {
            IpAddr::V6(v6) if v6.is_unicast_link_local() => {
                SocketAddrV6::new(v6, port, 0, index).into()
            }
            other => SocketAddr::new(other, port),
        };
        crate::listen::explicit(address)
    };
    let listeners = addresses.iter().map(listen).collect::<io::Result<_>>()?;
    Ok(Open { index, addresses: Some(addresses), listeners })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_peer_comes_in_by_the_interface_and_is_settled() {
        let free = crate::listen::explicit(([127, 0, 0, 1], 0).into()).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut own = PeerListener::new("lo".into(), port);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        own.follow();
        let (accepted, dialled) = tokio::join!(own.accept(), dial(address));
        let ((stream, peer), dialled) = (accepted.unwrap(), dialled.unwrap());
        assert_eq!(peer, dialled.local_addr().unwrap());
        for stream in [&stream, &dialled] {
            let timeout = SockRef::from(stream).tcp_user_timeout().unwrap();
            assert_eq!(timeout, Some(ACKNOWLEDGE_TIMEOUT));
            assert!(!SockRef::from(stream).keepalive().unwrap());
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn without_the_right_the_addresses_of_the_interface_do() {
        let open = by_address(1, 0).unwrap();
        let is_loopback = |it: &TcpListener| it.local_addr().is_ok_and(|it| it.ip().is_loopback());
        assert!(!open.listeners.is_empty() && open.listeners.iter().all(is_loopback));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_interface_that_is_not_there_is_waited_for() {
        let mut own = PeerListener::new("nowhere0".into(), 3131);
        let wait = tokio::time::timeout(Duration::ZERO, own.accept());
        assert!(wait.await.is_err());
        assert_eq!(own.trouble.as_deref(), Some("there is no such interface"));
    }
}
