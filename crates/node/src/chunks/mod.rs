//! Chunks: what is held, in memory and on disk; what is on its way from peers; what came before anybody wanted it.
//!
//! *Where to start:* `held.rs`, the one door. `held/kept.rs` is its part for what is published here, `unseal.rs` opens
//! what is given to clients.

mod held;
mod in_flight;
mod unseal;
mod unsolicited;

pub use held::{Appended, Chunks};
pub use in_flight::{Flight, InFlight, Part, Unit};
pub use unseal::{Opener, is_sealed_as};
