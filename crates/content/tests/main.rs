//! Names, manifests and sealing from outside, one file for each.

mod corpus;
mod manifest;
mod root;
mod seal;
