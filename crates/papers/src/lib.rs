//! Experiments of the papers, repeated and compared with the papers' figures; and the simulator compared with
//! ns-3 and theory.
//!
//! *What this is:* [`all`], the experiments by name: a folder for each paper, and what they share
//! ([`experiment`]); [`validate`], the simulator beside its references. *Who calls it:* `hearsay-lab repro`
//! and `hearsay-lab validate`, which have cores, clocks and files. *What it never does:* change a parameter
//! for one scheme alone, or carry a paper's figure in its code: those are in `data`. *Where to start:*
//! [`all::ALL`].

pub mod all;
mod ditto;
pub mod experiment;
mod inpcm;
mod link_plane;
mod meshcache;
mod standing;
pub mod validate;
mod wine;

pub use standing::Standing;
