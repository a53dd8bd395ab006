//! Links to peers: performs the engine's link outputs on sockets, and feeds it what happens on
//! them. *What this is:* each link is one task with one socket; it shares a [`LinkState`] with the
//! engine's side. All that the engine writes while it handles one input is sent together. *What it
//! never does:* parse the bytes, or copy those that are written. *Limits:* those of
//! [`node::driver::links`]. The engine bounds the links that it has not hung up. Links that were
//! hung up linger to send the rest; if there are too many of these, the oldest is closed.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use crate::connections::ACCEPT_PAUSE;
use bytes::{BufMut as _, Bytes, BytesMut};
use host::clock::Clock;
use host::parting::part;
use host::peers::{self, PeerListener};
use host::traffic::{Metered, Traffic, With};
use node::driver::links::{
    self, ACCEPTED_MAX, DIALLED_MAX, Farewells, LINGER, LinkSlot, LinkSlots,
};
use node::driver::{LinkBuffer, READ_MAX};
use node::{LinkId, LinkInput, LinkOutput};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use wire::Instant;

/// File descriptors for all links.
pub const DESCRIPTORS: u64 = (ACCEPTED_MAX + DIALLED_MAX) as u64;
/// The read buffer grows if it has less room than this, in bytes.
const READ_MIN: usize = 16 * 1024;
/// At most this many buffers are written with one system call.
const PIECES_MAX: usize = 64;

/// Takes the inputs of links; the driver, outside of tests.
pub trait Tell: Clone + 'static {
    /// Takes an input.
    fn tell(&self, input: LinkInput);
}

/// A handle to all links; each task has a clone.
#[derive(Clone)]
pub struct Links(Rc<Inner>);

struct Inner {
    clock: Clock,
    /// Links that the engine has not hung up.
    links: RefCell<HashMap<LinkId, Rc<LinkState>>>,
    slots: RefCell<LinkSlots>,
    /// Wakes the accept loop when a link's slot becomes free.
    vacant: Notify,
    accepted: Cell<u64>,
    /// Links that were hung up and still linger; the `Notify` closes one at once.
    farewells: RefCell<Farewells<(LinkId, Rc<Notify>)>>,
    /// Each task holds a clone until it ends, so that tasks can be counted.
    alive: Rc<()>,
    traffic: Traffic,
    /// The read buffer that links share. What was read is split off without a copy, so it is empty
    /// between reads.
    buffer: RefCell<BytesMut>,
}

/// The engine's outputs for one link, until the link's task performs them.
#[derive(Default)]
struct LinkState {
    buffer: RefCell<LinkBuffer>,
    changed: Notify,
}

impl Links {
    /// No links; the traffic of those to come counts as `traffic`.
    pub fn new(traffic: Traffic) -> Self {
        Self(Rc::new(Inner {
            traffic,
            clock: Clock::start(),
            links: RefCell::default(),
            slots: RefCell::default(),
            vacant: Notify::new(),
            accepted: Cell::new(0),
            farewells: RefCell::default(),
            alive: Rc::default(),
            buffer: RefCell::default(),
        }))
    }

    /// Performs an output. Feeds no input before it returns.
    pub fn perform(&self, output: LinkOutput, tell: &impl Tell) {
        match output {
            LinkOutput::Connect(id, address) => {
                let (links, link, tell) = (self.clone(), self.add(id), tell.clone());
                spawn_local(async move { links.dial(id, address, &link, &tell).await });
            }
            LinkOutput::Hangup(id) => {
                if let Some(link) = self.0.links.borrow_mut().remove(&id) {
                    link.take(output);
                }
            }
            LinkOutput::Write(id, _)
            | LinkOutput::Receive(id, _)
            | LinkOutput::ReadThreshold(id, _)
            | LinkOutput::BulkData(id) => {
                if let Some(link) = self.0.links.borrow().get(&id) {
                    link.take(output);
                }
            }
        }
    }

    /// Accepts peers; never returns.
    pub async fn accept(self, mut port: PeerListener, tell: impl Tell) {
        loop {
            match port.accept().await {
                Ok((stream, peer)) => {
                    let stream = self.0.traffic.meter(stream, With::Peer);
                    // While there is no slot, this connection waits here, and later ones in the
                    // kernel's accept queue.
                    while !self.0.slots.borrow().is_vacant() {
                        self.0.vacant.notified().await;
                    }
                    match self.hold(LinkSlot::Accepted(peer.ip())) {
                        Some(held) => self.take(stream, peer, held, tell.clone()),
                        None => tracing::debug!(%peer, "refused: it has its share of all links"),
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a peer");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Hangs up all links, and waits until what was written is sent, at most for `timeout`.
    pub async fn hang_up(&self, timeout: Duration) {
        for (id, link) in self.0.links.take() {
            link.take(LinkOutput::Hangup(id));
        }
        let gone = async {
            while holders(&self.0.alive) > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // Links whose peers do not read in time are dropped.
        let _ = tokio::time::timeout(timeout, gone).await;
    }

    fn add(&self, id: LinkId) -> Rc<LinkState> {
        let link = Rc::<LinkState>::default();
        self.0.links.borrow_mut().insert(id, Rc::clone(&link));
        link
    }

    fn hold(&self, slot: LinkSlot) -> Option<Held> {
        let is_taken = self.0.slots.borrow_mut().take(slot);
        is_taken.then(|| Held(self.clone(), slot))
    }

    fn take(&self, stream: Metered, peer: SocketAddr, held: Held, tell: impl Tell) {
        let id = LinkId::accepted(self.0.accepted.get());
        self.0.accepted.set(self.0.accepted.get() + 1);
        let (links, link) = (self.clone(), self.add(id));
        spawn_local(async move {
            let _held = held;
            let _alive = Rc::clone(&links.0.alive);
            link.say(&tell, LinkInput::Accepted(id, peer));
            links.carry(id, stream, &link, &tell).await;
        });
    }

    async fn dial(&self, id: LinkId, address: SocketAddr, link: &LinkState, tell: &impl Tell) {
        let _alive = Rc::clone(&self.0.alive);
        let held = self.hold(LinkSlot::Dialled);
        let dialled = tokio::select! {
            dialled = peers::dial(address), if held.is_some() => dialled,
            () = link.hang_up(), if held.is_some() => return,
            else => Err(io::Error::other("too many links")),
        };
        match dialled {
            Ok(stream) => {
                let stream = self.0.traffic.meter(stream, With::Peer);
                link.say(tell, LinkInput::Connected(id));
                self.carry(id, stream, link, tell).await;
            }
            Err(error) => {
                tracing::debug!(%address, %error, "cannot connect to a peer");
                self.close(id, tell);
            }
        }
    }

    /// Carries a connected link's bytes until it ends, then closes it or lets it linger.
    async fn carry(&self, id: LinkId, stream: Metered, link: &LinkState, tell: &impl Tell) {
        link.say(tell, LinkInput::Room(id, links::room(self.0.links.borrow().len())));
        if let Err(error) = self.pass(id, &stream, link, tell).await {
            tracing::debug!(link = id.0, %error, "a link failed");
        }
        if link.is_hung_up() {
            self.say_farewell(id, stream, link).await;
        } else {
            self.close(id, tell);
        }
    }

    /// Reads and writes until one side ends the link.
    async fn pass(
        &self,
        id: LinkId,
        stream: &TcpStream,
        link: &LinkState,
        tell: &impl Tell,
    ) -> io::Result<()> {
        let mut is_bulk = false;
        while !link.is_hung_up() {
            if link.buffer.borrow_mut().turns_bulk() {
                // A chunk is no multiple of a segment: with Nagle's algorithm its last bytes share
                // a segment with the next chunk.
                stream.set_nodelay(false)?;
                is_bulk = true;
                // The node that dials a bulk link receives the chunks.
                if id.is_dialled() {
                    peers::only_receives(stream);
                }
            }
            let Some(interest) = link.interest() else {
                link.changed.notified().await;
                continue;
            };
            let left_until = link.buffer.borrow().poll_timeout();
            let ready = tokio::select! {
                biased;
                ready = stream.ready(interest) => ready?,
                () = link.changed.notified() => continue,
                () = self.0.clock.wait_until(left_until) => {
                    let bytes = peers::take_unread(stream, link.buffer.borrow().most())?;
                    link.receive(id, bytes, tell).await;
                    continue;
                }
            };
            if ready.is_writable() {
                let written = link.write(stream)?;
                if written > 0 {
                    link.say(tell, LinkInput::Room(id, written));
                }
            }
            let most = link.buffer.borrow().most();
            if ready.is_readable() && most > 0 {
                if link.leaves(stream, self.0.clock.now(), ready.is_read_closed())? {
                    continue;
                }
                if is_bulk {
                    peers::acknowledge_sparingly(stream);
                }
                match self.read(stream, most) {
                    Ok(bytes) if bytes.is_empty() => break,
                    Ok(bytes) => link.receive(id, bytes, tell).await,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Reads at most `most` bytes; an empty result is the end of the stream. A read also stops at
    /// the end of the shared buffer; the next one reads the rest.
    fn read(&self, stream: &TcpStream, most: u64) -> io::Result<Bytes> {
        let mut buffer = self.0.buffer.borrow_mut();
        if buffer.capacity() < READ_MIN {
            buffer.reserve(READ_MAX);
        }
        let most = usize::try_from(most).unwrap_or(READ_MAX).min(buffer.capacity());
        stream.try_read_buf(&mut (&mut *buffer).limit(most))?;
        Ok(buffer.split().freeze())
    }

    /// Sends the rest of a link that was hung up, and closes it; at once, if too many others
    /// linger.
    async fn say_farewell(&self, id: LinkId, stream: Metered, link: &LinkState) {
        let enough = Rc::<Notify>::default();
        let oldest = self.0.farewells.borrow_mut().begin((id, Rc::clone(&enough)));
        if let Some((_, enough)) = oldest {
            enough.notify_one();
        }
        tokio::select! {
            _ = tokio::time::timeout(LINGER, link.part(stream)) => {}
            () = enough.notified() => {}
        }
        self.0.farewells.borrow_mut().end(|(other, _)| *other == id);
    }

    /// Tells the engine that a link ended without a hang-up.
    fn close(&self, id: LinkId, tell: &impl Tell) {
        let link = self.0.links.borrow_mut().remove(&id);
        if let Some(link) = link {
            link.say(tell, LinkInput::Closed(id));
        }
    }
}

impl LinkState {
    fn take(&self, output: LinkOutput) {
        if self.buffer.borrow_mut().take(output) {
            self.changed.notify_one();
        }
    }

    fn is_hung_up(&self) -> bool {
        self.buffer.borrow().is_hung_up()
    }

    /// Whether to leave the unread bytes in the socket for now, because they are below the read
    /// threshold.
    fn leaves(&self, stream: &TcpStream, now: Instant, is_ended: bool) -> io::Result<bool> {
        let mut buffer = self.buffer.borrow_mut();
        // Most reads have no threshold, so they skip the system call.
        if buffer.least() == 0 {
            return Ok(false);
        }
        peers::is_left(stream, |unread| buffer.leaves(now, unread, is_ended))
    }

    /// The readiness to wait for; `None` if there is neither credit to read nor anything to write.
    fn interest(&self) -> Option<Interest> {
        let buffer = self.buffer.borrow();
        match (buffer.most() > 0, !buffer.is_written()) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        }
    }

    /// Feeds the engine an input, unless it has hung up the link.
    fn say(&self, tell: &impl Tell, input: LinkInput) {
        if !self.is_hung_up() {
            tell.tell(input);
        }
    }

    /// Feeds the engine what was read.
    async fn receive(&self, id: LinkId, bytes: Bytes, tell: &impl Tell) {
        self.buffer.borrow_mut().received(bytes.len() as u64);
        if bytes.is_empty() {
            return;
        }
        self.say(tell, LinkInput::Received(id, bytes));
        // Let other tasks run; meanwhile more bytes arrive, so that the next read is larger.
        tokio::task::yield_now().await;
    }

    /// Waits until the engine hangs up.
    async fn hang_up(&self) {
        while !self.is_hung_up() {
            self.changed.notified().await;
        }
    }

    /// Sends the rest, and closes the connection in order.
    async fn part(&self, stream: Metered) -> io::Result<()> {
        while !self.buffer.borrow().is_parting() {
            stream.writable().await?;
            self.write(&stream)?;
        }
        part(stream).await
    }

    /// Writes as much as the socket takes; returns how many bytes.
    fn write(&self, stream: &TcpStream) -> io::Result<u64> {
        let mut buffer = self.buffer.borrow_mut();
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let mut count = 0;
        for (piece, bytes) in pieces.iter_mut().zip(buffer.pieces()) {
            *piece = IoSlice::new(bytes);
            count += 1;
        }
        match stream.try_write_vectored(&pieces[..count]) {
            Ok(written) => {
                buffer.wrote(written);
                Ok(written as u64)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// A link's slot under the limits, released when this is dropped.
struct Held(Links, LinkSlot);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.slots.borrow_mut().release(self.1);
        self.0.0.vacant.notify_one();
    }
}

/// How many clones there are besides this one.
fn holders(held: &Rc<()>) -> usize {
    Rc::strong_count(held) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio::task::LocalSet;

    /// An engine that records its inputs.
    #[derive(Clone)]
    struct FakeEngine(UnboundedSender<LinkInput>);

    impl Tell for FakeEngine {
        fn tell(&self, input: LinkInput) {
            self.0.send(input).expect("the test listens");
        }
    }

    struct Bench {
        links: Links,
        engine: FakeEngine,
        told: UnboundedReceiver<LinkInput>,
        listener: TcpListener,
    }

    const ID: LinkId = LinkId::dialled(0);

    impl Bench {
        async fn new() -> Self {
            let (sender, told) = unbounded_channel();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            Self {
                links: Links::new(Traffic::default()),
                engine: FakeEngine(sender),
                told,
                listener,
            }
        }

        fn say(&self, output: LinkOutput) {
            self.links.perform(output, &self.engine);
        }

        /// Dials a link and waits for its first `Room`; returns the peer's end.
        async fn dial(&mut self) -> TcpStream {
            self.say(LinkOutput::Connect(ID, self.listener.local_addr().unwrap()));
            let (peer, _) = self.listener.accept().await.unwrap();
            assert!(matches!(self.told.recv().await, Some(LinkInput::Connected(ID))));
            assert!(matches!(self.told.recv().await, Some(LinkInput::Room(ID, _))));
            peer
        }

        /// Waits until no task is left; no further input may have been fed.
        async fn quiet(mut self) {
            self.links.hang_up(Duration::from_secs(9)).await;
            assert_eq!(holders(&self.links.0.alive), 0);
            assert!(self.links.0.slots.borrow().is_empty());
            drop(self.engine);
            assert!(self.told.recv().await.is_none(), "something was said");
        }
    }

    async fn dial_until_open(port: u16) -> TcpStream {
        loop {
            match peers::dial(([127, 0, 0, 1], port).into()).await {
                Ok(stream) => return stream,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, test);
    }

    #[test]
    fn bytes_go_out_in_order_and_their_room_comes_back() {
        run(async {
            let mut bench = Bench::new().await;
            let mut peer = bench.dial().await;
            let pieces: Vec<_> = (0..200).map(|at| Bytes::from(vec![at as u8; 50 + at])).collect();
            pieces.iter().for_each(|piece| bench.say(LinkOutput::Write(ID, piece.clone())));
            let expected = pieces.concat();
            let mut got = vec![0; expected.len()];
            peer.read_exact(&mut got).await.unwrap();
            assert_eq!(got, expected);
            let mut room = 0;
            while room < expected.len() as u64 {
                let Some(LinkInput::Room(ID, bytes)) = bench.told.recv().await else { panic!() };
                room += bytes;
            }
            assert_eq!(room, expected.len() as u64);
            drop(peer);
            bench.quiet().await;
        });
    }

    #[test]
    fn no_more_is_read_than_was_granted() {
        run(async {
            let mut bench = Bench::new().await;
            let mut peer = bench.dial().await;
            peer.write_all(&[7; 5000]).await.unwrap();
            drop(peer);
            for granted in [1000, 3999] {
                bench.say(LinkOutput::Receive(ID, granted));
                let Some(LinkInput::Received(ID, bytes)) = bench.told.recv().await else {
                    panic!()
                };
                assert_eq!(bytes.len() as u64, granted);
            }
            bench.say(LinkOutput::Receive(ID, 2));
            let last = bench.told.recv().await;
            assert!(matches!(last, Some(LinkInput::Received(ID, bytes)) if bytes.len() == 1));
            assert!(matches!(bench.told.recv().await, Some(LinkInput::Closed(ID))));
            bench.quiet().await;
        });
    }

    /// Lets the link's task run. Over the loopback, bytes arrive as soon as they are written.
    async fn look() {
        for _ in 0..300 {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn what_is_too_little_is_left_unread_until_it_is_enough() {
        run(async {
            let mut bench = Bench::new().await;
            let mut peer = bench.dial().await;
            bench.say(LinkOutput::Receive(ID, 50_000));
            bench.say(LinkOutput::ReadThreshold(ID, 3000));
            for part in [1000, 1999, 1] {
                look().await;
                assert!(bench.told.try_recv().is_err(), "read before it was worth it");
                peer.write_all(&vec![7; part]).await.unwrap();
            }
            let told = bench.told.recv().await;
            assert!(matches!(told, Some(LinkInput::Received(ID, bytes)) if bytes.len() == 3000));
            // The threshold applied to one read only.
            peer.write_all(&[7]).await.unwrap();
            let told = bench.told.recv().await;
            assert!(matches!(told, Some(LinkInput::Received(ID, bytes)) if bytes.len() == 1));
            drop(peer);
            assert!(matches!(bench.told.recv().await, Some(LinkInput::Closed(ID))));
            bench.quiet().await;
        });
    }

    #[test]
    fn what_a_sender_who_stalls_has_sent_is_read_in_the_end() {
        run(async {
            let mut bench = Bench::new().await;
            let mut peer = bench.dial().await;
            bench.say(LinkOutput::Receive(ID, 50_000));
            for part in [1000, 500] {
                bench.say(LinkOutput::ReadThreshold(ID, 3000));
                peer.write_all(&vec![7; part]).await.unwrap();
                let told = bench.told.recv().await;
                let Some(LinkInput::Received(ID, bytes)) = told else { panic!("{told:?}") };
                assert_eq!(bytes.len(), part);
            }
            drop(peer);
            assert!(matches!(bench.told.recv().await, Some(LinkInput::Closed(ID))));
            bench.quiet().await;
        });
    }

    #[test]
    fn an_end_is_told_though_too_little_came_before_it() {
        run(async {
            let mut bench = Bench::new().await;
            let mut peer = bench.dial().await;
            bench.say(LinkOutput::Receive(ID, 50_000));
            bench.say(LinkOutput::ReadThreshold(ID, 3000));
            peer.write_all(&[7; 1000]).await.unwrap();
            look().await;
            drop(peer);
            let told = bench.told.recv().await;
            assert!(matches!(told, Some(LinkInput::Received(ID, bytes)) if bytes.len() == 1000));
            assert!(matches!(bench.told.recv().await, Some(LinkInput::Closed(ID))));
            bench.quiet().await;
        });
    }

    #[test]
    fn a_hang_up_sends_what_was_written_and_is_the_last_word() {
        run(async {
            let mut bench = Bench::new().await;
            let mut peer = bench.dial().await;
            // Unread bytes must not turn the close into a reset, which would discard what was sent.
            peer.write_all(&[1; 100]).await.unwrap();
            let farewell = Bytes::from(vec![9; links::room(1) as usize]);
            bench.say(LinkOutput::Write(ID, farewell.clone()));
            bench.say(LinkOutput::Hangup(ID));
            let mut got = Vec::new();
            peer.read_to_end(&mut got).await.unwrap();
            assert_eq!(got, farewell);
            drop(peer);
            bench.say(LinkOutput::Write(ID, farewell));
            bench.quiet().await;
        });
    }

    #[test]
    fn a_dial_that_fails_is_told_unless_it_was_hung_up() {
        run(async {
            let mut bench = Bench::new().await;
            let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
            bench.say(LinkOutput::Connect(ID, nobody));
            assert!(matches!(bench.told.recv().await, Some(LinkInput::Closed(ID))));
            bench.say(LinkOutput::Connect(LinkId::dialled(1), nobody));
            bench.say(LinkOutput::Hangup(LinkId::dialled(1)));
            bench.quiet().await;
        });
    }

    #[test]
    fn too_many_dials_fail() {
        run(async {
            let mut bench = Bench::new().await;
            let others = [(); DIALLED_MAX].map(|()| bench.links.hold(LinkSlot::Dialled).unwrap());
            bench.say(LinkOutput::Connect(ID, bench.listener.local_addr().unwrap()));
            assert!(matches!(bench.told.recv().await, Some(LinkInput::Closed(ID))));
            drop(others);
            bench.quiet().await;
        });
    }

    #[test]
    fn those_who_never_close_hold_few_places_once_they_were_hung_up() {
        run(async {
            let mut bench = Bench::new().await;
            let port = bench.listener.local_addr().unwrap().port();
            bench.listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let own = PeerListener::new("lo".into(), port);
            let accepting = spawn_local(bench.links.clone().accept(own, bench.engine.clone()));
            let mut peers = Vec::new();
            for _ in 0..2 * links::FAREWELLS_MAX {
                peers.push(dial_until_open(port).await);
                let Some(LinkInput::Accepted(id, _)) = bench.told.recv().await else { panic!() };
                assert!(matches!(bench.told.recv().await, Some(LinkInput::Room(..))));
                bench.say(LinkOutput::Hangup(id));
                look().await;
                assert!(holders(&bench.links.0.alive) <= links::FAREWELLS_MAX);
            }
            accepting.abort();
            let _ = accepting.await;
            drop(peers);
            bench.quiet().await;
        });
    }

    #[test]
    fn accepted_connections_get_odd_numbers() {
        run(async {
            let mut bench = Bench::new().await;
            let port = bench.listener.local_addr().unwrap().port();
            bench.listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let own = PeerListener::new("lo".into(), port);
            let accepting = spawn_local(bench.links.clone().accept(own, bench.engine.clone()));
            for id in [1, 3] {
                let peer = dial_until_open(port).await;
                let Some(LinkInput::Accepted(LinkId(told), from)) = bench.told.recv().await else {
                    panic!()
                };
                assert_eq!((told, from), (id, peer.local_addr().unwrap()));
                assert!(matches!(bench.told.recv().await, Some(LinkInput::Room(..))));
            }
            accepting.abort();
            let _ = accepting.await;
            bench.quiet().await;
        });
    }
}
