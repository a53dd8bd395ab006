//! The network stack of one simulated machine: packets, TCP, and the sockets of a host.
//!
//! *What this is:* [`Host`] is the kernel's part of a machine in virtual time, [`tcp::Connection`] one
//! TCP connection of it, [`Packet`] what machines send each other. *Who calls it:* the simulator's
//! world, which carries packets between hosts, and the programs that run on them. *What it never
//! does:* read a clock, open a socket, or know a route. *Where to start:* [`Host`]; for TCP itself
//! [`tcp::Connection`], which is ours and not smoltcp's: how losses are repaired decides what experiments give, so we
//! choose it ourselves (ns-3's recovery beside that of RFC 6582, limited transmit, no SACK).

mod bytes;
mod host;
mod segment;
pub mod tcp;

pub use host::{Config, ConnectError, Event, Host, Interface, SocketId};
pub use segment::{Body, Datagram, Flags, Packet, Segment};
