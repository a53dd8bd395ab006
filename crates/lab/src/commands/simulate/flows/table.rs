//! The results of flows or fetches for a terminal.

use std::fmt::Write as _;

use sim::scenario::Scenario;
use sim::world::{Outcome, over_seeds};

use super::listed;
use crate::commands::simulate::Runs;
use crate::console::count;

/// Each figure over the seeds, the medium, and the speed of the simulation.
pub fn text(scenario: &Scenario, runs: &Runs<Outcome>) -> String {
    let mut text = format!(
        "{}, {}; receiver {}, reception {}\n\n{:<20} {:>14} {:>12}\n",
        scenario.name,
        count(runs.results.len(), "seed"),
        scenario.key("receiver"),
        scenario.key("reception"),
        "",
        "mean",
        "sd"
    );
    for (name, stat) in over_seeds(&runs.results) {
        let _ = writeln!(text, "{name:<20} {:>14.3} {:>12.3}", stat.mean, stat.sd);
    }
    text += &flows(&runs.results);
    let simulated: f64 = runs.results.iter().map(|run| run.simulated_seconds).sum();
    let events: u64 = runs.results.iter().map(|run| run.events).sum();
    let cpu = runs.cpu_seconds.max(1e-9);
    let _ = writeln!(
        text,
        "\n{simulated:.1} s simulated in {:.2} s ({cpu:.2} s of a processor): {:.0} simulated seconds and {:.0} \
         events a second of a processor",
        runs.wall_seconds,
        simulated / cpu,
        events as f64 / cpu
    );
    text
}

/// A line for each listed flow, with its figures' means over the seeds; then for each sender of TCP.
fn flows(runs: &[Outcome]) -> String {
    let mut text = String::new();
    for (table, rows) in listed::tables(runs) {
        let wide = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let _ = write!(text, "\n{:<wide$}", "flow");
        for (name, _) in table.columns {
            let _ = write!(text, " {:>12}", name.replace('_', " "));
        }
        for row in rows {
            let _ = write!(text, "\n{:<wide$}", row.name);
            for value in row.values {
                let value = value.map_or("-".to_owned(), |it| format!("{it:.1}"));
                let _ = write!(text, " {value:>12}");
            }
        }
        text.push('\n');
    }
    text
}
