//! Text for people: amounts, durations, the width and colours of the terminal.

use std::io::IsTerminal as _;
use std::time::Duration;

/// Columns if the terminal's width is unknown.
const WIDTH_DEFAULT: usize = 80;

/// How a page of text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns.
    pub width: usize,
    /// Whether escape codes may be used.
    pub colour: bool,
}

impl Style {
    /// The style for standard output.
    pub fn of_stdout() -> Self {
        let terminal = console::Term::stdout().size_checked().map(|(_, width)| usize::from(width));
        let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        Self {
            width: asked.or(terminal).unwrap_or(WIDTH_DEFAULT).max(20),
            colour: std::io::stdout().is_terminal() && may_colour(),
        }
    }

    /// Emphasised text (bold).
    pub fn strong(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A warning (bold red).
    pub fn alarm(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1;31m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Whether the environment allows colours on terminals (<https://no-color.org>).
pub fn may_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// An amount of bytes in two to four digits: `1.5 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        // An amount that would be shown as 1024 of a unit is shown as 1.0 of the next.
        if amount < 1023.5 {
            break;
        }
        (amount, unit) = (amount / 1024.0, larger);
    }
    let digits = usize::from(unit != "B" && amount < 9.95);
    format!("{amount:.digits$} {unit}")
}

/// A count with its thousands separated: `12 345`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

/// A share in per cent; a dash if the whole is zero.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "–".to_owned()
    } else {
        format!("{:.0} %", 100.0 * part as f64 / whole as f64)
    }
}

/// A duration in its two largest units: `3 d 4 h`.
pub fn duration(duration: Duration) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let seconds = duration.as_secs();
    let first = UNITS.iter().position(|(_, unit)| seconds >= *unit).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let mut shown = Vec::new();
    for (name, unit) in UNITS.iter().skip(first).take(2) {
        if rest >= *unit || shown.is_empty() {
            shown.push(format!("{} {name}", rest / unit));
        }
        rest %= unit;
    }
    shown.join(" ")
}

/// Wraps text into lines of at most `width` columns; a longer word has a line of its own.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Makes foreign text safe for a terminal: without control characters, at most `width` columns.
pub fn tame(text: &str, width: usize) -> String {
    let mut tame: String =
        text.chars().map(|c| if c.is_control() { '?' } else { c }).take(width).collect();
    if text.chars().count() > width {
        tame.pop();
        tame.push('…');
    }
    tame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        for (amount, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (10 * 1024, "10 KiB"),
            (1 << 20, "1.0 MiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(bytes(amount), expected);
        }
        assert_eq!((count(999).as_str(), count(1_234_567).as_str()), ("999", "1 234 567"));
        assert_eq!((percent(1, 3).as_str(), percent(0, 0).as_str()), ("33 %", "–"));
    }

    #[test]
    fn durations_have_two_units() {
        for (seconds, expected) in
            [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h"), (273_600, "3 d 4 h")]
        {
            assert_eq!(duration(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn words_keep_within_the_width() {
        assert_eq!(wrap("a bb ccc dddd", 4), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("enormous a", 3), ["enormous", "a"]);
        assert_eq!(wrap("", 3), [""]);
    }

    #[test]
    fn strangers_cannot_steer_the_terminal() {
        assert_eq!(tame("a\x1b[31mb", 80), "a?[31mb");
        assert_eq!(tame("abcdef", 4), "abc…");
    }
}
