//! Metrics: each is in a table of counters, and on the page that is generated from the tables.

use std::collections::BTreeSet;

use crate::{files, none, read, root, shown, sources};

/// The fields of all tables of counters in a source file.
fn figures(source: &str) -> Vec<String> {
    let mut figures = Vec::new();
    for table in source.split("counters! {").skip(1) {
        let end = table.find("\n}\n").unwrap_or(table.len());
        figures.extend(table[..end].lines().filter_map(figure));
    }
    figures
}

/// The field of a line like `wants_lost: Counter, Chunks;`.
fn figure(line: &str) -> Option<String> {
    let (field, rest) = line.trim().strip_suffix(';')?.split_once(": ")?;
    let is_word = |it: char| it.is_ascii_lowercase() || it == '_';
    (field.chars().all(is_word) && rest.contains(", ")).then(|| field.to_owned())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_')
}

#[test]
fn every_figure_of_a_table_is_documented() {
    let page = read(&root().join("docs/metrics.md"));
    let known: BTreeSet<_> = words(&page).collect();
    let is_known = |field: &str| {
        known.contains(field)
            || known.iter().any(|it| it.ends_with(field) || it.ends_with(&format!("{field}_total")))
    };
    let (mut count, mut wrong) = (0, Vec::new());
    for path in sources() {
        let figures = figures(&read(&path));
        count += figures.len();
        let missing = figures.iter().filter(|field| !is_known(field));
        wrong.extend(missing.map(|field| format!("{}: {field}", shown(&path))));
    }
    none(&wrong, "figures that docs/metrics.md lacks: see its first lines");
    assert!(count > 100, "{count} figures were found");
}

#[test]
fn every_metric_that_is_named_is_in_a_table() {
    let page = read(&root().join("docs/metrics.md"));
    let mut wrong = Vec::new();
    for path in files() {
        let is_text = path.extension().is_some_and(|it| it == "rs" || it == "md");
        if !is_text || path.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = read(&path);
        // A prefix stands for all metrics that begin with it.
        let named = words(&text).filter(|word| word.starts_with("hearsay_") && *word != "hearsay_");
        let missing = named.filter(|word| {
            let prefix = format!("{}_", word.trim_end_matches('_'));
            !words(&page).any(|it| it == *word || it.starts_with(&prefix))
        });
        wrong.extend(missing.map(|word| format!("{}: {word}", shown(&path))));
    }
    none(&wrong, "metrics that no table has");
}

#[test]
fn metrics_are_written_in_one_place() {
    let marks = ["# TYPE ", "# HELP "];
    let writes = |path: &std::path::PathBuf| marks.iter().any(|mark| read(path).contains(mark));
    let wrong: Vec<_> = sources().iter().filter(|path| writes(path)).map(|it| shown(it)).collect();
    let wrong: Vec<_> =
        wrong.into_iter().filter(|it| !it.starts_with("crates/daemon/src/metrics")).collect();
    none(&wrong, "metrics that are written without a table");
}

#[test]
fn figures_are_found_in_a_table() {
    let source = "counters! {\n    A () {\n        /// Such: so, so;\n        a_b: Counter, Bytes, \"x\";\n    }\n}\n";
    assert_eq!(figures(source), ["a_b"]);
}
