//! The listed flows' figures over the seeds, for the table and the page.

use sim::world::{FlowOutcome, Outcome, Spread};

type Figure = fn(&FlowOutcome) -> Option<f64>;

/// A table of flows: its title, and the figures' names and how to compute them.
pub struct Table {
    /// What it shows.
    pub title: &'static str,
    /// The figures.
    pub columns: &'static [(&'static str, Figure)],
}

/// What arrived, and when. Times are in milliseconds.
const ARRIVED: Table = Table {
    title: "Flows: means over the seeds, times in milliseconds",
    columns: &[
        ("kbps", |it| Some(it.kbps)),
        ("sent", |it| it.packets_sent.or(it.ssh.as_ref().map(|it| it.keys)).map(|it| it as f64)),
        ("lost", |it| Some((it.packets_sent? - it.packets_received?) as f64)),
        ("delay_p50", |it| delay(it).map(|it| it.p50)),
        ("delay_p95", |it| delay(it).map(|it| it.p95)),
        ("variation", |it| it.delay_variation_ms.map(|it| it.mean)),
        ("var_p50", |it| it.delay_variation_ms.map(|it| it.p50)),
        ("var_p95", |it| it.delay_variation_ms.map(|it| it.p95)),
        ("var_p99", |it| it.delay_variation_ms.map(|it| it.p99)),
    ],
};

/// What senders of TCP did. Times are in seconds.
const SENDERS: Table = Table {
    title: "Senders of TCP: means over the seeds, times in seconds",
    columns: &[
        ("acked_bytes", |it| it.tcp.map(|it| it.acked_bytes as f64)),
        ("slow_start_s", |it| it.tcp.map(|it| it.slow_start_s)),
        ("avoidance_s", |it| it.tcp.map(|it| it.congestion_avoidance_s)),
        ("timeouts", |it| it.tcp.map(|it| it.timeouts as f64)),
        ("recoveries", |it| it.tcp.map(|it| it.recoveries as f64)),
    ],
};

/// One-way delays of packets, or the delays of echoes.
fn delay(flow: &FlowOutcome) -> Option<Spread> {
    flow.delay_ms.or(flow.ssh.as_ref().and_then(|it| it.echo_ms))
}

/// A flow, and its figures.
pub struct Row {
    /// From where to where, its kind, and from when to when.
    pub name: String,
    /// The means over the runs that have the figure, in the order of the table's columns.
    pub values: Vec<Option<f64>>,
}

/// The tables of the listed flows, with a row for each flow that has any of the figures. Tables without rows are
/// left out.
pub fn tables(runs: &[Outcome]) -> Vec<(Table, Vec<Row>)> {
    let each = [ARRIVED, SENDERS].into_iter().map(|it| (rows(runs, it.columns), it));
    each.filter(|(rows, _)| !rows.is_empty()).map(|(rows, table)| (table, rows)).collect()
}

fn rows(runs: &[Outcome], columns: &[(&str, Figure)]) -> Vec<Row> {
    let Some(first) = runs.first() else { return Vec::new() };
    let row = |(place, flow): (usize, &FlowOutcome)| {
        let each = || runs.iter().filter_map(move |run| run.flows.get(place));
        let FlowOutcome { from, to, kind, starts_s, ends_s, .. } = flow;
        Row {
            name: format!("{from}:{to}:{kind}:{starts_s}:{ends_s}"),
            values: columns.iter().map(|(_, figure)| mean(each().filter_map(figure))).collect(),
        }
    };
    let rows = first.flows.iter().enumerate().map(row);
    rows.filter(|row| row.values.iter().any(Option::is_some)).collect()
}

/// The mean of some values, if there are any.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), it| (sum + it, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use sim::world::Sending;

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
        let tables = tables(&[run(1.0, None), run(3.0, Some(8.0))]);
        let [(_, rows)] = &tables[..] else { panic!("no flow is TCP") };
        let [Row { name, values }] = &rows[..] else { panic!("one flow is one row") };
        assert_eq!(name, "a:b:cbr@2:0:9.5");
        let expected =
            [Some(2.0), Some(10.0), Some(3.0), Some(8.0), Some(8.0), None, None, None, None];
        assert_eq!(values[..], expected);
    }

    #[test]
    fn senders_of_tcp_have_a_table_of_their_own() {
        let run = |acked_bytes, slow_start_s, congestion_avoidance_s, timeouts| {
            let recoveries = 3;
            let tcp =
                Sending { acked_bytes, slow_start_s, congestion_avoidance_s, timeouts, recoveries };
            let kind = |it: &str| FlowOutcome { kind: it.to_owned(), ..FlowOutcome::default() };
            let flows = vec![kind("cbr@2"), FlowOutcome { tcp: Some(tcp), ..kind("tcp") }];
            Outcome { flows, ..Outcome::default() }
        };
        let tables = tables(&[run(10, 1.0, 5.0, 0), run(30, 2.0, 6.0, 1)]);
        let [(_, all), (_, senders)] = &tables[..] else { panic!("two tables") };
        assert_eq!((all.len(), senders.len()), (2, 1));
        assert_eq!(senders[0].name, "::tcp:0:0");
        assert_eq!(senders[0].values, [20.0, 1.5, 5.5, 0.5, 3.0].map(Some));
    }
}
