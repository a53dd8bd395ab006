//! Bytes to named chunks and back.
//!
//! *What this is:* the way from an object's bytes to its units ([`Cutter`]), their names ([`name()`]) and
//! the manifest that lists them ([`ManifestBuilder`], [`Segment`]); sealing in between, where a mesh has
//! a key ([`Sealer`]); and, for the uplink, the finer cuts inside a unit ([`Tree`]). *Who calls it:* `node`;
//! the simulator and the lab for their workloads; `hearsay get`. *What it never does:* read clocks, draw
//! random numbers, open anything, keep bytes. *Where to start:* `profile.rs` for the sizes, then
//! `boundary.rs`. *Sources:* Wanax §3.2 (multi-resolution chunking), Ditto (8 KiB chunks); departures are in
//! `docs/decisions/0001-nested-gear-chunking.md`.
//!
//! What two nodes name alike they share, so all of this is a format: the vectors in the tests are frozen.

mod boundary;
mod manifest;
mod name;
mod profile;
mod rolling;
mod root;
mod seal;
mod tree;

pub use boundary::{Cut, Cutter};
pub use manifest::{Closing, Entry, ManifestBuilder, ManifestError, SEGMENT_MAX, Segment};
pub use name::{name, names, parent_name};
pub use profile::{Level, Profile};
pub use root::Root;
pub use seal::{Key, Sealer, WrongKey, cipher};
pub use tree::Tree;
pub use wire::ChunkId;
