//! `hearsay ledger`: prints the ledger as tables, JSON or CSV.

use crate::ask;
use crate::cli;
use crate::config::{Config, Overrides, Place};
use crate::exit::{Exit, Failure};
use crate::ledger::{Figures, LedgerPage, NAME, Saved, damaged, load, unix_now};
use crate::out;
use crate::term::{self, Style};
use node::NotStored;
use node::account::ClassBytes;
use std::path::PathBuf;
use store::ledger::Lost;
use wire::counters::{Counters, Reason as _};

/// Hosts that are printed at most; `--json` has all.
const HOSTS_MAX: usize = 20;

/// Asks the daemon, or reads the file if none runs, and prints the answer.
pub async fn run(args: &cli::ShowLedger, paths: &[PathBuf]) -> Result<(), Failure> {
    let now = unix_now();
    let seconds = args.since.map(|since| {
        let to_come = || format!("--since: that is still to come; now it is {} UTC", date(now));
        since.seconds_before(now).ok_or_else(|| Failure::usage(to_come()))
    });
    let seconds = seconds.transpose()?;
    let page = match ask::ledger(paths, seconds).await {
        Err(failure) if failure.exit == Exit::Unreachable => {
            from_file(args.store.as_ref(), seconds).map_err(|why| {
                Failure::unreachable(format!("{failure}\nnor is there its file: {why}"))
            })?
        }
        asked => asked?,
    };
    if args.json {
        out::json(&page)
    } else if args.csv {
        out::print(csv(&page))
    } else {
        out::print(text(&page, Style::of_stdout()))
    }
}

/// The ledger of a daemon that does not run.
fn from_file(store: Option<&Place>, seconds: Option<u64>) -> Result<LedgerPage, String> {
    let overrides = Overrides { store: store.cloned(), ..Overrides::default() };
    let config = Config::load(None, &overrides).map_err(|error| error.to_string())?;
    let Place::Dir(dir) = &config.store.place else {
        return Err("the store is in memory, and so was the ledger".into());
    };
    let path = dir.join(NAME);
    let reading = load(dir).map_err(|error| format!("{}: {error}", path.display()))?;
    let reading = reading.ok_or_else(|| format!("{} does not exist", path.display()))?;
    if reading.lost == Lost::All {
        return Err(format!("{} is damaged; the daemon begins it anew", path.display()));
    }
    let page = LedgerPage::of(&reading.ledger, &config.name, seconds, unix_now());
    Ok(LedgerPage { damaged: damaged(dir), ..page })
}

/// One line for each figure of each period.
fn csv(page: &LedgerPage) -> String {
    let mut out = "start,period,topic,name,figure,value\n".to_owned();
    for part in &page.parts {
        let mut add = |topic: &str, name: &str, row: &dyn Fn() -> Vec<(&'static str, u64)>| {
            for (figure, value) in row().into_iter().filter(|(_, value)| *value > 0) {
                let start = format!("{},{}", part.start, page.period);
                out += &format!("{start},{topic},{},{figure},{value}\n", quoted(name));
            }
        };
        let Figures { classes, not_stored, wire, forwarded } = &part.figures;
        classes.iter().for_each(|(name, it)| add("class", name, &|| figures(it)));
        not_stored.iter().for_each(|(name, it)| add("not-stored", name, &|| figures(it)));
        wire.iter().for_each(|(name, it)| add("wire", name, &|| figures(it)));
        forwarded.iter().for_each(|(name, it)| add("forwarded", name, &|| figures(it)));
    }
    for host in &page.hosts {
        for (figure, value) in [("served", host.served_bytes), ("fetched", host.fetched_bytes)] {
            let name = quoted(&host.host);
            out += &format!("{},since,host,{name},{figure}_bytes,{value}\n", host.first);
        }
    }
    out
}

fn figures<T: Counters>(it: &T) -> Vec<(&'static str, u64)> {
    let values = it.figures().into_iter().map(|figure| figure.values()[0].1);
    T::ROWS.iter().map(|row| row.field).zip(values).collect()
}

/// A field of CSV (RFC 4180): names come from tables and hosts, and may hold anything.
fn quoted(field: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.:[]".contains(it);
    if field.chars().all(is_plain) {
        field.into()
    } else {
        format!("\"{}\"", field.replace('"', "\"\""))
    }
}

/// The tables for people.
fn text(page: &LedgerPage, style: Style) -> String {
    let mut out = style.strong(&format!("The ledger of {}", page.name)) + "\n";
    out += &match page.from {
        0 => "since a time at which the date was not known\n".to_owned(),
        from => {
            let ago =
                term::duration(std::time::Duration::from_secs(page.until.saturating_sub(from)));
            format!("since {} UTC, {ago} ago, by the {}\n", date(from), page.period)
        }
    };
    if let Some(it) = &page.damaged {
        out += &format!(
            "counted anew: an earlier ledger was damaged, last written {} UTC, and is kept as {}\n",
            date(it.written),
            term::tame(&it.file, 200)
        );
    }
    if page.total == Figures::default() {
        return out + "\nNothing was counted in this time.\n";
    }
    classes(&mut out, &page.total, style);
    not_stored(&mut out, &page.total, style);
    wire(&mut out, &page.total, style);
    hosts(&mut out, page, style);
    out
}

/// By class: what was given, what of that was saved, and where it came from.
fn classes(out: &mut String, total: &Figures, style: Style) {
    let mut classes: Vec<_> = total.classes.iter().collect();
    classes.sort_by_key(|(_, it)| std::cmp::Reverse(it.given()));
    let sum = total.total();
    let all = "all".to_owned();
    if classes.len() > 1 {
        classes.push((&all, &sum));
    }
    let mut table = Table::new(&["class", "given", "saved", ""]);
    // Sources that never occurred have no column.
    let sources: Vec<_> = SOURCES.iter().filter(|(_, figure)| figure(&sum) > 0).collect();
    table.head.extend(sources.iter().map(|(name, _)| (*name).to_owned()));
    for (name, it) in classes {
        let saved = Saved::from(it);
        let mut row = vec![
            term::tame(name, 24),
            term::bytes(saved.given_bytes),
            term::bytes(saved.saved()),
            term::percent(saved.saved(), saved.given_bytes),
        ];
        row.extend(sources.iter().map(|(_, figure)| term::bytes(figure(it))));
        table.rows.push(row);
    }
    table.print(out, "Content given to clients and peers, and where clients' came from", style);
    let mut table = Table::new(&["from", "brought in"]);
    for (name, bytes) in [
        ("origins", sum.fetched_origin_bytes),
        ("the far end, as differences", sum.fetched_far_difference_bytes),
        ("the far end, as references", sum.fetched_far_reference_bytes),
        ("peers", sum.fetched_peer_bytes),
    ] {
        if bytes > 0 {
            table.rows.push(vec![name.to_owned(), term::bytes(bytes)]);
        }
    }
    table.print(out, "Content brought in", style);
}

/// A column of the table of classes.
type Source = (&'static str, fn(&ClassBytes) -> u64);

const SOURCES: [Source; 8] = [
    ("local", |it| it.served_local_bytes),
    ("peers", |it| it.served_peer_bytes),
    ("overheard", |it| it.served_overheard_bytes),
    ("repaired", |it| it.served_repaired_bytes),
    ("referred", |it| it.served_far_reference_bytes),
    ("differences", |it| it.served_far_difference_bytes),
    ("origins", |it| it.served_origin_bytes),
    ("to peers", |it| it.to_peers_bytes),
];

fn not_stored(out: &mut String, total: &Figures, style: Style) {
    let mut reasons: Vec<_> = total.not_stored.iter().collect();
    reasons.sort_by_key(|(_, it)| std::cmp::Reverse((it.bytes, it.responses)));
    let mut table = Table::new(&["reason", "bytes", "responses", "meaning"]);
    for (name, it) in reasons {
        let meaning = NotStored::all().find(|reason| reason.name() == name);
        table.rows.push(vec![
            name.clone(),
            term::bytes(it.bytes),
            term::count(it.responses),
            meaning.map(|it| it.clause()).unwrap_or_default(),
        ]);
    }
    table.print(out, "Not stored", style);
}

fn wire(out: &mut String, total: &Figures, style: Style) {
    let mut table = Table::new(&["with", "in", "out"]);
    for (name, it) in total.wire.iter().filter(|(_, it)| it.total() > 0) {
        table.rows.push(vec![name.clone(), term::bytes(it.in_bytes), term::bytes(it.out_bytes)]);
    }
    table.print(out, "On the wire, with headers of IP and TCP", style);
    let mut table = Table::new(&["traffic", "from clients", "to clients"]);
    for (name, it) in &total.forwarded {
        table.rows.push(vec![name.clone(), term::bytes(it.up_bytes), term::bytes(it.down_bytes)]);
    }
    table.print(out, "Only forwarded", style);
}

fn hosts(out: &mut String, page: &LedgerPage, style: Style) {
    let mut table = Table::new(&["host", "served", "brought in", "since"]);
    for it in page.hosts.iter().take(HOSTS_MAX) {
        let since = if it.first == 0 { String::new() } else { date(it.first) };
        let host = term::tame(&it.host, 40);
        table.rows.push(vec![
            host,
            term::bytes(it.served_bytes),
            term::bytes(it.fetched_bytes),
            since,
        ]);
    }
    table.print(out, "Hosts, each since it was first seen", style);
    if page.hosts.len() > HOSTS_MAX {
        *out += &format!("({} more; --json has all)\n", page.hosts.len() - HOSTS_MAX);
    }
}

/// A day and time in UTC, to the minute.
fn date(unix: u64) -> String {
    let time =
        httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(unix));
    // `Wed, 25 Nov 2026 20:00:00 GMT`
    time.get(5..22).unwrap_or(&time).to_owned()
}

struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|it| (*it).to_owned()).collect(), rows: Vec::new() }
    }

    /// Prints the table under a title, unless it is empty. The first column and texts at the end are left-aligned.
    fn print(&self, out: &mut String, title: &str, style: Style) {
        if self.rows.is_empty() {
            return;
        }
        let width = |at: usize| {
            let cells =
                std::iter::once(&self.head).chain(&self.rows).map(|row| row[at].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.head.len()).map(width).collect();
        let is_text = |at: usize| at == 0 || ["meaning", "since"].contains(&self.head[at].as_str());
        *out += &format!("\n{title}\n");
        for (number, row) in std::iter::once(&self.head).chain(&self.rows).enumerate() {
            let cells = row.iter().enumerate().map(|(at, cell)| match is_text(at) {
                true => format!("{cell:<0$}", widths[at]),
                false => format!("{cell:>0$}", widths[at]),
            });
            let line = format!("  {}", cells.collect::<Vec<_>>().join("  "));
            let line = line.trim_end();
            *out += &if number == 0 { style.strong(line) } else { line.to_owned() };
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Damaged;
    use store::ledger::{Amount, Ledger, Topic};

    const NOW: u64 = 1_795_636_800;
    const PLAIN: Style = Style { width: 100, colour: false };

    fn page() -> LedgerPage {
        let mut ledger = Ledger::default();
        let of =
            |topic, name: &str, column, count| Amount { topic, name: name.into(), column, count };
        ledger.add(
            Some(NOW - 3600),
            &[
                of(Topic::Class, "apt", 0, 3 << 20),
                of(Topic::Class, "apt", 6, 1 << 20),
                of(Topic::Class, "apt", 11, 1 << 20),
                of(Topic::Class, "npm", 0, 1 << 10),
                of(Topic::Unstored, "no-store", 0, 5 << 10),
                of(Topic::Unstored, "no-store", 1, 2),
                of(Topic::Wire, "client", 1, 4 << 20),
                of(Topic::Forwarded, "tls", 1, 7 << 20),
                of(Topic::Host, "a \"b\".test", 0, 9),
            ],
        );
        LedgerPage::of(&ledger, "r1", Some(30 * 86_400), NOW)
    }

    #[test]
    fn the_page_says_what_was_saved_and_what_was_not_stored() {
        let text = text(&page(), PLAIN);
        for line in [
            "The ledger of r1",
            "since 27 Oct 2026 00:00 UTC, 29 d 20 h ago, by the day",
            "  class    given    saved         local  origins",
            "  apt    4.0 MiB  3.0 MiB  75 %  3.0 MiB  1.0 MiB",
            "  npm    1.0 KiB  1.0 KiB  100 %  1.0 KiB      0 B",
            "  origins     1.0 MiB",
            "  no-store  5.0 KiB          2  client or origin forbid it",
            "  tls               0 B     7.0 MiB",
        ] {
            let squeezed = |it: &str| it.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.lines().any(|it| squeezed(it) == squeezed(line)), "{line:?} in\n{text}");
        }
        let widths: Vec<_> = text.lines().filter(|it| it.contains("MiB  ")).map(str::len).collect();
        assert!(widths.iter().all(|it| *it < 100), "{text}");
    }

    #[test]
    fn a_damaged_ledger_before_this_one_is_said() {
        let damaged = Damaged { file: "/s/ledger.damaged".into(), written: NOW };
        let said = text(&LedgerPage { damaged: Some(damaged), ..page() }, PLAIN);
        assert!(
            said.contains("counted anew: an earlier ledger was damaged, last written 25 Nov"),
            "{said}"
        );
        assert!(said.contains("is kept as /s/ledger.damaged\n"), "{said}");
        assert!(!text(&page(), PLAIN).contains("anew"));
    }

    #[test]
    fn nothing_counted_is_said() {
        let empty = LedgerPage::of(&Ledger::default(), "r1", None, NOW);
        assert!(text(&empty, PLAIN).ends_with("Nothing was counted in this time.\n"));
    }

    #[test]
    fn csv_has_a_line_for_each_figure() {
        let csv = csv(&page());
        let day = NOW - NOW % 86_400;
        for line in [
            "start,period,topic,name,figure,value".to_owned(),
            format!("{day},day,class,apt,served_local_bytes,3145728"),
            format!("{day},day,not-stored,no-store,responses,2"),
            format!("{day},day,forwarded,tls,down_bytes,7340032"),
            format!("{},since,host,\"a \"\"b\"\".test\",served_bytes,9", NOW - 3600),
        ] {
            assert!(csv.lines().any(|it| it == line), "{line} in\n{csv}");
        }
        assert!(csv.lines().all(|line| line.split(',').count() == 6));
    }
}
