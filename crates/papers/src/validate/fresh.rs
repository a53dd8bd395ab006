//! Cases that nothing was tuned to: chains with other hops, spacings and losses, and pairs of senders.
//!
//! Each is compared with ns-3's result for the same links and flows ([`super::ns3`] writes the program),
//! under the rules of the medium that reproductions use and under ns-3's own. The stored figures are those of
//! one such run.

use super::reference;
use super::rows::{Row, rows};
use super::{Case, Group, Play, Settings, medium, setting};
use crate::Standing;
use sim::scenario::ScenarioError;

/// ns-3's figures of the latest run.
pub const KEPT: &str = include_str!("../../data/ns3/fresh.csv");

/// Largest relative error of goodputs,
const OFF_MAX: f64 = 0.1;
/// and of those of senders that do not sense each other, if one has a receiver near the other.
const OFF_MAX_ASYMMETRIC: f64 = 0.15;

const GOODPUT: &str = "goodput_kbps";

const CHAIN_S: f64 = 30.0;
const PAIR_S: f64 = 20.0;

/// Hops, metres between neighbours, other keys, and a name for these.
type Chain = (u16, u16, &'static [(&'static str, &'static str)], &'static str);

/// Each is run with TCP and with UDP.
const CHAINS: [Chain; 13] = [
    (3, 220, &[], ""),
    (5, 150, &[], ""),
    (6, 110, &[], ""),
    (7, 240, &[], ""),
    (8, 240, &[], ""),
    (10, 180, &[], ""),
    (7, 150, &[("receiver", "nolock")], " weak signals hold nobody"),
    (3, 160, &[("rts", "true")], " RTS"),
    (7, 180, &[("rts", "true")], " RTS"),
    (3, 140, &[("per", "0.15"), ("per_scope", "data")], " 15 % of data frames lost"),
    (5, 230, &[("per", "0.08"), ("per_scope", "all")], " 8 % of all frames lost"),
    (7, 200, &[("per", "0.03"), ("per_scope", "all")], " 3 % of all frames lost"),
    (6, 200, &[("data_mbps", "5.5"), ("basic_mbps", "2")], " 5.5 Mbit/s"),
];

/// The pairs, each run without and with RTS.
const PAIRS: [(Play, &str); 5] = [
    (Play::ExposedPair, "exposed pair"),
    (Play::AsymmetricPair(260), "asymmetric pair 260 m"),
    (Play::AsymmetricPair(300), "asymmetric pair 300 m"),
    (Play::AsymmetricPair(340), "asymmetric pair 340 m"),
    (Play::AsymmetricPair(380), "asymmetric pair 380 m"),
];

/// Rules of the medium, and the goodputs that are known to be off under them, as ratios to ns-3's.
struct Rules {
    group: Group,
    keys: [(&'static str, &'static str); 2],
    known: &'static [(&'static str, f64)],
}

const RULES: [Rules; 2] = [
    Rules {
        group: Group {
            name: "fresh, as papers",
            about: "Chains and pairs that nothing was tuned to, by the rules of the papers' experiments.",
            standing: Standing::Predicted,
        },
        keys: [("reception", "capture"), ("dcf", "standard")],
        known: &[
            ("3 hops of 220 m UDP", 1.12),
            ("asymmetric pair 300 m", 0.67),
            ("asymmetric pair 300 m RTS", 0.63),
            ("asymmetric pair 340 m", 0.62),
            ("asymmetric pair 340 m RTS", 0.58),
        ],
    },
    Rules {
        group: Group {
            name: "fresh, as ns-3",
            about: "The same by the rules that follow ns-3.",
            standing: Standing::Predicted,
        },
        keys: [("reception", "bit-error"), ("dcf", "ns3")],
        known: &[],
    },
];

/// A case under any rules.
#[derive(Clone, Debug)]
pub struct Fresh {
    pub name: String,
    pub play: Play,
    pub keys: Settings,
}

/// All cases.
pub fn all() -> Vec<Fresh> {
    CHAINS.iter().flat_map(chains).chain(PAIRS.iter().flat_map(pairs)).collect()
}

/// All cases under both rules, beside these figures of ns-3.
pub fn cases(figures: &str) -> Result<Vec<Case>, ScenarioError> {
    let references: Vec<_> = rows(figures).collect();
    let both = RULES.iter().flat_map(|rules| all().into_iter().map(move |fresh| (rules, fresh)));
    both.map(|(rules, fresh)| rules.case(fresh, &references)).collect()
}

impl Rules {
    fn case(&self, fresh: Fresh, references: &[Row<'_>]) -> Result<Case, ScenarioError> {
        let Fresh { name, play, mut keys } = fresh;
        keys.extend(self.keys.map(|(key, value)| setting(key, value)));
        let medium = medium(&play.scenario(&keys, 1)?);
        let row = references.iter().find(|row| row.text("case") == Some(&name));
        let figures = row.map(|row| reference::figures(row, &[GOODPUT], off_max(play)));
        let mut figures = figures.unwrap_or_default();
        let known = self.known.iter().find(|(known, _)| *known == name).map(|(_, ratio)| *ratio);
        figures.iter_mut().filter(|it| it.name == GOODPUT).for_each(|it| it.known = known);
        Ok(Case { group: self.group, name, medium, figures, play, settings: keys })
    }
}

fn off_max(play: Play) -> f64 {
    if matches!(play, Play::AsymmetricPair(_)) { OFF_MAX_ASYMMETRIC } else { OFF_MAX }
}

fn chains((hops, spacing_m, more, called): &Chain) -> [Fresh; 2] {
    ["udp", "tcp"].map(|traffic| Fresh {
        name: format!("{hops} hops of {spacing_m} m {}{called}", traffic.to_uppercase()),
        play: Play::Chain,
        keys: [
            vec![
                setting("hops", hops),
                setting("spacing_m", spacing_m),
                setting("traffic", traffic),
                setting("seconds", CHAIN_S),
            ],
            more.iter().map(|(key, value)| setting(key, value)).collect(),
        ]
        .concat(),
    })
}

fn pairs((play, name): &(Play, &str)) -> [Fresh; 2] {
    [false, true].map(|rts| Fresh {
        name: format!("{name}{}", if rts { " RTS" } else { "" }),
        play: *play,
        keys: vec![setting("rts", rts), setting("seconds", PAIR_S)],
    })
}
