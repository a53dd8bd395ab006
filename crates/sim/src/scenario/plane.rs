//! The engines under IP, and the routers that have them.

use link::recover::{Beta, OnNotice, Timer};

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
#[derive(Clone, Debug)]
pub(super) struct PlaneKeys {
    pub pacing: Pacing,
    pub thin_acks: bool,
    pub interlay: Vec<String>,
    pub recovering: Recovering,
    pub recover_at: Vec<String>,
    pub timer: TimerChoice,
    pub on_notice: NoticeChoice,
    pub recover_kb: u64,
}

impl Default for PlaneKeys {
    fn default() -> Self {
        Self {
            pacing: Pacing::Off,
            thin_acks: true,
            interlay: Vec::new(),
            recovering: Recovering::Off,
            recover_at: Vec::new(),
            timer: TimerChoice::Preset,
            on_notice: NoticeChoice::Preset,
            recover_kb: 0,
        }
    }
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
            pace: self.pace(),
            recover: self.recover(),
            interlay: named("interlay", &self.interlay)?,
            recover_at: named("recover_at", &self.recover_at)?,
        })
    }
}

impl PlaneKeys {
    fn pace(&self) -> Option<link::pace::Config> {
        let config = self.pacing.config()?;
        Some(link::pace::Config { thin_acks: config.thin_acks && self.thin_acks, ..config })
    }

    fn recover(&self) -> Option<link::recover::Config> {
        let mut config = self.recovering.config()?;
        config.timer = self.timer.timer().unwrap_or(config.timer);
        config.on_notice = self.on_notice.on_notice().unwrap_or(config.on_notice);
        if self.recover_kb > 0 {
            config.cache_bytes = u32::try_from(self.recover_kb << 10).unwrap_or(u32::MAX);
        }
        Some(config)
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

/// What recovery's timer goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerChoice {
    Preset,
    Esrto,
    Contention,
    Sender,
    Tcp,
    Off,
}

/// What a notice does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoticeChoice {
    Preset,
    Evict,
    Double,
}

impl TimerChoice {
    fn timer(self) -> Option<Timer> {
        match self {
            Self::Preset => None,
            Self::Esrto => Some(Timer::Esrto { beta: Beta::Fixed(1.5) }),
            Self::Contention => Some(Timer::Esrto { beta: Beta::Contention }),
            Self::Sender => Some(Timer::Esrto { beta: Beta::SenderTimeout }),
            Self::Tcp => Some(Timer::TcpLike),
            Self::Off => Some(Timer::Off),
        }
    }
}

impl NoticeChoice {
    fn on_notice(self) -> Option<OnNotice> {
        match self {
            Self::Preset => None,
            Self::Evict => Some(OnNotice::Evict),
            Self::Double => Some(OnNotice::Double),
        }
    }
}

impl Choice for TimerChoice {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Preset, "preset"),
        (Self::Esrto, "esrto"),
        (Self::Contention, "contention"),
        (Self::Sender, "sender"),
        (Self::Tcp, "tcp"),
        (Self::Off, "off"),
    ];
}

impl Choice for NoticeChoice {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Preset, "preset"), (Self::Evict, "evict"), (Self::Double, "double")];
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

#[cfg(test)]
mod tests {
    use super::super::Scenario;

    fn load(settings: &[(&str, &str)]) -> Result<Scenario, String> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let settings: Vec<_> = settings.iter().map(own).collect();
        Scenario::load("chain", &settings).map_err(|it| it.to_string())
    }

    #[test]
    fn routers_without_names_all_have_the_engine_and_named_ones_alone() {
        let all = load(&[("pace", "on")]).unwrap().plane;
        assert!(all.is_on() && all.recover.is_none());
        assert_eq!(
            (all.pace, all.interlay),
            (Some(link::pace::Config::default()), vec![0, 1, 2, 3, 4])
        );
        let named = load(&[("recover", "inpcm"), ("recover_at", "3 1 3")]).unwrap().plane;
        let theirs = Some(link::recover::Config::inpcm());
        assert_eq!((named.recover, &named.recover_at[..]), (theirs, &[1, 3][..]));
        let has = [0, 1, 2, 3, 4].map(|router| named.engines(router).1.is_some());
        assert_eq!(has, [false, true, false, true, false]);
        assert!((0..5).all(|router| named.engines(router).0.is_none()));
        assert!(!load(&[]).unwrap().plane.is_on());
    }

    #[test]
    fn unknown_routers_and_keys_without_effect_are_refused() {
        for (keys, why) in [
            (
                [("pace", "wine"), ("interlay", "0 9")],
                "chain.toml: `interlay` names an unknown router `9`",
            ),
            (
                [("recover", "on"), ("recover_at", "x")],
                "chain.toml: `recover_at` names an unknown router `x`",
            ),
            (
                [("recover", "on"), ("interlay", "0")],
                "chain.toml: `interlay` has no effect while `pace` is \"off\": set `pace`",
            ),
            (
                [("pace", "on"), ("recover_at", "0")],
                "chain.toml: `recover_at` has no effect while `recover` is \"off\": set `recover`",
            ),
        ] {
            let said = load(&keys).expect_err(why);
            assert!(said.starts_with(why), "{said}");
        }
        let said = load(&[("pace", "fast")]).expect_err("no word");
        assert!(said.contains("must be \"off\" or \"wine\" or \"on\""), "{said}");
    }
}
