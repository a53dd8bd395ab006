//! Connections of clients as `node::driver::admission` counts them, and what it says told to those who serve them.
//!
//! *What this is:* [`ConnectionLimit`], all of them; a [`Permit`] is one connection's, from its acceptance to its end,
//! through whatever hands it goes. *What it never does:* decide, or touch a socket.

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
use tokio::sync::Notify;

/// After a failed accept, as when descriptors run out, there is a pause.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// While there is no room, it is looked for at least this often: heads and tunnels get older.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// All places.
pub struct ConnectionLimit {
    admission: RefCell<Admission>,
    clock: Clock,
    told: RefCell<HashMap<Slot, Rc<Told>>>,
    /// Some wait for room.
    is_full: Cell<bool>,
    room: Notify,
    /// Every connection ends when what is under way on it is done.
    is_finishing: Cell<bool>,
    passed: Cell<u64>,
    refused: Cell<u64>,
}

/// What is said to the task that serves a connection.
#[derive(Default)]
struct Told {
    is_closed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// A connection's place, for as long as it is held: until the last byte of a tunnel.
pub struct Permit {
    limit: Rc<ConnectionLimit>,
    slot: Slot,
    meter: Arc<Meter>,
    told: Rc<Told>,
    turn: Cell<Progress>,
}

/// How far the request on a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// There is none.
    #[default]
    Over,
    /// It is being answered.
    Answering,
    /// All of the answer was handed to the connection, which may still keep a part of it.
    Sending,
}

impl ConnectionLimit {
    /// For this many connections, in this much memory.
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
        })
    }

    /// A place for a client that has connected; `None` is one of this machine.
    pub fn arrive(self: &Rc<Self>, network: Option<Network>) -> Result<Rc<Permit>, Refused> {
        let meter = Arc::<Meter>::default();
        let slot = self.with(|it, now| it.arrive(now, network, Arc::clone(&meter)))?;
        Ok(self.permit(slot, meter))
    }

    /// A place for a client that was accepted already, while new ones are kept away.
    pub fn take(self: &Rc<Self>, network: Option<Network>) -> Rc<Permit> {
        let meter = Arc::<Meter>::default();
        let slot = self.with(|it, now| it.take(now, network, Arc::clone(&meter)));
        self.permit(slot, meter)
    }

    fn permit(self: &Rc<Self>, slot: Slot, meter: Arc<Meter>) -> Rc<Permit> {
        let told = Rc::<Told>::default();
        self.told.borrow_mut().insert(slot, Rc::clone(&told));
        Rc::new(Permit { limit: Rc::clone(self), slot, meter, told, turn: Cell::default() })
    }

    /// Waits until there is room again.
    pub async fn room(&self) {
        self.passed.set(self.passed.get() + 1);
        self.is_full.set(true);
        while !self.with(|it, now| it.is_relieved(now)) {
            // Whether it was told or not, it looks.
            let _ = tokio::time::timeout(LOOK_EVERY, self.room.notified()).await;
        }
        self.is_full.set(false);
    }

    /// Closes who is too slow, from time to time; never returns.
    pub async fn tend(&self) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            self.with(Admission::sweep);
        }
    }

    /// From here on every connection ends when what is under way on it is done.
    pub fn finish(&self) {
        self.is_finishing.set(true);
        self.told.borrow().values().for_each(|told| told.wake());
    }

    /// A connection was answered that there is no room.
    pub fn count_refused(&self) {
        self.refused.set(self.refused.get() + 1);
    }

    /// Connections that are there.
    pub fn len(&self) -> usize {
        self.told.borrow().len()
    }

    /// What was counted since the start.
    pub fn counters(&self) -> Counters {
        self.admission.borrow().counters()
    }

    /// How often the transparent port stopped listening for want of room.
    pub fn passed(&self) -> u64 {
        self.passed.get()
    }

    /// How many connections were answered that there is no room.
    pub fn refused(&self) -> u64 {
        self.refused.get()
    }

    /// Does something, and tells those who are to be closed for it.
    fn with<T>(&self, what: impl FnOnce(&mut Admission, wire::Instant) -> T) -> T {
        let mut admission = self.admission.borrow_mut();
        let outcome = what(&mut admission, self.clock.now());
        while let Some((slot, why)) = admission.poll_closed() {
            tracing::debug!(?why, "a client's connection is closed");
            if let Some(told) = self.told.borrow().get(&slot) {
                told.close();
            }
        }
        outcome
    }

    /// There may be room now.
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
    /// What counts on this connection.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// A request is to be answered: how many bytes may be on their way; `None`: there is no room.
    pub fn begin(&self) -> Option<u64> {
        let window = self.limit.with(|it, now| it.begin(now, self.slot));
        self.turn.set(if window.is_some() { Progress::Answering } else { Progress::Over });
        window
    }

    /// All of the answer was handed to the connection. The turn ends at the first [`look`](Self::look) that finds
    /// nothing of it in our memory.
    pub fn end(&self) {
        if self.turn.get() == Progress::Answering {
            self.turn.set(Progress::Sending);
        }
    }

    /// The connection is passed on unlooked at from here on.
    pub fn tunnel(&self) {
        self.limit.with(|it, now| it.tunnel(now, self.slot));
    }

    /// The connection was polled: the last of an answer may have gone, or a part of a head come.
    pub fn look(&self) {
        if self.turn.get() == Progress::Sending && !self.meter.is_unsent() {
            self.turn.set(Progress::Over);
            self.limit.with(|it, now| it.end(now, self.slot));
            self.limit.freed();
        }
        if self.meter.has_head() && self.turn.get() == Progress::Over {
            let has_room = self.limit.with(|it, now| it.head(now, self.slot));
            if !has_room {
                self.close();
            }
        }
    }

    /// The connection is to end when what is under way on it is done.
    pub fn is_finishing(&self) -> bool {
        self.limit.is_finishing.get()
    }

    /// The connection is to end now.
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
        let leave = async {
            tokio::task::yield_now().await;
            drop(first);
        };
        let both = async { tokio::join!(limit.room(), leave) };
        let woken = tokio::time::timeout(LOOK_EVERY / 2, both).await;
        assert!(woken.is_ok(), "it slept on");
        assert_eq!(limit.passed(), 1);
    }
}
