//! Clients' connections: `node::driver::admission` counts them and decides which to close; this
//! tells the tasks that serve them. *What this is:* [`ConnectionLimit`] holds all connections. A
//! [`Permit`] belongs to one, from its acceptance to its end, also as a tunnel. *What it never
//! does:* decide, or touch a socket.

use host::clock::Clock;
use node::driver::Network;
use node::driver::admission::{Admission, Counters, Meter, Refused, SWEEP_EVERY, Slot};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The pause after a failed accept, for instance when file descriptors run out.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// While no connection is free, check at least this often: with time, slow heads and old tunnels may be
/// closed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// All connections of clients.
pub struct ConnectionLimit {
    admission: RefCell<Admission>,
    clock: Clock,
    told: RefCell<HashMap<Slot, Rc<Told>>>,
    /// An accept loop waits for room.
    is_full: Cell<bool>,
    room: Notify,
    /// The daemon stops: each connection ends after its current request.
    is_finishing: Cell<bool>,
    passed: Cell<u64>,
    refused: Cell<u64>,
    /// Half of the room is taken: connections that need not come by the daemon are not intercepted.
    is_crowded: watch::Sender<bool>,
}

/// Orders to the task that serves a connection.
#[derive(Default)]
struct Told {
    is_closed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The right to one connection. It lasts until the connection ends; for a tunnel, until its last
/// byte.
pub struct Permit {
    limit: Rc<ConnectionLimit>,
    slot: Slot,
    meter: Arc<Meter>,
    told: Rc<Told>,
    progress: Cell<Progress>,
}

/// The progress of the request on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// There is no request.
    #[default]
    Over,
    /// The response is being produced.
    Answering,
    /// hyper has the whole response, but may not have written all of it to the socket.
    Sending,
}

impl ConnectionLimit {
    /// A limit for this many connections and this memory budget, in bytes.
    pub fn new(connections_max: usize, memory_bytes: u64) -> Rc<Self> {
        Rc::new(Self {
            admission: RefCell::new(Admission::new(connections_max, memory_bytes)),
            clock: Clock::start(),
            told: RefCell::default(),
            is_full: Cell::new(false),
            room: Notify::new(),
            is_finishing: Cell::new(false),
            passed: Cell::new(0),
            refused: Cell::new(0),
            is_crowded: watch::Sender::new(false),
        })
    }

    /// A permit for a client that has connected; `network` is `None` for a client on this machine.
    pub fn arrive(self: &Rc<Self>, network: Option<Network>) -> Result<Rc<Permit>, Refused> {
        let meter = Arc::<Meter>::default();
        let slot = self.with(|it, now| it.arrive(now, network, Arc::clone(&meter)))?;
        Ok(self.permit(slot, meter))
    }

    /// A permit for a client that the kernel accepted before new ones were kept away; never
    /// refused.
    pub fn take(self: &Rc<Self>, network: Option<Network>) -> Rc<Permit> {
        let meter = Arc::<Meter>::default();
        let slot = self.with(|it, now| it.take(now, network, Arc::clone(&meter)));
        self.permit(slot, meter)
    }

    fn permit(self: &Rc<Self>, slot: Slot, meter: Arc<Meter>) -> Rc<Permit> {
        let told = Rc::<Told>::default();
        self.told.borrow_mut().insert(slot, Rc::clone(&told));
        Rc::new(Permit { limit: Rc::clone(self), slot, meter, told, progress: Cell::default() })
    }

    /// Waits until there is room again.
    pub async fn room(&self) {
        self.passed.set(self.passed.get() + 1);
        self.is_full.set(true);
        while !self.with(|it, now| it.is_relieved(now)) {
            // Woken or timed out: check again.
            let _ = tokio::time::timeout(LOOK_EVERY, self.room.notified()).await;
        }
        self.is_full.set(false);
    }

    /// Closes clients that are too slow, at intervals; never returns.
    pub async fn tend(&self) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            self.with(Admission::sweep);
            // Seldom, since the rules of interception follow it.
            if self.admission.borrow().is_at_ease() {
                self.is_crowded.send_if_modified(std::mem::take);
            }
        }
    }

    /// From here on each connection ends after its current request.
    pub fn finish(&self) {
        self.is_finishing.set(true);
        self.told.borrow().values().for_each(|told| told.wake());
    }

    /// Counts a 503 for lack of room.
    pub fn count_refused(&self) {
        self.refused.set(self.refused.get() + 1);
    }

    /// Whether half of the room is taken; tells of changes.
    pub fn is_crowded(&self) -> watch::Receiver<bool> {
        self.is_crowded.subscribe()
    }

    /// How many connections are open.
    pub fn len(&self) -> usize {
        self.told.borrow().len()
    }

    /// The counters since the start.
    pub fn counters(&self) -> Counters {
        self.admission.borrow().counters()
    }

    /// How often the transparent port stopped listening for lack of room.
    pub fn passed(&self) -> u64 {
        self.passed.get()
    }

    /// How many requests and connections got a 503 for lack of room.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// Calls `what`, then tells the connections that admission decided to close.
    fn with<T>(&self, what: impl FnOnce(&mut Admission, wire::Instant) -> T) -> T {
        let mut admission = self.admission.borrow_mut();
        let outcome = what(&mut admission, self.clock.now());
        if admission.is_crowded() {
            self.is_crowded.send_if_modified(|told| !std::mem::replace(told, true));
        }
        while let Some((slot, why)) = admission.poll_closed() {
            tracing::debug!(?why, "a client's connection is closed");
            if let Some(told) = self.told.borrow().get(&slot) {
                told.close();
            }
        }
        outcome
    }

    /// Wakes the accept loop that waits for room, if there is one.
    fn freed(&self) {
        if self.is_full.get() {
            self.room.notify_one();
        }
    }
}

impl Told {
    fn close(&self) {
        self.is_closed.set(true);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl Permit {
    /// The meter that counts the connection's bytes.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Begins a request. Returns how many bytes of its response may be in flight; `None`: there is
    /// no room for it.
    pub fn begin(&self) -> Option<u64> {
        let window = self.limit.with(|it, now| it.begin(now, self.slot));
        self.progress.set(if window.is_some() { Progress::Answering } else { Progress::Over });
        window
    }

    /// The links of the response will be rewritten; whether there is room for it.
    pub fn rewrite(&self) -> bool {
        self.limit.with(|it, now| it.rewrite(now, self.slot))
    }

    /// The connection has the whole response. The request ends at the first [`look`](Self::look)
    /// that finds no unsent byte of it.
    pub fn end(&self) {
        if self.progress.get() == Progress::Answering {
            self.progress.set(Progress::Sending);
        }
    }

    /// From here on the connection is a tunnel.
    pub fn tunnel(&self) {
        self.limit.with(|it, now| it.tunnel(now, self.slot));
    }

    /// The connection may be of any protocol, and either side may speak first.
    pub fn flow(&self) {
        self.limit.with(|it, now| it.flow(now, self.slot));
    }

    /// To be called after each poll of the connection. The poll may have sent the last bytes of a
    /// response, or read the first bytes of a head.
    pub fn look(&self) {
        if self.progress.get() == Progress::Sending && !self.meter.is_unsent() {
            self.progress.set(Progress::Over);
            self.limit.with(|it, now| it.end(now, self.slot));
            self.limit.freed();
        }
        if self.meter.has_head() && self.progress.get() == Progress::Over {
            let has_room = self.limit.with(|it, now| it.head(now, self.slot));
            if !has_room {
                self.close();
            }
        }
    }

    /// Whether the connection is to end after its current request.
    pub fn is_finishing(&self) -> bool {
        self.limit.is_finishing.get()
    }

    /// Tells the connection's task to end it now.
    pub fn close(&self) {
        self.told.close();
    }

    /// Whether the connection is to end now. Its task is also woken when [`is_finishing`](Self::is_finishing)
    /// becomes true.
    pub fn poll_closed(&self, cx: &Context<'_>) -> Poll<()> {
        if self.told.is_closed.get() {
            return Poll::Ready(());
        }
        let mut waker = self.told.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Waits until the connection is to end now.
    pub async fn closed(&self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limit.told.borrow_mut().remove(&self.slot);
        self.limit.with(|it, _| it.leave(self.slot));
        self.limit.freed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use std::pin::pin;

    fn client(last: u8) -> Option<Network> {
        Some(Network::of(IpAddr::from([10, 0, 0, last])))
    }

    #[tokio::test(flavor = "current_thread")]
    async fn who_idles_is_told_to_close_for_another() {
        let limit = ConnectionLimit::new(1, 1 << 30);
        let first = limit.arrive(client(1)).ok().unwrap();
        assert!(first.begin().is_some());
        assert!(matches!(limit.arrive(client(2)), Err(Refused::Full)));
        first.end();
        first.meter().keeps(true);
        first.look();
        assert!(matches!(limit.arrive(client(2)), Err(Refused::Full)), "its answer has not gone");
        first.meter().keeps(false);
        first.look();
        let second = limit.arrive(client(2)).ok().unwrap();
        first.closed().await;
        drop(first);
        assert_eq!((limit.len(), limit.counters().closed_idle), (1, 1));
        drop(second);
        assert_eq!((limit.len(), limit.counters().bytes), (0, 0));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn who_waits_for_room_is_woken_when_one_leaves() {
        let limit = ConnectionLimit::new(1, 1 << 30);
        let first = limit.arrive(client(1)).ok().unwrap();
        assert!(first.begin().is_some());
        let mut room = pin!(limit.room());
        assert!(poll_fn(|cx| Poll::Ready(room.as_mut().poll(cx))).await.is_pending());
        drop(first);
        let woken = poll_fn(|cx| Poll::Ready(room.as_mut().poll(cx))).await;
        assert!(woken.is_ready(), "it sleeps on");
        assert_eq!(limit.passed(), 1);
    }
}
