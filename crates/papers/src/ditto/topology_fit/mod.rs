//! Where the campus's routers stand. The paper shows their places in a drawing only, so ours are random
//! places under the routes of figure 10. They are chosen by what observers reconstruct there (sections 6.2
//! and 6.3), never by throughput.
//!
//! *Where to start:* `ground.rs` for the constraints on places, `objective.rs` for the objective, `search.rs`
//! for the search; `pick.rs` is the experiment, `robustness.rs` shows how much depends on the choice.

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
