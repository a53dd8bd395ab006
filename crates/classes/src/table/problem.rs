//! Errors in tables.

use std::fmt;
use strsim::osa_distance;

/// An error in a table: the place, the error, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `file:line`, or the file if the error has no line.
    pub place: String,
    /// The error, and what to do.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

impl std::error::Error for Problem {}

/// What to say of an unknown key: the nearest known one, else all of them.
pub(super) fn advice(known: &[&str], key: &str) -> String {
    // Known keys are short: of a longer one, its beginning suffices.
    let begin: String = key.chars().take(64).collect();
    let near = known.iter().map(|known| (osa_distance(&begin, known), known)).min();
    match near {
        Some((distance, near)) if distance <= (key.len() / 3).max(1) => {
            format!("did you mean `{near}`?")
        }
        _ => format!("known here: {}", known.join(", ")),
    }
}
