//! Figures over several runs: medians, distributions, schemes. Only finite values count.

use std::collections::BTreeMap;

use report::stats::{median, sorted};

use super::source::ServedBy;
use super::{RunResult, Transfer};

/// Figures of the clients behind one router.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Receiver {
    /// The median throughput, in kbit/s.
    pub(super) kbps: f64,
    /// Number of transfers from each source.
    pub(super) sources: BTreeMap<ServedBy, usize>,
}

/// The runs of one scheme, which differ by seed.
pub(super) struct Scheme<'a> {
    pub(super) name: &'a str,
    pub(super) runs: Vec<&'a RunResult>,
}

impl<'a> Scheme<'a> {
    /// Whether its clients fetch from the origin themselves: the yardstick of all other schemes.
    pub(super) fn is_without_caches(&self) -> bool {
        self.name == wire::Scheme::EndToEnd.name()
    }

    /// All transfers of all runs.
    pub(super) fn transfers(&self) -> impl Iterator<Item = &'a Transfer> {
        self.runs.iter().flat_map(|run| &run.transfers)
    }

    /// The throughputs of all transfers, ascending, in kbit/s.
    pub(super) fn throughputs(&self) -> Vec<f64> {
        sorted(self.transfers().map(|transfer| transfer.kbps))
    }

    /// The median over runs of a figure.
    pub(super) fn median_of(&self, what: impl Fn(&RunResult) -> f64) -> Option<f64> {
        median(self.runs.iter().map(|run| what(run)))
    }

    /// Figures of the clients behind each router, by its name.
    pub(super) fn receivers(&self) -> BTreeMap<&'a str, Receiver> {
        let mut by_client = BTreeMap::<_, Vec<_>>::new();
        for transfer in self.transfers() {
            by_client.entry(transfer.client.as_str()).or_default().push(transfer);
        }
        let receivers = by_client.into_iter().filter_map(|(client, transfers)| {
            let kbps = median(transfers.iter().map(|it| it.kbps))?;
            let mut sources = BTreeMap::new();
            for source in transfers.iter().filter_map(|it| it.source) {
                *sources.entry(source).or_default() += 1;
            }
            Some((client, Receiver { kbps, sources }))
        });
        receivers.collect()
    }
}

impl Receiver {
    /// The share of its transfers served without the gateway.
    pub(super) fn hit_share(&self) -> f64 {
        let count = |hits: bool| -> usize {
            self.sources.iter().filter(|(it, _)| it.is_hit() || !hits).map(|(_, n)| n).sum()
        };
        count(true) as f64 / count(false).max(1) as f64
    }
}

/// The median throughput by the client's number of hops from the gateway.
pub(super) fn by_hops<'a>(
    transfers: impl IntoIterator<Item = &'a Transfer>,
) -> BTreeMap<usize, Vec<&'a Transfer>> {
    let mut by_hops = BTreeMap::<_, Vec<_>>::new();
    for transfer in transfers {
        by_hops.entry(transfer.hops).or_default().push(transfer);
    }
    by_hops
}

/// The schemes in order of how much they cache; then others in order of appearance.
pub(super) fn by_scheme(results: &[RunResult]) -> Vec<Scheme<'_>> {
    let mut schemes = Vec::<Scheme<'_>>::new();
    for run in results {
        match schemes.iter_mut().find(|scheme| scheme.name == run.scheme) {
            Some(scheme) => scheme.runs.push(run),
            None => schemes.push(Scheme { name: &run.scheme, runs: vec![run] }),
        }
    }
    let place =
        |scheme: &Scheme<'_>| wire::Scheme::ALL.iter().position(|it| it.name() == scheme.name);
    schemes.sort_by_key(|scheme| place(scheme).unwrap_or(usize::MAX));
    schemes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::fixtures::{run, transfer};

    #[test]
    fn seeds_of_a_scheme_are_pooled() {
        let runs = [
            run("ditto", 1, vec![transfer("a", 10.0), transfer("b", 40.0)]),
            run("default", 1, vec![transfer("a", 5.0)]),
            run("ditto", 2, vec![transfer("a", 30.0)]),
        ];
        let schemes = by_scheme(&runs);
        let names: Vec<_> = schemes.iter().map(|scheme| scheme.name).collect();
        assert_eq!(names, ["default", "ditto"]);
        let ditto = &schemes[1];
        assert_eq!(ditto.throughputs(), [10.0, 30.0, 40.0]);
        let rates: BTreeMap<_, _> =
            ditto.receivers().into_iter().map(|(name, it)| (name, it.kbps)).collect();
        assert_eq!(rates, BTreeMap::from([("a", 20.0), ("b", 40.0)]));
        assert_eq!(ditto.median_of(|run| run.seed as f64), Some(1.5));
    }

    #[test]
    fn schemes_stand_in_their_order() {
        let runs = ["wine", "ditto", "ph-thcp", "thcp", "inpcm", "end-to-end", "thcp", "default"]
            .map(|scheme| run(scheme, 1, vec![]));
        let names: Vec<_> = by_scheme(&runs).iter().map(|scheme| scheme.name).collect();
        let known = ["end-to-end", "default", "thcp", "ph-thcp", "ditto"];
        assert_eq!(names, [&known[..], &["wine", "inpcm"]].concat());
    }

    #[test]
    fn a_receiver_has_its_sources() {
        let from = |source| Transfer { source, ..transfer("a", 1.0) };
        let sources = [Some(ServedBy::Local), Some(ServedBy::Remote), Some(ServedBy::Origin), None];
        let runs = [run("thcp", 1, sources.map(from).to_vec())];
        let receivers = by_scheme(&runs)[0].receivers();
        let counts = [(ServedBy::Local, 1), (ServedBy::Remote, 1), (ServedBy::Origin, 1)];
        assert_eq!(receivers["a"].sources, BTreeMap::from(counts));
        assert!((receivers["a"].hit_share() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(Receiver::default().hit_share(), 0.0);
    }
}
