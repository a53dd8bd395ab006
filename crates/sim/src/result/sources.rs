//! The picture of where bytes came from: a bar for each scheme, or for each receiver of a single run.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use report::{Row, Shares, text};

use super::Transfer;
use super::source::{OVERHEARD, REPAIRED};
use super::stats::Scheme;

/// Sources from the nearest to the farthest, each with its meaning and its colour. The colours are those of
/// [`report::pair`].
const SOURCES: [(&str, &str, usize); 7] = [
    (OVERHEARD, "overheard", 2),
    (REPAIRED, "overheard in part, then repaired", 5),
    ("local", "stored by the client’s router for its own clients", 0),
    ("ph-local", "stored there as it relayed it for others", 4),
    ("remote", "stored by another router", 6),
    ("gateway", "stored by the gateway", 3),
    ("origin", "the origin, over the uplink", 1),
];

/// The figure, alone in its row or not; nothing without bytes.
pub(super) fn figure(schemes: &[Scheme<'_>], is_alone: bool) -> Markup {
    let rows = match schemes {
        [only] => by_receiver(only),
        _ => schemes.iter().map(|it| row(text::clean(it.name), it.transfers())).collect(),
    };
    let by = if schemes.len() == 1 { "receiver" } else { "scheme" };
    let shares = Shares {
        label: format!("Where bytes came from, by {by}"),
        of: "the bytes that clients received".to_owned(),
        sources: SOURCES.map(|(_, meaning, hue)| (meaning.to_owned(), hue)).into(),
        rows,
    };
    html! {
        @if shares.rows.iter().any(|row| row.amounts.iter().any(|it| *it > 0.0)) {
            figure class=[is_alone.then_some("alone")] {
                figcaption { (shares.label) }
                div class="scroll" { (PreEscaped(shares.svg())) }
            }
        }
    }
}

/// Receivers in the order in which they first asked.
fn by_receiver(scheme: &Scheme<'_>) -> Vec<Row> {
    let mut receivers = Vec::<(&str, Vec<&Transfer>)>::new();
    for transfer in scheme.transfers() {
        match receivers.iter_mut().find(|it| it.0 == transfer.client) {
            Some((_, transfers)) => transfers.push(transfer),
            None => receivers.push((&transfer.client, vec![transfer])),
        }
    }
    receivers.into_iter().map(|(name, of)| row(text::clean(name), of.into_iter())).collect()
}

fn row<'a>(name: String, transfers: impl Iterator<Item = &'a Transfer>) -> Row {
    let mut sums = BTreeMap::<&str, f64>::new();
    for (source, bytes) in transfers.flat_map(|it| &it.bytes_by_source) {
        *sums.entry(source).or_default() += *bytes as f64;
    }
    let amounts = SOURCES.map(|(source, ..)| sums.get(source).copied().unwrap_or(0.0));
    Row { name, amounts: amounts.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::fixtures::{run, transfer};
    use crate::result::stats::by_scheme;

    #[test]
    fn a_run_has_a_bar_for_each_receiver_and_several_schemes_one_for_each() {
        let mut ditto =
            run("ditto", 1, vec![transfer("b<", 1.0), transfer("a", 1.0), transfer("a", 1.0)]);
        ditto.transfers[2].bytes_by_source =
            [("overheard".to_owned(), 3_000_000), ("repaired".to_owned(), 9)].into();
        let runs = [ditto, run("default", 1, vec![transfer("a", 1.0)])];
        let one = by_scheme(&runs[..1]);
        let rows = by_receiver(&one[0]);
        let names: Vec<_> = rows.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["b<", "a"]);
        assert_eq!(rows[1].amounts, [3e6, 9.0, 0.0, 0.0, 0.0, 1e6, 0.0]);
        let text = figure(&one, true).into_string();
        assert!(text.contains("by receiver") && text.contains("b&lt;"));
        let text = figure(&by_scheme(&runs), false).into_string();
        assert!(text.contains("by scheme") && !text.contains("alone"));
        assert_eq!(text.matches("class=\"slice").count(), 1 + 3);
    }

    #[test]
    fn without_bytes_there_is_no_figure() {
        let none = [run("ditto", 1, vec![])];
        assert_eq!(figure(&by_scheme(&none), true).into_string(), "");
        assert_eq!(figure(&[], true).into_string(), "");
    }
}
