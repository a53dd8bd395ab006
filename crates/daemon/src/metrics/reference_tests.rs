//! `docs/metrics.md` is made from the tables of counters.

use super::*;
use crate::status::tests::{busy, hearing, in_mesh, over_one, peer, two_gateways};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use wire::counters::Unit;

const BLESS: &str = "BLESS=1 cargo test -p daemon metrics::reference";

const HEAD: &str = "\
# Metrics

This page is made from the tables of counters in the code. After a change there, write it anew: `BLESS=1 cargo test -p \
daemon metrics::reference`.

`GET /metrics` on the control socket, and on the port of `[metrics] listen`, gives the metrics in Prometheus' text format. \
`hearsay status --json` has the same figures under the names of the last column, and `hearsay peers --json` those of \
each peer. A far end has the metrics of the last part, those of the process, and `hearsay far status --json`. A counter starts at zero with the process and only grows; a gauge tells what holds now. A *unit* is a chunk \
of content, which has a name of its own. In a metric with labels, each value of the label has a line. A flag is 1 or 0.
";

/// A value of a label, and what it means.
type Meaning = (&'static str, &'static str);

/// The tables, without figures.
fn tables() -> Vec<Table<'static>> {
    let mut tables = super::tables(Box::leak(Box::default()), &[]);
    tables.extend(far_tables(Box::leak(Box::default())));
    tables
}

fn title(part: Part) -> &'static str {
    match part {
        Part::Process => "Process and memory",
        Part::Clients => "Connections of clients",
        Part::Requests => "Requests",
        Part::Store => "Store",
        Part::Published => "Published objects",
        Part::Route => "Route to the gateway (only in a mesh)",
        Part::Mesh => "Peers (only in a mesh)",
        Part::Overhearing => "Overhearing (only where it is on)",
        Part::Uplink => "Uplink (only with a far end)",
        Part::Far => "Far end (only of `hearsay far`)",
    }
}

fn unit(unit: Unit) -> String {
    match unit {
        Unit::Number => "–".into(),
        unit => format!("{unit:?}").to_lowercase(),
    }
}

/// A metric in one line, and each value of its label in another.
fn lines(part: Part) -> Vec<String> {
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for Table { path, rows, label, .. } in tables() {
        for row in rows.iter().filter(|row| row.part == part) {
            let lines = lines.entry(row.metric).or_insert_with(|| vec![first(path, row, label)]);
            let value = row.label.map(|(label, value)| {
                format!("| … `{label}=\"{value}\"` | | | {} | {} |\n", row.help, json(path, row))
            });
            lines.extend(value);
        }
    }
    lines.into_values().flatten().collect()
}

fn first(path: Option<&str>, row: &Row, label: Option<Label>) -> String {
    let (about, json) = match row.about {
        Some(about) => (about, String::new()),
        None => (row.help, json(path, row)),
    };
    let reason = (!(row.reasons)().is_empty()).then_some("reason");
    let labels: Vec<_> = label.map(|it| it.0).into_iter().chain(reason).collect();
    let name =
        if labels.is_empty() { String::new() } else { format!(" {{{}}}", labels.join(", ")) };
    format!("| `{}{name}` | {} | {} | {about} | {json} |\n", row.metric, kind(row), unit(row.unit))
}

/// The values of the labels that distinguish several structs or the reasons of a tally.
fn values(part: Part) -> String {
    let mut text = String::new();
    for Table { rows, label, .. } in tables() {
        let rows: Vec<_> = rows.iter().filter(|row| row.part == part).collect();
        let metrics: BTreeSet<_> = rows.iter().map(|row| format!("`{}`", row.metric)).collect();
        let metrics = Vec::from_iter(metrics).join(", ");
        if let Some((label, values)) = label.filter(|_| !rows.is_empty()) {
            text += &meanings(label, &metrics, &values());
        }
        for row in rows.iter().filter(|row| !(row.reasons)().is_empty()) {
            text += &meanings("reason", &format!("`{}`", row.metric), &(row.reasons)());
        }
    }
    text
}

fn meanings(label: &str, metrics: &str, values: &[Meaning]) -> String {
    let mut text = format!("\n| `{label}` of {metrics} | Meaning |\n|---|---|\n");
    values.iter().for_each(|(value, help)| text += &format!("| `{value}` | {help} |\n"));
    text
}

/// A figure's path in JSON; empty if it has no field of its own.
fn json(path: Option<&str>, row: &Row) -> String {
    match path {
        None => String::new(),
        Some(".") => format!("`.{}`", row.field),
        Some(path) => format!("`{path}.{}`", row.field),
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let parts: BTreeSet<_> = tables().iter().flat_map(|it| it.rows).map(|row| row.part).collect();
    for part in parts {
        page += &format!("\n## {}\n\n", title(part));
        page += "| Metric | Type | Unit | What it is | In JSON |\n|---|---|---|---|---|\n";
        lines(part).iter().for_each(|line| page += line);
        page += &values(part);
    }
    page
}

#[test]
fn the_page_lists_every_metric() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &page).expect("docs/metrics.md can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/metrics.md is not what the tables say; write it by: {BLESS}");
    let (route, overhear) = (Some(over_one()), Some(hearing()));
    let status = Status { mesh: Some(in_mesh()), route, overhear, ..busy() };
    let metrics = render(&status, &[peer("r2", 1)]) + &render_far(&two_gateways());
    let names = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let missing: Vec<_> = names.filter(|name| !page.contains(&format!("| `{name}"))).collect();
    assert!(missing.is_empty(), "no table has {missing:?}");
}

#[test]
fn names_follow_the_conventions() {
    let mut about: BTreeMap<&str, (&Row, Option<&str>)> = BTreeMap::new();
    for row in tables().iter().flat_map(|it| it.rows) {
        let (name, is_counter) = (row.metric, row.kind == Kind::Counter);
        assert!(name.starts_with("hearsay_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        let base = name.trim_end_matches("_total");
        let (bytes, seconds) = (row.unit == Unit::Bytes, row.unit == Unit::Seconds);
        let is_of_bytes = base.ends_with("_bytes") || base.ends_with("_bytes_on_disk");
        assert_eq!((is_of_bytes, base.ends_with("_seconds")), (bytes, seconds), "{name}");
        let sentence =
            row.help.ends_with('.') && row.help.starts_with(|it: char| !it.is_lowercase());
        assert!(sentence && !row.help.contains('|'), "{name}: {}", row.help);
        // All figures of a metric are of one kind, and each has a label of its own.
        let (first, what) = *about.entry(name).or_insert((row, row.about));
        assert_eq!((first.kind, first.part, what), (row.kind, row.part, row.about), "{name}");
        assert!(std::ptr::eq(first, row) || first.label != row.label, "{name}");
    }
}
