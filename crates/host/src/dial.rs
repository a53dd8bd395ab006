//! Connections to origins, within the rules of whom a node may dial.

use crate::egress::Egress;
use crate::listen::settle;
use node::{Access, Caller, Dial, FetchError, Forbidden};
use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// One address gets so long to answer, if there are others.
const EACH: Duration = Duration::from_secs(5);
/// The last, or only one gets so long.
const LAST: Duration = Duration::from_secs(20);
/// Looking up a name gets so long.
const LOOKUP: Duration = Duration::from_secs(10);
/// Names that are looked up at one time, each in a thread that nothing can interrupt …
pub const LOOKUPS_MAX: usize = 8;
/// … and names that may wait for that; more are not looked up.
const LOOKUPS_WAITING_MAX: usize = 64;
/// Addresses of one name that are tried, at most.
const ADDRESSES_MAX: usize = 8;

/// Places for names that are being looked up …
static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);
/// … and for whoever wants one of those.
static QUEUE: Semaphore = Semaphore::const_new(LOOKUPS_MAX + LOOKUPS_WAITING_MAX);

/// Connects to origins, as far as the operator and the kernel's routes permit it.
#[derive(Clone, Debug)]
pub struct Dialler(Rc<Rules>);

#[derive(Debug)]
struct Rules {
    access: RefCell<Access>,
    egress: Egress,
}

impl Dialler {
    /// One that keeps to these rules.
    #[must_use]
    pub fn new(access: Access, egress: Egress) -> Self {
        Self(Rc::new(Rules { access: RefCell::new(access), egress }))
    }

    /// Connects to an origin for a client or a peer.
    ///
    /// # Errors
    /// If no address of it may be dialled, or none answers.
    pub async fn dial(
        &self,
        to: &Dial,
        client: IpAddr,
        caller: Caller,
    ) -> Result<TcpStream, FetchError> {
        let (mut allowed, mut forbidden) = (Vec::new(), None);
        for address in addresses(to).await? {
            match self.permits(address, client, caller) {
                Ok(()) => allowed.push(address),
                Err(why) => forbidden = Some(why),
            }
        }
        allowed.truncate(ADDRESSES_MAX);
        let Some((last, others)) = allowed.split_last() else {
            return Err(forbidden.map_or(FetchError::Unresolved, FetchError::Forbidden));
        };
        for address in others {
            if let Ok(stream) = connect(*address, EACH).await {
                return Ok(stream);
            }
        }
        connect(*last, LAST).await
    }

    /// Permits something else from now on.
    pub fn permit(&self, access: Access) {
        *self.0.access.borrow_mut() = access;
    }

    /// Which interfaces lead out.
    #[must_use]
    pub fn egress(&self) -> &Egress {
        &self.0.egress
    }

    fn permits(&self, to: SocketAddr, client: IpAddr, caller: Caller) -> Result<(), Forbidden> {
        // What a client would have dialled itself takes the client's route; what we dial, ours.
        let from = (caller == Caller::Intercepted).then_some(client);
        self.0.access.borrow().may_dial(caller, to, |address| self.0.egress.leads(address, from))
    }
}

/// The addresses of a name, in the resolver's order.
pub async fn resolve(host: &str, port: u16) -> Vec<SocketAddr> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse() {
        return vec![SocketAddr::new(address, port)];
    }
    let Ok(_queued) = QUEUE.try_acquire() else { return Vec::new() };
    tokio::time::timeout(LOOKUP, look_up(host.to_owned(), port)).await.unwrap_or_default()
}

/// Asks the system's resolver. Its thread keeps the place even if nobody waits any more.
async fn look_up(host: String, port: u16) -> Vec<SocketAddr> {
    let Ok(place) = LOOKUPS.acquire().await else { return Vec::new() };
    let look = move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
        drop(place);
        found.unwrap_or_default()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

async fn addresses(to: &Dial) -> Result<Vec<SocketAddr>, FetchError> {
    match to {
        Dial::Address(address) => {
            Ok(vec![SocketAddr::new(address.ip().to_canonical(), address.port())])
        }
        Dial::Name(host, port) => {
            let addresses = resolve(host, *port).await;
            if addresses.is_empty() { Err(FetchError::Unresolved) } else { Ok(addresses) }
        }
    }
}

async fn connect(address: SocketAddr, patience: Duration) -> Result<TcpStream, FetchError> {
    match tokio::time::timeout(patience, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => {
            settle(&stream);
            Ok(stream)
        }
        Ok(Err(error)) if error.kind() == ErrorKind::TimedOut => Err(FetchError::TimedOut),
        Ok(Err(_)) => Err(FetchError::Unreachable),
        Err(_) => Err(FetchError::TimedOut),
    }
}

/// Whether an address is one of this machine's. Connecting a UDP socket sends nothing, but makes
/// the kernel choose a source address: for a destination of our own it chooses the same. `None`: there
/// is no socket to be had, so it cannot be told.
pub fn is_own(address: IpAddr) -> Option<bool> {
    let unspecified: IpAddr = match address {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    let socket = UdpSocket::bind((unspecified, 0)).ok()?;
    if socket.connect((address, 9)).is_err() {
        // There is no way to it; to ourselves there always is one.
        return Some(false);
    }
    Some(socket.local_addr().ok()?.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_addresses_are_known_without_asking_anybody() {
        assert_eq!(is_own([127, 0, 0, 1].into()), Some(true));
        assert_eq!(is_own([192, 0, 2, 1].into()), Some(false));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn addresses_are_not_looked_up_and_names_only_while_there_is_room() {
        assert!(!resolve("localhost", 80).await.is_empty());
        let _all = QUEUE.acquire_many((LOOKUPS_MAX + LOOKUPS_WAITING_MAX) as u32).await.unwrap();
        assert!(resolve("localhost", 80).await.is_empty(), "it was looked up");
        assert_eq!(resolve("[::1]", 80).await, ["[::1]:80".parse().unwrap()]);
        assert_eq!(resolve("192.0.2.1", 80).await, ["192.0.2.1:80".parse().unwrap()]);
    }
}
