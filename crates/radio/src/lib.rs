//! An 802.11 medium: which stations receive which frame, when, and how much airtime it takes.
//!
//! *What this is:* a state machine of one shared channel and the DCF of all stations on it, without
//! clocks, sockets, threads or files. The driver gives it packets, each as an [`Input`] with a
//! time. It returns as [`Output`]s which frames stations received, and how each transmission ended.
//! The lab drives it in real time, the simulator in virtual time. *Who calls it:* a driver: give
//! one input, drain [`Medium::poll_output`], sleep until [`Medium::poll_timeout`], call
//! [`Medium::handle_timeout`]. *What it never does:* look into a packet, read a clock, use random
//! numbers that do not come from its seed, or allocate memory per frame once its tables have
//! reached the size that the traffic needs. *Where to start:* `medium.rs`, then
//! `medium/exchange.rs` and `medium/air.rs`. `contention.rs` is one station's channel access,
//! `receiver.rs` its receiver. `physics.rs` and `error_rate.rs` decide about receptions. `phy.rs`
//! and `airtime.rs` have the numbers of the standard. Beside the engine: [`propagation`] computes
//! links from positions, [`waypoint`] moves stations, [`theory`] computes what a channel can carry.
//!
//! *Standard:* IEEE 802.11-2016, the DCF clause (carrier sense, NAV, backoff, EIFS, ACKs, RTS and
//! CTS, retry limits) over 802.11b with both preambles, 802.11a and 802.11g. *What a [`Config`]
//! chooses:* how the reception of a frame is decided ([`Decoding`]), which signals an idle receiver
//! locks onto ([`Locking`]), and which interpretation of the DCF stations use ([`Dcf`]). *Where it
//! departs from the standard:*
//!
//! - Signals arrive at once: there is no propagation delay, and no time to switch between receiving
//!   and sending. Two stations therefore collide only if their backoffs end at the very same
//!   instant.
//! - A signal below the carrier-sense threshold of its link is ignored: it does not even interfere.
//! - A receiver stays with the signal that it is locked onto. A later one never captures it,
//!   however strong, unless it begins at the same instant, or the preamble or PHY header of the
//!   first was lost.
//! - A frame of 802.11g also interferes during its signal extension, when in fact nothing is sent.
//! - Fading is constant during a frame and independent from frame to frame. So are losses on links,
//!   except those of overheard frames, which may come in bursts ([`Config::overhear_spell`]).
//! - All frames to one station are sent at one rate, all others at the basic rate. There is no
//!   fragmentation, no rate control, no protection of mixed networks, no beacon.

mod airtime;
mod chance;
mod config;
mod contention;
mod error_rate;
mod hearers;
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
mod receiver;
mod report;
mod spells;
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
