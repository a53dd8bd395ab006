//! Where to pace: how much the links of a mesh disturb each other, and the routers that become interlay nodes.
//!
//! *What this is:* chapter 3 of WINE (papers.md). [`Mesh`] is the connectivity graph. [`Matrix`] is the link
//! interference matrix: read from a text ([`text`]), filled by a model of two contending flows ([`two_flow`]), or
//! simulated pair by pair ([`simulate`]). [`capacity`] is equation 3.1. [`place`](fn@place) cuts the links into
//! areas, by algorithm 1 where that is feasible, else by the two-hop heuristic; the routers between areas are the
//! interlay nodes. [`picture`] draws them. *Who calls it:* `hearsay-lab plan interlay`. *What it never does:* touch a
//! file or a clock, or draw random numbers but those of a simulation's seed. *Where to start:* [`Plan`].

pub mod capacity;
mod graph;
mod heuristic;
mod matrix;
pub mod picture;
mod place;
pub mod simulate;
pub mod testing;
pub mod text;
pub mod two_flow;

pub use graph::{LINKS_MAX, Mesh};
pub use matrix::Matrix;
pub use place::{LOCAL_LINKS_MAX, Method, Plan, place};
