//! Where the campus's routers stand. The paper draws them and says nothing more, so their places are ours:
//! drawn by chance under the routes of figure 10, and chosen by what observers reconstruct there
//! (sections 6.2 and 6.3), never by throughput.
//!
//! *Where to start:* `ground.rs` for what places must be, `misfit.rs` for what they are chosen by, `climb.rs`
//! for how they are found; `choose.rs` is the experiment, `elsewhere.rs` what
//! the choice is worth.

mod choose;
mod climb;
mod elsewhere;
mod expect;
mod ground;
mod misfit;
#[cfg(test)]
mod tests;

pub(in super::super) use choose::PLACES;
pub(in super::super) use elsewhere::ELSEWHERE;
