//! One TCP connection without sockets or clocks: NewReno without selective acknowledgements or timestamps, as
//! in the classic studies of wireless meshes, or what [`Config`] chooses instead.
//!
//! *What this is:* [`Connection`]. Opening, closing and acknowledging follow RFC 9293 and RFC 1122, the
//! congestion window RFC 5681, recovery RFC 6582, limited transmit RFC 3042, the retransmission timer RFC
//! 6298. It can recover losses as Reno (RFC 5681), by selective acknowledgements (RFC 2018, 2883 and 6675), and
//! for comparisons as ns-3 does ([`Recovery`]); timestamps follow RFC 7323. *Who calls it:*
//! [`Host`](super::Host), and tests. *What it never does:* know addresses or ports, or wait. *Where to
//! start:* [`Connection`]; then `input.rs` for what a segment does, `output.rs` for what is sent when.

mod config;
mod congestion;
mod connection;
mod guesses;
mod input;
mod output;
mod peer_window;
mod phases;
mod receive_buffer;
mod reports;
mod rtt;
mod sack;
mod scoreboard;
mod send_buffer;
mod seq;
mod stamps;
#[cfg(test)]
mod tests;
mod timeouts;

pub use config::{Config, Recovery};
pub use connection::{Connection, Counters, End, State};
pub use phases::PhaseTimes;
pub(super) use seq::before;
