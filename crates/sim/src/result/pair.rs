//! The picture of a mesh without Hearsay and with it, of the runs of both.

use std::collections::BTreeMap;

use report::pair::{self, Bytes, Half};
use report::{Ground, text};

use super::source::{OVERHEARD, REPAIRED, ServedBy};
use super::stats::{self, Scheme};
use super::{RunResult, Transfer};

/// The picture as an SVG file: runs without caches beside runs of the scheme that caches most. `None` if one of
/// the two is missing.
pub fn svg(results: &[RunResult], ground: &Ground) -> Option<String> {
    halves(&stats::by_scheme(results)).map(|halves| pair::svg(ground, &halves))
}

/// Both halves. Bytes and times are sums over the runs of a scheme; those of the gateway are medians.
pub(super) fn halves<'a>(schemes: &[Scheme<'a>]) -> Option<[Half<'a>; 2]> {
    let without = schemes.iter().find(|it| it.is_without_caches())?;
    let with = schemes.last().filter(|it| !it.is_without_caches())?;
    let name = text::clean(with.name);
    Some([
        half("Without Hearsay".to_owned(), without),
        half(format!("With Hearsay ({name})"), with),
    ])
}

fn half<'a>(title: String, scheme: &Scheme<'a>) -> Half<'a> {
    let median = |of: fn(&RunResult) -> f64| scheme.median_of(of).unwrap_or(0.0) as u64;
    let mut received = BTreeMap::<_, Bytes>::new();
    for transfer in scheme.transfers() {
        add(received.entry(transfer.client.as_str()).or_default(), transfer);
    }
    let seconds: Vec<_> =
        scheme.transfers().map(|it| it.seconds).filter(|it| it.is_finite()).collect();
    Half {
        title,
        uplink_bytes: median(|it| it.gateway.bytes_from_origin as f64),
        air_bytes: median(|it| it.gateway.bytes_over_air as f64),
        downloads: seconds.len(),
        seconds: seconds.iter().sum::<f64>() / seconds.len().max(1) as f64,
        received,
    }
}

fn add(sum: &mut Bytes, transfer: &Transfer) {
    let of = |name: &str| transfer.bytes_by_source.get(name).copied().unwrap_or(0);
    let by = |source: ServedBy| of(source.name());
    sum.origin += by(ServedBy::Origin);
    sum.gateway += by(ServedBy::Gateway);
    sum.remote += by(ServedBy::Remote);
    sum.local += by(ServedBy::Local) + by(ServedBy::PhLocal);
    sum.overheard += of(OVERHEARD) + of(REPAIRED);
}

#[cfg(test)]
mod tests {
    use report::testing::chain;

    use super::*;
    use crate::result::fixtures::{run, transfer};

    #[test]
    fn the_halves_are_the_runs_without_caches_and_those_with_most() {
        let mut with = run("ditto", 1, vec![transfer("r1", 100.0), transfer("r1", 300.0)]);
        with.transfers[1].bytes_by_source =
            [("overheard".to_owned(), 600), ("repaired".to_owned(), 50), ("local".to_owned(), 7)]
                .into();
        let without = run("end-to-end", 1, vec![transfer("r1", 100.0)]);
        let runs = [with, run("default", 1, vec![]), without];
        let [left, right] = halves(&stats::by_scheme(&runs)).unwrap();
        assert_eq!(
            [left.title.as_str(), &right.title],
            ["Without Hearsay", "With Hearsay (ditto)"]
        );
        assert_eq!(left.received["r1"], Bytes { gateway: 1_000_000, ..Bytes::default() });
        let both = Bytes { gateway: 1_000_000, overheard: 650, local: 7, ..Bytes::default() };
        assert_eq!(right.received["r1"], both);
        assert_eq!((right.uplink_bytes, right.air_bytes), (1_000_000, 2_000_000));
        assert!((right.seconds - (80.0 + 8000.0 / 300.0) / 2.0).abs() < 1e-9);
        let ground = chain(2);
        assert_eq!(svg(&runs, &ground), svg(&runs, &ground));
        assert!(svg(&runs[..2], &ground).is_none() && svg(&runs[2..], &ground).is_none());
    }
}
