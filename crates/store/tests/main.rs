//! The store from outside: one file per behaviour, on real files and on simulated ones.

mod catalogue;
mod common;
mod faults;
mod history;
mod history_faults;
mod history_power_cut;
mod history_readers;
mod index;
mod lasting;
mod ledger;
mod log;
mod modes;
mod power_cut;
mod probation;
mod recover;
