//! Systems as their papers have them: what each makes routers do, and nothing of ours beside it.
//!
//! One declaration for the daemon, the lab and the simulator. `docs/papers.md` says which of a paper's mechanisms
//! there are, and what is done otherwise and why.

use std::fmt;

use crate::Scheme;

/// A system that can be run as its paper has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Das et al., Ad Hoc Networks 2007: every router on the way keeps what passes (§3, architecture A3).
    MeshCache,
    /// Dogar et al., MobiCom 2008: the same, and chunks of 8 KiB that were heard whole, behind their heads.
    Ditto,
}

impl Paper {
    /// All of them, in the order of their years.
    pub const ALL: [Self; 2] = [Self::MeshCache, Self::Ditto];

    /// Its name in configurations and scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::MeshCache => "meshcache",
            Self::Ditto => "ditto",
        }
    }

    /// Who intercepts, caches and overhears.
    pub fn scheme(self) -> Scheme {
        match self {
            Self::MeshCache => Scheme::PhThcp,
            Self::Ditto => Scheme::Ditto,
        }
    }

    /// The value of a key of the table `[experiment]`, which scenarios have too; `None`: its default.
    pub fn word(self, key: &str) -> Option<&'static str> {
        self.words().iter().find(|(name, _)| *name == key).map(|(_, word)| *word)
    }

    /// Keys of which it says a value, with these.
    pub fn words(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Nothing is overheard. That paper keeps whole files; ours come in units all the same.
            Self::MeshCache => &[],
            Self::Ditto => &[
                // The size that it settles on (§6.2.2).
                ("units", "8KiB"),
                // Chunks are made of several streams (§4.3) …
                ("streams", "joined"),
                // … in each of which the head has to be heard (§5.2, §6.3).
                ("heads", "needed"),
                // Whoever holds a part asks for the whole.
                ("halves", "dropped"),
                // To be done (§8).
                ("cancel", "off"),
            ],
        }
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
