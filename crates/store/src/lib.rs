//! Where chunks rest: an index in memory, a log on disk, and a catalogue of what they mean.
//!
//! *What this is:* three parts that share words and nothing else. [`Index`] says where the units
//! are and which leave when room is short; it is pure. [`Log`] and [`Reader`] keep their bytes in
//! segment files. [`Catalogue`] keeps opaque rows: which objects those units make up.
//!
//! *Who calls it:* the engine owns the [`Index`] and asks it directly; a writer thread owns the
//! [`Log`] and the [`Catalogue`]; readers hold a [`Reader`] or a [`CatalogueReader`].
//!
//! *What it never does:* look into a unit or a row, hash a unit, decide what is worth keeping
//! without the engine, read a clock, start a thread.
//!
//! *Where to start:* `segment.rs` for what lies on disk, `index.rs` for what lies in memory,
//! `log.rs` for how one becomes the other.
//!
//! *What survives a crash:* all that [`Log::sync`] and [`Catalogue::sync`] had returned for,
//! through a power cut at any write; of the rest, whatever turns out whole. Reasons:
//! `docs/decisions/0002-store-layout.md` and `0003-catalogue-redb.md`.

mod catalogue;
mod error;
mod evict;
mod files;
mod index;
mod log;
mod reader;
mod recover;
mod segment;
mod segments;
mod table;

pub use catalogue::{
    CATALOGUE_FILE, Catalogue, CatalogueOptions, CatalogueReader, CatalogueReport, Change,
};
pub use error::Error;
pub use evict::Policy;
pub use files::{Disk, File, Files, Memory, Unfit, check_place};
pub use index::{Candidates, Index, IndexReport};
pub use log::{Log, LogOptions, LogReport};
pub use reader::{READ_BYTES_MAX, Reader};
pub use recover::{Mark, Recovery};
pub use segment::{
    BUDGET_BYTES_MAX, Entry, Location, Provenance, SegmentId, UNIT_BYTES_MAX, Unit, segment_bytes,
    unit_disk_bytes, unit_log_bytes,
};
