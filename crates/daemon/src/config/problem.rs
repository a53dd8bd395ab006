//! Errors in the settings: the place, the error, and what to do about it.

use std::fmt;

/// One error in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `file:line`, or the setting's name if the error is not in the file.
    pub place: String,
    /// The error, and what to do.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// All errors in the settings, so that they can be corrected together. One line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigError {
    /// The errors; empty while none was found.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    /// Adds an error.
    pub fn add(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.problems.push(Problem { place: place.into(), text: text.into() });
    }

    /// `value` if there are no errors.
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
