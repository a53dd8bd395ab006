//! The keys `uplink`, `degree` and `smallest` of `[experiment]`: by which scheme content crosses the uplink's pair.

use node::uplink::{Kind, Published, Unpublished};
use toml::Spanned;
use wire::Paper;

use super::size::Size;
use super::{ConfigError, Reader, Uplink, file};

/// By its history, or as Wanax has it.
const UPLINK: [(&str, Option<Kind>); 4] = [
    ("ours", None),
    ("mrc", Some(Kind::Mrc)),
    ("mrc-large", Some(Kind::MrcLarge)),
    ("src", Some(Kind::Src)),
];

/// The three keys, as they are in the file.
#[derive(Debug, Default)]
pub struct Keys {
    pub uplink: Option<Spanned<String>>,
    pub degree: Option<Spanned<u32>>,
    pub smallest: Option<Spanned<Size>>,
}

impl Keys {
    pub fn take(file: &mut file::Experiment) -> Self {
        let (degree, smallest) = (file.degree.take(), file.smallest.take());
        Self { uplink: file.uplink.take(), degree, smallest }
    }
}

impl Reader<'_> {
    /// The scheme of the three keys. A paper may say what `uplink` is.
    pub(super) fn published(&mut self, keys: &Keys, paper: Option<Paper>) -> Option<Published> {
        let usual = paper.and_then(|it| it.setting("uplink"));
        let word = |text: &str| UPLINK.iter().find(|(word, _)| *word == text).and_then(|it| it.1);
        let kind = match &keys.uplink {
            Some(text) => self.choice(text, "is not known here", &UPLINK)?,
            None => usual.and_then(word),
        };
        if let (Some(paper), Some(usual), Some(text)) = (paper, usual, &keys.uplink)
            && text.get_ref() != usual
        {
            let why = format!("`paper` \"{paper}\" has uplink \"{usual}\": leave `uplink` out");
            self.complain(text, &why);
        }
        let Some(kind) = kind else {
            let why = "is of a published scheme: give `uplink`, like \"mrc\"";
            let stray = keys.degree.iter().map(|it| (self.source.place_of(it), "degree"));
            let stray =
                stray.chain(keys.smallest.iter().map(|it| (self.source.place_of(it), "smallest")));
            for (place, key) in stray.collect::<Vec<_>>() {
                self.wrong.add(place, format!("`{key}` {why}"));
            }
            return None;
        };
        let degree = keys.degree.as_ref().map(|it| *it.get_ref());
        // What does not fit is none of the paper's lengths either.
        let smallest = keys.smallest.as_ref();
        let smallest = smallest.map(|it| u32::try_from(it.get_ref().0).unwrap_or(u32::MAX));
        Published::new(kind, degree, smallest).map_err(|why| self.unpublished(keys, why)).ok()
    }

    fn unpublished(&mut self, keys: &Keys, why: Unpublished) {
        let of_degree = matches!(why, Unpublished::Degree(_) | Unpublished::NoTree);
        let place = match (&keys.degree, &keys.smallest) {
            (Some(degree), _) if of_degree => self.source.place_of(degree),
            (_, Some(smallest)) => self.source.place_of(smallest),
            _ => self.source.name.to_owned(),
        };
        self.wrong.add(place, why.to_string());
    }
}

/// A published scheme needs a far end.
pub fn check(scheme: Option<Published>, uplink: &Uplink, wrong: &mut ConfigError) {
    if let (Some(scheme), None) = (scheme, &uplink.far) {
        let text = format!("{scheme} is of a pair: give [uplink] `far` and `far-key`");
        wrong.add("[experiment] uplink", text);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::{complaint, load};
    use crate::config::experiment::Http;

    /// A configuration with a far end, whose key is that of the tests of `[uplink]`.
    pub fn with(text: &str) -> String {
        let key = "a".repeat(64);
        format!("[uplink]\nfar = \"far.example.org\"\nfar-key = \"{key}\"\n[experiment]\n{text}")
    }

    #[test]
    fn each_scheme_of_the_paper_can_be_set() {
        for (text, expected) in [
            ("uplink = \"mrc\"", "mrc-8-128"),
            ("uplink = \"mrc\"\ndegree = 2", "mrc-2-32"),
            ("uplink = \"mrc-large\"\ndegree = 4\nsmallest = 256", "mrc-large-4-256"),
            ("uplink = \"src\"\nsmallest = \"4KiB\"", "src-4096"),
            ("uplink = \"src\"", "src-1024"),
        ] {
            let config = load(&with(text)).unwrap();
            assert_eq!(config.experiment.uplink.unwrap().to_string(), expected, "{text}");
            let line = format!("experiment uplink {expected}, for comparisons only\n");
            assert!(config.to_string().contains(&line), "{config}");
        }
        assert_eq!(load(&with("uplink = \"ours\"")).unwrap().experiment.uplink, None);
    }

    #[test]
    fn the_paper_sets_its_scheme_and_bypasses_the_cache() {
        let config = load(&with("paper = \"wanax\"")).unwrap();
        assert_eq!(config.experiment.uplink.unwrap().to_string(), "mrc-8-128");
        assert_eq!(config.experiment.http, Http::Bypass);
        let finer = load(&with("paper = \"wanax\"\ndegree = 2")).unwrap();
        assert_eq!(finer.experiment.uplink.unwrap().to_string(), "mrc-2-32");
        assert_eq!(
            complaint(&with("paper = \"wanax\"\nuplink = \"src\"")),
            "h.toml:6: `paper` \"wanax\" has uplink \"mrc\": leave `uplink` out"
        );
        let alone = complaint("[experiment]\npaper = \"wanax\"");
        assert!(alone.contains("give [uplink] `far`"), "{alone}");
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (text, expected) in [
            ("uplink = \"mcr\"", "h.toml:5: \"mcr\" is not known here: did you mean \"mrc\"?"),
            (
                "degree = 2",
                "h.toml:5: `degree` is of a published scheme: give `uplink`, like \"mrc\"",
            ),
            (
                "uplink = \"ours\"\nsmallest = 64",
                "h.toml:6: `smallest` is of a published scheme: give `uplink`, like \"mrc\"",
            ),
            (
                "uplink = \"src\"\ndegree = 2",
                "h.toml:6: chunks of one size form no trees: leave the degree out",
            ),
            ("uplink = \"mrc\"\ndegree = 3", "h.toml:6: trees have degree 2, 4 or 8, and not 3"),
            (
                "uplink = \"mrc\"\nsmallest = 32",
                "h.toml:6: a tree of degree 8 from 65536 bytes down has no chunks of 32 bytes",
            ),
            (
                "uplink = \"src\"\nsmallest = \"1MiB\"",
                "h.toml:6: the smallest chunks have a power of two of bytes, from 32 to 65536, and not 1048576",
            ),
        ] {
            assert_eq!(complaint(&with(text)), expected);
        }
        assert_eq!(
            complaint("[experiment]\nuplink = \"mrc\""),
            "h.toml:2: [experiment] uplink: mrc-8-128 is of a pair: give [uplink] `far` and `far-key`"
        );
    }
}
