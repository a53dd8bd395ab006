//! The listed flows' figures over the seeds, for the table and the page.

use sim::world::{FlowOutcome, Outcome, Spread};

type Figure = fn(&FlowOutcome) -> Option<f64>;

/// The figures, and how to compute them. Times are in milliseconds.
pub const COLUMNS: [(&str, Figure); 9] = [
    ("kbps", |it| Some(it.kbps)),
    ("sent", |it| it.packets_sent.or(it.ssh.as_ref().map(|it| it.keys)).map(|it| it as f64)),
    ("lost", |it| Some((it.packets_sent? - it.packets_received?) as f64)),
    ("delay_p50", |it| delay(it).map(|it| it.p50)),
    ("delay_p95", |it| delay(it).map(|it| it.p95)),
    ("variation", |it| it.delay_variation_ms.map(|it| it.mean)),
    ("var_p50", |it| it.delay_variation_ms.map(|it| it.p50)),
    ("var_p95", |it| it.delay_variation_ms.map(|it| it.p95)),
    ("var_p99", |it| it.delay_variation_ms.map(|it| it.p99)),
];

/// One-way delays of packets, or the delays of echoes.
fn delay(flow: &FlowOutcome) -> Option<Spread> {
    flow.delay_ms.or(flow.ssh.as_ref().and_then(|it| it.echo_ms))
}

/// A flow, and its figures.
pub struct Row {
    /// From where to where, its kind, and from when to when.
    pub name: String,
    /// The means over the runs that have the figure, in the order of [`COLUMNS`].
    pub values: [Option<f64>; COLUMNS.len()],
}

/// A row for each listed flow.
pub fn rows(runs: &[Outcome]) -> Vec<Row> {
    let Some(first) = runs.first() else { return Vec::new() };
    let row = |(place, flow): (usize, &FlowOutcome)| {
        let each = || runs.iter().filter_map(move |run| run.flows.get(place));
        let FlowOutcome { from, to, kind, starts_s, ends_s, .. } = flow;
        Row {
            name: format!("{from}:{to}:{kind}:{starts_s}:{ends_s}"),
            values: COLUMNS.map(|(_, figure)| mean(each().filter_map(figure))),
        }
    };
    first.flows.iter().enumerate().map(row).collect()
}

/// The mean of some values, if there are any.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), it| (sum + it, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_means_over_the_runs_that_have_them() {
        let run = |kbps, delay: Option<f64>| {
            let spread = |ms| Spread { mean: ms, p50: ms, p95: ms, p99: ms };
            let flow = FlowOutcome {
                from: "a".to_owned(),
                to: "b".to_owned(),
                kind: "cbr@2".to_owned(),
                ends_s: 9.5,
                kbps,
                packets_sent: Some(10),
                packets_received: Some(7),
                delay_ms: delay.map(spread),
                ..FlowOutcome::default()
            };
            Outcome { flows: vec![flow], ..Outcome::default() }
        };
        let rows = rows(&[run(1.0, None), run(3.0, Some(8.0))]);
        let [Row { name, values }] = &rows[..] else { panic!("one flow is one row") };
        assert_eq!(name, "a:b:cbr@2:0:9.5");
        let expected =
            [Some(2.0), Some(10.0), Some(3.0), Some(8.0), Some(8.0), None, None, None, None];
        assert_eq!(values[..], expected);
    }
}
