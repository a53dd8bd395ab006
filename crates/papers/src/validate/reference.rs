//! The cases of ns-3: every row of its files.

use super::rows::{Row, rows};
use super::verdict::{Reference, SHARE};
use super::{Case, Figure, Group, Play, Settings, medium, setting};
use crate::Standing;
use sim::scenario::ScenarioError;

/// Largest relative error of goodputs and shares.
const OFF_MAX: f64 = 0.15;

/// The rules `ns3` were made with these very figures in view.
const BY_THESE: Standing = Standing::Set("the rules `ns3` were made with these figures in view");

/// The files, in the order of the report.
const FILES: [(Group, &str); 5] = [
    (
        Group { name: "chain", about: "One saturated flow over a chain.", standing: BY_THESE },
        include_str!("../../data/ns3/chain.csv"),
    ),
    (
        Group {
            name: "chain_nolock",
            about: "The same where signals too weak to be decoded do not hold a receiver.",
            standing: BY_THESE,
        },
        include_str!("../../data/ns3/chain_nolock.csv"),
    ),
    (
        Group {
            name: "chain_per",
            about: "Over 4 hops that lose frames beside.",
            standing: BY_THESE,
        },
        include_str!("../../data/ns3/chain_per.csv"),
    ),
    (
        Group {
            name: "contention",
            about: "Saturated senders in one cell, and two that do not sense each other.",
            standing: BY_THESE,
        },
        include_str!("../../data/ns3/contention.csv"),
    ),
    (
        Group {
            name: "mesh50",
            about: "50 nodes at random, 25 of them fetching files. The places are others than \
                ns-3's, so these figures are only to be plausible.",
            standing: BY_THESE,
        },
        include_str!("../../data/ns3/mesh50.csv"),
    ),
];

/// Columns (with `_mean` and `_sd`), and our names for them.
pub const COLUMNS: [(&str, &str); 11] = [
    ("goodput_kbps", "goodput_kbps"),
    ("share1", SHARE),
    ("p_data_fail", "data_fail_share"),
    ("drop_retry", "retry_drops"),
    ("drop_q_src", "queue_drops_source"),
    ("drop_q_relay", "queue_drops_relays"),
    ("data_tx", "data_frames"),
    ("fetches", "fetches"),
    ("fetch_mean_s", "fetch_mean_s"),
    ("fetch_p50_s", "fetch_p50_s"),
    ("fetch_p95_s", "fetch_p95_s"),
];

/// All cases.
pub fn cases(settings: &[(String, String)]) -> Result<Vec<Case>, ScenarioError> {
    let all = FILES.iter().flat_map(|(group, table)| rows(table).map(move |row| (*group, row)));
    all.map(|(group, row)| case(group, &row, settings)).collect()
}

fn case(group: Group, row: &Row<'_>, more: &[(String, String)]) -> Result<Case, ScenarioError> {
    let play = play(row);
    let settings = [settings(row, play), more.to_vec()].concat();
    let medium = medium(&play.scenario(&settings, 1)?);
    let judged: &[&str] = if play == Play::Mesh { &[] } else { &["goodput_kbps", SHARE] };
    let (name, figures) = (name(row, play), figures(row, judged, OFF_MAX));
    Ok(Case { group, name, medium, figures, play, settings })
}

fn play(row: &Row<'_>) -> Play {
    match row.text("topo") {
        Some("hidsym") => Play::HiddenPair,
        Some("bianchi") => Play::Cell(row.number("nflows").unwrap_or(1.0) as usize),
        Some("mesh") => Play::Mesh,
        _ => Play::Chain,
    }
}

/// The scenario's keys, from columns with the same meaning.
fn settings(row: &Row<'_>, play: Play) -> Settings {
    let mut settings = Vec::new();
    let columns = [
        ("basic", "basic_mbps"),
        ("phy", "receiver"),
        ("hops", "hops"),
        ("simtime", "seconds"),
        ("per", "per"),
        ("perScope", "per_scope"),
    ];
    for (column, key) in columns {
        settings.extend(row.text(column).map(|value| setting(key, value)));
    }
    settings.extend(row.text("rts").map(|value| setting("rts", value == "1")));
    // A mesh has its own traffic.
    settings.extend(
        row.text("traffic").filter(|_| play != Play::Mesh).map(|value| setting("traffic", value)),
    );
    settings
}

fn name(row: &Row<'_>, play: Play) -> String {
    let count = |column, what: &str| {
        let count = row.text(column)?;
        Some(format!("{count} {what}{}", if count == "1" { "" } else { "s" }))
    };
    let first = match play {
        Play::Chain => count("hops", "hop"),
        Play::Cell(_) => count("nflows", "sender"),
        Play::HiddenPair => Some("hidden pair".to_owned()),
        Play::Mesh => Some("fetches".to_owned()),
        Play::ExposedPair | Play::AsymmetricPair(_) => None,
    };
    let traffic = row.text("traffic").map(str::to_uppercase);
    let lost = row.number("per").map(|per| {
        let scope = row.text("perScope").unwrap_or("all");
        format!("{:.0} % of {scope} frames lost", 100.0 * per)
    });
    let rts = row.text("rts").filter(|it| *it == "1").map(|_| "RTS".to_owned());
    let parts = [first, traffic, rts, lost];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The figures of a row. Those in `judged` may be off by `off_max`; the others are only shown.
pub fn figures(row: &Row<'_>, judged: &[&str], off_max: f64) -> Vec<Figure> {
    let runs = row.number("seeds").unwrap_or(1.0);
    let figure = |(column, name): (&str, &'static str)| {
        let mean = row.number(&format!("{column}_mean"))?;
        let sd = row.number(&format!("{column}_sd"))?;
        let allowed = judged.contains(&name).then_some(off_max);
        let reference = Some(Reference { mean, spread: Some((sd, runs)) });
        Some(Figure { name, reference, allowed, known: None })
    };
    COLUMNS.into_iter().filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_case() {
        let cases = cases(&[]).unwrap();
        let lines: usize = FILES.iter().map(|(_, table)| table.lines().count() - 1).sum();
        assert_eq!(cases.len(), lines);
        let names: std::collections::BTreeSet<_> =
            cases.iter().map(|case| (case.group.name, case.name.as_str())).collect();
        assert_eq!(names.len(), cases.len(), "no two have one name");
        assert!(cases.iter().all(|case| case.figures[0].name == "goodput_kbps"));
        let per = cases.iter().find(|case| case.name.contains("lost")).unwrap();
        assert_eq!(per.name, "4 hops, TCP, 5 % of all frames lost");
        assert_eq!(per.medium, "receiver lock, reception bit-error, dcf ns3");
    }
}
