//! The medium from outside: one file for each kind of comparison.

mod behaviour;
mod common;
mod features;
mod ns3;
mod properties;
mod theory;
