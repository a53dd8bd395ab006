//! MeshCache's section 6: transport hop by hop, and caches at each hop.
//!
//! *Where to start:* `per_hop.rs` (figures 4 to 6), `table2.rs`.

mod bound;
mod caches;
mod fig4;
mod fig5;
mod fig6;
mod fig8;
mod fig9;
mod liars;
mod lru;
mod per_hop;
mod searching;
mod table2;
mod table3;
mod table4;
mod targets;
mod workload;

pub(crate) use fig4::FIGURE as FIG4;
pub(crate) use fig5::FIGURE as FIG5;
pub(crate) use fig6::FIGURE as FIG6;
pub(crate) use fig8::FIGURE as FIG8;
pub(crate) use fig9::FIGURE as FIG9;
pub(crate) use liars::EXPERIMENT as LIARS;
pub(crate) use table2::TABLE as TABLE2;
pub(crate) use table3::TABLE as TABLE3;
pub(crate) use table4::TABLE as TABLE4;
