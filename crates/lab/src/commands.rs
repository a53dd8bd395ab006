//! The commands beside `run`, each in the file named like it (`sim` in `simulate.rs`).

pub mod analyze;
pub mod compare;
pub mod list;
pub mod repro;
pub mod simulate;
pub mod validate;

mod jobs;
