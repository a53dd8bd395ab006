//! The schemes that papers compare and that routers run: their names, and what a router does under
//! each.
//!
//! A [`Scheme`] describes a whole mesh: which routers intercept, have peers and overhear. A
//! [`Selection`] is the part of it that one router needs: which peer it asks for what it does not
//! hold.

use std::fmt;
use std::str::FromStr;

/// Which routers intercept and cache: the architectures of MeshCache, and that of Ditto. Each adds
/// caches to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// No router intercepts or caches.
    EndToEnd,
    /// The gateway alone caches (MeshCache §3, architecture A1).
    Default,
    /// Access routers cache for their clients, and select by [`Selection::Thcp`] (A2).
    Thcp,
    /// As [`Scheme::Thcp`], and access routers search by [`Selection::Bcp`] (A2).
    Bcp,
    /// Access routers cache for their clients, and all select by [`Selection::PhThcp`] (A3).
    PhThcp,
    /// As [`Scheme::PhThcp`], and access routers search by [`Selection::PhBcp`] (A3).
    PhBcp,
    /// As [`Scheme::Thcp`], and access routers hash names: [`Selection::Ghcp`] (A2).
    Ghcp,
    /// As [`Scheme::PhThcp`], and access routers hash names: [`Selection::PhGhcp`] (A3).
    PhGhcp,
    /// As [`Scheme::PhThcp`], and routers tell towards the gateway what they store: [`Selection::PhHints`].
    PhHints,
    /// As [`Scheme::PhHints`], and routers search where there is no way to a gateway: [`Selection::Auto`].
    Auto,
    /// As [`Scheme::PhThcp`], and every router keeps what it overhears (Ditto §3).
    Ditto,
    /// As [`Scheme::Auto`], and every router keeps what it overhears.
    AutoDitto,
}

/// How a router selects the peer that it asks for what it does not hold. The default is what a router
/// does that is told nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// The next hop towards the gateway. It looks in its cache, forwards the request and keeps the
    /// response (MeshCache §4.3.1, A3).
    PhThcp,
    /// The gateway, over one end-to-end connection (MeshCache §4.2.1, A2).
    Thcp,
    /// The nearest router that answers a broadcast, if none is farther than the gateway; hop by hop, as with
    /// [`Selection::PhThcp`] (MeshCache §4.3.2, A3).
    PhBcp,
    /// The same, over one end-to-end connection (MeshCache §4.2.2, A2).
    Bcp,
    /// The router of one's square of the map to which the name is hashed, if it is no farther than the gateway; hop by
    /// hop, as with [`Selection::PhThcp`] (MeshCache §4.3.3, A3).
    PhGhcp,
    /// The same, over one end-to-end connection (MeshCache §4.2.3, A2).
    Ghcp,
    /// The nearest router that hints name, if none is farther than the gateway; hop by hop, as with
    /// [`Selection::PhThcp`].
    PhHints,
    /// As [`Selection::PhHints`]; and without a way to a gateway, the nearest router that answers a broadcast, in a mesh
    /// with a key.
    #[default]
    Auto,
}

/// Which routers intercept requests, and on which interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interception {
    /// The gateway, on its interface towards the mesh, and on that towards clients of its own.
    Gateway,
    /// Each access router, on the interface towards its clients.
    AccessRouters,
}

/// No scheme has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no scheme of this name")]
pub struct ParseSchemeError;

impl Scheme {
    /// All of them, ordered by the number of caches.
    pub const ALL: [Self; 12] = [
        Self::EndToEnd,
        Self::Default,
        Self::Thcp,
        Self::Bcp,
        Self::Ghcp,
        Self::PhThcp,
        Self::PhBcp,
        Self::PhGhcp,
        Self::PhHints,
        Self::Auto,
        Self::Ditto,
        Self::AutoDitto,
    ];

    /// Its name on command lines and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::EndToEnd => "end-to-end",
            Self::Default => "default",
            Self::Thcp => Selection::Thcp.name(),
            Self::Bcp => Selection::Bcp.name(),
            Self::PhThcp => Selection::PhThcp.name(),
            Self::PhBcp => Selection::PhBcp.name(),
            Self::Ghcp => Selection::Ghcp.name(),
            Self::PhGhcp => Selection::PhGhcp.name(),
            Self::PhHints => Selection::PhHints.name(),
            Self::Auto => Selection::Auto.name(),
            Self::Ditto => "ditto",
            Self::AutoDitto => "auto-ditto",
        }
    }

    /// One line to help a user choose.
    pub fn summary(self) -> &'static str {
        match self {
            Self::EndToEnd => "No router intercepts or caches",
            Self::Default => "The gateway alone, on its mesh interface (A1)",
            Self::Thcp => {
                "Access routers, for their clients; they ask the gateway, end to end (A2)"
            }
            Self::PhThcp => {
                "Access routers, for their clients; each hop asks the next one, and keeps what passes (A3)"
            }
            Self::Bcp => {
                "As thcp, but access routers first search by broadcast for a nearer copy (A2)"
            }
            Self::PhBcp => {
                "As ph-thcp, but access routers first search by broadcast for a nearer copy (A3)"
            }
            Self::Ghcp => {
                "As thcp, but access routers ask the router of their square that a name hashes to (A2)"
            }
            Self::PhGhcp => {
                "As ph-thcp, but access routers ask the router of their square that a name hashes to (A3)"
            }
            Self::PhHints => {
                "As ph-thcp, and routers that were asked name nearer ones that have the object (A3)"
            }
            Self::Auto => "As ph-hints, and without a way to a gateway routers search by broadcast",
            Self::Ditto => {
                "As ph-thcp, and every router keeps what it overhears on its monitor interface"
            }
            Self::AutoDitto => {
                "As auto, and every router keeps what it overhears on its monitor interface"
            }
        }
    }

    /// Which peer a router asks for what it does not hold; `None`: it has no peers.
    pub fn selection(self) -> Option<Selection> {
        match self {
            Self::EndToEnd | Self::Default => None,
            Self::Thcp => Some(Selection::Thcp),
            Self::Bcp => Some(Selection::Bcp),
            Self::PhBcp => Some(Selection::PhBcp),
            Self::Ghcp => Some(Selection::Ghcp),
            Self::PhGhcp => Some(Selection::PhGhcp),
            Self::PhHints => Some(Selection::PhHints),
            Self::Auto | Self::AutoDitto => Some(Selection::Auto),
            Self::PhThcp | Self::Ditto => Some(Selection::PhThcp),
        }
    }

    /// Which routers intercept; `None`: none.
    pub fn interception(self) -> Option<Interception> {
        match self {
            Self::EndToEnd => None,
            Self::Default => Some(Interception::Gateway),
            Self::Thcp
            | Self::Bcp
            | Self::Ghcp
            | Self::PhThcp
            | Self::PhBcp
            | Self::PhGhcp
            | Self::PhHints
            | Self::Auto
            | Self::Ditto
            | Self::AutoDitto => Some(Interception::AccessRouters),
        }
    }

    /// Whether routers overhear what their neighbours send to each other.
    pub fn overhears(self) -> bool {
        matches!(self, Self::Ditto | Self::AutoDitto)
    }
}

impl Selection {
    /// All of them, the default first.
    pub const ALL: [Self; 8] = [
        Self::Auto,
        Self::PhThcp,
        Self::Thcp,
        Self::PhBcp,
        Self::Bcp,
        Self::PhGhcp,
        Self::Ghcp,
        Self::PhHints,
    ];

    /// Its name on command lines and in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::PhThcp => "ph-thcp",
            Self::Thcp => "thcp",
            Self::PhBcp => "ph-bcp",
            Self::Bcp => "bcp",
            Self::PhGhcp => "ph-ghcp",
            Self::Ghcp => "ghcp",
            Self::PhHints => "ph-hints",
            Self::Auto => "auto",
        }
    }

    /// Whether each hop looks up, stores and forwards what this router's clients request.
    pub fn is_per_hop(self) -> bool {
        match self {
            Self::PhThcp | Self::PhBcp | Self::PhGhcp | Self::PhHints | Self::Auto => true,
            Self::Thcp | Self::Bcp | Self::Ghcp => false,
        }
    }

    /// Whether routers off the way to the gateway are asked: then the paths to all routers matter.
    pub fn leaves_the_way(self) -> bool {
        match self {
            Self::PhThcp | Self::Thcp => false,
            Self::PhBcp | Self::Bcp | Self::PhGhcp | Self::Ghcp | Self::PhHints | Self::Auto => {
                true
            }
        }
    }

    /// Whether routers search by broadcast, in a mesh with or without a key.
    pub fn searches(self, has_key: bool) -> bool {
        match self {
            Self::Bcp | Self::PhBcp => true,
            Self::Auto => has_key,
            Self::PhThcp | Self::Thcp | Self::PhGhcp | Self::Ghcp | Self::PhHints => false,
        }
    }

    /// Whether routers tell their next hop what they store.
    pub fn tells_of_copies(self) -> bool {
        matches!(self, Self::PhHints | Self::Auto)
    }

    /// Whether names of objects are hashed to routers.
    pub fn hashes(self) -> bool {
        matches!(self, Self::Ghcp | Self::PhGhcp)
    }
}

impl FromStr for Scheme {
    type Err = ParseSchemeError;

    fn from_str(name: &str) -> Result<Self, ParseSchemeError> {
        Self::ALL.into_iter().find(|it| it.name() == name).ok_or(ParseSchemeError)
    }
}

impl FromStr for Selection {
    type Err = ParseSchemeError;

    fn from_str(name: &str) -> Result<Self, ParseSchemeError> {
        Self::ALL.into_iter().find(|it| it.name() == name).ok_or(ParseSchemeError)
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Selection {
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
            assert_eq!(scheme.name().parse(), Ok(scheme));
        }
        assert_eq!("thpc".parse::<Scheme>(), Err(ParseSchemeError));
    }

    #[test]
    fn each_selection_is_a_scheme_of_its_name() {
        for selection in Selection::ALL {
            assert_eq!(selection.name().parse(), Ok(selection));
            let scheme: Scheme = selection.name().parse().unwrap();
            assert_eq!((scheme.selection(), scheme.overhears()), (Some(selection), false));
        }
        assert_eq!("ditto".parse::<Selection>(), Err(ParseSchemeError));
    }

    #[test]
    fn only_routers_with_peers_overhear() {
        assert!(Scheme::ALL.iter().all(|it| it.selection().is_some() || !it.overhears()));
    }
}
