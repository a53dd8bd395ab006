//! The result of observers as text.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use super::observed::{HalfHeard, Observed, Page};

/// Incomplete chunks that are listed; further ones are only counted.
const HALF_HEARD_MAX: usize = 8;
/// Gaps that are listed; further ones are only counted.
const GAPS_MAX: usize = 6;

const WHAT_SHARES_ARE_OF: &str = "\
Shares are of the chunks whose heads a capture holds; it cannot show what else was sent.
";

/// A block of text for each file with at least one frame.
pub fn page(page: &Page) -> String {
    let blocks: Vec<_> = page.observers.iter().filter(|it| it.frames > 0).map(block).collect();
    if blocks.is_empty() {
        return String::new();
    }
    blocks.join("\n") + "\n" + WHAT_SHARES_ARE_OF
}

fn block(it: &Observed) -> String {
    let end = if it.error.is_some() { ", not read to its end" } else { "" };
    let mut block = format!("{}{end}\n", it.file);
    let named = count(it.chunks_named, "chunk");
    let lines = [
        ("captured", captured(it)),
        ("refused", refused(it)),
        (
            "tcp",
            format!(
                "{} of {}, {} bytes of payload",
                count(it.segments, "segment"),
                count(it.flows, "flow"),
                it.payload_bytes
            ),
        ),
        ("named", format!("{named}, {} bytes, by {}", it.chunks_named_bytes, heads(it))),
        ("reconstructed", reconstructed(it)),
        ("unused", unused(it)),
        ("of that", of_that(it)),
        ("false", count(it.chunks_false, "chunk")),
        (
            "evicted",
            format!(
                "{}, {}; at most {} bytes were held",
                count(it.chunks_evicted, "chunk"),
                count(it.flows_evicted, "flow"),
                it.memory_peak_bytes
            ),
        ),
        ("speed", speed(it)),
        ("half heard", half_heard(&it.half_heard)),
    ];
    for (name, text) in lines {
        let _ = writeln!(block, "  {name:<13}  {text}");
    }
    block + &gaps(&it.half_heard)
}

fn captured(it: &Observed) -> String {
    let began = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(it.began_unix_s);
    let date = httpdate::fmt_http_date(began);
    format!("{} in {:.3} s from {date}", count(it.frames, "frame"), it.seconds)
}

fn refused(it: &Observed) -> String {
    match it.refused.total() {
        0 => "0 packets".to_owned(),
        total => format!("{}: {}", count(total, "packet"), it.refused.words()),
    }
}

fn heads(it: &Observed) -> String {
    let heads = count(it.heads, "head");
    match it.heads_guessed {
        0 => heads,
        guessed => format!("{heads}, {guessed} of them not heard but known from other flows"),
    }
}

fn reconstructed(it: &Observed) -> String {
    format!(
        "{}, {} bytes: {} of the chunks named here, {} of their bytes",
        count(it.chunks_reconstructed, "chunk"),
        it.chunks_reconstructed_bytes,
        percent(it.reconstructed_share),
        percent(it.reconstructed_bytes_share)
    )
}

fn unused(it: &Observed) -> String {
    format!("{} bytes, {} of the payload", it.unused_bytes, percent(it.unused_share))
}

/// The causes of unused bytes; each byte has one.
fn of_that(it: &Observed) -> String {
    let parts = [
        (it.duplicate_bytes, "heard before"),
        (it.unclaimed_bytes, "of no known chunk"),
        (it.half_heard_bytes, "of half-heard chunks"),
        (it.evicted_bytes, "evicted"),
        (it.false_bytes, "false"),
    ];
    parts.map(|(bytes, what)| format!("{bytes} {what}")).join(", ")
}

fn speed(it: &Observed) -> String {
    let rate = it.capture_bytes as f64 / 1e9 / it.processing_seconds.max(1e-9);
    format!(
        "{rate:.2} GB/s of capture, parsed and reassembled: {} bytes in {:.4} s",
        it.capture_bytes, it.processing_seconds
    )
}

fn half_heard(all: &[HalfHeard]) -> String {
    let bytes: u64 = all.iter().map(|it| u64::from(it.bytes)).sum();
    let missing: u64 = all.iter().map(|it| u64::from(it.missing_bytes)).sum();
    let chunks = count(all.len() as u64, "chunk");
    if all.is_empty() { chunks } else { format!("{chunks}, {missing} of {bytes} bytes missing") }
}

/// The gaps of the first chunks.
fn gaps(all: &[HalfHeard]) -> String {
    let mut lines = String::new();
    for it in all.iter().take(HALF_HEARD_MAX) {
        let gaps = it.missing.iter().take(GAPS_MAX);
        let gaps: Vec<_> = gaps.map(|[from, to]| format!("{from}..{to}")).collect();
        let more = it.missing.len().saturating_sub(GAPS_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let name = it.name.get(..16).unwrap_or(&it.name);
        let _ = writeln!(lines, "    {name} of {} lacks {}{more}", it.bytes, gaps.join(" "));
    }
    let more = all.len().saturating_sub(HALF_HEARD_MAX);
    if more > 0 {
        let _ = writeln!(lines, "    and {more} more: --json has all");
    }
    lines
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}
