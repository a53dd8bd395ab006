//! What is known of the catalogue in memory: rows by URL, segments of manifests, and those that wait to be written.

mod manifests;
mod rows;
mod segments;

pub use manifests::Manifests;
pub use rows::Rows;
pub use segments::Segments;
