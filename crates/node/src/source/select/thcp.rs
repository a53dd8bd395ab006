//! THCP: asks the gateway, over one connection end to end (MeshCache §4.2.1, architecture A2).

use super::{Answer, Query, Select, on_the_way};

pub struct Thcp;

impl Select for Thcp {
    fn choose(&self, query: &Query<'_>) -> Answer {
        on_the_way(query, false)
    }
}
