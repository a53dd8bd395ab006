//! Metrics: each is in a table of counters, and on the page that is generated from the tables.

use crate::{files, none, read, root, shown, sources};

/// Where the figures of each struct are in the JSON of the status or of a peer: the path before the field.
/// `None`: they are made for the metrics.
const PATHS: [(&str, &str, Option<&str>); 22] = [
    ("crates/daemon/src/metrics.rs", "Standing", None),
    ("crates/daemon/src/metrics.rs", "Build", None),
    ("crates/daemon/src/status/far.rs", "FarCounts", Some(".counts")),
    ("crates/daemon/src/status/far.rs", "GatewayCounts", Some(".gateways[]")),
    ("crates/daemon/src/status.rs", "Process", Some("")),
    ("crates/daemon/src/status.rs", "RequestLog", Some(".request_log")),
    ("crates/daemon/src/status/mesh.rs", "PeerLine", Some(".[]")),
    ("crates/daemon/src/status/selftest.rs", "SelfTest", Some(".selftest.CHECK")),
    ("crates/host/src/capture/counters.rs", "Counts", Some(".overhear")),
    ("crates/host/src/datagrams.rs", "DatagramCounts", Some(".datagrams")),
    ("crates/host/src/intercept/forwarded.rs", "ForwardedBytes", Some(".forwarded.KIND")),
    ("crates/host/src/traffic.rs", "WireBytes", Some(".wire.WITH")),
    ("crates/node/src/account.rs", "ClassBytes", Some(".classes.NAME")),
    ("crates/node/src/driver/admission.rs", "Counters", Some(".clients")),
    ("crates/node/src/driver/door.rs", "DoorReport", Some(".door")),
    ("crates/node/src/overhear/counters.rs", "Counters", Some(".report.overheard")),
    ("crates/node/src/overhear/counters.rs", "Overhearing", Some(".report.overheard")),
    ("crates/node/src/report.rs", "Report", Some(".report")),
    ("crates/node/src/report.rs", "Requests", Some(".report.requests")),
    ("crates/node/src/report.rs", "Unstored", Some(".report.not_stored.REASON")),
    ("crates/node/src/uplink/report.rs", "PairReport", Some(".uplink.counts")),
    ("crates/store/src/index.rs", "IndexReport", Some(".report.index")),
];

/// A figure of a table.
#[derive(Debug, PartialEq)]
struct Figure {
    of: String,
    /// What comes between `hearsay_` and the field in the metric's name.
    prefix: String,
    field: String,
}

/// The figures of all tables of counters in a source file.
fn figures(source: &str) -> Vec<Figure> {
    let (mut figures, mut of) = (Vec::new(), None);
    for table in source.split("counters! {").skip(1) {
        let end = table.find("\n}\n").unwrap_or(table.len());
        for line in table[..end].lines() {
            of = structure(line).or(of);
            if let (Some(field), Some((of, prefix))) = (field(line), &of) {
                figures.push(Figure { of: of.clone(), prefix: prefix.clone(), field });
            }
        }
    }
    figures
}

/// The name and the prefix of a line like `pub struct Counts, "capture_" {`.
fn structure(line: &str) -> Option<(String, String)> {
    let (name, rest) = line.trim().strip_prefix("pub struct ")?.split_once(", \"")?;
    Some((name.to_owned(), rest.split('"').next()?.to_owned()))
}

/// The field of a line like `wants_lost: Counter, Chunks;`.
fn field(line: &str) -> Option<String> {
    let (field, rest) = line.trim().strip_suffix(';')?.split_once(": ")?;
    let is_word = |it: char| it.is_ascii_lowercase() || it == '_';
    (field.chars().all(is_word) && rest.contains(", ")).then(|| field.to_owned())
}

/// Whether the page names a figure: by its path in JSON, else by its metric.
fn is_documented(page: &str, path: Option<&str>, figure: &Figure) -> bool {
    let Figure { prefix, field, .. } = figure;
    let names = page.split('`').skip(1).step_by(2).map(|it| it.split(' ').next().unwrap_or(it));
    let metric = format!("hearsay_{prefix}{field}");
    let expected = match path {
        Some(path) => [format!("{path}.{field}"), String::new()],
        None => [format!("{metric}_total"), metric],
    };
    names.filter(|name| !name.is_empty()).any(|name| expected.iter().any(|it| it == name))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_')
}

#[test]
fn every_figure_of_a_table_is_documented() {
    let page = read(&root().join("docs/metrics.md"));
    let (mut count, mut wrong) = (0, Vec::new());
    for path in sources() {
        let file = shown(&path);
        for figure in figures(&read(&path)) {
            count += 1;
            match PATHS.iter().find(|(at, of, _)| *at == file && *of == figure.of) {
                Some((.., path)) if is_documented(&page, *path, &figure) => {}
                found => wrong.push(format!("{file}: {figure:?}, in JSON {found:?}")),
            }
        }
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
    let source = "counters! {\n    pub struct A, \"a_\" {\n        /// Such: so, so;\n        \
        a_b: Counter, Bytes, \"x\";\n    }\n}\n";
    let figure = Figure { of: "A".into(), prefix: "a_".into(), field: "a_b".into() };
    assert_eq!(figures(source), [figure]);
    let [figure] = &figures(source)[..] else { unreachable!("one was found") };
    for (page, path, is) in [
        ("| `P_a_a_b_total {x}` |", None, true),
        ("| `P_a_a_b` |", None, true),
        ("| `P_b_a_a_b` |", None, false),
        ("a_b `x`", None, false),
        ("| `.a.a_b` |", Some(".a"), true),
        ("| `.b.a_b` |", Some(".a"), false),
        ("| `.a.ba_b` `.a.a_bc` |", Some(".a"), false),
    ] {
        let page = page.replace("P_", "hearsay_");
        assert_eq!(is_documented(&page, path, figure), is, "{page}");
    }
}
