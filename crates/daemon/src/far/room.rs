//! File descriptors for connections with servers, shared by all gateways.

use crate::descriptors;
use node::driver::room::Room as Engine;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use wire::PublicKey;

/// Connections with servers at most, if the machine permits so many descriptors.
const FLOWS_MAX: u64 = 64 * 1024;
/// Descriptors of the process itself: those at the door, idle connections of few gateways, look-ups of names, routes.
const OWN: u64 = 1024;
/// Descriptors of a gateway that is connected: its histories, its connection, and idle connections to origins.
const GATEWAY: u64 = 16;
/// Gateways that are counted on to be connected at one time, if more are named: others make do with what is free.
const GATEWAYS_MAX: u64 = 1024;

/// Refusals are told this often at most.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Room for connections with servers.
#[derive(Clone)]
pub struct Room(Rc<Shared>);

struct Shared {
    engine: RefCell<Engine<PublicKey>>,
    /// When refusals were told, and how many there had been.
    told: Cell<(Option<Instant>, u64)>,
}

/// A connection's place.
pub struct Place {
    room: Room,
    key: PublicKey,
}

impl Room {
    /// Room for what this many gateways leave of the descriptors that the machine permits.
    pub fn new(gateways: usize) -> Self {
        let kept = OWN + GATEWAY * (gateways as u64).min(GATEWAYS_MAX);
        let all = descriptors::raise(kept + FLOWS_MAX);
        // At least a little, if somebody has set a low limit.
        let flows = all.saturating_sub(kept).max(all / 4).min(FLOWS_MAX);
        let engine = RefCell::new(Engine::new(flows as usize));
        Self(Rc::new(Shared { engine, told: Cell::default() }))
    }

    /// A place for a gateway's connection, if it may have one more.
    pub fn take(&self, key: PublicKey) -> Option<Place> {
        let may = self.0.engine.borrow_mut().take(key);
        if !may {
            self.tell(&key);
        }
        may.then(|| Place { room: self.clone(), key })
    }

    /// Connections that have a place, and how often there was none.
    pub fn figures(&self) -> (u64, u64) {
        let engine = self.0.engine.borrow();
        (engine.taken() as u64, engine.refused())
    }

    fn tell(&self, key: &PublicKey) {
        let (refused, (at, told)) = (self.0.engine.borrow().refused(), self.0.told.get());
        if at.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
            let more = refused - told;
            tracing::warn!(connections = more, latest = %key, "no room: gateways go past the far end");
            self.0.told.set((Some(Instant::now()), refused));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.0.engine.borrow_mut().release(&self.key);
    }
}
