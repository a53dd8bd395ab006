//! The daemon from outside: one file per behaviour, real processes on loopback or in private networks (`world`).

mod book;
mod bridged;
mod cli;
mod doctor;
mod door;
mod engine_log;
mod explicit;
mod far;
mod far_service;
mod flows;
mod full;
mod guide;
mod hostile;
#[cfg(target_arch = "x86_64")]
mod intruder;
mod ledger;
mod mesh;
mod mirror;
mod narrow;
mod outage;
mod overhear;
mod package;
mod peers;
mod purge;
mod put;
mod registries;
mod reload;
mod request_log;
mod rights;
mod routes;
mod searching;
mod service;
mod slow;
mod stage;
mod store;
mod tenants;
mod transparent;
mod uci;
mod unread;

mod uplinks;
mod world;
mod zones;
