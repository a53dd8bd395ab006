//! The result as tables.

use std::fmt::Write as _;

use super::findings::{Capture, Effective, Findings, Input};
use crate::redundancy::length;

const WHAT_IT_IS: &str = "\
ideal: bytes that the receiver has. real: less 20 bytes for the name of each hit and miss. hits: less the names of
hits only. index: entries that hits use, and their memory (32 bytes each). Nothing is compressed or evicted.
";

/// All tables.
pub fn page(findings: &Findings) -> String {
    let mut page = String::new();
    let bytes = |inputs: &[Input]| inputs.iter().map(|it| it.bytes).sum::<u64>();
    let _ = write!(page, "{} bytes of {}", bytes(&findings.counted), files(&findings.counted));
    if !findings.warmed_by.is_empty() {
        let _ = write!(page, ", where {} had crossed before", files(&findings.warmed_by));
    }
    page += "\n";
    for it in findings.warmed_by.iter().chain(&findings.counted) {
        page += &refused(it);
    }
    if bytes(&findings.counted) == 0 {
        return page;
    }
    page + "\n" + &savings(findings) + WHAT_IT_IS + "\n" + &levels(findings) + &effective(findings)
}

fn files(inputs: &[Input]) -> String {
    let name = |it: &Input| match &it.capture {
        Some(Capture { streams, missing_bytes, .. }) => {
            format!("{} ({streams} TCP streams, {missing_bytes} bytes missing in them)", it.file)
        }
        None => it.file.clone(),
    };
    let names: Vec<_> = inputs.iter().map(name).collect();
    names.join(", ")
}

/// A line on what a capture holds besides TCP, if anything.
fn refused(input: &Input) -> String {
    match &input.capture {
        Some(Capture { frames, refused, .. }) if refused.total() > 0 => {
            let (total, words) = (refused.total(), refused.words());
            format!("{}: {total} packets of {frames} frames left out: {words}\n", input.file)
        }
        _ => String::new(),
    }
}

/// Figures 6, 7 and 8.
fn savings(findings: &Findings) -> String {
    let mut table = format!(
        "{:<19} {:>8} {:>8} {:>8} {:>8} {:>12} {:>10} {:>9}\n",
        "scheme", "smallest", "ideal %", "real %", "hits %", "disk reads", "index", "MiB"
    );
    for it in findings.deepest() {
        let _ = writeln!(
            table,
            "{:<19} {:>8} {:>8} {:>8} {:>8} {:>12} {:>10} {:>9.3}",
            it.family,
            length(it.smallest()),
            percent(it.ideal_savings),
            percent(it.real_savings),
            percent(it.savings_without_names_of_misses),
            it.disk_operations,
            it.index_entries,
            it.index_bytes as f64 / f64::from(1 << 20)
        );
    }
    table
}

/// Figure 9.
fn levels(findings: &Findings) -> String {
    let mut text = "ideal savings by level, in % of all bytes\n".to_owned();
    for it in findings.deepest().filter(|it| it.has_own_hits()) {
        let level = |(&average, &share): (&u32, &f64)| {
            format!("{} {}", length(average), percent(Some(share)))
        };
        let levels = it.average_bytes.iter().zip(&it.savings_by_level).map(level);
        let _ = writeln!(text, "{:<19} {}", it.family, levels.collect::<Vec<_>>().join(" · "));
    }
    text + "\n"
}

/// Figure 10.
fn effective(findings: &Findings) -> String {
    let mut text = format!(
        "effective bandwidth with load shedding, as a multiple of the link's; a disk of {} ms and {} MB/s\n\
         {:<19} {:>8}",
        findings.seek_seconds * 1e3,
        findings.disk_bytes_a_second / 1e6,
        "Mbit/s",
        "smallest"
    );
    let links = findings.schemes.first().map_or(&[][..], |it| &it.effective);
    links.iter().for_each(|it| text += &format!(" {:>6}", it.link_mbps));
    text.push('\n');
    for it in findings.deepest() {
        text += &format!("{:<19} {:>8}", it.family, length(it.smallest()));
        let times = |it: &Effective| it.shedding.map_or("-".to_owned(), |it| format!("{it:.2}"));
        it.effective.iter().for_each(|it| text += &format!(" {:>6}", times(it)));
        text.push('\n');
    }
    text
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.2}", 100.0 * share))
}
