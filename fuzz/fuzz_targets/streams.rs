//! Any TCP segments of a capture, joined to streams: what was captured comes out once and in order, and nothing else.
//!
//! The lab is a program and not a library, so its files are taken as they are.
#![no_main]
#![allow(dead_code, reason = "the target uses a part of each")]

#[path = "../../crates/lab/src/redundancy/analysis.rs"]
mod analysis;
#[path = "../../crates/lab/src/redundancy/checks.rs"]
mod checks;
#[path = "../../crates/lab/src/redundancy/counts.rs"]
mod counts;
#[path = "../../crates/lab/src/redundancy/division.rs"]
mod division;
#[path = "../../crates/lab/src/redundancy/names.rs"]
mod names;
#[path = "../../crates/lab/src/redundancy/scheme.rs"]
mod scheme;
#[path = "../../crates/lab/src/redundancy/streams.rs"]
mod streams;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::streams(bytes));
