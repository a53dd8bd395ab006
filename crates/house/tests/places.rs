//! Paths that documents and scripts name.

use crate::{files, none, read, root, shown};

#[test]
fn named_paths_exist() {
    let mut wrong = Vec::new();
    for file in files() {
        let is_document = file.extension().is_some_and(|it| it == "md");
        if !is_document && !file.starts_with(root().join("scripts")) {
            continue;
        }
        for (number, line) in read(&file).lines().enumerate() {
            let missing = paths(line).into_iter().filter(|it| !root().join(it).exists());
            wrong.extend(missing.map(|it| format!("{}:{}: {it}", shown(&file), number + 1)));
        }
    }
    none(&wrong, "paths that do not exist");
}

/// The paths below `crates/` in a line. `crates/node/src/{node,lib}.rs` is two paths. A path is cut before a `*`
/// and before a placeholder such as `CRATE`.
fn paths(line: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (at, _) in line.match_indices("crates/") {
        if line[..at].ends_with(|c: char| c.is_alphanumeric() || "-_".contains(c)) {
            continue;
        }
        let is_of_path = |c: char| c.is_alphanumeric() || "/._-".contains(c);
        let end = |text: &str| text.find(|c| !is_of_path(c)).unwrap_or(text.len());
        let rest = &line[at..];
        let (begin, rest) = rest.split_at(end(rest));
        let Some((words, rest)) = rest.strip_prefix('{').and_then(|it| it.split_once('}')) else {
            paths.push(begin.to_owned());
            continue;
        };
        let rest = &rest[..end(rest)];
        paths.extend(words.split(',').map(|word| format!("{begin}{}{rest}", word.trim())));
    }
    paths.iter().map(|path| without_blanks(path.trim_end_matches('.'))).collect()
}

/// The path up to its first placeholder.
fn without_blanks(path: &str) -> String {
    let is_blank = |part: &&str| {
        part.is_empty() || part.len() > 1 && part.chars().all(|it| it.is_ascii_uppercase())
    };
    let known: Vec<_> = path.split('/').take_while(|part| !is_blank(part)).collect();
    known.join("/")
}

#[test]
fn paths_are_found_in_text() {
    let line =
        "see `crates/a/src/{b, c/d}.rs`, crates/CRATE/src and ../crates/e/*.rs, not/of-crates/f";
    assert_eq!(paths(line), ["crates/a/src/b.rs", "crates/a/src/c/d.rs", "crates", "crates/e"]);
}
