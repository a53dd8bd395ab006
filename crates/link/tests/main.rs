//! Pacing and recovery from outside: one file per behaviour, in virtual time.

mod common;
mod layer_drops;
mod pace_hold;
mod pace_line;
mod pace_properties;
mod pace_rules;
