//! Where the campus's routers stand. The paper draws them and says nothing more, so their places are ours:
//! drawn by chance under the routes of figure 10, and chosen by what observers reconstruct there
//! (sections 6.2 and 6.3), never by throughput.
//!
//! *Where to start:* `ground.rs` for what places must be, `objective.rs` for what they are chosen by, `search.rs`
//! for how they are found; `pick.rs` is the experiment, `robustness.rs` what the choice is worth.

mod expect;
mod ground;
mod objective;
mod pick;
mod robustness;
mod search;
#[cfg(test)]
mod tests;

pub(crate) use pick::PLACES;
pub(crate) use robustness::ELSEWHERE;
