//! The objective by which places are chosen: the distance of the figures of reconstruction from the paper's.

use super::ground::{Ground, ROUTERS};
use crate::ditto::targets;
use report::stats;

/// The figures of reconstruction, in per cent; the last four are from section 6.3 and figure 12.
pub(super) const FIGURES: [&str; 10] = [
    "any",
    "half",
    "best_8",
    "best_32",
    "overhead_8",
    "overhead_32",
    "streams_7",
    "near_below_half",
    "far_median",
    "far_silent",
];

/// Their meanings, for a reader.
pub(super) const MEANINGS: [&str; FIGURES.len()] = [
    "observers that reconstruct anything",
    "observers that reconstruct more than half",
    "what the best fifth reconstructs at least, 8 KiB chunks",
    "the same, 32 KiB chunks",
    "memory overhead of 60 % of those that heard anything is below, 8 KiB chunks",
    "the same, 32 KiB chunks",
    "router 7, transfer to 1: more from several streams than from each alone",
    "by how much the medians of the six near the gateway are below half",
    "medians of the fifteen others",
    "of the fifteen, those that never reconstruct anything",
];

/// The index of "half" among them.
pub(super) const HALF: usize = 1;

/// The weight of each figure: 2 for what the paper states for both testbeds, and for what names a router;
/// else 1.
const WEIGHTS: [f64; FIGURES.len()] = [2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0];

/// Section 6.2.1: routers with high medians.
const NEAR: [u8; 6] = [14, 30, 34, 5, 37, 22];
/// Section 6.3: the observer that joins streams, and the receiver of that transfer.
pub(super) const STREAMS: (u8, u8) = (7, 1);

/// What one observer of a transfer reconstructed, as shares of all chunks, and of what it heard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observed {
    /// Share of chunks that it reconstructed, for chunks of 8 and of 32 KiB.
    pub efficiency: [f64; 2],
    /// The same for 8 KiB if each stream stands alone.
    pub alone: f64,
    /// Share of bytes that it kept but did not use.
    pub overhead: [f64; 2],
    /// Whether it heard anything at all.
    pub has_heard: bool,
}

/// Every observer of every transfer, by receiver and then by observer; routers are numbered as in [`Ground`].
pub(super) type Table = [[Option<Observed>; ROUTERS]; ROUTERS];

/// The figures, in the order of [`FIGURES`].
pub(super) type Figures = [f64; FIGURES.len()];

/// The paper's figures.
pub(super) fn paper() -> Figures {
    let figure = |scheme, metric| targets::figure("campus", scheme, metric).unwrap_or(f64::NAN);
    let best = "chunks_reconstructed_by_best_20pct_observers";
    let overhead = "memory_overhead_of_60pct_observers_below";
    [
        figure("ditto", "observers_reconstructing_any"),
        figure("ditto", "observers_reconstructing_over_half"),
        figure("ditto-8KB", best),
        figure("ditto-32KB", best),
        figure("ditto-8KB", overhead),
        figure("ditto-32KB", overhead),
        figure("ditto", "node7_reconstruction_gain_from_inter_stream"),
        0.0,
        0.0,
        0.0,
    ]
}

/// The objective: the weighted sum of distances from the paper's figures, in percentage points.
pub(super) fn objective(figures: &Figures) -> f64 {
    let each = figures.iter().zip(paper()).zip(WEIGHTS);
    each.map(|((ours, paper), weight)| weight * (ours - paper).abs()).sum()
}

/// The part of it that sets `overhear_m` (decision 0015): the shares that reconstruct anything, and more than
/// half.
pub(super) fn shares_off(figures: &Figures) -> f64 {
    figures.iter().zip(paper()).take(2).map(|(ours, paper)| (ours - paper).abs()).sum()
}

/// The figures of a table.
pub(super) fn figures(ground: &Ground, table: &Table) -> Figures {
    let all: Vec<_> = table.iter().flatten().flatten().copied().collect();
    let above = |least: f64| {
        let count = all.iter().filter(|it| it.efficiency[0] > least).count();
        100.0 * count as f64 / all.len().max(1) as f64
    };
    let best = |size: usize| quantile(all.iter().map(|it| it.efficiency[size]), 0.8);
    let hearers = || all.iter().filter(|it| it.has_heard);
    let overhead = |size: usize| quantile(hearers().map(|it| it.overhead[size]), 0.6);
    let (observer, receiver) = (ground.find(STREAMS.0), ground.find(STREAMS.1));
    let streams = table[receiver][observer].map_or(0.0, |it| it.efficiency[0] - it.alone);
    let [near, far, silent] = proximity(ground, table);
    [
        above(0.0),
        above(0.5),
        100.0 * best(0),
        100.0 * best(1),
        100.0 * overhead(0),
        100.0 * overhead(1),
        100.0 * streams,
        near,
        far,
        silent,
    ]
}

/// Figure 12, in per cent: how far the medians of routers next to the gateway are below half, the medians of
/// the others, and the share of these that never reconstruct anything.
fn proximity(ground: &Ground, table: &Table) -> [f64; 3] {
    let (mut below, mut medians, mut silent) = (Vec::new(), Vec::new(), Vec::new());
    for observer in 1..ROUTERS {
        let all = || table.iter().filter_map(|it| it[observer]).map(|it| it.efficiency[0]);
        let median = stats::median(all()).unwrap_or(0.0);
        if NEAR.contains(&ground.names[observer]) {
            below.push((0.5 - median).max(0.0));
        } else {
            medians.push(median);
            silent.push(f64::from(u8::from(all().all(|it| it == 0.0))));
        }
    }
    [below, medians, silent].map(|all| 100.0 * all.iter().sum::<f64>() / all.len().max(1) as f64)
}

/// A quantile of some values; 0 without values.
fn quantile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let sorted = stats::sorted(values);
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
}
