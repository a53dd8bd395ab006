//! Settings in which routers can differ from the defaults, to measure what each is worth.

use content::Profile;
use node::{Locating, SearchConfig, SearchTimeout, overhear};
use wire::Paper;

use super::choice::{Choice, Word};

/// Settings of all routers. The words are those of the daemon's table `[experiment]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// If set, everything is as in that paper.
    pub paper: Option<Paper>,
    /// The size of units.
    pub units: Units,
    /// Whether parts of a unit overheard in several streams are joined.
    pub streams: Streams,
    /// Whether a unit overheard in part is completed by a peer.
    pub halves: Halves,
    /// Whether bytes are used after a chunk head that was missed.
    pub heads: Heads,
    /// Whether a unit overheard while a peer sends it is cancelled at that peer.
    pub cancel: Cancel,
    /// How requests get to a router that a search found.
    pub locate: Locate,
    /// How long a search waits for answers.
    pub search_timeout: SearchTimeout,
}

/// The size of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// 4 to 16 KiB, 8 on average.
    Fine,
    /// 24 to 32 KiB.
    Coarse,
}

/// What happens to parts of a unit overheard in several streams (Ditto, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// They are joined.
    Joined,
    /// Each stream is kept apart.
    Alone,
}

/// What happens to a unit overheard in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// A peer sends the rest.
    Repaired,
    /// It is dropped.
    Dropped,
}

/// What happens to bytes after a chunk head that was missed (Ditto, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    /// They are placed by the units around them.
    Guessed,
    /// They are dropped.
    Needed,
}

/// What happens when a unit is overheard that a peer was asked for (Ditto, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// The request is cancelled.
    On,
    /// The peer sends the unit all the same.
    Off,
}

/// How a request gets to the router that a search found (MeshCache, section 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locate {
    /// It says where it goes.
    Ours,
    /// The routers on the way are told before, and remember it.
    Paper,
}

impl Default for Variant {
    fn default() -> Self {
        Self {
            paper: None,
            units: Units::Fine,
            streams: Streams::Joined,
            halves: Halves::Repaired,
            heads: Heads::Guessed,
            cancel: Cancel::On,
            locate: Locate::Ours,
            search_timeout: SearchConfig::default().timeout,
        }
    }
}

impl Variant {
    /// The profile for engines.
    pub fn profile(&self) -> &'static Profile {
        match self.units {
            Units::Fine => Profile::DEFAULT,
            Units::Coarse => Profile::COARSE,
        }
    }

    /// The options for overhearing engines.
    pub fn overhear(&self) -> overhear::Options {
        overhear::Options {
            joins_streams: self.streams == Streams::Joined,
            repairs: self.halves == Halves::Repaired,
            guesses_heads: self.heads == Heads::Guessed,
            cancels: self.cancel == Cancel::On,
        }
    }

    /// How engines search.
    pub fn search(&self) -> SearchConfig {
        let locating = match self.locate {
            Locate::Ours => Locating::Ours,
            Locate::Paper => Locating::Paper { refresh: Locating::REFRESH },
        };
        SearchConfig { locating, timeout: self.search_timeout }
    }

    /// Keys and words of the daemon's configuration.
    pub fn words(&self) -> [(&'static str, &'static str); 6] {
        let mut it = *self;
        it.fields().map(|(key, field)| (key, field.word()))
    }

    /// The keys that the configuration of each daemon needs: the paper, which sets all others; else the keys that
    /// differ from their defaults. A paper about the uplink is the gateway's alone.
    pub fn varied(&self) -> Vec<(&'static str, String)> {
        if let Some(paper) = self.paper.filter(|it| *it != Paper::Wanax) {
            return vec![("paper", paper.name().to_owned())];
        }
        let words = self.words().into_iter().zip(Self::default().words());
        let words = words.filter(|(now, usual)| now != usual);
        let varied = words.map(|((key, word), _)| (key, word.to_owned()));
        let is_usual = self.search_timeout == Self::default().search_timeout;
        let timeout = (!is_usual).then(|| ("search-timeout", self.search_timeout.to_string()));
        varied.chain(timeout).collect()
    }

    /// The settings of a paper; keys that a paper leaves open have their defaults.
    fn of(paper: Option<Paper>) -> Self {
        let mut it = Self { paper, ..Self::default() };
        for (key, word) in paper.map_or(&[][..], Paper::settings) {
            if let Some((_, field)) = it.fields().into_iter().find(|(name, _)| name == key) {
                let taken = field.take(word);
                debug_assert!(taken.is_some(), "{key} {word}");
            }
        }
        it
    }

    /// Whether this key is one of its words.
    pub(super) fn has(key: &str) -> bool {
        Self::default().fields().iter().any(|(name, _)| *name == key)
    }

    /// Fails if a key contradicts the paper that is set.
    pub(super) fn check(&self) -> Result<(), String> {
        let Some(paper) = self.paper else { return Ok(()) };
        let pairs = self.words().into_iter().zip(Self::of(self.paper).words());
        match pairs.into_iter().find(|(now, theirs)| now != theirs) {
            Some((_, (key, theirs))) => {
                Err(format!("`paper` \"{paper}\" has {key} \"{theirs}\": leave `{key}` out"))
            }
            None if self.search_timeout != Self::default().search_timeout => Err(format!(
                "nothing is searched by `paper` \"{paper}\": leave `search_timeout_ms` out"
            )),
            None => Ok(()),
        }
    }

    fn fields(&mut self) -> [(&'static str, &mut dyn Word); 6] {
        [
            ("units", &mut self.units),
            ("streams", &mut self.streams),
            ("halves", &mut self.halves),
            ("heads", &mut self.heads),
            ("cancel", &mut self.cancel),
            ("locate", &mut self.locate),
        ]
    }
}

/// The value of the key `paper` for none.
const NO_PAPER: &str = "none";

impl Variant {
    /// The values of the key `paper`.
    pub(super) fn papers() -> impl Iterator<Item = &'static str> {
        [NO_PAPER].into_iter().chain(Paper::ALL.into_iter().map(Paper::name))
    }

    /// The value of the key `paper`.
    pub(super) fn paper_name(&self) -> &'static str {
        self.paper.map_or(NO_PAPER, Paper::name)
    }

    /// Follows the paper of this name, or none, and sets all keys here; keys set later are [checked](Self::check).
    /// `None` if there is no such paper.
    pub(super) fn follow(&mut self, name: &str) -> Option<()> {
        let paper = Paper::ALL.into_iter().find(|it| it.name() == name);
        if paper.is_none() && name != NO_PAPER {
            return None;
        }
        if paper != self.paper {
            *self = Self::of(paper);
        }
        Some(())
    }
}

impl Units {
    /// Its value of the key `units`.
    pub fn name(self) -> &'static str {
        self.word()
    }
}

impl Choice for Units {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Fine, "8KiB"), (Self::Coarse, "32KiB")];
}

impl Choice for Streams {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Joined, "joined"), (Self::Alone, "alone")];
}

impl Choice for Halves {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Repaired, "repaired"), (Self::Dropped, "dropped")];
}

impl Choice for Heads {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Guessed, "guessed"), (Self::Needed, "needed")];
}

impl Choice for Cancel {
    const ALL: &'static [(Self, &'static str)] = &[(Self::On, "on"), (Self::Off, "off")];
}

impl Choice for Locate {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Ours, "ours"), (Self::Paper, "paper")];
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::*;

    fn load(settings: &[(&str, &str)]) -> Result<Scenario, String> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let settings: Vec<_> = settings.iter().map(own).collect();
        Scenario::load("chain", &settings).map_err(|it| it.to_string())
    }

    #[test]
    fn a_paper_says_what_all_keys_are() {
        for paper in Paper::ALL.into_iter().filter(|it| it.scheme().is_some()) {
            let scenario = load(&[("paper", paper.name())]).unwrap();
            for (key, word) in scenario.variant.words() {
                let usual = load(&[]).unwrap();
                assert_eq!(word, paper.setting(key).unwrap_or(usual.key(key)), "{paper} {key}");
                assert_eq!(word, scenario.key(key));
            }
            assert_eq!(scenario.variant.varied(), [("paper", paper.name().to_owned())]);
        }
        let ditto = overhear::Options {
            joins_streams: true,
            guesses_heads: false,
            repairs: false,
            cancels: false,
        };
        assert_eq!(load(&[("paper", "ditto")]).unwrap().variant.overhear(), ditto);
    }

    #[test]
    fn what_a_paper_has_otherwise_is_refused_in_any_order() {
        let [repaired, ditto] = [("halves", "repaired"), ("paper", "ditto")];
        for settings in [[repaired, ditto], [ditto, repaired]] {
            let why = load(&settings).unwrap_err();
            assert_eq!(
                why,
                "chain.toml: `paper` \"ditto\" has halves \"dropped\": leave `halves` out"
            );
        }
        assert!(load(&[ditto, ("halves", "dropped")]).is_ok());
        let why = load(&[("paper", "dito")]).unwrap_err();
        let known = ["none", "wine", "inpcm", "meshcache", "ditto", "wanax"];
        let known = known.map(|it| format!("{it:?}"));
        assert!(why.contains(&known.join(" or ")), "{why}");
    }

    #[test]
    fn no_paper_leaves_the_rest_as_it_is() {
        let variant = load(&[("halves", "dropped"), ("paper", "none")]).unwrap().variant;
        assert_eq!(variant.varied(), [("halves", "dropped".to_owned())]);
    }

    #[test]
    fn searches_are_as_the_daemon_and_the_simulator_read_them() {
        let of = |settings: &[(&str, &str)]| load(settings).unwrap().variant;
        assert_eq!((of(&[]).search(), of(&[]).varied()), (SearchConfig::default(), vec![]));
        let waits = of(&[("search_timeout_ms", "40")]);
        let fixed = SearchTimeout::Fixed(std::time::Duration::from_millis(40));
        assert_eq!(waits.search().timeout, fixed);
        assert_eq!(waits.varied(), [("search-timeout", "40ms".to_owned())]);
        let published = of(&[("locate", "paper"), ("search_timeout_ms", "adaptive")]);
        let locating = Locating::Paper { refresh: Locating::REFRESH };
        let timeout = SearchTimeout::Adaptive;
        assert_eq!(published.search(), SearchConfig { locating, timeout });
        let expected = [("locate", "paper".to_owned()), ("search-timeout", "adaptive".to_owned())];
        assert_eq!(published.varied(), expected);
        for wrong in ["0", "1001", "2.5", "soon"] {
            let why = load(&[("search_timeout_ms", wrong)]).unwrap_err();
            let form = "must be \"adaptive\" or a whole number of milliseconds from 1 to 1000";
            assert!(why.contains(form), "{why}");
        }
        let why = load(&[("search_timeout_ms", "40"), ("paper", "meshcache")]).unwrap_err();
        assert!(why.contains("leave `search_timeout_ms` out"), "{why}");
    }

    #[test]
    fn a_paper_has_a_scheme() {
        use wire::Scheme;
        let of = |paper| load(&[("paper", paper)]).unwrap();
        assert_eq!(of("ditto").scheme(None), Ok(Scheme::Ditto));
        assert_eq!(of("meshcache").scheme(Some(Scheme::PhThcp)), Ok(Scheme::PhThcp));
        // As a daemon without a scheme in its configuration.
        let usual = of("none").scheme(None).unwrap();
        assert_eq!(usual, Scheme::Auto);
        assert_eq!(usual.selection(), Some(wire::Selection::default()));
        assert_eq!(
            of("ditto").scheme(Some(Scheme::Thcp)).unwrap_err().to_string(),
            "--scheme thcp: `paper` is \"ditto\", whose scheme is \"ditto\": leave it out"
        );
    }
}
