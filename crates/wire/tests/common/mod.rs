//! Shared by tests, fuzz targets and benchmarks.

#[allow(dead_code, reason = "not every user needs every property")]
pub mod checks;
#[allow(dead_code, reason = "not every user needs every kind of frame")]
pub mod frames;
#[allow(dead_code, reason = "not every user needs every property")]
pub mod peer;
