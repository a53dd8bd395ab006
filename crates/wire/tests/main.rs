//! Frames from outside: those between peers, and captured ones.

mod capture;
mod common;
mod corpus;
mod peer;
