//! Several engines together: one file per behaviour, on a small mesh in virtual time (`net`).

#[allow(dead_code, reason = "the tests of a single node use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod net;

mod abandoned;
mod aside;
mod budget;
mod crowded;
mod datagrams;
mod determinism;
mod elsewhere;
mod failures;
mod fetching;
mod freshness;
mod hello;
mod hinting;
mod hostile;
mod https;
mod loose;
mod lying;
mod merging;
mod named;
mod onward;
mod oracle;
mod overhearing;
mod places;
mod probation;
mod progress;
mod records;
mod sealing;
mod searching;
mod site;
mod torture;
mod uncacheable;
mod unsigned;
mod waiting;
mod watching;
mod world;
