//! Figures 6 to 10 of Wanax, of the user's own content.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use report::{Chart, Curve, Mean, Row, Shares};

use super::findings::{Effective, Findings, Found};
use crate::redundancy::{Kind, length};

/// Names of files and their pictures.
pub fn all(findings: &Findings) -> Vec<(&'static str, String)> {
    let families = families(findings);
    let over = |y: &str, value: fn(&Found) -> Option<f64>| by_smallest(&families, y, value).svg();
    vec![
        ("savings-ideal.svg", over("ideal savings, %", |it| it.ideal_savings.map(|it| 100.0 * it))),
        ("savings-real.svg", over("real savings, %", |it| it.real_savings.map(|it| 100.0 * it))),
        (
            "disk-operations.svg",
            over("disk operations, thousands", |it| Some(it.disk_operations as f64 / 1e3)),
        ),
        (
            "index-memory.svg",
            over("memory of used entries, MiB", |it| {
                Some(it.index_bytes as f64 / f64::from(1 << 20))
            }),
        ),
        ("levels.svg", levels(findings)),
        ("effective-bandwidth.svg", effective(findings)),
    ]
}

/// The schemes of one kind and degree, by their smallest chunks.
fn families(findings: &Findings) -> Vec<(&str, Vec<&Found>)> {
    let mut families: Vec<(&str, Vec<&Found>)> = Vec::new();
    for it in &findings.schemes {
        match families.iter_mut().find(|(name, _)| *name == it.family) {
            Some((_, members)) => members.push(it),
            None => families.push((&it.family, vec![it])),
        }
    }
    families.iter_mut().for_each(|(_, members)| members.sort_by_key(|it| it.smallest()));
    families
}

/// A curve for each family, over the average length of its smallest chunks.
fn by_smallest(
    families: &[(&str, Vec<&Found>)],
    y: &str,
    value: fn(&Found) -> Option<f64>,
) -> Chart {
    let point = |it: &&Found| (f64::from(it.smallest()), mean(value(it)));
    let curve = |(name, members): &(&str, Vec<&Found>)| Curve {
        name: (*name).to_owned(),
        points: members.iter().map(point).collect(),
    };
    Chart {
        label: format!("{y}, by scheme"),
        x: "average length of the smallest chunks, bytes".to_owned(),
        y: y.to_owned(),
        curves: families.iter().map(curve).collect(),
    }
}

/// Chunks of this average length and shorter ones are one part of figure 9: there are nine colours.
const SHORT: u32 = 256;

/// Figure 9: the share of each level in what a scheme saves.
fn levels(findings: &Findings) -> String {
    let shown: Vec<_> = findings.deepest().filter(|it| it.has_own_hits()).collect();
    let averages = shown.iter().flat_map(|it| &it.average_bytes).map(|&it| it.max(SHORT));
    let averages: BTreeSet<_> = averages.map(Reverse).collect();
    let row = |it: &&Found| {
        let amount = |&Reverse(average): &Reverse<u32>| {
            let levels = it.average_bytes.iter().zip(&it.savings_by_level);
            levels.filter(|(it, _)| (**it).max(SHORT) == average).map(|(_, share)| share).sum()
        };
        Row { name: it.family.clone(), amounts: averages.iter().map(amount).collect() }
    };
    let source = |(hue, &Reverse(average)): (usize, &Reverse<u32>)| {
        let less = if average == SHORT { " and less" } else { "" };
        (length(average) + less, hue)
    };
    Shares {
        label: "Savings by level".to_owned(),
        of: "ideal savings, by the average length of a level's chunks".to_owned(),
        sources: averages.iter().enumerate().map(source).collect(),
        rows: shown.iter().map(row).collect(),
    }
    .svg()
}

/// Figure 10: SRC of some sizes, all trees but MRC-Large, ours, and MRC of degree 2 without load shedding.
fn effective(findings: &Findings) -> String {
    let curve = |name: String, it: &Found, sheds: bool| {
        let value = |it: &Effective| if sheds { it.shedding } else { it.not_shedding };
        Curve {
            name,
            points: it.effective.iter().map(|it| (it.link_mbps, mean(value(it)))).collect(),
        }
    };
    let is_shown =
        |it: &&Found| !it.is_src() || [32, 256, 1024, 8192, 65_536].contains(&it.smallest());
    let shown = || findings.deepest().filter(is_shown).filter(|it| it.kind != Kind::MrcLarge);
    let mut curves: Vec<_> = shown()
        .map(|it| curve(format!("{}, {}", it.family, length(it.smallest())), it, true))
        .collect();
    let bare = findings.deepest().filter(|it| it.kind == Kind::Mrc && it.degree == Some(2));
    curves.extend(bare.map(|it| curve(format!("{}, nothing shed", it.family), it, false)));
    Chart {
        label: "Effective bandwidth over the speed of the link".to_owned(),
        x: "link, Mbit/s".to_owned(),
        y: "effective bandwidth, multiple of the link's".to_owned(),
        curves,
    }
    .svg()
}

fn mean(value: Option<f64>) -> Mean {
    Mean { mean: value.unwrap_or(f64::NAN), interval: None }
}
