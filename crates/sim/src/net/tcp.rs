//! One TCP connection without sockets or clocks: NewReno without selective acknowledgements or timestamps, as
//! in the classic studies of wireless meshes.
//!
//! *What this is:* [`Connection`]. Opening, closing and acknowledging follow RFC 9293 and RFC 1122, the
//! congestion window RFC 5681, recovery RFC 6582, limited transmit RFC 3042, the retransmission timer RFC
//! 6298. For comparisons it can recover losses as ns-3 does ([`Recovery`]). *Who calls it:*
//! [`Host`](super::Host), and tests. *What it never does:* know addresses or ports, or wait. *Where to
//! start:* [`Connection`]; then `input.rs` for what a segment does, `output.rs` for what is sent when.

mod config;
mod congestion;
mod connection;
mod guesses;
mod input;
mod output;
mod receive_buffer;
mod rtt;
mod send_buffer;
mod seq;
#[cfg(test)]
mod tests;
mod timeouts;

pub use config::{Config, Recovery};
pub use connection::{Connection, Counters, End, State};
pub(super) use seq::before;
