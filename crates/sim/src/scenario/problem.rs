//! The errors of a scenario, each on one line.

use std::fmt;

/// Longer quotations of user input are cut, in characters.
const QUOTE_CHARS_MAX: usize = 40;
/// Of longer lists of names, only this many are shown.
const NAMES_MAX: usize = 24;

/// All errors of a scenario, so that they can be corrected together. Each is one line: the place, the error,
/// and what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioError {
    /// One line an error; never empty.
    pub lines: Vec<String>,
}

impl ScenarioError {
    /// A single error.
    pub(super) fn one(place: &str, text: &str) -> Self {
        Self { lines: vec![format!("{place}: {text}")] }
    }

    /// An error in a setting.
    pub fn setting(key: &str, value: &str, text: &str) -> Self {
        Self::one(&format!("{}={}", quote(key), quote(value)), text)
    }

    /// Adds an error.
    pub(super) fn add(&mut self, place: &str, text: &str) {
        self.lines.push(format!("{place}: {text}"));
    }

    /// `value` if there is no error.
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

/// User input on one line, cut if it is long.
pub(super) fn quote(text: &str) -> String {
    let is_long = text.chars().nth(QUOTE_CHARS_MAX).is_some();
    let start: String = text.chars().take(QUOTE_CHARS_MAX).collect();
    let start = start.split(char::is_control).collect::<Vec<_>>().join(" ");
    if is_long { format!("{start}…") } else { start }
}

/// Suggests the known name nearest to `name`, or lists all known names.
pub(super) fn advice<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    // The cut end of a long name does not matter: known names are shorter.
    let name = quote(name);
    // A name of one letter must match exactly; otherwise every other letter would be near.
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
