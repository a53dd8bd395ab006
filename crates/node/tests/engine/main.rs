//! The engine from outside: one file per behaviour, on a small world in virtual time (`net`).
//!
//! One program, because that many would take longer to link than to run.

#[allow(dead_code, reason = "the tests of the mesh use the rest")]
#[path = "../common/mod.rs"]
mod common;
mod net;

mod abandoned;
mod access;
mod account;
mod classes;
mod corpus;
mod corruption;
mod crowding;
mod determinism;
mod early_close;
mod eviction;
mod forwards;
mod freshness;
mod head;
mod home;
mod https;
mod interception;
mod interim;
mod leaving;
mod merging;
mod mirror;
mod never_stored;
mod outage;
mod purging;
mod ranges;
mod restart;
mod revalidation;
mod site;
mod slow_clients;
mod store_failure;
mod torture;
mod unsafe_methods;
mod vary;
mod versions;
mod watching;
