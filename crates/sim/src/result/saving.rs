//! What Hearsay saved, in plain sentences for the head of a page.

use report::text;

use super::stats::Scheme;
use super::tables::delivered;

/// A saving below this factor is none: headers alone differ by a few per cent.
const FACTOR_MIN: f64 = 1.05;

/// Clients of two schemes received the same, up to this share.
const SAME_SHARE: f64 = 0.001;

/// Bytes of a scheme: each is the median over its runs.
#[derive(Clone, Copy)]
struct Bytes {
    uplink: f64,
    air: f64,
    delivered: f64,
}

impl Bytes {
    fn of(scheme: &Scheme<'_>) -> Option<Self> {
        Some(Self {
            uplink: scheme.median_of(|run| run.gateway.bytes_from_origin as f64)?,
            air: scheme.median_of(|run| run.gateway.bytes_over_air as f64)?,
            delivered: scheme.median_of(|run| delivered(run) as f64)?,
        })
    }
}

/// Says what crossed the uplink, and by what factor that is less than without Hearsay, for the last scheme, which
/// caches most. Runs without caches are the reference; if there are none, the bytes that clients received are.
/// `None` without runs.
pub(super) fn sentence(schemes: &[Scheme<'_>]) -> Option<String> {
    let last = schemes.last()?;
    let with = Bytes::of(last)?;
    let without = schemes.iter().find(|it| it.is_without_caches()).and_then(Bytes::of);
    Some(match without {
        _ if with.delivered == 0.0 => "Clients received nothing.".to_owned(),
        Some(without) if last.is_without_caches() => {
            format!("Without Hearsay, {}.", for_clients(without))
        }
        Some(without) => beside(last.name, with, without),
        None => format!(
            "With Hearsay ({}), {}: {}.",
            text::clean(last.name),
            for_clients(with),
            fewer(with.uplink, with.delivered)
        ),
    })
}

fn for_clients(bytes: Bytes) -> String {
    let (uplink, delivered) = (amount(bytes.uplink), amount(bytes.delivered));
    format!("{uplink} crossed the uplink for {delivered} that clients received")
}

/// Both beside each other. Figures of clients that received less say nothing of a saving.
fn beside(scheme: &str, with: Bytes, without: Bytes) -> String {
    let scheme = text::clean(scheme);
    let [uplink, air] = [(with.uplink, without.uplink), (with.air, without.air)]
        .map(|(with, without)| format!("{} instead of {}", amount(with), amount(without)));
    if (with.delivered - without.delivered).abs() > SAME_SHARE * without.delivered {
        let [with, without] = [with, without].map(|it| amount(it.delivered));
        return format!(
            "With Hearsay ({scheme}), {uplink} crossed the uplink, but clients received {with} instead of \
             {without}, so the two cannot be compared."
        );
    }
    format!(
        "With Hearsay ({scheme}), {uplink} crossed the uplink: {}. The gateway sent {air} into the air: {}.",
        fewer(with.uplink, without.uplink),
        fewer(with.air, without.air)
    )
}

fn fewer(with: f64, without: f64) -> String {
    match without / with {
        factor if factor >= FACTOR_MIN && factor.is_finite() => {
            format!("{} times fewer bytes", text::number(factor))
        }
        _ if with == 0.0 && without > 0.0 => "all of them were saved".to_owned(),
        _ => "nothing was saved".to_owned(),
    }
}

fn amount(bytes: f64) -> String {
    text::bytes(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::fixtures::{run, transfer};
    use crate::result::stats::by_scheme;
    use crate::result::{Gateway, RunResult};

    fn carried(scheme: &str, uplink: u64, air: u64) -> RunResult {
        let gateway =
            Gateway { bytes_from_origin: uplink, bytes_over_air: air, ..Gateway::default() };
        RunResult { gateway, ..run(scheme, 1, vec![transfer("r1", 100.0)]) }
    }

    fn said(runs: &[RunResult]) -> String {
        sentence(&by_scheme(runs)).unwrap_or_default().replace('\u{a0}', " ")
    }

    #[test]
    fn runs_without_caches_are_the_reference() {
        let [without, half, with] = [
            carried("end-to-end", 2_000_000, 4_000_000),
            carried("default", 500_000, 4_000_000),
            carried("ditto", 100_000, 500_000),
        ];
        assert_eq!(
            said(&[with, without.clone(), half.clone()]),
            "With Hearsay (ditto), 100 kB instead of 2.00 MB crossed the uplink: 20.0 times fewer bytes. \
             The gateway sent 500 kB instead of 4.00 MB into the air: 8.00 times fewer bytes."
        );
        assert!(said(&[without, half]).ends_with("4.00 MB into the air: nothing was saved."));
    }

    #[test]
    fn without_them_what_clients_received_is() {
        assert_eq!(
            said(&[carried("ditto", 100_000, 1)]),
            "With Hearsay (ditto), 100 kB crossed the uplink for 1.00 MB that clients received: 10.0 times \
             fewer bytes."
        );
        assert!(
            said(&[carried("default", 1_030_000, 1)]).ends_with("received: nothing was saved.")
        );
        assert_eq!(
            said(&[carried("end-to-end", 1_030_000, 1)]),
            "Without Hearsay, 1.03 MB crossed the uplink for 1.00 MB that clients received."
        );
        assert!(said(&[carried("thcp", 0, 1)]).ends_with("all of them were saved."));
    }

    #[test]
    fn nothing_is_claimed_where_clients_received_less() {
        let mut with = carried("ditto", 100_000, 1);
        with.transfers[0].bytes /= 2;
        let without = carried("end-to-end", 2_000_000, 1);
        let text = said(&[without.clone(), with.clone()]);
        assert!(text.contains("received 500 kB instead of 1.00 MB, so the two cannot be compared"));
        assert!(!text.contains("times fewer"));
        with.transfers.clear();
        assert_eq!(said(&[without, with]), "Clients received nothing.");
        assert_eq!(said(&[]), "");
    }
}
