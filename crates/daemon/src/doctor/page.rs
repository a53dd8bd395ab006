//! What was found, for people and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::status::{Finding, Verdict};
use crate::term::{self, Style};

/// The width of a verdict and of a check's name, each with the space behind it, in columns.
const VERDICT: usize = 9;
const CHECK: usize = 13;

/// The lines of a finding: what was found, and below it what to do.
pub fn lines(found: &Finding, style: Style) -> String {
    let indent = VERDICT + CHECK;
    let width = style.width.saturating_sub(indent).max(20);
    let mark = format!("{:<VERDICT$}", word(found.verdict));
    let mark = if found.verdict == Verdict::Broken { style.alarm(&mark) } else { mark };
    let mut text = format!("{mark}{:<CHECK$}", found.check.name());
    for (at, line) in term::wrap(&found.text, width).iter().enumerate() {
        let _ =
            if at == 0 { writeln!(text, "{line}") } else { writeln!(text, "{:indent$}{line}", "") };
    }
    let next = found.next.iter().flat_map(|next| term::wrap(next, width.saturating_sub(2)));
    for (at, line) in next.enumerate() {
        let arrow = if at == 0 { "→" } else { " " };
        let _ = writeln!(text, "{:indent$}{arrow} {line}", "");
    }
    text
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fine => "ok",
        Verdict::Broken => "BROKEN",
        Verdict::Unknown => "unknown",
        Verdict::Off => "off",
    }
}

/// The verdict of all: broken if one is, else unknown if one is, else fine.
pub fn all(found: &[Finding]) -> Verdict {
    let has = |verdict| found.iter().any(|it| it.verdict == verdict);
    match () {
        () if has(Verdict::Broken) => Verdict::Broken,
        () if has(Verdict::Unknown) => Verdict::Unknown,
        () => Verdict::Fine,
    }
}

/// As JSON, by `docs/schema/doctor-1.json`.
pub fn as_json(found: &[Finding]) -> Value {
    let check = |it: &Finding| json!({ "check": it.check.name(), "verdict": it.verdict, "text": it.text, "next": it.next });
    json!({
        "schema": "hearsay/doctor/1",
        "version": env!("CARGO_PKG_VERSION"),
        "verdict": all(found),
        "checks": found.iter().map(check).collect::<Vec<_>>(),
    })
}

/// One line below all: how many are broken, and how many could not be looked at.
pub fn summary(found: &[Finding]) -> String {
    let count = |verdict| found.iter().filter(|it| it.verdict == verdict).count();
    let (broken, unknown) = (count(Verdict::Broken), count(Verdict::Unknown));
    match (broken, unknown) {
        (0, 0) => "all is well".to_owned(),
        (0, _) => format!("nothing is broken; not looked at: {unknown}"),
        (_, 0) => format!("broken: {broken}"),
        _ => format!("broken: {broken}; not looked at: {unknown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Check;

    const PLAIN: Style = Style { width: 60, colour: false };

    #[test]
    fn a_finding_is_a_line_and_the_next_step_is_below_it() {
        let found = Finding::broken(
            Check::Disk,
            "the disk is full, and nothing new is stored there",
            "make room",
        );
        let expected = "\
BROKEN   disk         the disk is full, and nothing new is
                      stored there
                      → make room
";
        assert_eq!(lines(&found, PLAIN), expected);
        assert_eq!(
            lines(&Finding::off(Check::FarEnd, "none"), PLAIN),
            "off      far-end      none\n"
        );
        assert!(lines(&found, Style { colour: true, ..PLAIN }).starts_with("\x1b[1;31mBROKEN"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let words = "word ".repeat(60);
        for check in Check::ALL {
            let text = lines(
                &Finding::broken(check, words.clone(), words.clone()),
                Style { width: 80, colour: false },
            );
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(check.name().len() < CHECK);
        }
    }

    #[test]
    fn broken_counts_more_than_unknown() {
        let [fine, broken, unknown] = [
            Finding::fine(Check::Disk, ""),
            Finding::broken(Check::Disk, "", ""),
            Finding::unknown(Check::Disk, "", ""),
        ];
        assert_eq!(all(&[fine.clone(), unknown.clone(), broken.clone()]), Verdict::Broken);
        assert_eq!(all(&[unknown.clone(), fine.clone()]), Verdict::Unknown);
        assert_eq!((all(&[]), all(&[fine])), (Verdict::Fine, Verdict::Fine));
        assert_eq!(summary(&[broken, unknown]), "broken: 1; not looked at: 1");
    }
}
