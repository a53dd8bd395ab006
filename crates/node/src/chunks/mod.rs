//! Chunks: units held in memory and on disk, units in flight from peers, and units that arrived before
//! they were requested.
//!
//! *Where to start:* `held.rs`, through which all units are stored and read. `held/kept.rs` is its part
//! for published objects; `unseal.rs` decrypts units for clients.

mod held;
mod in_flight;
mod unseal;
mod unsolicited;

pub use held::{Appended, Chunks};
pub use in_flight::{Flight, InFlight, Part, Unit};
pub use unseal::{Opener, is_sealed_as};
