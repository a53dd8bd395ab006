//! A run in real time: real daemons and programs on an emulated radio.
//!
//! *Where to start:* `launch.rs`, how a run is started and ended; `run.rs`, the run itself, inside its
//! namespaces; `air.rs`, the medium's loop.

pub mod launch;
pub mod run;

mod address;
mod air;
mod buffer;
mod captures;
mod child;
mod clients;
mod far;
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
