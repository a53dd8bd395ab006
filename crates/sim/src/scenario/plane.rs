//! The engines under IP, and the routers that have them.

use super::choice::Choice;

/// What routers' link planes do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plane {
    /// Pacing; `None`: no router paces.
    pub pace: Option<link::pace::Config>,
    /// Recovery; `None`: no router recovers.
    pub recover: Option<link::recover::Config>,
    /// Routers that pace, by number, in order.
    pub interlay: Vec<usize>,
    /// Routers that recover, by number, in order.
    pub recover_at: Vec<usize>,
}

impl Plane {
    /// The engines of a router; both `None` if it has no link plane.
    pub fn engines(
        &self,
        router: usize,
    ) -> (Option<link::pace::Config>, Option<link::recover::Config>) {
        (
            self.pace.filter(|_| self.interlay.contains(&router)),
            self.recover.filter(|_| self.recover_at.contains(&router)),
        )
    }

    /// Whether any router has a link plane.
    pub fn is_on(&self) -> bool {
        self.pace.is_some() || self.recover.is_some()
    }
}

/// The keys as written.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaneKeys {
    pub pacing: Pacing,
    pub recovering: Recovering,
    pub interlay: Vec<String>,
    pub recover_at: Vec<String>,
}

impl PlaneKeys {
    /// The plane; `find` gives the number of a router, or says that there is none of this name.
    pub fn plane(
        &self,
        routers: usize,
        find: impl Fn(&str) -> Result<usize, String>,
    ) -> Result<Plane, String> {
        let named = |key: &str, names: &[String]| -> Result<Vec<usize>, String> {
            if names.is_empty() {
                return Ok((0..routers).collect());
            }
            let found = names.iter().map(|name| find(name));
            let mut found = found
                .collect::<Result<Vec<_>, _>>()
                .map_err(|text| format!("`{key}` names an {text}"))?;
            found.sort_unstable();
            found.dedup();
            Ok(found)
        };
        for (key, names, engine, is_off) in [
            ("interlay", &self.interlay, "pace", self.pacing == Pacing::Off),
            ("recover_at", &self.recover_at, "recover", self.recovering == Recovering::Off),
        ] {
            if is_off && !names.is_empty() {
                return Err(format!(
                    "`{key}` has no effect while `{engine}` is \"off\": set `{engine}`"
                ));
            }
        }
        Ok(Plane {
            pace: self.pacing.config(),
            recover: self.recovering.config(),
            interlay: named("interlay", &self.interlay)?,
            recover_at: named("recover_at", &self.recover_at)?,
        })
    }
}

/// Which pacing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pacing {
    #[default]
    Off,
    Wine,
    On,
}

/// Which recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Recovering {
    #[default]
    Off,
    Inpcm,
    On,
}

impl Pacing {
    fn config(self) -> Option<link::pace::Config> {
        match self {
            Self::Off => None,
            Self::Wine => Some(link::pace::Config::wine()),
            Self::On => Some(link::pace::Config::default()),
        }
    }
}

impl Recovering {
    fn config(self) -> Option<link::recover::Config> {
        match self {
            Self::Off => None,
            Self::Inpcm => Some(link::recover::Config::inpcm()),
            Self::On => Some(link::recover::Config::default()),
        }
    }
}

impl Choice for Pacing {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Off, "off"), (Self::Wine, "wine"), (Self::On, "on")];
}

impl Choice for Recovering {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Off, "off"), (Self::Inpcm, "inpcm"), (Self::On, "on")];
}
