//! The key `paper`, which sets other keys too: those of [`Variant`], of the link plane, and of the uplink.

use wire::Paper;

use super::choice::Word;
use super::key::{self, Settings, Slot};
use super::traffic::Traffic;
use super::uplink::FarEnd;
use super::variant::Variant;

impl Settings {
    /// Follows the paper of this name, or none; `None` if there is no such paper. Keys set later are
    /// [checked](Self::check_paper).
    pub(super) fn follow(&mut self, name: &str) -> Option<()> {
        let before = self.variant.paper;
        self.variant.follow(name)?;
        if self.variant.paper == before {
            return Some(());
        }
        let mut usual = Self::default();
        for (key, _) in others(before) {
            self.word(key)?.take(usual.word(key)?.word())?;
        }
        for (key, word) in others(self.variant.paper) {
            self.word(key)?.take(word)?;
        }
        Some(())
    }

    /// Fails if a key contradicts the paper that is set, or the paper means nothing here.
    pub(super) fn check_paper(&mut self) -> Result<(), String> {
        let Some(paper) = self.variant.paper else { return Ok(()) };
        let is_about_packets = !paper.link_plane().is_empty();
        if !is_about_packets && !matches!(self.traffic, Traffic::Files | Traffic::Pages) {
            return Err(format!(
                "`paper` \"{paper}\" is for `traffic` \"files\" or \"pages\", and here it is \"{}\"",
                self.traffic.word()
            ));
        }
        if paper == Paper::Wanax && self.uplink.far == FarEnd::None {
            return Err(format!("`paper` \"{paper}\" is of a pair: set `far` to \"pair\""));
        }
        if paper.scheme().is_some() {
            self.variant.check()?;
        }
        for (key, theirs) in others(Some(paper)) {
            if self.word(key).is_none_or(|it| it.word() != *theirs) {
                return Err(format!(
                    "`paper` \"{paper}\" has {key} \"{theirs}\": leave `{key}` out"
                ));
            }
        }
        Ok(())
    }

    /// The value of a key that is a word.
    fn word(&mut self, key: &str) -> Option<&mut dyn Word> {
        match key::find(key)?.slot {
            Slot::Word(field) => Some(field(self)),
            _ => None,
        }
    }
}

/// The keys whose values a paper gives, with these values, other than those of [`Variant`].
fn others(paper: Option<Paper>) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    paper.into_iter().flat_map(|paper| {
        let settings = paper.settings().iter().filter(|(key, _)| !Variant::has(key));
        settings.chain(paper.link_plane())
    })
}

#[cfg(test)]
mod tests {
    use wire::{Paper, Scheme};

    use crate::scenario::{Http, Scenario};

    fn load(settings: &[(&str, &str)]) -> Result<Scenario, String> {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let settings: Vec<_> = settings.iter().map(own).collect();
        Scenario::load("bulk", &settings).map_err(|it| it.to_string())
    }

    #[test]
    fn papers_about_packets_set_their_engine_and_nothing_else() {
        let usual = load(&[]).unwrap();
        let wine = load(&[("paper", "wine"), ("interlay", "0 2 4")]).unwrap();
        assert_eq!(wine.plane.pace, Some(link::pace::Config::wine()));
        assert_eq!((wine.plane.recover, &wine.plane.interlay[..]), (None, &[0, 2, 4][..]));
        assert_eq!(wine.tcp.recovery, usual.tcp.recovery);
        let inpcm = load(&[("paper", "inpcm"), ("recover_at", "1")]).unwrap();
        assert_eq!(inpcm.plane.recover, Some(link::recover::Config::inpcm()));
        assert_eq!((inpcm.plane.pace, &inpcm.plane.recover_at[..]), (None, &[1][..]));
        assert_eq!((inpcm.key("tcp_recovery"), usual.key("tcp_recovery")), ("reno", "ns3"));
        for scenario in [&wine, &inpcm] {
            let differs = |name: &str| scenario.key(name) != usual.key(name);
            let names = usual.keys.iter().map(|it| it.name);
            let changed: Vec<_> = names.filter(|name| differs(name)).collect();
            let paper = scenario.variant.paper.unwrap();
            let may = |name: &&str| {
                ["paper", "interlay", "recover_at"].contains(name)
                    || paper.link_plane().iter().any(|(key, _)| key == name)
            };
            assert!(changed.iter().all(may) && changed.contains(&"paper"), "{changed:?}");
            assert_eq!(scenario.scheme(Some(Scheme::Thcp)).unwrap(), Scheme::Thcp);
        }
        let none = load(&[("paper", "inpcm"), ("paper", "none")]).unwrap();
        assert!(!none.plane.is_on() && none.key("tcp_recovery") == "standard");
    }

    #[test]
    fn the_one_about_the_uplink_sets_how_content_crosses_its_pair() {
        let of = |settings: &[(&str, &str)]| {
            let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            let settings: Vec<_> = settings.iter().map(own).collect();
            Scenario::load("uplink", &settings).map_err(|it| it.to_string())
        };
        let set = [("far", "pair"), ("paper", "wanax")];
        let wanax = of(&set).unwrap();
        assert_eq!(wanax.published.unwrap().to_string(), "mrc-8-128");
        assert_eq!(wanax.http, Http::Bypass);
        // Everything else is as it was, and stays free.
        let usual = of(&[]).unwrap();
        let names = usual.keys.iter().map(|it| it.name);
        let changed: Vec<_> = names.filter(|it| wanax.key(it) != usual.key(it)).collect();
        assert_eq!(changed, ["paper", "far", "uplink", "http"]);
        let finer = of(&[&set[..], &[("degree", "2"), ("units", "32KiB")]].concat()).unwrap();
        assert_eq!(finer.published.unwrap().to_string(), "mrc-2-32");
        assert_eq!(finer.scheme(Some(Scheme::Thcp)), Ok(Scheme::Thcp));
        let none = of(&[&set[..], &[("paper", "none")]].concat()).unwrap();
        assert_eq!((none.published, none.http), (None, Http::Cached));
        for (settings, expected) in [
            (&[("paper", "wanax")][..], "`paper` \"wanax\" is of a pair: set `far` to \"pair\""),
            (&[("http", "bypass")], "`http` \"bypass\" is of a pair: set `far` to \"pair\""),
            (
                &[("far", "pair"), ("paper", "wanax"), ("uplink", "src")],
                "`paper` \"wanax\" has uplink \"mrc\": leave `uplink` out",
            ),
            (
                &[("far", "pair"), ("paper", "wanax"), ("http", "cached")],
                "`paper` \"wanax\" has http \"bypass\": leave `http` out",
            ),
        ] {
            assert_eq!(of(settings).unwrap_err(), format!("uplink.toml: {expected}"));
        }
        let why = load(&[("paper", "wanax")]).unwrap_err();
        assert!(why.contains("\"wanax\" is for `traffic` \"files\" or \"pages\""), "{why}");
    }

    #[test]
    fn what_contradicts_them_is_refused_in_any_order() {
        for paper in [Paper::Wine, Paper::Inpcm] {
            let set = ("paper", paper.name());
            for (key, theirs) in paper.link_plane() {
                let other = if *key == "tcp_recovery" { "sack" } else { "on" };
                let why = format!(
                    "bulk.toml: `paper` \"{paper}\" has {key} \"{theirs}\": leave `{key}` out"
                );
                for settings in [[set, (key, other)], [(key, other), set]] {
                    assert_eq!(load(&settings).unwrap_err(), why);
                }
                assert!(load(&[set, (key, theirs)]).is_ok(), "{paper} {key}");
            }
        }
        let why = load(&[("paper", "ditto")]).unwrap_err();
        let expected =
            "`paper` \"ditto\" is for `traffic` \"files\" or \"pages\", and here it is \"tcp\"";
        assert!(why.contains(expected), "{why}");
    }
}
