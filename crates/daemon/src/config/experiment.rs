//! Table `[experiment]`: deviations from normal behaviour, to measure what a feature is worth. A mesh in
//! everyday use does not need it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use content::Profile;
use node::uplink::Published;
use node::{Locating, SearchConfig, SearchTimeout, Squares, overhear};
use toml::Spanned;
use wire::{Paper, Scheme, Selection};

use super::{Config, ConfigError, Reader, file, published};

/// The deviations; by default none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// The paper whose settings apply; features that the paper lacks are off.
    pub paper: Option<Paper>,
    /// How content is cut into units.
    pub units: &'static Profile,
    /// How overheard bytes are used.
    pub overhear: overhear::Options,
    /// How copies off the way are searched, under the schemes that do.
    pub search: SearchConfig,
    /// In which square of the map each router is, for the schemes that hash names to routers.
    pub squares: Squares,
    /// By which published scheme content crosses the uplink's pair; `None`: by its history.
    pub uplink: Option<Published>,
    /// What becomes of intercepted HTTP.
    pub http: Http,
}

/// What becomes of intercepted HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http {
    /// It is parsed, and served from the store.
    #[default]
    Cached,
    /// It goes by the far end as any TCP connection, without a cache (Wanax §5).
    Bypass,
}

impl Default for Experiment {
    fn default() -> Self {
        let (overhear, search) = (overhear::Options::default(), SearchConfig::default());
        let squares = Squares::default();
        let (paper, units, http) = (None, Profile::DEFAULT, Http::Cached);
        Self { paper, units, overhear, search, squares, uplink: None, http }
    }
}

const UNITS: [(&str, &Profile); 2] = [("8KiB", Profile::DEFAULT), ("32KiB", Profile::COARSE)];
/// Whether parts of a unit that were heard in several streams are joined.
const STREAMS: [(&str, bool); 2] = [("joined", true), ("alone", false)];
/// Whether the missing bytes of a partly heard unit are requested, or the heard ones dropped.
const HALVES: [(&str, bool); 2] = [("repaired", true), ("dropped", false)];
/// Whether a unit whose head was missed is identified by its neighbours in the stream.
const HEADS: [(&str, bool); 2] = [("guessed", true), ("needed", false)];
/// Whether the request for a unit is cancelled if the unit is overheard first.
const CANCEL: [(&str, bool); 2] = [("on", true), ("off", false)];
/// Whether a request says which router was found, or the routers on the way are told before.
const LOCATE: [(&str, Locating); 2] =
    [("ours", Locating::Ours), ("paper", Locating::Paper { refresh: Locating::REFRESH })];

/// Whether intercepted HTTP is served from the store, or goes by the far end as any TCP connection.
const HTTP: [(&str, Http); 2] = [("cached", Http::Cached), ("bypass", Http::Bypass)];

/// The most routers with a square.
const SQUARES_MAX: usize = 1024;

/// One line: the settings that differ from the default.
impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let overhear = self.overhear;
        let words = [
            ("units", word(&UNITS, &self.units)),
            ("streams", word(&STREAMS, &overhear.joins_streams)),
            ("halves", word(&HALVES, &overhear.repairs)),
            ("heads", word(&HEADS, &overhear.guesses_heads)),
            ("cancel", word(&CANCEL, &overhear.cancels)),
            ("locate", word(&LOCATE, &self.search.locating)),
            ("http", word(&HTTP, &self.http)),
        ];
        if let Some(paper) = self.paper {
            write!(f, "paper {paper}, ")?;
        }
        let mut changed = words.iter().filter(|(_, it)| !it.is_default);
        changed.try_for_each(|(key, it)| write!(f, "{key} {}, ", it.word))?;
        if self.search.timeout != SearchConfig::default().timeout {
            write!(f, "search-timeout {}, ", self.search.timeout)?;
        }
        if !self.squares.is_empty() {
            write!(f, "squares of {} routers, ", self.squares.len())?;
        }
        if let Some(scheme) = self.uplink {
            write!(f, "uplink {scheme}, ")?;
        }
        f.write_str("for comparisons only")
    }
}

struct Word {
    word: &'static str,
    /// Whether the word is the first of its key.
    is_default: bool,
}

fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> Word {
    let place = words.iter().position(|(_, it)| it == value).unwrap_or(0);
    Word { word: words[place].0, is_default: place == 0 }
}

impl Experiment {
    /// Whether the paper's scheme needs overhearing.
    pub fn overhears(&self) -> bool {
        self.scheme().is_some_and(Scheme::overhears)
    }

    /// The scheme of the paper that is followed.
    pub fn selection(&self) -> Option<Selection> {
        self.scheme().and_then(Scheme::selection)
    }

    fn scheme(&self) -> Option<Scheme> {
        self.paper.and_then(Paper::scheme)
    }

    pub(super) fn check(&self, config: &Config, wrong: &mut ConfigError) {
        let (mesh, overhear) = (&config.mesh, &config.overhear);
        published::check(self.uplink, &config.uplink, wrong);
        if self.http == Http::Bypass && config.uplink.far.is_none() {
            let text = "\"bypass\": HTTP goes by the far end then: give [uplink] `far`";
            wrong.add("[experiment] http", text);
        }
        if mesh.selection.hashes() && self.squares.is_empty() {
            let text = "it hashes names to routers of one square: give [experiment] `squares`";
            wrong.add("[mesh] scheme", format!("\"{}\": {text}", mesh.selection));
        }
        let Some(paper) = self.paper else { return };
        if paper.scheme().is_none() {
            return;
        }
        if mesh.interfaces.is_empty() {
            let text = format!("\"{paper}\" is of a mesh: give [mesh] `interfaces`");
            wrong.add("[experiment] paper", text);
        }
        if let Some(theirs) = self.selection().filter(|it| *it != mesh.selection) {
            let ours = mesh.selection;
            let text =
                format!("\"{ours}\", and `paper` \"{paper}\" has \"{theirs}\": leave it out");
            wrong.add("[mesh] scheme", text);
        }
        let text = match (self.overhears(), overhear.budget_bytes().is_some()) {
            (true, false) => "without overhearing there is no",
            (false, true) => "nothing is overheard by `paper`",
            _ => return,
        };
        wrong.add("[overhear] mode", format!("{text} \"{paper}\": leave it out"));
    }
}

impl Reader<'_> {
    pub(super) fn experiment(&mut self, mut file: file::Experiment) -> Experiment {
        let squares = self.squares(&file.squares);
        let keys = published::Keys::take(&mut file);
        let paper = file.paper.and_then(|text| self.paper(&text));
        let uplink = self.published(&keys, paper);
        let mut read = Variants { reader: self, paper };
        Experiment {
            paper,
            units: read.variant("units", file.units, &UNITS),
            overhear: overhear::Options {
                joins_streams: read.variant("streams", file.streams, &STREAMS),
                repairs: read.variant("halves", file.halves, &HALVES),
                guesses_heads: read.variant("heads", file.heads, &HEADS),
                cancels: read.variant("cancel", file.cancel, &CANCEL),
            },
            search: SearchConfig {
                locating: read.variant("locate", file.locate, &LOCATE),
                timeout: read.timeout(file.search_timeout),
            },
            http: read.variant("http", file.http, &HTTP),
            squares,
            uplink,
        }
    }

    /// The paper of this name. Some are about packets under IP, which no daemon changes.
    fn paper(&mut self, text: &Spanned<String>) -> Option<Paper> {
        let (ours, others): (Vec<_>, Vec<_>) =
            Paper::ALL.into_iter().partition(|it| it.is_of_daemons());
        if let Some(other) = others.iter().find(|it| it.name() == text.get_ref()) {
            let why =
                "is in the simulator alone so far: try `hearsay-lab sim wine-chain --set paper=";
            self.complain(text, &format!("\"{other}\" {why}{other}`"));
            return None;
        }
        let ours: Vec<_> = ours.into_iter().map(|it| (it.name(), it)).collect();
        self.choice(text, "is no paper here", &ours)
    }

    fn squares(&mut self, list: &[Spanned<String>]) -> Squares {
        if let Some(last) = list.last().filter(|_| list.len() > SQUARES_MAX) {
            self.complain(last, &format!("these are more than {SQUARES_MAX} routers"));
        }
        let mut squares = BTreeMap::new();
        for text in list {
            match square(text.get_ref()) {
                Some((router, square)) => _ = squares.insert(router, square),
                None => {
                    let form = "give a router's address, and the column and row of its square: \"10.0.0.7 3 0\"";
                    self.complain(text, &format!("{:?} is no square: {form}", text.get_ref()));
                }
            }
        }
        Arc::new(squares)
    }
}

/// Reads `ADDRESS COLUMN ROW`.
fn square(text: &str) -> Option<(IpAddr, [u32; 2])> {
    let mut words = text.split_whitespace();
    let (router, column, row) = (words.next()?, words.next()?, words.next()?);
    let square = [column.parse().ok()?, row.parse().ok()?];
    words.next().is_none().then_some((router.parse().ok()?, square))
}

/// Reads keys that a paper may set.
struct Variants<'a, 'r> {
    reader: &'a mut Reader<'r>,
    paper: Option<Paper>,
}

impl Variants<'_, '_> {
    /// The value of the word in the file; without one, the paper's value, or that of the first word.
    fn variant<T: Copy>(
        &mut self,
        key: &str,
        text: Option<Spanned<String>>,
        words: &[(&str, T)],
    ) -> T {
        let of = |word: &str| words.iter().find(|(it, _)| *it == word).unwrap_or(&words[0]);
        let (usual, value) = *of(self.paper.and_then(|it| it.setting(key)).unwrap_or_default());
        let Some(text) = text else { return value };
        let said = self.reader.choice(&text, "is not known here", words).unwrap_or(value);
        if let Some(paper) = self.paper.filter(|_| text.get_ref() != usual) {
            let why = format!("`paper` \"{paper}\" has {key} \"{usual}\": leave `{key}` out");
            self.reader.complain(&text, &why);
        }
        said
    }

    fn timeout(&mut self, text: Option<Spanned<String>>) -> SearchTimeout {
        let usual = SearchConfig::default().timeout;
        let Some(text) = text else { return usual };
        let Ok(timeout) = text.get_ref().parse() else {
            let (written, adaptive) = (text.get_ref(), SearchTimeout::ADAPTIVE);
            let most = SearchTimeout::MAX.as_millis();
            let form = format!("{adaptive:?}, or from \"1ms\" to \"{most}ms\"");
            let advice = file::meant(written, [adaptive].into_iter(), form);
            self.reader.complain(&text, &format!("{written:?} is no search timeout: {advice}"));
            return usual;
        };
        if let Some(paper) = self.paper.filter(|_| timeout != usual) {
            let why =
                format!("nothing is searched by `paper` \"{paper}\": leave `search-timeout` out");
            self.reader.complain(&text, &why);
        }
        timeout
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{complaint, load};
    use super::*;
    use host::intercept::FlowPorts;
    use std::time::Duration;

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
        assert!(!of("heads = \"needed\"").experiment.overhear.guesses_heads);
        assert!(!of("cancel = \"off\"").experiment.overhear.cancels);
        let locating = Locating::Paper { refresh: Duration::from_secs(300) };
        assert_eq!(of("locate = \"paper\"").experiment.search.locating, locating);
        let timeout = |text| of(text).experiment.search.timeout;
        let fixed = |ms| SearchTimeout::Fixed(Duration::from_millis(ms));
        assert_eq!(timeout("search-timeout = \"40ms\""), fixed(40));
        assert_eq!(timeout("search-timeout = \"1000 ms\""), fixed(1000));
        let adaptive = of("search-timeout = \"adaptive\"");
        assert_eq!(adaptive.experiment.search.timeout, SearchTimeout::Adaptive);
        let line = "experiment search-timeout adaptive, for comparisons only\n";
        assert!(adaptive.to_string().contains(line), "{adaptive}");
        let far = format!("[uplink]\nfar = \"far.example.org\"\nfar-key = \"{}\"", "00".repeat(32));
        let bypass = of(&format!("http = \"bypass\"\n{far}"));
        assert_eq!(bypass.experiment.http, Http::Bypass);
        assert_eq!(bypass.flow_ports(), FlowPorts::Only(vec![80]));
        assert!(bypass.rules_of_any().ports.is_empty());
        let all = of(&format!("http = \"bypass\"\n{far}\n[intercept]\nports = \"all\""));
        assert!(all.flow_ports().has(80) && !all.flow_ports().has(443));
        let dropped = of("halves = \"dropped\"");
        assert!(!dropped.experiment.overhear.repairs);
        let line = "experiment halves dropped, for comparisons only\n";
        assert!(dropped.to_string().contains(line), "{dropped}");
    }

    const MESH: &str = "[mesh]\ninterfaces = [\"wl0\"]\n";

    #[test]
    fn a_paper_sets_all_that_it_has_and_nothing_else() {
        let of = |text: &str| load(&format!("{MESH}{text}")).unwrap();
        let meshcache = of("[experiment]\npaper = \"meshcache\"");
        let paper = Some(Paper::MeshCache);
        assert_eq!(meshcache.experiment, Experiment { paper, ..Experiment::default() });
        assert_eq!(
            (meshcache.overhear.budget_bytes(), meshcache.mesh.selection.name()),
            (None, "ph-thcp")
        );
        let ditto = of(
            "[overhear]\ninterface = \"mon0\"\n[experiment]\npaper = \"ditto\"\nunits = \"8KiB\"",
        );
        let theirs = overhear::Options {
            joins_streams: true,
            guesses_heads: false,
            repairs: false,
            cancels: false,
        };
        assert_eq!((ditto.experiment.units, ditto.experiment.overhear), (Profile::DEFAULT, theirs));
        assert!(ditto.overhear.budget_bytes().is_some());
        let line = "experiment paper ditto, halves dropped, heads needed, cancel off, for comparisons only\n";
        assert!(ditto.to_string().contains(line), "{ditto}");
    }

    #[test]
    fn who_hashes_names_needs_to_know_where_routers_are() {
        let mesh = "[mesh]\ninterfaces = [\"wl0\"]\nscheme = \"ph-ghcp\"\n";
        assert_eq!(
            complaint(mesh),
            "h.toml:3: [mesh] scheme: \"ph-ghcp\": it hashes names to routers of one square: give [experiment] `squares`"
        );
        let config =
            load(&format!("{mesh}[experiment]\nsquares = [\"10.0.0.7 3 0\", \"fd00::8  3  1\"]"));
        let config = config.unwrap();
        let squares: Vec<_> = config.experiment.squares.iter().collect();
        let router = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(squares, [(&router("10.0.0.7"), &[3, 0]), (&router("fd00::8"), &[3, 1])]);
        assert!(config.to_string().contains("experiment squares of 2 routers, for comparisons"));
    }

    #[test]
    fn every_word_of_a_paper_is_one_of_ours() {
        let keys = file::KEYS.iter().find(|(table, _)| *table == "experiment").unwrap().1;
        for (key, word) in Paper::ALL.into_iter().flat_map(|it| it.settings()) {
            assert!(keys.contains(key), "{key}");
            let text = published::tests::with(&format!("{key} = \"{word}\""));
            assert!(load(&text).is_ok(), "{key} {word}");
        }
    }

    #[test]
    fn what_a_paper_has_otherwise_is_refused() {
        let of = |text: &str| complaint(&format!("{MESH}{text}"));
        let known = "h.toml:4: \"squid\" is no paper here: \"meshcache\" or \"ditto\" or \"wanax\"";
        assert_eq!(of("[experiment]\npaper = \"squid\""), known);
        for paper in ["wine", "inpcm"] {
            let why = format!(
                "h.toml:4: \"{paper}\" is in the simulator alone so far: try `hearsay-lab sim wine-chain --set paper={paper}`"
            );
            assert_eq!(of(&format!("[experiment]\npaper = \"{paper}\"")), why);
        }
        let ditto = "[overhear]\ninterface = \"mon0\"\n[experiment]\npaper = \"ditto\"\n";
        let repaired = "h.toml:7: `paper` \"ditto\" has halves \"dropped\": leave `halves` out";
        assert_eq!(of(&format!("{ditto}halves = \"repaired\"")), repaired);
        let deaf =
            "h.toml:4: [overhear] mode: without overhearing there is no \"ditto\": leave it out";
        assert_eq!(of("[overhear]\nmode = \"off\"\n[experiment]\npaper = \"ditto\""), deaf);
        assert!(of("[experiment]\npaper = \"ditto\"").contains("Give `interface`"));
        let meshcache = "[experiment]\npaper = \"meshcache\"";
        assert_eq!(
            of(&format!("[overhear]\nmode = \"sniff\"\ninterface = \"mon0\"\n{meshcache}")),
            "h.toml:4: [overhear] mode: nothing is overheard by `paper` \"meshcache\": leave it out"
        );
        assert_eq!(
            of(&format!("scheme = \"thcp\"\n{meshcache}")),
            "h.toml:3: [mesh] scheme: \"thcp\", and `paper` \"meshcache\" has \"ph-thcp\": leave it out"
        );
        let alone = complaint(meshcache);
        assert_eq!(
            alone,
            "h.toml:2: [experiment] paper: \"meshcache\" is of a mesh: give [mesh] `interfaces`"
        );
    }

    #[test]
    fn what_is_wrong_with_it_says_what_to_do() {
        for (text, expected) in [
            ("units = \"8\"", "h.toml:2: \"8\" is not known here: \"8KiB\" or \"32KiB\""),
            ("locate = \"our\"", "h.toml:2: \"our\" is not known here: did you mean \"ours\"?"),
            (
                "search-timeout = \"25\"",
                "h.toml:2: \"25\" is no search timeout: \"adaptive\", or from \"1ms\" to \"1000ms\"",
            ),
            (
                "search-timeout = \"adaptiv\"",
                "h.toml:2: \"adaptiv\" is no search timeout: did you mean \"adaptive\"?",
            ),
            (
                "squares = [\"10.0.0.7 3\"]",
                "h.toml:2: \"10.0.0.7 3\" is no square: give a router's address, and the column and row of its square: \"10.0.0.7 3 0\"",
            ),
            (
                "search-timeout-ms = 25",
                "h.toml:2: unknown key `search-timeout-ms` in [experiment]: did you mean `search-timeout`?",
            ),
            (
                "halve = \"x\"",
                "h.toml:2: unknown key `halve` in [experiment]: did you mean `halves`?",
            ),
        ] {
            assert_eq!(complaint(&format!("[experiment]\n{text}")), expected);
        }
    }
}
