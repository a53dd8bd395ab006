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
//! station's ear, `physics.rs` and `error_rate.rs` what decides about receptions, `phy.rs` and
//! `airtime.rs` the standard's numbers. Beside the engine: [`propagation`] makes links of positions,
//! [`waypoint`] moves stations, [`theory`] says what a channel can carry.
//!
//! *Standard:* IEEE 802.11-2016, the DCF clause (carrier sense, NAV, backoff, EIFS, ACKs, RTS and CTS,
//! retry limits) over 802.11b with both preambles, 802.11a and 802.11g. *What a [`Config`] chooses:* how a
//! frame's fate is decided ([`Decoding`]), what an idle receiver follows ([`Locking`]), and whose reading
//! of the DCF stations follow ([`Dcf`]). *Where it departs:*
//!
//! - Signals arrive at once: no propagation delay, no time to switch between receiving and sending.
//!   So two stations collide if their backoffs end at the very same instant.
//! - A signal below its link's threshold of carrier sense is nothing: it does not even disturb.
//! - A receiver stays with the signal that it follows: no later one captures it, however strong, unless
//!   it comes at the same instant, or in the place of a preamble or PHY header that was lost.
//! - A frame of 802.11g disturbs others during its signal extension too, when nothing is sent any more.
//! - Fading is constant during a frame and independent from frame to frame; so are losses of links, but for
//!   those of frames for others, which may come in spells ([`Config::overhear_spell`]).
//! - All frames to one station go at one rate, all others at the basic rate. There is no fragmentation,
//!   no rate control, no protection of mixed networks, no beacon.

mod airtime;
mod chance;
mod config;
mod contention;
mod due;
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
mod spells;
pub mod theory;
mod timers;
mod transceiver;
pub mod waypoint;

pub use config::{Config, Dcf, Decoding, Locking, LossScope};
pub use due::Due;
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
