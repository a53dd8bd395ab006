//! What observers are expected to reconstruct, computed without simulation: each packet is sent on each hop
//! until it arrives, and an observer hears each transmission or not.

use super::ground::{Ground, Places, RANGE_M, ROUTERS, distance_m};
use super::objective::{self, Figures, HALF, Observed, Table};

/// The loss of a link of length [`RANGE_M`]: the scenario's key `loss`.
pub(super) const LINK_LOSS: f64 = 0.85;
/// Payload of a packet, in bytes.
const SEGMENT_BYTES: f64 = 1448.0;
const FILE_BYTES: f64 = 1e6;
/// Lengths of chunks in bytes, each for an equal share of them. Chunks of "8 KiB" have at least 4 KiB and end
/// at random after that.
const LENGTHS: [&[f64]; 2] = [&[4600.0, 5700.0, 7100.0, 9300.0, 14_300.0], &[30_700.0]];
/// Below this number of expected chunks, none is expected.
const CHUNKS_MIN: f64 = 0.5;
/// Spread of what one observer reconstructs around the expectation, as a share of all chunks (logistic).
const SPREAD: f64 = 0.03;
/// Below this expected number of packets, none is heard.
const HEARD_MIN: f64 = 1e-3;

/// The expected figures. An observer that is about to reconstruct half counts in part; otherwise the search
/// would find places where many observers are just below half.
pub(super) fn figures(ground: &Ground, table: &Table) -> Figures {
    let mut figures = objective::figures(ground, table);
    let all = || table.iter().flatten().flatten();
    let above = all().map(|it| 1.0 / (1.0 + libm::exp((0.5 - it.efficiency[0]) / SPREAD)));
    figures[HALF] = 100.0 * above.sum::<f64>() / all().count().max(1) as f64;
    figures
}

/// All transfers, with observers that hear up to `overhear_m`.
pub(super) fn table(ground: &Ground, places: &Places, overhear_m: f64) -> Table {
    let mut table = [[None; ROUTERS]; ROUTERS];
    for (receiver, path) in ground.paths.iter().enumerate().skip(1) {
        for observer in (1..ROUTERS).filter(|it| *it != receiver) {
            let hops =
                path.windows(2).map(|hop| heard(places, [hop[0], hop[1], observer], overhear_m));
            let hops: Vec<_> = hops.filter(|it| *it > HEARD_MIN).collect();
            let mut it = observed(&hops);
            let near = |router: &usize| distance_m(places[*router], places[observer]) < overhear_m;
            if hops.is_empty() && path.iter().any(near) {
                // It hears requests, but none of the data.
                it = Observed { has_heard: true, overhead: [1.0; 2], ..it };
            }
            table[receiver][observer] = Some(it);
        }
    }
    table
}

/// The share of a hop's packets that an observer hears at least once.
pub(super) fn heard(places: &Places, [from, to, observer]: [usize; 3], overhear_m: f64) -> f64 {
    if observer == from || observer == to {
        return 1.0;
    }
    let length = distance_m(places[from], places[to]) / RANGE_M;
    let lost = LINK_LOSS * length * length;
    let far = distance_m(places[from], places[observer]) / overhear_m;
    let missed = (far * far * far).min(1.0);
    // The observer misses a packet only if it misses every transmission of it.
    1.0 - (1.0 - lost) * missed / (1.0 - lost * missed)
}

/// What an observer reconstructs that hears these shares of each hop's packets.
fn observed(hops: &[f64]) -> Observed {
    let missed: f64 = hops.iter().map(|it| 1.0 - it).product();
    let heard: f64 = hops.iter().sum();
    let mut it = Observed { has_heard: !hops.is_empty(), ..Observed::default() };
    for (size, lengths) in LENGTHS.into_iter().enumerate() {
        let mean = |chunks: fn(&[f64], f64) -> f64| {
            let all = lengths.iter().map(|bytes| chunks(hops, bytes / SEGMENT_BYTES + 1.0));
            all.sum::<f64>() / lengths.len() as f64
        };
        let chunks = FILE_BYTES / (lengths.iter().sum::<f64>() / lengths.len() as f64);
        let share = |it: f64| if it * chunks < CHUNKS_MIN { 0.0 } else { it };
        let made = mean(joined);
        it.efficiency[size] = share(made);
        if size == 0 {
            it.alone = share(mean(alone));
        }
        if heard > 0.0 {
            it.overhead[size] = ((1.0 - missed - made) / heard).max(0.0);
        }
    }
    it
}

/// The probability that a chunk of `packets` packets is complete if the streams whose first packet was heard
/// are joined.
pub(super) fn joined(hops: &[f64], packets: f64) -> f64 {
    let of = |joined: u32| {
        let (mut chance, mut missed) = (1.0, 1.0);
        for (at, heard) in hops.iter().enumerate() {
            let is_joined = joined >> at & 1 == 1;
            chance *= if is_joined { *heard } else { 1.0 - heard };
            missed *= if is_joined { 1.0 - heard } else { 1.0 };
        }
        chance * libm::pow(1.0 - missed, packets - 1.0)
    };
    (1..1 << hops.len()).map(of).sum()
}

/// The same if each stream stands alone.
pub(super) fn alone(hops: &[f64], packets: f64) -> f64 {
    1.0 - hops.iter().map(|heard| 1.0 - libm::pow(*heard, packets)).product::<f64>()
}
