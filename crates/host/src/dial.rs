//! Connections to origins, within the rules of whom a node may dial.

use node::{Dial, FetchError, may_dial};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};

/// One address gets so long to answer, if there are others.
const EACH: Duration = Duration::from_secs(5);
/// The last, or only one gets so long.
const LAST: Duration = Duration::from_secs(20);
/// Looking up a name gets so long.
const LOOKUP: Duration = Duration::from_secs(10);
/// Addresses of one name that are tried, at most.
const ADDRESSES_MAX: usize = 8;

/// Connects to an origin for a client.
pub async fn dial(to: &Dial, client: IpAddr) -> Result<TcpStream, FetchError> {
    let addresses = addresses(to).await?;
    let known = !addresses.is_empty();
    let allowed: Vec<SocketAddr> = addresses
        .into_iter()
        .filter(|address| may_dial(client, address.ip(), is_own))
        .take(ADDRESSES_MAX)
        .collect();
    let Some((last, others)) = allowed.split_last() else {
        return Err(if known { FetchError::Forbidden } else { FetchError::Unresolved });
    };
    for address in others {
        if let Ok(stream) = connect(*address, EACH).await {
            return Ok(stream);
        }
    }
    connect(*last, LAST).await
}

/// The addresses of a name, in the resolver's order.
pub async fn resolve(host: &str, port: u16) -> Vec<SocketAddr> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match tokio::time::timeout(LOOKUP, lookup_host((host, port))).await {
        Ok(Ok(addresses)) => addresses.collect(),
        _ => Vec::new(),
    }
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
            // What we write is whole messages: waiting for more would only delay them.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) if error.kind() == ErrorKind::TimedOut => Err(FetchError::TimedOut),
        Ok(Err(_)) => Err(FetchError::Unreachable),
        Err(_) => Err(FetchError::TimedOut),
    }
}

/// Whether an address is one of this machine's. Connecting a UDP socket sends nothing, but makes
/// the kernel choose a source address: for a destination of our own it chooses the same.
pub fn is_own(address: IpAddr) -> bool {
    let unspecified: IpAddr = match address {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    UdpSocket::bind((unspecified, 0)).is_ok_and(|socket| {
        socket.connect((address, 9)).is_ok()
            && socket.local_addr().is_ok_and(|local| local.ip() == address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_addresses_are_known_without_asking_anybody() {
        assert!(is_own([127, 0, 0, 1].into()));
        assert!(!is_own([192, 0, 2, 1].into()));
    }
}
