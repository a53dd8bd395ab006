//! Connections to origins, within the access rules.

use crate::egress::Egress;
use crate::listen::settle;
use crate::resolve::resolve;
use crate::traffic::{Metered, Traffic, With};
use node::driver::DIAL_MAX;
use node::{Access, Caller, Dial, FetchError, Forbidden, Looked};
use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;

/// Time limit for one address, if there are others to try.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(5);
/// The most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Connects to origins, as far as the access rules and the kernel's routes permit.
#[derive(Clone, Debug)]
pub struct Dialler(Rc<Rules>);

#[derive(Debug)]
struct Rules {
    access: RefCell<Access>,
    egress: Egress,
    traffic: Traffic,
}

impl Dialler {
    /// A dialler with these rules, whose connections count as `traffic`.
    #[must_use]
    pub fn new(access: Access, egress: Egress, traffic: Traffic) -> Self {
        Self(Rc::new(Rules { access: RefCell::new(access), egress, traffic }))
    }

    /// Connects to an origin for a client or a peer.
    ///
    /// # Errors
    /// If no address of it may be dialled, or none answers; [`FetchError::TimedOut`] also if its
    /// name could not be looked up in time.
    pub async fn dial(
        &self,
        to: &Dial,
        client: IpAddr,
        caller: Caller,
    ) -> Result<Metered, FetchError> {
        let stream = self.connect(to, client, caller).await?;
        Ok(self.0.traffic.meter(stream, With::Origin))
    }

    async fn connect(
        &self,
        to: &Dial,
        client: IpAddr,
        caller: Caller,
    ) -> Result<TcpStream, FetchError> {
        let (mut allowed, mut forbidden) = (Vec::new(), None);
        for address in addresses(to, client).await? {
            match self.permits(address, client, caller) {
                Ok(()) => allowed.push(address),
                Err(why) => forbidden = Some(why),
            }
        }
        allowed.truncate(ADDRESSES_MAX);
        // The last address may use the whole time limit; the others must leave time for it.
        let Some((last, others)) = allowed.split_last() else {
            return Err(match forbidden {
                None => FetchError::Unresolved,
                Some(Forbidden::Unroutable) => FetchError::Unreachable,
                Some(why) => FetchError::Forbidden(why),
            });
        };
        for address in others {
            if let Ok(stream) = connect(*address, ADDRESS_TIMEOUT).await {
                return Ok(stream);
            }
        }
        connect(*last, DIAL_MAX).await
    }

    /// What its connections count as.
    #[must_use]
    pub fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    /// Replaces the access rules.
    pub fn permit(&self, access: Access) {
        *self.0.access.borrow_mut() = access;
    }

    /// Which interfaces lead out.
    #[must_use]
    pub fn egress(&self) -> &Egress {
        &self.0.egress
    }

    fn permits(&self, to: SocketAddr, client: IpAddr, caller: Caller) -> Result<(), Forbidden> {
        let leads = |address| self.0.egress.leads_for(caller, client, address);
        self.0.access.borrow().may_dial(caller, to, leads)
    }
}

async fn addresses(to: &Dial, client: IpAddr) -> Result<Vec<SocketAddr>, FetchError> {
    match to {
        Dial::Address(address) => {
            Ok(vec![SocketAddr::new(address.ip().to_canonical(), address.port())])
        }
        Dial::Name(host, port) => match resolve(host, client).await {
            Looked::Addresses(found) if !found.is_empty() => {
                Ok(found.into_iter().map(|it| SocketAddr::new(it, *port)).collect())
            }
            Looked::Addresses(_) | Looked::Unanswered => Err(FetchError::Unresolved),
            Looked::NotAsked => Err(FetchError::TimedOut),
        },
    }
}

async fn connect(address: SocketAddr, timeout: Duration) -> Result<TcpStream, FetchError> {
    match tokio::time::timeout(timeout, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => {
            settle(&stream);
            Ok(stream)
        }
        Ok(Err(error)) if error.kind() == ErrorKind::TimedOut => Err(FetchError::TimedOut),
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => Err(FetchError::Refused),
        Ok(Err(error)) if lacks_descriptors(&error) => Err(FetchError::NoRoom),
        Ok(Err(_)) => Err(FetchError::Unreachable),
        Err(_) => Err(FetchError::TimedOut),
    }
}

/// Whether this process, or the machine, has no more file descriptors.
fn lacks_descriptors(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE].iter().any(|it| error.raw_os_error() == Some(it.raw_os_error()))
}

/// Whether an address belongs to this machine. Connecting a UDP socket sends nothing, but makes the
/// kernel choose a source address; for an address of this machine, it chooses that address. `None`:
/// no socket is available, so it is unknown.
pub fn is_own(address: IpAddr) -> Option<bool> {
    let unspecified: IpAddr = match address {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    let socket = UdpSocket::bind((unspecified, 0)).ok()?;
    if socket.connect((address, 9)).is_err() {
        // The address has no route, but this machine's own addresses always have one.
        return Some(false);
    }
    Some(socket.local_addr().ok()?.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C libraries read such names as addresses (inet_aton(3)), and a resolver may answer any name with any address.
    const SPELLINGS: [&str; 14] = [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "127.1",
        "127.0.1",
        "0177.0.0.1",
        "017700000001",
        "0x7f.0x0.0x0.0x1",
        "127.0.0.1.",
        "localhost.",
        "LOCALHOST",
        "%31%32%37.0.0.1",
        "::ffff:127.0.0.1",
        "[::ffff:7f00:1]",
    ];

    #[tokio::test(flavor = "current_thread")]
    async fn however_a_name_is_spelled_what_it_resolves_to_is_checked() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let access = Access { ports: vec![port], ..Access::default() };
        let egress = crate::egress::follow(Vec::new(), &[]).await.unwrap();
        let dialler = Dialler::new(access, egress, Traffic::default());
        let mut reached = 0;
        for name in SPELLINGS {
            let dial = Dial::Name(name.into(), port);
            let client = IpAddr::from([10, 0, 0, 1]);
            for caller in [Caller::Explicit, Caller::Tunnel, Caller::Peer, Caller::Gateway] {
                let error = dialler.dial(&dial, client, caller).await.expect_err(name);
                let is_refused = matches!(
                    error,
                    FetchError::Forbidden(Forbidden::Inward) | FetchError::Unresolved
                );
                assert!(is_refused, "{caller:?} {name}: {error:?}");
            }
            // Most of them do lead there.
            reached += u32::from(dialler.dial(&dial, client, Caller::ThisMachine).await.is_ok());
        }
        assert!(reached >= 8, "the resolver reads only {reached} of them");
    }

    #[test]
    fn our_own_addresses_are_known_without_sending() {
        assert_eq!(is_own([127, 0, 0, 1].into()), Some(true));
        assert_eq!(is_own([192, 0, 2, 1].into()), Some(false));
    }
}
