//! Who connects to the far end: each connection proves its key within a time, or is refused in one line.

use super::gateway::Gateway;
use bytes::Bytes;
use host::parting::part;
use node::driver::shares::Shares;
use node::uplink::{Ended, Guest, PairKeys, Refused};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use wire::PublicKey;

/// A handshake must be done by then.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes at one time at most …
const GUESTS_MAX: usize = 64;
/// … and of one address.
const GUESTS_EACH: usize = 8;
/// How long to wait when the machine is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The far end's port.
pub struct Door {
    keys: RefCell<PairKeys>,
    gateways: HashMap<PublicKey, Gateway>,
    guests: RefCell<Guests>,
}

#[derive(Default)]
struct Guests {
    all: usize,
    by_address: Shares<IpAddr>,
}

impl Door {
    /// A port for these gateways.
    pub fn new(keys: PairKeys, gateways: HashMap<PublicKey, Gateway>) -> Self {
        Self { keys: RefCell::new(keys), gateways, guests: RefCell::default() }
    }

    /// Accepts connections; never returns.
    pub async fn accept(self: Rc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    let address = from.ip().to_canonical();
                    if self.enter(address) {
                        spawn_local(Rc::clone(&self).receive(stream, from));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept gateways");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn enter(&self, address: IpAddr) -> bool {
        let guests = &mut *self.guests.borrow_mut();
        let may = guests.all < GUESTS_MAX && guests.by_address.of(&address) < GUESTS_EACH;
        if may {
            guests.all += 1;
            guests.by_address.add(address);
        }
        may
    }

    async fn receive(self: Rc<Self>, stream: TcpStream, from: SocketAddr) {
        let address = from.ip().to_canonical();
        host::pair::settle(&stream);
        let known = tokio::time::timeout(HANDSHAKE, self.greet(stream)).await;
        {
            let guests = &mut *self.guests.borrow_mut();
            guests.all -= 1;
            guests.by_address.release(&address);
        }
        let Ok(Some((stream, guest, key))) = known else { return };
        match self.gateways.get(&key) {
            Some(gateway) => {
                tracing::info!(gateway = %key, %from, "a gateway has connected");
                gateway.clone().serve(stream, guest, address).await;
                tracing::info!(gateway = %key, "a gateway's connection has ended");
            }
            None => refuse(stream, guest, &key, from).await,
        }
    }

    /// Reads until it is known who is there.
    async fn greet(&self, mut stream: TcpStream) -> Option<(TcpStream, Guest, PublicKey)> {
        let mut guest = Guest::default();
        let mut buffer = [0; 2048];
        loop {
            stream.readable().await.ok()?;
            let length = match stream.try_read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(_) => return None,
            };
            let known = guest.receive(&buffer[..length], &mut self.keys.borrow_mut());
            if let Some(bytes) = guest.take_outbox() {
                send(&mut stream, bytes).await?;
            }
            match known {
                Ok(Some(key)) => return Some((stream, guest, key)),
                Ok(None) => {}
                // Who does not know this end's key learns nothing from it.
                Err(Ended::Unproven) => return None,
                Err(Ended::Version | Ended::Broken) => {
                    let _ = part(stream).await;
                    return None;
                }
            }
        }
    }

    /// Ends all connections, with what has crossed durable.
    pub async fn close(&self) {
        for gateway in self.gateways.values() {
            gateway.close().await;
        }
    }
}

async fn refuse(mut stream: TcpStream, mut guest: Guest, key: &PublicKey, from: SocketAddr) {
    tracing::warn!(%key, %from, "refused a gateway whose key no --near names");
    guest.refuse(Refused::Key);
    if let Some(bytes) = guest.take_outbox()
        && send(&mut stream, bytes).await.is_some()
    {
        let _ = tokio::time::timeout(HANDSHAKE, part(stream)).await;
    }
}

async fn send(stream: &mut TcpStream, bytes: Bytes) -> Option<()> {
    stream.write_all(&bytes).await.ok()
}
