//! What is wrong with the settings: where, what, and what to do about it.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: `file:line`, or the name of the setting if it came from elsewhere.
    pub place: String,
    /// What, and what to do.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// All that is wrong, so that it can be put right in one go. One line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigError {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// Adds one.
    pub fn add(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.problems.push(Problem { place: place.into(), text: text.into() });
    }

    /// `value` if nothing is wrong.
    pub fn unless<T>(self, value: T) -> Result<T, Self> {
        if self.problems.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.problems.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigError {}
