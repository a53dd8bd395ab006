//! What runs on a machine.

use wire::Instant;

use super::Routes;
use crate::net::{Event, Host, Packet};

/// What runs on a machine: senders and receivers, clients, origins, routers.
///
/// The world calls it with its machine's [`Host`], and afterwards takes out of the host whatever is to
/// be sent. A program that draws by chance gets its own seed when it is made, from
/// [`seed`](crate::scenario::seed); it hears of no machine but its own.
pub trait Program {
    /// Once, before anything else.
    fn start(&mut self, _now: Instant, _host: &mut Host) {}

    /// Something happened at one of the machine's sockets.
    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event);

    /// The machine's station heard a packet on the air that is for another, where the world
    /// [listens](super::World::listen).
    fn overhear(&mut self, _now: Instant, _host: &mut Host, _packet: &Packet) {}

    /// Routes have changed: those of the machine's station, or others'. Wired machines are not told.
    fn rerouted(&mut self, _now: Instant, _host: &mut Host, _routes: &mut Routes) {}

    /// The time has come that [`poll_timeout`](Self::poll_timeout) said.
    fn handle_timeout(&mut self, _now: Instant, _host: &mut Host) {}

    /// When it wants [`handle_timeout`](Self::handle_timeout) next; asked after each of these calls.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
