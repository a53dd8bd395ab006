//! The parts of the catalogue that are in memory: rows by URL, segments of manifests, segments that
//! wait to be written, and the list of objects published here.

mod manifests;
mod published;
mod rows;
mod segments;
mod signed;

pub use manifests::Manifests;
pub use published::{LIST, OBJECTS_MAX, Object, Published, PublishedInfo};
pub use rows::Rows;
pub use segments::Segments;
pub use signed::{Signed, certifies, certifies_kept, segment_number, stored_segment};
