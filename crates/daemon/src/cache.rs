//! `hearsay cache`: lists the stored objects, and removes some.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::ask;
use crate::cli::{Cache, CacheAction, Remove};
use crate::control::ObjectLine;
use crate::exit::Failure;
use crate::out;
use crate::purge::PurgeLine;
use crate::query;
use crate::term::{self, Style};

/// Lists, or does what was asked for instead.
pub async fn run(args: &Cache, paths: &[PathBuf]) -> Result<(), Failure> {
    match &args.action {
        None => show(paths, args.limit, args.json).await,
        Some(CacheAction::Rm(what)) => remove(paths, what).await,
    }
}

/// Has the daemon remove objects, and says how much that was.
async fn remove(paths: &[PathBuf], what: &Remove) -> Result<(), Failure> {
    let older = what.older.map(|span| span.0.as_secs().to_string());
    let chosen =
        [("url", &what.url), ("host", &what.host), ("class", &what.class), ("older", &older)];
    let chosen = chosen.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let mut query: Vec<_> =
        chosen.map(|(name, value)| format!("{name}={}", query::encode(value))).collect();
    query.extend(what.dry_run.then(|| "dry-run=1".to_owned()));
    let line = ask::purge(paths, &query.join("&")).await?;
    if what.json { out::json(&line) } else { out::print(removed(line)) }
}

fn removed(line: PurgeLine) -> String {
    let verb = if line.dry_run { "would remove" } else { "removed" };
    let noun = if line.objects == 1 { "object" } else { "objects" };
    format!("{verb} {} {noun}, {}\n", term::count(line.objects), term::bytes(line.bytes))
}

/// Asks the daemon and prints the list.
async fn show(paths: &[PathBuf], limit: usize, json: bool) -> Result<(), Failure> {
    let objects = ask::objects(paths, limit).await?;
    if json { out::json(&objects) } else { out::print(page(&objects, limit, style())) }
}

/// The width of the terminal; unlimited in a pipe, where programs need whole URLs.
fn style() -> Style {
    let style = Style::of_stdout();
    if std::io::stdout().is_terminal() { style } else { Style { width: usize::MAX, ..style } }
}

fn page(objects: &[ObjectLine], limit: usize, style: Style) -> String {
    if objects.is_empty() {
        return "nothing is stored yet\n".to_owned();
    }
    let head = format!("{:>9} {:>12} {:>12} URL", "SIZE", "AGE", "FRESH FOR");
    let room = style.width.saturating_sub(36).max(16);
    let mut page = style.strong(&head) + "\n";
    for object in objects {
        let size = term::bytes(object.length);
        let age = term::duration(Duration::from_secs(object.age_seconds));
        let (fresh, url) = (freshness(object.fresh_seconds), term::tame(&object.url, room));
        page.push_str(&format!("{size:>9} {age:>12} {fresh:>12} {url}\n"));
    }
    if objects.len() >= limit {
        page.push_str(&format!("(the first {limit}; --limit N shows more)\n"));
    }
    page
}

fn freshness(seconds: i64) -> String {
    match u64::try_from(seconds) {
        Ok(1..) => term::duration(Duration::from_secs(seconds.unsigned_abs())),
        _ => "stale".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_a_sentence() {
        let line = |objects, dry_run| removed(PurgeLine { objects, bytes: 3 << 20, dry_run });
        assert_eq!(line(1200, false), "removed 1 200 objects, 3.0 MiB\n");
        assert_eq!(line(1, true), "would remove 1 object, 3.0 MiB\n");
    }

    #[test]
    fn objects_are_lines_and_keep_to_the_width() {
        let object = ObjectLine {
            url: format!("http://a.example/{}\x1b[2J", "x".repeat(100)),
            length: 3 << 20,
            age_seconds: 61,
            fresh_seconds: -1,
        };
        let page = page(&[object.clone(), object], 2, Style { width: 70, colour: false });
        let lines: Vec<_> = page.lines().collect();
        assert!(lines[1].starts_with("  3.0 MiB    1 min 1 s        stale http://a"), "{page}");
        assert_eq!(lines[1].chars().count(), 70);
        assert!(lines[3].contains("--limit"));
    }
}
