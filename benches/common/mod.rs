//! What the benches of the engine share: routers in memory, meshes of them, and a clock that counts only
//! this thread's time on a processor.

#![allow(dead_code, unused_imports, reason = "no bench uses all of it")]

mod chain;
mod on_processor;
mod router;

pub use chain::Chain;
pub use on_processor::OnProcessor;
pub use router::{Router, content_of};
