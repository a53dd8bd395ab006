//! Content classes: what the URLs of package archives promise, by tables.
//!
//! *What this is:* for each ecosystem of packages (apt, PyPI, npm, …) a table says which hosts serve it, which paths of
//! these hosts never change, which change and how fast, and how long their responses are kept. A mirror's paths stand
//! for upstreams of these tables ([`map`]), and links in its indexes lead back to it ([`Rewriter`]). Some indexes promise digests of
//! further files ([`IndexReader`]). *Who calls it:*
//! `node` asks for a [`Verdict`] on each URL; the daemon maps requests to its mirror. *What it never does:* read a file
//! or a clock, dial, or see a header field. *Where to start:* `verdict.rs`, then `table.rs` and a file of `tables/`.

mod glob;
mod host;
mod index;
mod json;
mod link;
mod mirror;
mod path;
mod proven;
mod reach;
mod rewrite;
mod table;
#[doc(hidden)]
pub mod testing;
mod verdict;

pub use host::HostPattern;
pub use index::{IndexReader, Promises};
pub use mirror::{Back, Mapped, Own, Refusal, SETUPS, Upstreamed, entry, map, setup};
pub use proven::{Proof, Proven};
pub use reach::Reach;
pub use rewrite::{Rewrite, Rewriter};
pub use table::{Classes, Problem, Upstream};
pub use verdict::{ClassId, Heeds, IndexFormat, Keep, Kind, Url, Verdict};
