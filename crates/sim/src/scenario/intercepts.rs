//! Where routers intercept requests.

use wire::{Interception, Scheme};

use super::{Http, Scenario};

/// The interfaces on which a router intercepts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intercepts {
    /// That on the mesh.
    pub mesh: bool,
    /// That to its own clients.
    pub clients: bool,
}

impl Scenario {
    /// Where a router intercepts requests under a scheme.
    pub fn intercepts(&self, scheme: Scheme, router: usize) -> Intercepts {
        let is_gateway = router == self.gateway;
        let has_clients = self.receivers.contains(&router);
        match scheme.interception() {
            None => Intercepts { mesh: false, clients: false },
            Some(Interception::AccessRouters) if self.http == Http::Cached => {
                Intercepts { mesh: false, clients: has_clients }
            }
            // The gateway's own clients are its clients as much as those behind other routers.
            Some(_) => Intercepts { mesh: is_gateway, clients: is_gateway && has_clients },
        }
    }
}
