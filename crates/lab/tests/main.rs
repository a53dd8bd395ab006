//! The lab from outside: one file per command or behaviour, `hearsay-lab` as a real process (`lab`).

mod analyze;
mod book;
mod captures;
mod compare;
mod endings;
mod events;
mod far;
mod gateway;
#[path = "../../daemon/tests/guide/mod.rs"]
mod guide;
mod kinds;
mod lab;
mod ordinary_user;
mod papers;
mod plan;
mod real;
mod redundancy;
mod refusals;
mod repro;
mod schemes;
mod simulate;
mod transfers;
mod troubles;
mod uplink;
mod validate;
mod words;
