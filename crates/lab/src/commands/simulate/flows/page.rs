//! What runs of flows or fetches gave, as a page.

use report::{Figures, Rows};
use sim::scenario::Scenario;
use sim::world::{Outcome, over_seeds};

use super::listed;
use crate::commands::simulate::Runs;
use crate::ground::{ground, static_routes};

/// The page.
pub fn html(scenario: &Scenario, runs: &Runs<Outcome>) -> String {
    let each = |run: &Outcome| {
        let figures = run.figures().into_iter().map(|(_, value)| value).collect();
        (format!("seed\u{a0}{}", run.seed), figures)
    };
    let over_seeds = over_seeds(&runs.results).into_iter();
    let figures = Figures {
        title: scenario.name.clone(),
        over_seeds: over_seeds.map(|(name, it)| (name, [it.mean, it.sd])).collect(),
        runs: runs.results.iter().map(each).collect(),
        rows: flows(&runs.results),
        failed: runs.results.iter().flat_map(|run| run.failed.clone()).collect(),
    };
    report::figures(&figures, &ground(scenario, static_routes(scenario)))
}

/// The listed flows, if there are any.
fn flows(runs: &[Outcome]) -> Option<Rows> {
    let rows: Vec<_> =
        listed::rows(runs).into_iter().map(|it| (it.name, it.values.to_vec())).collect();
    (!rows.is_empty()).then(|| Rows {
        title: "Flows: means over the seeds, times in milliseconds",
        columns: listed::COLUMNS.map(|(name, _)| name).to_vec(),
        rows,
    })
}

#[cfg(test)]
mod tests {
    use sim::world::{FlowOutcome, Spread};

    use super::*;

    #[test]
    fn a_table_of_flows_fits_a_screen_of_1200_pixels() {
        let spread = Some(Spread { mean: 1234.5, p50: 1234.5, p95: 12_345.6, p99: 12_345.6 });
        let flow = FlowOutcome {
            from: "gateway-1".to_owned(),
            to: "router-22".to_owned(),
            kind: "cbr@12.25".to_owned(),
            starts_s: 1000.5,
            ends_s: 2000.5,
            kbps: 12_345.6,
            packets_sent: Some(1_234_567),
            packets_received: Some(0),
            delay_ms: spread,
            delay_variation_ms: spread,
            ..FlowOutcome::default()
        };
        let rows = flows(&[Outcome { flows: vec![flow; 3], ..Outcome::default() }]);
        let page =
            report::figures(&Figures { rows, ..Figures::default() }, &report::testing::chain(3));
        assert!(page.contains("gateway-1:router-22"), "{page}");
        report::testing::assert_well_formed(&page);
        let widths = report::testing::table_widths(&page);
        assert!(widths.iter().all(|it| *it <= report::testing::TABLE_MAX), "{widths:?}");
        assert_eq!(flows(&[Outcome::default()]), None);
    }
}
