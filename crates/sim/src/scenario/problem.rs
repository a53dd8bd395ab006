//! What is wrong with a scenario, and words for it that fit on a line.

use std::fmt;

/// Longer quotations of what somebody wrote are cut, in characters.
const QUOTE_CHARS_MAX: usize = 40;
/// Of longer lists the start is told.
const NAMES_MAX: usize = 24;

/// All that is wrong, so that it can be put right in one go. One line each: where, what, and what to
/// do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioError {
    /// At least one.
    pub lines: Vec<String>,
}

impl ScenarioError {
    /// One thing that is wrong.
    pub(super) fn one(place: &str, text: &str) -> Self {
        Self { lines: vec![format!("{place}: {text}")] }
    }

    /// A setting that is wrong.
    pub fn setting(key: &str, value: &str, text: &str) -> Self {
        Self::one(&format!("{}={}", quote(key), quote(value)), text)
    }

    /// Adds one.
    pub(super) fn add(&mut self, place: &str, text: &str) {
        self.lines.push(format!("{place}: {text}"));
    }

    /// `value` if nothing is wrong.
    pub(super) fn unless<T>(self, value: T) -> Result<T, Self> {
        if self.lines.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

impl std::error::Error for ScenarioError {}

/// What somebody wrote, on one line and not too much of it.
pub(super) fn quote(text: &str) -> String {
    let is_long = text.chars().nth(QUOTE_CHARS_MAX).is_some();
    let start: String = text.chars().take(QUOTE_CHARS_MAX).collect();
    let start = start.split(char::is_control).collect::<Vec<_>>().join(" ");
    if is_long { format!("{start}…") } else { start }
}

/// The nearest of the known names, or what there is.
pub(super) fn advice<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    // What is cut from a long name is far from anything that is known.
    let name = quote(name);
    // Of a single letter nothing would be left.
    let far = if name.len() < 2 { 0 } else { (name.len() / 3).max(1) };
    let near = known.clone().map(|it| (strsim::osa_distance(&name, it), it)).min();
    match near.filter(|(distance, _)| *distance <= far) {
        Some((_, near)) => format!("did you mean `{near}`?"),
        None => {
            let more = if known.clone().nth(NAMES_MAX).is_some() { ", …" } else { "" };
            let names = known.take(NAMES_MAX).collect::<Vec<_>>().join(", ");
            format!("known here: {names}{more}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_stay_on_one_line() {
        assert_eq!(quote("a\n b"), "a  b");
        assert_eq!(quote(&"x".repeat(41)), format!("{}…", "x".repeat(40)));
    }

    #[test]
    fn a_slip_names_the_nearest_and_nonsense_names_all() {
        let known = ["hops", "bytes"];
        assert_eq!(advice("hosp", known.into_iter()), "did you mean `hops`?");
        assert_eq!(advice("wombat", known.into_iter()), "known here: hops, bytes");
        assert_eq!(advice("b", ["a", "c"].into_iter()), "known here: a, c");
        assert!(advice("x", ["a"; 25].into_iter()).ends_with("a, a, …"));
        assert_eq!(advice(&"b".repeat(1 << 20), known.into_iter()), "known here: hops, bytes");
    }
}
