//! From an object's bytes to named chunks and back.
//!
//! *What this is:* the steps from an object's bytes to its units ([`Cutter`]), their names
//! ([`name()`]) and the manifest that lists them ([`ManifestBuilder`], [`Segment`]); sealing, if
//! the mesh has a key ([`Sealer`]); and, for the uplink, a finer division of units ([`Tree`]), and the
//! paper's own division ([`nested`]). *Who
//! calls it:* `node`; the simulator and the lab for their workloads; `hearsay get`. *What it never
//! does:* read clocks, draw random numbers, open anything, store bytes. *Where to start:*
//! `profile.rs` for the sizes, then `boundary.rs`. *Sources:* Wanax §3.2 (multi-resolution
//! chunking), Ditto (8 KiB chunks); departures are in
//! `docs/decisions/0001-nested-gear-chunking.md`.
//!
//! Nodes can share a chunk only if they give it the same name, so all of this is a fixed format:
//! the vectors in the tests must not change.

mod boundary;
mod manifest;
mod name;
pub mod nested;
mod profile;
mod rolling;
mod root;
mod seal;
mod tree;

pub use boundary::{Cut, Cutter};
pub use manifest::{Closing, Entry, ManifestBuilder, ManifestError, SEGMENT_MAX, Segment};
pub use name::{name, names, parent_name};
pub use profile::{Level, Profile};
pub use rolling::roll;
pub use root::Root;
pub use seal::{Key, Sealer, WrongKey, cipher};
pub use tree::Tree;
pub use wire::ChunkId;
