//! Everything one Linux machine does for a node: sockets, interception, connections to origins.
//!
//! *What this is:* the world's side of the engine's inputs and outputs: [`listen`] takes clients in,
//! [`screened`] holds what they say against the rules before a parser sees it, [`origin`] asks
//! origins, [`splice`] joins connections that are none of our business, [`intercept`] keeps the
//! rules that bring clients here, [`egress`] knows which interfaces lead out, [`routing`] follows the way to the gateway, [`peers`] connects
//! with other nodes, and [`capture`] shows what they send each other. *Who calls it:* the daemon's loop.
//! *What it never does:* decide anything about a request. *Where to start:* `listen.rs`.

pub mod capture;
pub mod client;
pub mod clock;
pub mod dial;
pub mod egress;
pub mod intercept;
pub mod listen;
pub mod origin;
pub mod parting;
pub mod peers;
mod progress;
pub mod resolve;
pub mod routing;
pub mod screened;
pub mod splice;
mod timeouts;
