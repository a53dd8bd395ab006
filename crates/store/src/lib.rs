//! The store of chunks: an index in memory, a log on disk, a catalogue of the objects that the
//! chunks make up, the history of an uplink, and the ledger of bytes.
//!
//! *What this is:* six independent parts. [`Index`] knows where each unit is stored, and decides
//! which units are evicted; it does no I/O. [`Log`] and [`Reader`] keep the units' bytes in segment
//! files. [`Catalogue`] stores rows about objects, which are opaque to it. [`History`] and
//! [`HistoryReader`] keep the units that crossed an uplink, in that order, in a directory of their
//! own. [`Ring`] keeps the newest bytes of an uplink's published schemes until the process ends.
//! [`ledger`] keeps sums of bytes by time; it does no I/O.
//!
//! *Who calls it:* the engine owns the [`Index`] and asks it directly; a writer thread owns the
//! [`Log`] and the [`Catalogue`]; other threads hold a [`Reader`] or a [`CatalogueReader`]. Each end
//! of an uplink owns a [`History`].
//!
//! *What it never does:* parse a unit or a row, check a unit against its name, decide without the
//! engine what to keep, read a clock, start a thread.
//!
//! *Where to start:* `segment.rs` for the format on disk, `index.rs` for the state in memory,
//! `log.rs` for how units are written, `history.rs` for the history.
//!
//! *What survives a crash:* everything that [`Log::sync`], [`Catalogue::sync`] and [`History::sync`]
//! had confirmed, even if the power fails during a write; of later writes, those that recovery finds
//! complete. Reasons: `docs/decisions/0002-store-layout.md` and `0003-catalogue-redb.md`.

mod catalogue;
mod error;
mod evict;
mod files;
mod history;
mod index;
pub mod ledger;
mod log;
mod reader;
mod recover;
mod ring;
mod segment;
mod segments;
mod table;

pub use catalogue::{
    CATALOGUE_FILE, Catalogue, CatalogueOptions, CatalogueReader, CatalogueReport, Change,
};
pub use error::{Error, NotThere};
pub use evict::Policy;
pub use files::{Disk, File, Files, Memory, Unfit, check_place};
pub use history::{History, HistoryOptions, HistoryReader, HistoryState, Mark};
pub use index::{Candidates, Index, IndexReport};
pub use log::{Log, LogOptions, LogReport};
pub use reader::{READ_BYTES_MAX, Reader};
pub use recover::{Recovery, VersionFile};
pub use ring::Ring;
pub use segment::{
    BUDGET_BYTES_MAX, Entry, Location, Provenance, SegmentId, UNIT_BYTES_MAX, Unit, segment_bytes,
    unit_disk_bytes, unit_log_bytes,
};
