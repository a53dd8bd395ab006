//! Table `[experiment]`: what a node does otherwise than it should, to see what it is worth. No mesh that
//! people use needs it.

use std::fmt;

use content::Profile;
use node::overhear;
use toml::Spanned;

use super::{Reader, file};

/// What is tried out; by default nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// How content is cut.
    pub units: &'static Profile,
    /// What is done with what is overheard.
    pub overhear: overhear::Options,
}

impl Default for Experiment {
    fn default() -> Self {
        Self { units: Profile::DEFAULT, overhear: overhear::Options::default() }
    }
}

const UNITS: [(&str, &Profile); 2] = [("8KiB", Profile::DEFAULT), ("32KiB", Profile::COARSE)];
/// Whether what is heard of a unit in several streams makes one.
const STREAMS: [(&str, bool); 2] = [("joined", true), ("alone", false)];
/// Whether what is heard of a unit in part is of use.
const HALVES: [(&str, bool); 2] = [("repaired", true), ("dropped", false)];

/// One line, of what is not as by default.
impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let overhear = self.overhear;
        let words = [
            ("units", word(&UNITS, &self.units)),
            ("streams", word(&STREAMS, &overhear.joins_streams)),
            ("halves", word(&HALVES, &overhear.repairs)),
        ];
        let mut changed = words.iter().filter(|(_, it)| !it.is_default);
        changed.try_for_each(|(key, it)| write!(f, "{key} {}, ", it.word))?;
        f.write_str("for comparisons only")
    }
}

struct Word {
    word: &'static str,
    /// The first of its key.
    is_default: bool,
}

fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> Word {
    let place = words.iter().position(|(_, it)| it == value).unwrap_or(0);
    Word { word: words[place].0, is_default: place == 0 }
}

impl Reader<'_> {
    pub(super) fn experiment(&mut self, file: file::Experiment) -> Experiment {
        Experiment {
            units: self.variant(file.units, &UNITS),
            overhear: overhear::Options {
                joins_streams: self.variant(file.streams, &STREAMS),
                repairs: self.variant(file.halves, &HALVES),
                ..overhear::Options::default()
            },
        }
    }

    /// The value of a word; without, that of the first.
    fn variant<T: Copy>(&mut self, text: Option<Spanned<String>>, words: &[(&str, T)]) -> T {
        let said = text.and_then(|text| self.choice(&text, "is not known here", words));
        said.unwrap_or(words[0].1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{complaint, load};
    use super::*;

    #[test]
    fn nothing_is_tried_out_unless_it_is_asked_for() {
        let config = load("[experiment]").unwrap();
        assert_eq!(config.experiment, Experiment::default());
        assert!(!config.to_string().contains("experiment"));
    }

    #[test]
    fn each_key_changes_one_thing_and_is_told() {
        let of = |text: &str| load(&format!("[experiment]\n{text}")).unwrap();
        assert_eq!(of("units = \"32KiB\"").experiment.units, Profile::COARSE);
        assert!(!of("streams = \"alone\"").experiment.overhear.joins_streams);
        let dropped = of("halves = \"dropped\"");
        assert!(!dropped.experiment.overhear.repairs);
        let line = "experiment halves dropped, for comparisons only\n";
        assert!(dropped.to_string().contains(line), "{dropped}");
    }

    #[test]
    fn what_is_wrong_with_it_says_what_to_do() {
        for (text, expected) in [
            ("units = \"8\"", "h.toml:2: \"8\" is not known here: \"8KiB\" or \"32KiB\""),
            (
                "halve = \"x\"",
                "h.toml:2: unknown key `halve` in [experiment]: did you mean `halves`?",
            ),
        ] {
            assert_eq!(complaint(&format!("[experiment]\n{text}")), expected);
        }
    }
}
