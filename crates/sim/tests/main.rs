//! The simulator from outside: one file per behaviour, in virtual time.

mod built_in;
mod conversation;
mod files;
mod flows;
mod link_planes;
mod moving;
mod overhearing;
mod uplink;
mod worlds;
