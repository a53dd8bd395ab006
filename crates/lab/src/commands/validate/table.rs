//! The comparisons for a terminal.

use std::fmt::Write as _;

use papers::validate::{Checked, Report, Verdict};

use crate::console::count;

/// The groups with a line for each figure, then the counts of verdicts.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for (group, cases) in report.groups() {
        let media = report.media(group);
        let standing = group.standing.word();
        let _ =
            writeln!(text, "{} ({standing}): {}\n{}", group.name, group.about, media.join("; "));
        let _ = writeln!(
            text,
            "  {:<34} {:<20} {:>19} {:>19} {:>6} {:>8}",
            "", "", "ours", "reference", "ratio", "allowed"
        );
        for (case, checked) in cases {
            for (place, figure) in checked.iter().enumerate() {
                let name = if place == 0 { case.name.as_str() } else { "" };
                let _ = writeln!(text, "  {name:<34} {}", line(figure));
            }
        }
        text.push('\n');
    }
    let cost = &report.cost;
    let [predicted, near] = report.near_enough("predicted");
    let _ = writeln!(
        text,
        "{}: {near} of {predicted} predicted figures near enough; of all, {} passed, {} open, {} known to be off, {} \
         failed; {:.0} s simulated in {:.1} s",
        count(report.seeds as usize, "seed"),
        report.count(Verdict::Passed),
        report.count(Verdict::Open),
        report.count(Verdict::Known),
        report.count(Verdict::Failed),
        cost.simulated_seconds,
        cost.wall_seconds
    );
    text
}

fn line(checked: &Checked) -> String {
    let reference = checked.figure.reference;
    let maybe = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let expected = match reference.map(|it| (it.mean, it.spread)) {
        None => "-".to_owned(),
        Some((mean, None)) => number(mean),
        Some((mean, Some((sd, _)))) => format!("{} ± {}", number(mean), number(sd)),
    };
    let allowed = checked.figure.allowed.map(|share| format!("{:.0} %", 100.0 * share));
    let ours = format!("{} ± {}", number(checked.ours.mean), number(checked.ours.sd));
    let text = format!(
        "{:<20} {ours:>19} {expected:>19} {:>6} {:>8} {}",
        checked.figure.name,
        maybe(checked.ratio(), 3),
        allowed.unwrap_or_default(),
        checked.verdict().word()
    );
    text.trim_end().to_owned()
}

/// A number with about four digits.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 10.0 => format!("{value:.4}"),
        v if v < 1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
