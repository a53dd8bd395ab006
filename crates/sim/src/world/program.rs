//! The program of a machine.

use wire::Instant;

use super::Routes;
use crate::net::{Event, Host, Packet};

/// The program of a machine: a sender or receiver, a client, an origin, a router.
///
/// The world calls it with its machine's [`Host`], and afterwards sends the host's packets. A program that
/// draws random numbers gets its own seed from [`seed`](crate::scenario::seed) when it is made. It sees no
/// machine but its own.
pub trait Program {
    /// Called once, before all other methods.
    fn start(&mut self, _now: Instant, _host: &mut Host) {}

    /// An event at one of the machine's sockets.
    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event);

    /// The machine's station has received a packet for another station. Called only if the world
    /// [listens](super::World::listen).
    fn overhear(&mut self, _now: Instant, _host: &mut Host, _packet: &Packet) {}

    /// Routes have changed, those of this station or of others. Not called on wired machines.
    fn rerouted(&mut self, _now: Instant, _host: &mut Host, _routes: &mut Routes) {}

    /// The time that [`poll_timeout`](Self::poll_timeout) gave has come.
    fn handle_timeout(&mut self, _now: Instant, _host: &mut Host) {}

    /// When to call [`handle_timeout`](Self::handle_timeout) next; asked after each of these calls.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
