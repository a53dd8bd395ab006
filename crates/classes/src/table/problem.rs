//! Errors in tables.

use std::fmt;

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
    let near = known.iter().map(|known| (distance(key, known), known)).min();
    match near {
        Some((distance, near)) if distance <= (key.len() / 3).max(1) => {
            format!("did you mean `{near}`?")
        }
        _ => format!("known here: {}", known.join(", ")),
    }
}

/// The edit distance: how many letters must be inserted, deleted, changed or swapped with the next to
/// turn `a` into `b` (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    // A key is compared with known ones, which are short.
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let change = rows[i][j] + usize::from(a[i] != b[j]);
            let mut best = change.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
