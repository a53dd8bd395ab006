//! Formats numbers and names for readers.

/// The separator of groups of three digits: a narrow space without a line break.
const GROUP: char = '\u{202f}';

/// The separator of a number and its unit: a space without a line break.
const UNIT: char = '\u{a0}';

/// The text for a missing number.
pub const NONE: &str = "–";

/// The text with each character that XML forbids, even escaped, replaced by U+FFFD.
pub fn clean(text: &str) -> String {
    let allowed = |c: char| match c {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        _ => !c.is_control(),
    };
    text.chars().map(|c| if allowed(c) { c } else { '\u{fffd}' }).collect()
}

/// A name, shortened to at most `chars_max` characters.
pub fn short(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// A whole number, its digits in groups: `12 345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(GROUP);
        }
        text.push(digit);
    }
    text
}

/// A quantity to about three digits: `0.12`, `12.3`, `1 234`.
pub fn number(value: f64) -> String {
    match value {
        v if !v.is_finite() => NONE.to_owned(),
        0.0 => "0".to_owned(),
        v if v < 0.0 => format!("−{}", number(-v)),
        v if v >= 99.95 => grouped(v.round() as u64),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.00995 => format!("{v:.2}"),
        v if v >= 0.0001 => format!("{v:.4}"),
        v => format!("{v:.1e}"),
    }
}

/// The same as [`number`] without trailing zeros, for axes: `0.5`, `2`.
pub fn tick(value: f64) -> String {
    let text = number(value);
    if !text.contains('.') || text.contains('e') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The same as [`number`], or a dash if there is no value.
pub fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), number)
}

/// A number with its unit, or a dash if there is no finite value.
pub fn with_unit(value: Option<f64>, unit: &str) -> String {
    match value.filter(|value| value.is_finite()) {
        Some(value) => format!("{}{UNIT}{unit}", number(value)),
        None => NONE.to_owned(),
    }
}

/// A share between 0 and 1, in whole per cent.
pub fn percent(share: f64) -> String {
    format!("{:.0}{UNIT}%", 100.0 * share)
}

/// A span of time: `34.0 ms`, `1.23 s`.
pub fn seconds(value: Option<f64>) -> String {
    match value {
        Some(value) if value > 0.0 && value < 0.9995 => with_unit(Some(value * 1e3), "ms"),
        value => with_unit(value, "s"),
    }
}

/// An amount of data in decimal units: `512 B`, `1.23 MB`.
pub fn bytes(count: u64) -> String {
    if count < 1000 {
        return format!("{count}{UNIT}B");
    }
    let mut value = count as f64 / 1e3;
    let mut units = ["kB", "MB", "GB", "TB", "PB", "EB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    while value >= 999.5 {
        let Some(next) = units.next() else { break };
        (value, unit) = (value / 1e3, next);
    }
    with_unit(Some(value), unit)
}

/// Ascending whole numbers as ranges: `1–20, 22`.
pub fn ranges(numbers: &[u64]) -> String {
    let follows = |a: &u64, b: &u64| a.checked_add(1) == Some(*b);
    let range = |run: &[u64]| match run {
        [first, .., last] => format!("{first}–{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    };
    numbers.chunk_by(follows).map(range).collect::<Vec<_>>().join(", ")
}

/// A count and its noun, in the singular or plural: `1 run`, `2 runs`.
pub fn plural(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{}{UNIT}{noun}{ending}", grouped(count as u64))
}

/// The text with a capital first letter, for a sentence or a heading.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        let cases = [
            (0.0, "0"),
            (0.1234, "0.12"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (1234.4, "1\u{202f}234"),
            (1_234_567.0, "1\u{202f}234\u{202f}567"),
            (-5.0, "−5.00"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn ticks_drop_idle_zeros() {
        let texts = [0.5, 2.0, 20.0, 200.0, 0.05, 12.5].map(tick);
        assert_eq!(texts, ["0.5", "2", "20", "200", "0.05", "12.5"]);
    }

    #[test]
    fn amounts_choose_their_unit() {
        let cases = [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (999_499, "999 kB")];
        for (count, text) in cases {
            assert_eq!(bytes(count).replace(UNIT, " "), text);
        }
        assert_eq!(bytes(999_999).replace(UNIT, " "), "1.00 MB");
        assert_eq!(bytes(u64::MAX).replace(UNIT, " "), "18.4 EB");
        assert_eq!(seconds(Some(0.034)).replace(UNIT, " "), "34.0 ms");
        assert_eq!(seconds(Some(1.234)).replace(UNIT, " "), "1.23 s");
        assert_eq!(seconds(None), NONE);
    }

    #[test]
    fn shares_are_whole_per_cents() {
        let texts = [0.0, 0.05, 0.434, 1.0].map(|share| percent(share).replace(UNIT, " "));
        assert_eq!(texts, ["0 %", "5 %", "43 %", "100 %"]);
    }

    #[test]
    fn what_xml_forbids_is_replaced() {
        assert_eq!(clean("a\u{1}b\u{0}<c>\u{ffff}"), "a\u{fffd}b\u{fffd}<c>\u{fffd}");
        assert_eq!(short("router-of-the-roof", 8), "router-…");
        assert_eq!(short("ünï", 3), "ünï");
    }
}
