//! What tests of captures share with each other, with fuzzing and with measuring.

pub mod checks;
#[allow(dead_code, reason = "not every user needs every kind of frame")]
pub mod frames;
