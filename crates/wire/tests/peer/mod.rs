//! Frames between peers: their bytes, their limits, and that each has one encoding.

mod any;
mod limits;
mod properties;
mod vectors;
