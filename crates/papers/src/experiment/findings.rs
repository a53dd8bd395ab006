//! What an experiment found: ours beside the paper's, row by row.

use std::fmt::Write as _;

use super::Estimate;

/// What came of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// In the order of the paper.
    pub pictures: Vec<Picture>,
    /// In the order of the paper.
    pub rows: Vec<Comparison>,
    /// What the paper leaves out, or what we have differently.
    pub parameters: Vec<Parameter>,
    /// What holds the receiver, and what decides whether a frame arrives: no figure means anything
    /// without.
    pub medium: String,
    /// What else one must know.
    pub notes: Vec<String>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Of its file, after the experiment's.
    pub name: String,
    /// Above it on the page.
    pub caption: String,
    /// It itself.
    pub svg: String,
}

/// A parameter that we chose, once, for all schemes alike.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Which one.
    pub name: &'static str,
    /// What we took.
    pub value: String,
    /// Why.
    pub why: &'static str,
}

/// What the paper says of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expectation {
    /// A ratio of about 1, within so much.
    Similar(f64),
    /// A ratio above 1.
    More,
    /// A ratio below 1.
    Less,
    /// This ratio, on the same side of 1 and within 25 %.
    Ratio(f64),
    /// This figure, within 25 %.
    Figure(f64),
    /// Nothing: ours stands there for whoever wants to compare.
    Nothing,
}

/// Whether ours is as the paper says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is.
    Holds,
    /// The mean is, but its confidence interval reaches to the other side.
    Leans,
    /// It is not.
    Fails,
    /// There is nothing to compare with.
    None,
}

/// A row: ours beside the paper's.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Rows of one heading stand together.
    pub heading: String,
    /// What is compared.
    pub what: String,
    /// Ours.
    pub ours: Estimate,
    /// Its unit; empty of a ratio.
    pub unit: &'static str,
    /// The paper's.
    pub expected: Expectation,
}

/// How near a figure must be.
const NEAR: f64 = 0.25;

impl Comparison {
    /// Ours over the paper's; `None` where the paper prints none.
    pub fn ratio(&self) -> Option<f64> {
        match self.expected {
            Expectation::Ratio(paper) | Expectation::Figure(paper) => Some(self.ours.mean / paper),
            _ => None,
        }
    }

    /// Whether ours is as the paper says.
    pub fn verdict(&self) -> Verdict {
        let (mean, interval) = (self.ours.mean, self.ours.interval());
        if !mean.is_finite() {
            return Verdict::Fails;
        }
        let judge = |holds: &dyn Fn(f64) -> bool| match (holds(mean), interval.map(holds)) {
            (true, [true, true]) => Verdict::Holds,
            (true, _) => Verdict::Leans,
            (false, _) => Verdict::Fails,
        };
        match self.expected {
            Expectation::Similar(near) => judge(&|it| (it - 1.0).abs() <= near),
            Expectation::More => judge(&|it| it > 1.0),
            Expectation::Less => judge(&|it| it < 1.0),
            Expectation::Ratio(paper) => {
                judge(&|it| (it / paper - 1.0).abs() <= NEAR && (it > 1.0) == (paper > 1.0))
            }
            Expectation::Figure(paper) => judge(&|it| (it / paper - 1.0).abs() <= NEAR),
            Expectation::Nothing => Verdict::None,
        }
    }
}

impl Expectation {
    /// As a column of a table has it.
    pub fn text(self) -> String {
        match self {
            Self::Similar(near) => format!("≈ 1 (± {:.0} %)", near * 100.0),
            Self::More => "> 1".to_owned(),
            Self::Less => "< 1".to_owned(),
            Self::Ratio(paper) => format!("{paper:.3}"),
            Self::Figure(paper) => paper.to_string(),
            Self::Nothing => String::new(),
        }
    }
}

impl Verdict {
    /// As a column of a table has it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Leans => "holds in the mean",
            Self::Fails => "does not hold",
            Self::None => "",
        }
    }
}

impl Findings {
    /// How many rows have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict() == verdict).count()
    }

    /// Each row on a line.
    pub(super) fn csv(&self) -> String {
        let head = "heading,what,unit,ours,ci95_low,ci95_high,runs,paper,ratio,verdict";
        let mut text = format!("{head}\n");
        for row in &self.rows {
            let [low, high] = row.ours.interval();
            let ratio = row.ratio().map_or(String::new(), |it| it.to_string());
            let (heading, what) = (quoted(&row.heading), quoted(&row.what));
            let _ = writeln!(
                text,
                "{heading},{what},{},{},{low},{high},{},{},{ratio},{}",
                row.unit,
                row.ours.mean,
                row.ours.runs,
                quoted(&row.expected.text()),
                row.verdict().text()
            );
        }
        text
    }
}

/// As CSV has texts with commas in them (RFC 4180).
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(mean: f64, half: f64, expected: Expectation) -> Comparison {
        let ours = Estimate { mean, half: Some(half), runs: 5 };
        Comparison { heading: String::new(), what: "a, b".to_owned(), ours, unit: "", expected }
    }

    #[test]
    fn a_verdict_is_as_sure_as_its_interval() {
        for (mean, half, expected, verdict) in [
            (1.2, 0.1, Expectation::More, Verdict::Holds),
            (1.2, 0.3, Expectation::More, Verdict::Leans),
            (0.9, 0.3, Expectation::More, Verdict::Fails),
            (0.9, 0.05, Expectation::Less, Verdict::Holds),
            (0.9, 0.05, Expectation::Similar(0.25), Verdict::Holds),
            (0.6, 0.05, Expectation::Similar(0.25), Verdict::Fails),
            (80.0, 2.0, Expectation::Figure(100.0), Verdict::Holds),
            (70.0, 2.0, Expectation::Figure(100.0), Verdict::Fails),
            (f64::NAN, 0.0, Expectation::More, Verdict::Fails),
            (70.0, 2.0, Expectation::Nothing, Verdict::None),
        ] {
            assert_eq!(row(mean, half, expected).verdict(), verdict, "{mean} {expected:?}");
        }
        assert_eq!(row(80.0, 2.0, Expectation::Figure(100.0)).ratio(), Some(0.8));
    }

    #[test]
    fn a_row_is_a_line() {
        let rows = vec![row(2.0, 0.5, Expectation::Figure(4.0))];
        let csv = Findings { rows, ..Findings::default() }.csv();
        assert_eq!(csv.lines().nth(1), Some(",\"a, b\",,2,1.5,2.5,5,4,0.5,does not hold"));
    }
}
