//! Everything that one Linux machine does for a node: sockets, interception, connections to
//! origins.
//!
//! *What this is:* the I/O behind the engine's inputs and outputs. [`listen`] accepts clients;
//! [`screened`] checks their bytes before a parser sees them; [`origin`] sends requests to origins;
//! [`tls`] verifies them; [`splice`] joins connections that are only relayed; [`intercept`] sets the rules that bring
//! clients here; [`egress`] knows which interfaces lead out; [`routing`] follows the route to the
//! gateway; [`peers`] connects to other nodes, and [`datagrams`] searches among them; [`pair`] to the far end of the uplink; [`capture`] overhears what they send to each other; [`traffic`] counts what crosses the wire.
//! [`rights`] gives up what a process may do beyond that, and [`helper`] is the process that keeps it.
//! *Who calls it:* the daemon's loop. *What it never does:* decide anything about a request. *Where
//! to start:* `listen.rs`.

pub mod capture;
pub mod client;
pub mod clock;
pub mod content;
pub mod datagrams;
pub mod dial;
pub mod egress;
pub mod helper;
pub mod intercept;
pub mod interim;
pub mod listen;
pub mod origin;
pub mod pair;
pub mod parting;
pub mod peers;
mod progress;
pub mod resolve;
pub mod rights;
pub mod routing;
pub mod screened;
pub mod splice;
mod timeouts;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(not(feature = "tls"))]
#[path = "without_tls.rs"]
pub mod tls;
pub mod traffic;
