//! The provenance in output files, and files without it, for comparisons.

use serde_json::Value;

/// Lines of JSON without those about the machine, the date and the command.
pub fn lasting(json: &str) -> String {
    let of_machine =
        |line: &str| ["wall_seconds", "cpu_seconds"].iter().any(|it| line.contains(it));
    let mut end = None;
    let mut lines = Vec::new();
    for line in json.lines().filter(|line| !of_machine(line)) {
        if let Some(indent) = line.strip_suffix("\"provenance\": {") {
            end = Some(format!("{indent}}}"));
        }
        match &end {
            Some(brace) if line.trim_end_matches(',') == brace => end = None,
            Some(_) => {}
            None => lines.push(line),
        }
    }
    lines.join("\n")
}

/// As [`lasting`], for any kind of output file.
pub fn lasting_of(file: &str, text: &str) -> String {
    match file.rsplit_once('.').expect("an ending").1 {
        "json" => lasting(text),
        "csv" => text.lines().filter(|it| !it.starts_with("# ")).collect::<Vec<_>>().join("\n"),
        "svg" => outside(text, "<metadata>", "</metadata>"),
        _ => outside(text, "<footer>", "</footer>"),
    }
}

fn outside(text: &str, begin: &str, end: &str) -> String {
    let (before, rest) = text.split_once(begin).unwrap_or_else(|| panic!("no {begin} in: {text}"));
    let (_, after) = rest.split_once(end).expect("it ends");
    before.to_owned() + after
}

/// Checks that program and commit, command, date and machine are given.
#[track_caller]
pub fn assert_origin(provenance: &Value, command: &str) {
    let text = |path: &str| provenance.pointer(path).and_then(Value::as_str).unwrap_or_default();
    assert_eq!(text("/program/name"), "hearsay-lab", "{provenance:#}");
    assert_eq!(text("/program/version"), env!("CARGO_PKG_VERSION"));
    assert!(!text("/program/commit").is_empty() && !text("/machine/cpu").is_empty());
    assert!(text("/machine/kernel").starts_with("Linux "));
    assert!(provenance["machine"]["cores"].as_u64() > Some(0));
    assert!(text("/command").starts_with(command), "{provenance:#}");
    assert!(text("/date").starts_with("20") && text("/date").ends_with('Z'));
}
