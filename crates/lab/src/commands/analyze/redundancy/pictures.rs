//! Figures 6 to 10 of Wanax, of the user's own content.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use report::{Chart, Curve, Mean, Row, Shares};

use super::findings::{Effective, Findings, Found};
use crate::redundancy::{Kind, length};

/// Names of files and their pictures.
pub fn all(findings: &Findings) -> Vec<(&'static str, String)> {
    let families = families(findings);
    // The kinds of MRC differ in what is stored and read, and not in what crosses.
    let mut crossing = families.clone();
    crossing.retain(|(_, members)| members.iter().all(|it| it.is_src() || it.has_own_hits()));
    let savings = |y, value| by_smallest(&crossing, y, value).svg();
    let costs = |y, value| by_smallest(&families, y, value).wide_svg();
    vec![
        (
            "savings-ideal.svg",
            savings("ideal savings, %", |it| it.ideal_savings.map(|it| 100.0 * it)),
        ),
        ("savings-real.svg", savings("real savings, %", |it| it.real_savings.map(|it| 100.0 * it))),
        (
            "disk-operations.svg",
            costs("disk operations, thousands", |it| Some(it.disk_operations as f64 / 1e3)),
        ),
        (
            "index-memory.svg",
            costs("memory of used entries, MiB", |it| {
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

/// The schemes of figure 10: kind, degree, and the average length of the smallest chunks. There are nine colours, and one is
/// for MRC without load shedding.
const SHOWN: [(Kind, Option<u32>, u32); 8] = [
    (Kind::Src, None, 32),
    (Kind::Src, None, 1024),
    (Kind::Src, None, 8192),
    (Kind::Src, None, 65_536),
    (Kind::Mrc, Some(2), 32),
    (Kind::Mrc, Some(2), 1024),
    (Kind::Mrc, Some(8), 128),
    (Kind::Ours, None, 128),
];

/// Where nothing is shed, bandwidth falls as the link gets faster than the disk; what is below is not drawn.
const LOWEST: f64 = 0.1;

/// Figure 10: SRC, MRC and ours, and MRC of degree 2 without load shedding.
fn effective(findings: &Findings) -> String {
    let curve = |name: String, it: &Found, value: fn(&Effective) -> Option<f64>| {
        let drawn = it.effective.iter().filter(|it| value(it).is_some_and(|it| it >= LOWEST));
        Curve { name, points: drawn.map(|it| (it.link_mbps, mean(value(it)))).collect() }
    };
    let name = |it: &Found| format!("{}, {}", it.family, length(it.smallest()));
    let is_shown = |it: &&Found| SHOWN.contains(&(it.kind, it.degree, it.smallest()));
    let shown = findings.schemes.iter().filter(is_shown);
    let mut curves: Vec<_> = shown.map(|it| curve(name(it), it, |it| it.shedding)).collect();
    let bare = findings.deepest().find(|it| it.kind == Kind::Mrc && it.degree == Some(2));
    let nothing_shed = |it| curve(format!("{}, nothing shed", name(it)), it, |it| it.not_shedding);
    curves.extend(bare.map(nothing_shed));
    Chart {
        label: "Effective bandwidth over the speed of the link".to_owned(),
        x: "link, Mbit/s".to_owned(),
        y: "effective bandwidth, multiple of the link's".to_owned(),
        curves,
    }
    .wide_svg()
}

fn mean(value: Option<f64>) -> Mean {
    Mean { mean: value.unwrap_or(f64::NAN), interval: None }
}
