//! What routers may do otherwise than they do by default, to see what it is worth.

use content::Profile;
use node::overhear;
use wire::Paper;

use super::choice::{Choice, Word};

/// What is the same on all routers. The words are those of the daemon's table `[experiment]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// All of it is as that paper has it.
    pub paper: Option<Paper>,
    /// How content is cut.
    pub units: Units,
    /// What is heard of a unit in several streams.
    pub streams: Streams,
    /// What is heard of a unit in part.
    pub halves: Halves,
    /// What is heard behind a head that was missed.
    pub heads: Heads,
    /// What is overheard before the peer sends it that was asked for it.
    pub cancel: Cancel,
}

/// How content is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// 4 to 16 KiB, 8 on average.
    Fine,
    /// 24 to 32 KiB.
    Coarse,
}

/// What is heard of a unit in several streams (Ditto, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Makes one unit.
    Joined,
    /// Stays apart.
    Alone,
}

/// What is heard of a unit in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// Need not be sent again.
    Repaired,
    /// Is of no use.
    Dropped,
}

/// What is heard behind a head that was missed (Ditto, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    /// Is known by what lies around it.
    Guessed,
    /// Is of no use.
    Needed,
}

/// What is overheard before the peer sends it that was asked for it (Ditto, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// Need not be sent any more.
    On,
    /// Comes all the same.
    Off,
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
        }
    }
}

impl Variant {
    /// As engines have it.
    pub fn profile(&self) -> &'static Profile {
        match self.units {
            Units::Fine => Profile::DEFAULT,
            Units::Coarse => Profile::COARSE,
        }
    }

    /// As engines have it.
    pub fn overhear(&self) -> overhear::Options {
        overhear::Options {
            joins_streams: self.streams == Streams::Joined,
            repairs: self.halves == Halves::Repaired,
            guesses_heads: self.heads == Heads::Guessed,
            cancels: self.cancel == Cancel::On,
        }
    }

    /// Keys and values, as the daemon's configuration has them.
    pub fn words(&self) -> [(&'static str, &'static str); 5] {
        let mut it = *self;
        it.fields().map(|(key, field)| (key, field.word()))
    }

    /// What the daemon's configuration has to say of it: the paper, which says all the rest, or what is not as by
    /// default.
    pub fn varied(&self) -> Vec<(&'static str, &'static str)> {
        if let Some(paper) = self.paper {
            return vec![("paper", paper.name())];
        }
        let words = self.words().into_iter().zip(Self::default().words());
        words.filter(|(now, usual)| now != usual).map(|(now, _)| now).collect()
    }

    /// Whatever a paper says no value of is as by default.
    fn of(paper: Option<Paper>) -> Self {
        let mut it = Self { paper, ..Self::default() };
        for (key, word) in paper.map_or(&[][..], Paper::settings) {
            let field = it.fields().into_iter().find(|(name, _)| name == key);
            let taken = field.and_then(|(_, field)| field.take(word));
            debug_assert!(taken.is_some(), "{key} {word}");
        }
        it
    }

    /// What is not as the paper has it that it is of, if it is of one: what is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        let Some(paper) = self.paper else { return Ok(()) };
        let pairs = self.words().into_iter().zip(Self::of(self.paper).words());
        match pairs.into_iter().find(|(now, theirs)| now != theirs) {
            Some((_, (key, theirs))) => {
                Err(format!("`paper` \"{paper}\" has {key} \"{theirs}\": leave `{key}` out"))
            }
            None => Ok(()),
        }
    }

    fn fields(&mut self) -> [(&'static str, &mut dyn Word); 5] {
        [
            ("units", &mut self.units),
            ("streams", &mut self.streams),
            ("halves", &mut self.halves),
            ("heads", &mut self.heads),
            ("cancel", &mut self.cancel),
        ]
    }
}

/// The key `paper`.
const NO_PAPER: &str = "none";

impl Word for Variant {
    fn words(&self) -> Vec<&'static str> {
        [NO_PAPER].into_iter().chain(Paper::ALL.map(Paper::name)).collect()
    }

    fn word(&self) -> &'static str {
        self.paper.map_or(NO_PAPER, Paper::name)
    }

    /// Says all the other keys too; those that are said later are [checked](Self::check).
    fn take(&mut self, word: &str) -> Option<()> {
        let paper = Paper::ALL.into_iter().find(|it| it.name() == word);
        if paper.is_none() && word != NO_PAPER {
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
        for paper in Paper::ALL {
            let scenario = load(&[("paper", paper.name())]).unwrap();
            for (key, word) in scenario.variant.words() {
                let usual = load(&[]).unwrap();
                assert_eq!(word, paper.setting(key).unwrap_or(usual.key(key)), "{paper} {key}");
                assert_eq!(word, scenario.key(key));
            }
            assert_eq!(scenario.variant.varied(), [("paper", paper.name())]);
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
        let why = load(&[("paper", "wine")]).unwrap_err();
        assert!(why.contains("\"none\" or \"meshcache\" or \"ditto\""), "{why}");
    }

    #[test]
    fn no_paper_leaves_the_rest_as_it_is() {
        let variant = load(&[("halves", "dropped"), ("paper", "none")]).unwrap().variant;
        assert_eq!(variant.varied(), [("halves", "dropped")]);
    }

    #[test]
    fn a_paper_has_a_scheme() {
        use wire::Scheme;
        let of = |paper| load(&[("paper", paper)]).unwrap();
        assert_eq!(of("ditto").scheme(None), Ok(Scheme::Ditto));
        assert_eq!(of("meshcache").scheme(Some(Scheme::PhThcp)), Ok(Scheme::PhThcp));
        assert_eq!(of("none").scheme(None), Ok(Scheme::Default));
        assert_eq!(
            of("ditto").scheme(Some(Scheme::Thcp)).unwrap_err().to_string(),
            "--scheme thcp: `paper` is \"ditto\", whose scheme is \"ditto\": leave it out"
        );
    }
}
