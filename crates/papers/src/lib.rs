//! Experiments of the papers, run again: ours beside the paper's; and the simulator held against ns-3 and theory.
//!
//! *What this is:* [`all`], the experiments by name, made of what they have in common ([`experiment`]) and a folder
//! for each paper; [`validate`], the simulator beside its references. *Who calls it:* `hearsay-lab repro` and
//! `hearsay-lab validate`, which have cores, clocks and files. *What it never does:* change a parameter for one
//! scheme alone, or carry a paper's figure in its code: those are in `data`. *Where to start:* [`all::ALL`].

pub mod all;
mod ditto;
pub mod experiment;
mod meshcache;
mod standing;
pub mod validate;

pub use standing::Standing;
