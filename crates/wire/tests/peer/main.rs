//! Frames of peers: their bytes, what is refused, and that there are no two spellings.

mod any;
mod limits;
mod properties;
mod vectors;
