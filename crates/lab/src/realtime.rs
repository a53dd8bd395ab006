//! A run in real time: real daemons and programs, an emulated radio.
//!
//! *Where to start:* `run.rs`, a run from beginning to end; `air.rs`, the medium's loop; `launch.rs`,
//! how a run is begun and ended.

pub mod launch;
pub mod run;

mod address;
mod air;
mod buffer;
mod captures;
mod child;
mod clients;
mod lateness;
mod lifeline;
mod namespace;
mod network;
mod origin;
mod overheard;
mod priority;
mod require;
mod routers;
mod tap;
mod verdict;
