//! Who intercepts and caches: MeshCache's architectures and Ditto's, as the lab has them.

use std::fmt;

use crate::net::Interface;
use crate::scenario::Scenario;
use crate::world::AIR;

/// Who intercepts and caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// Nobody intercepts; no cache anywhere.
    EndToEnd,
    /// The gateway alone, on its mesh interface (A1).
    Default,
    /// Access routers, for their clients; they ask the gateway, end to end (A2).
    Thcp,
    /// Access routers, for their clients; each hop asks the next one, and keeps what passes (A3).
    PhThcp,
    /// The same, and all listen to what their neighbours send each other.
    Ditto,
}

impl Scheme {
    /// All of them, in the order of what they cache.
    pub const ALL: [Self; 5] =
        [Self::EndToEnd, Self::Default, Self::Thcp, Self::PhThcp, Self::Ditto];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::EndToEnd => "end-to-end",
            Self::Default => "default",
            Self::Thcp => "thcp",
            Self::PhThcp => "ph-thcp",
            Self::Ditto => "ditto",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.name() == name)
    }

    /// Whom a router with peers asks; `None`: it has none.
    pub fn peers(self) -> Option<node::Scheme> {
        match self {
            Self::EndToEnd | Self::Default => None,
            Self::Thcp => Some(node::Scheme::Thcp),
            Self::PhThcp | Self::Ditto => Some(node::Scheme::PhThcp),
        }
    }

    /// Whether routers listen to what is for others.
    pub fn overhears(self) -> bool {
        self == Self::Ditto
    }

    /// The interfaces on which a router intercepts clients: towards the mesh, or towards its own.
    pub(super) fn intercepts(self, scenario: &Scenario, router: usize) -> Vec<Interface> {
        let is_asked = scenario.receivers.contains(&router);
        match self {
            Self::Default if router == scenario.gateway => vec![AIR],
            Self::Thcp | Self::PhThcp | Self::Ditto if is_asked && router != scenario.gateway => {
                vec![LAN]
            }
            _ => Vec::new(),
        }
    }
}

/// A router's first wire; the gateway's is that to the origin.
pub(super) const LAN: Interface = Interface(1);

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_have_their_names() {
        for scheme in Scheme::ALL {
            assert_eq!(Scheme::named(scheme.name()), Some(scheme));
        }
        assert_eq!(Scheme::named("thpc"), None);
    }
}
