//! The network stack of one simulated machine: packets, TCP, and the sockets of a host.
//!
//! *What this is:* [`Host`] is the kernel's part of a machine in virtual time, [`tcp::Connection`] one of its
//! TCP connections, [`Packet`] what machines send each other. *Who calls it:* the simulator's world, which
//! carries packets between hosts, and the programs that run on them. *What it never does:* read a clock, open
//! a socket, or know a route. *Where to start:* [`Host`]; for TCP itself [`tcp::Connection`]. This TCP is our
//! own, not smoltcp's, because loss recovery decides the results of experiments: it offers Reno's, NewReno's,
//! ns-3's, and that by selective acknowledgements.

mod bytes;
mod header;
mod host;
mod segment;
pub mod tcp;

pub use host::{Config, ConnectError, Event, Host, Interface, SocketId};
pub use segment::{Body, Datagram, Flags, Packet, Sack, Segment};
