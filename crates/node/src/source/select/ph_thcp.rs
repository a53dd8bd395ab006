//! PH-THCP: asks the next hop towards the gateway, which looks up, stores and forwards (MeshCache
//! §4.3.1, architecture A3).

use super::{Answer, Query, Select, on_the_way};

pub struct PhThcp;

impl Select for PhThcp {
    fn choose(&self, query: &Query<'_>) -> Answer {
        on_the_way(query, true)
    }
}
