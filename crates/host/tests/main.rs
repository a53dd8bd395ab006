//! The Linux side of a node, from outside: one file for each part, in namespaces where it needs one.

mod capture;
mod corpus;
mod datagrams;
mod helper;
mod intercept;
mod namespace;
mod peers;
mod routes;
#[cfg(feature = "tls")]
mod tls;
