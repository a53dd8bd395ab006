//! An 802.11 medium: who hears which frame, when, and what it costs in air.
//!
//! *What this is:* a state machine of one shared channel and the DCF of all stations on it, without
//! clocks, sockets, threads or files. Packets go in as an [`Input`] with a time; what stations heard
//! and how sending went comes out as an [`Output`]. The lab drives it in real time, the simulator in
//! virtual time. *Who calls it:* a driver: give one input, drain [`Medium::poll_output`], sleep until
//! [`Medium::poll_timeout`], call [`Medium::handle_timeout`]. *What it never does:* look into a
//! packet, read a clock, draw chance that does not come from its seed, or allocate for a frame once
//! its tables have grown to what the traffic needs. *Where to start:* `medium.rs`, then
//! `medium/exchange.rs` and `medium/air.rs`; `contention.rs` is one station's turn, `receiver.rs` one
//! station's ear, `airtime.rs` the standard's numbers.
//!
//! *Standard:* IEEE 802.11-2016, the DCF clause (carrier sense, NAV, backoff, EIFS, ACKs, retry limit)
//! over the high-rate direct-sequence PHY (802.11b) with long preambles. *Where it departs:*
//!
//! - Signals arrive at once: no propagation delay, no time to switch between receiving and sending.
//!   So two stations collide if their backoffs end at the very same instant.
//! - A frame is received or not as a whole: by a 10 dB threshold over the greatest interference during
//!   it, and then by chance with its link's loss; there is no bit-error curve and no fading.
//! - A receiver stays with the first signal that it senses, however weak (see `receiver.rs`), and
//!   thinks a reception failed whenever that signal turns out too weak: it waits an EIFS.
//! - Losses of a link strike data frames only, never ACKs, and broadcasts as much as the driver says.
//! - The NAV comes from data frames that were received, and ends with their ACK. There is no RTS/CTS,
//!   no fragmentation, no rate control, no beacon.

mod airtime;
mod chance;
mod config;
mod contention;
mod error_rate;
mod links;
mod medium;
mod outbox;
mod output;
mod packets;
mod phy;
mod physics;
pub mod power;
pub mod propagation;
mod rate;
mod reach;
mod receiver;
mod report;
pub mod theory;
mod timers;
mod transceiver;
pub mod waypoint;

pub use config::{Config, Dcf, Decoding, Locking, LossScope};
pub use links::{Link, Links, Thresholds};
pub use medium::Medium;
pub use output::{
    Control, ControlFrame, Destination, Frame, Input, Outcome, Output, Reception, Station,
};
pub use phy::Phy;
pub use power::POWER_MAX;
pub use propagation::{Propagation, Ranges};
pub use rate::Rate;
pub use report::Report;
