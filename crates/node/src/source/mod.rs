//! Whom to ask for what is not here. *Where to start:* `select.rs`.

mod select;

pub use select::{Choice, Ways};
