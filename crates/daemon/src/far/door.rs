//! Who connects to the far end: each connection proves its key within a time, or is refused in one line.
//!
//! Who has to go when there are too many is decided by `node::driver::door`.

use super::gateways::Gateways;
use host::clock::Clock;
use host::parting::part;
use node::driver::door::{
    Door as Engine, DoorReport, GuestId, HANDSHAKE, PARTING, Stage, UNPROVEN,
};
use node::uplink::{Ended, Guest, PairKeys, Refused};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local, yield_now};
use tokio::time::{Instant, timeout, timeout_at};
use wire::PublicKey;

/// How long to wait when the machine is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The far end's port.
pub struct Door {
    keys: RefCell<PairKeys>,
    gateways: Gateways,
    engine: RefCell<Engine>,
    guests: RefCell<HashMap<GuestId, AbortHandle>>,
    clock: Clock,
    /// Something was counted.
    counted: Notify,
    /// The last key that no gateway has, and who showed it.
    stranger: Cell<Option<(PublicKey, SocketAddr)>>,
}

/// A connection at the door. When it is dropped, the connection is out.
struct Visit {
    door: Rc<Door>,
    id: GuestId,
    from: SocketAddr,
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.door.engine.borrow_mut().leave(self.id);
        self.door.guests.borrow_mut().remove(&self.id);
    }
}

impl Door {
    /// A port for these gateways.
    pub fn new(keys: PairKeys, gateways: Gateways) -> Self {
        Self {
            keys: RefCell::new(keys),
            gateways,
            engine: RefCell::default(),
            guests: RefCell::default(),
            clock: Clock::start(),
            counted: Notify::new(),
            stranger: Cell::new(None),
        }
    }

    /// Accepts connections; never returns.
    pub async fn accept(self: Rc<Self>, listener: TcpListener) {
        let tell = self.tell();
        let accept = async {
            loop {
                match listener.accept().await {
                    Ok((stream, from)) => {
                        self.enter(stream, from);
                        // Who had to go for it is out before the next one comes in.
                        yield_now().await;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept gateways");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        tokio::join!(accept, tell);
    }

    fn enter(self: &Rc<Self>, stream: TcpStream, from: SocketAddr) {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let (id, dropped) = self.engine.borrow_mut().enter(from.ip());
        self.drop_guest(dropped);
        let visit = Visit { door: Rc::clone(self), id, from };
        // It runs after this.
        let task = spawn_local(visit.receive(stream));
        self.guests.borrow_mut().insert(id, task.abort_handle());
    }

    /// Closes the connection of who had to go.
    fn drop_guest(&self, dropped: Option<GuestId>) {
        let task = dropped.and_then(|id| self.guests.borrow_mut().remove(&id));
        if let Some(task) = task {
            task.abort();
            self.counted.notify_one();
        }
    }

    /// Tells the operator who was refused, in one line a minute; never returns.
    async fn tell(&self) {
        loop {
            let at = self.engine.borrow().poll_timeout();
            tokio::select! {
                () = self.clock.wait_until(at) => {}
                () = self.counted.notified() => continue,
            }
            let Some(it) = self.engine.borrow_mut().tell(self.clock.now()) else { continue };
            let latest = self.stranger.take().map(|(key, from)| format!("{key} from {from}"));
            tracing::warn!(
                connections = it.entered,
                unproven = it.unproven,
                version = it.version,
                broken = it.broken,
                late = it.late,
                dropped = it.dropped,
                strangers = it.strangers,
                latest,
                "refused connections: strangers have a key that no gateway has (`gateways`, or --near)"
            );
        }
    }

    /// What has happened at the port.
    pub fn report(&self) -> DoorReport {
        self.engine.borrow().report
    }

    /// Ends all connections, with what has crossed durable.
    pub async fn close(&self) {
        self.gateways.close().await;
    }
}

impl Visit {
    async fn receive(self, mut stream: TcpStream) {
        host::pair::settle(&stream);
        let mut guest = Guest::default();
        match self.greet(&mut stream, &mut guest).await {
            Ok(Some(key)) if self.door.gateways.has(&key) => self.serve(stream, guest, key).await,
            Ok(Some(key)) => {
                self.door.stranger.set(Some((key, self.from)));
                self.count(|counts| &mut counts.strangers);
                guest.refuse(Refused::Key);
                self.dismiss(stream, guest).await;
            }
            Ok(None) => {}
            Err(ended) => {
                self.count(|counts| match ended {
                    Ended::Version => &mut counts.version,
                    Ended::Unproven => &mut counts.unproven,
                    Ended::Broken => &mut counts.broken,
                });
                // Who does not know this end's key learns nothing from it.
                if ended != Ended::Unproven {
                    self.dismiss(stream, guest).await;
                }
            }
        }
    }

    async fn serve(self, stream: TcpStream, guest: Guest, key: PublicKey) {
        let (door, from) = (Rc::clone(&self.door), self.from);
        drop(self);
        tracing::info!(gateway = %key, %from, "a gateway has connected");
        door.gateways.serve(key, stream, guest, from.ip()).await;
        tracing::info!(gateway = %key, "a gateway's connection has ended");
    }

    /// Reads until it is known who is there; nobody if that takes too long, or the connection ends.
    async fn greet(
        &self,
        stream: &mut TcpStream,
        guest: &mut Guest,
    ) -> Result<Option<PublicKey>, Ended> {
        let mut until = Instant::now() + UNPROVEN;
        loop {
            let Ok(read) = timeout_at(until, read(stream)).await else {
                self.count(|counts| &mut counts.late);
                return Ok(None);
            };
            let Some(bytes) = read else { return Ok(None) };
            let was_begun = guest.is_begun();
            let known = guest.receive(&bytes, &mut self.door.keys.borrow_mut());
            if let Some(bytes) = guest.take_outbox()
                && !matches!(timeout_at(until, stream.write_all(&bytes)).await, Ok(Ok(())))
            {
                return Ok(None);
            }
            if let Some(key) = known? {
                return Ok(Some(key));
            }
            if !was_begun && guest.is_begun() {
                self.advance(Stage::Proven);
                until = Instant::now() + HANDSHAKE;
            }
        }
    }

    /// Lets the other side read why it is refused.
    async fn dismiss(&self, mut stream: TcpStream, mut guest: Guest) {
        self.advance(Stage::Parting);
        let parting = async {
            if let Some(bytes) = guest.take_outbox() {
                stream.write_all(&bytes).await?;
            }
            part(stream).await
        };
        let _ = timeout(PARTING, parting).await;
    }

    fn advance(&self, stage: Stage) {
        let dropped = self.door.engine.borrow_mut().advance(self.id, stage);
        self.door.drop_guest(dropped);
    }

    fn count(&self, counter: impl FnOnce(&mut DoorReport) -> &mut u64) {
        *counter(&mut self.door.engine.borrow_mut().report) += 1;
        self.door.counted.notify_one();
    }
}

/// The next bytes; `None` if the connection has ended.
async fn read(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut buffer = [0; 2048];
    loop {
        stream.readable().await.ok()?;
        match stream.try_read(&mut buffer) {
            Ok(0) => return None,
            Ok(length) => return Some(buffer[..length].to_vec()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}
