//! Shared by tests of captures, fuzz targets and benchmarks.

pub mod checks;
#[allow(dead_code, reason = "not every user needs every kind of frame")]
pub mod frames;
