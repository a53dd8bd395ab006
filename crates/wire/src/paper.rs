//! Published systems, run as their papers describe them, without our own additions.
//!
//! This one declaration serves the daemon, the lab and the simulator. `docs/papers.md` says which
//! mechanisms of each paper are implemented, and which differ and why.

use std::fmt;

use crate::Scheme;

/// A system that can be run as its paper describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Das et al., Ad Hoc Networks 2007: every router on the path caches what it forwards (§3,
    /// architecture A3).
    MeshCache,
    /// Dogar et al., MobiCom 2008: as MeshCache, and routers overhear. A chunk has 8 KiB. A router
    /// keeps an overheard chunk only if it captured all of it, after its head.
    Ditto,
    /// Adinegara et al., 2006: routers recover lost packets of TCP below IP (chapter 3). In the simulator alone so far.
    Inpcm,
    /// Belcher, 2006: routers pace packets below IP (chapter 2). Which routers do is another key. In the simulator
    /// alone so far.
    Wine,
    /// Ihm et al., USENIX ATC 2010: chunks of several sizes, by their names, between two ends of a slow link; HTTP is not
    /// cached (§3, §5).
    Wanax,
}

impl Paper {
    /// All of them, by year of publication.
    pub const ALL: [Self; 5] = [Self::Wine, Self::Inpcm, Self::MeshCache, Self::Ditto, Self::Wanax];

    /// Its name in configurations and scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::MeshCache => "meshcache",
            Self::Ditto => "ditto",
            Self::Inpcm => "inpcm",
            Self::Wine => "wine",
            Self::Wanax => "wanax",
        }
    }

    /// Whether a daemon can follow it.
    pub fn is_of_daemons(self) -> bool {
        !matches!(self, Self::Wine | Self::Inpcm)
    }

    /// The scheme: which routers intercept, cache and overhear. `None`: the paper is about packets under IP, or about
    /// the uplink, and goes with any scheme.
    pub fn scheme(self) -> Option<Scheme> {
        match self {
            Self::MeshCache => Some(Scheme::PhThcp),
            Self::Ditto => Some(Scheme::Ditto),
            Self::Inpcm | Self::Wine | Self::Wanax => None,
        }
    }

    /// The keys of a scenario whose values the paper gives, with these values, if it is about packets under IP;
    /// what the paper lacks is off. Its constants are those of the engines' values of this name.
    pub fn link_plane(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::MeshCache | Self::Ditto | Self::Wanax => &[],
            // It is evaluated with TCP Reno (chapter 4).
            Self::Inpcm => &[("pace", "off"), ("recover", "inpcm"), ("tcp_recovery", "reno")],
            Self::Wine => &[("pace", "wine"), ("recover", "off")],
        }
    }

    /// The value that the paper gives to a key of the table `[experiment]`, in a configuration or a
    /// scenario; `None`: the key's default applies.
    pub fn setting(self, key: &str) -> Option<&'static str> {
        self.settings().iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// The keys of `[experiment]` whose values the paper gives, with these values.
    pub fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Nothing is overheard. The paper caches whole files; here they are divided into chunks
            // all the same.
            Self::MeshCache | Self::Inpcm | Self::Wine => &[],
            Self::Ditto => &[
                // The size that the paper settles on (§6.2.2).
                ("units", "8KiB"),
                // A chunk is assembled from several streams (§4.3) …
                ("streams", "joined"),
                // … and in each of them its head must be captured (§5.2, §6.3).
                ("heads", "needed"),
                // A router that overheard part of a chunk requests the whole chunk.
                ("halves", "dropped"),
                // Named as future work (§8).
                ("cancel", "off"),
            ],
            // The prototype had degree 8 and 128 bytes (§6), which are the defaults.
            Self::Wanax => &[("uplink", "mrc"), ("http", "bypass")],
        }
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
