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
        tables: flows(&runs.results),
        failed: runs.results.iter().flat_map(|run| run.failed.clone()).collect(),
    };
    report::figures(&figures, &ground(scenario, static_routes(scenario)))
}

/// The tables of the listed flows.
fn flows(runs: &[Outcome]) -> Vec<Rows> {
    let table = |(table, rows): (listed::Table, Vec<listed::Row>)| Rows {
        title: table.title,
        columns: table.columns.iter().map(|(name, _)| *name).collect(),
        rows: rows.into_iter().map(|it| (it.name, it.values)).collect(),
    };
    listed::tables(runs).into_iter().map(table).collect()
}

#[cfg(test)]
mod tests {
    use sim::world::{FlowOutcome, Sending, Spread};

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
            tcp: Some(Sending {
                acked_bytes: 1_234_567_890,
                slow_start_s: 1234.5,
                congestion_avoidance_s: 1234.5,
                timeouts: 12_345,
                recoveries: 12_345,
            }),
            ..FlowOutcome::default()
        };
        let tables = flows(&[Outcome { flows: vec![flow; 3], ..Outcome::default() }]);
        let page =
            report::figures(&Figures { tables, ..Figures::default() }, &report::testing::chain(3));
        assert!(page.contains("gateway-1:router-22"), "{page}");
        report::testing::assert_well_formed(&page);
        let widths = report::testing::table_widths(&page);
        assert!(widths.iter().all(|it| *it <= report::testing::TABLE_MAX), "{widths:?}");
        assert_eq!(flows(&[Outcome::default()]), []);
    }
}
