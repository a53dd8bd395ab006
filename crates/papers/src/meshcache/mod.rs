//! MeshCache's section 6: transport hop by hop, and caches at each hop.
//!
//! *Where to start:* `per_hop.rs` (figures 4 to 6), `table2.rs`.

mod bound;
mod fig4;
mod fig5;
mod fig6;
mod lru;
mod per_hop;
mod table2;
mod targets;
mod workload;

pub(crate) use fig4::FIGURE as FIG4;
pub(crate) use fig5::FIGURE as FIG5;
pub(crate) use fig6::FIGURE as FIG6;
pub(crate) use table2::TABLE as TABLE2;
