//! A door for tests alone: peers, to play one that misbehaves. Nothing of it is promised.

pub use crate::mesh::{Down, Event, Peers, verify};
