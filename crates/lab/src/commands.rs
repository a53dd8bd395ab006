//! The commands other than `run`, each in the file of its name (`sim` in `simulate.rs`).

pub mod analyze;
pub mod compare;
pub mod list;
pub mod plan;
pub mod repro;
pub mod simulate;
pub mod validate;

mod jobs;
