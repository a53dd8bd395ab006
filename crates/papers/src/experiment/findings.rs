//! What an experiment found: our figures beside the paper's, row by row.

use std::fmt::Write as _;

use super::estimate::Intervals;
use super::parameters::Parameter;
use super::{Estimate, Standing};

/// The findings of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Pictures, in the order of the paper.
    pub pictures: Vec<Picture>,
    /// Rows, in the order of the paper.
    pub rows: Vec<Comparison>,
    /// Parameters that the paper does not give, or that we set differently.
    pub parameters: Vec<Parameter>,
    /// What holds an idle receiver, and what decides whether a frame is received. No figure can be compared
    /// without it.
    pub medium: String,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The end of its file's name, after the experiment's.
    pub name: String,
    /// The caption above it.
    pub caption: String,
    /// The picture itself.
    pub svg: String,
}

/// What the paper says of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expectation {
    /// A ratio of about 1, shown to be within 5 % of it (two one-sided tests at 5 %).
    Similar,
    /// A ratio above 1.
    More,
    /// A ratio below 1.
    Less,
    /// This ratio, on the same side of 1 and within 25 %.
    Ratio(f64),
    /// This figure, within 25 %.
    Figure(f64),
    /// Nothing: our figure is shown without a comparison.
    Nothing,
}

/// Whether our figure agrees with the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It agrees.
    Holds,
    /// The mean agrees, but its confidence interval includes values that do not.
    Leans,
    /// It does not agree.
    Fails,
    /// A single run shows nothing either way.
    Open,
    /// The paper has no figure for it.
    None,
}

/// A row: our figure beside the paper's.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Rows with the same heading form a table.
    pub heading: String,
    /// What is compared.
    pub what: String,
    /// Our figure.
    pub ours: Estimate,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// What the paper says.
    pub expected: Expectation,
    /// Whether the row is evidence of the model. Meaningless if the paper says nothing.
    pub standing: Standing,
}

/// Largest relative distance of a figure from the paper's.
const NEAR: f64 = 0.25;
/// Largest distance of a ratio from 1 where the paper says "similar".
const SIMILAR: f64 = 0.05;

impl Comparison {
    /// A row that nothing was chosen by.
    pub fn predicted(
        heading: impl Into<String>,
        what: impl Into<String>,
        ours: Estimate,
        unit: &'static str,
        expected: Expectation,
    ) -> Self {
        let (heading, what, standing) = (heading.into(), what.into(), Standing::Predicted);
        Self { heading, what, ours, unit, expected, standing }
    }

    /// Our figure over the paper's; `None` if the paper prints none.
    pub fn ratio(&self) -> Option<f64> {
        match self.expected {
            Expectation::Ratio(paper) | Expectation::Figure(paper) => Some(self.ours.mean / paper),
            _ => None,
        }
    }

    /// Whether the row is evidence of the model: it was predicted, and the paper says what it should be.
    pub fn is_evidence(&self) -> bool {
        self.standing == Standing::Predicted && self.is_compared()
    }

    /// Whether the paper says anything of it.
    pub fn is_compared(&self) -> bool {
        self.expected != Expectation::Nothing
    }

    /// The verdict's text in a table. A row that was set or is given cannot hold: it is met or not.
    pub fn word(&self) -> &'static str {
        match (self.standing, self.verdict()) {
            (Standing::Predicted, verdict) => verdict.text(),
            (_, Verdict::Holds) => "met",
            (_, Verdict::Leans) => "met in the mean",
            (_, Verdict::Fails) => "not met",
            (_, Verdict::Open | Verdict::None) => self.verdict().text(),
        }
    }

    /// Whether our figure agrees with the paper.
    pub fn verdict(&self) -> Verdict {
        let is_near = |it: f64, paper: f64| (it / paper - 1.0).abs() <= NEAR;
        match self.expected {
            Expectation::Similar => self.judge(|it| it.narrow, |it| (it - 1.0).abs() <= SIMILAR),
            Expectation::More => self.judge(|it| it.wide, |it| it > 1.0),
            Expectation::Less => self.judge(|it| it.wide, |it| it < 1.0),
            Expectation::Ratio(paper) => {
                self.judge(|it| it.wide, |it| is_near(it, paper) && (it > 1.0) == (paper > 1.0))
            }
            Expectation::Figure(paper) => self.judge(|it| it.wide, |it| is_near(it, paper)),
            Expectation::Nothing => Verdict::None,
        }
    }

    fn judge(&self, ends: fn(Intervals) -> [f64; 2], holds: impl Fn(f64) -> bool) -> Verdict {
        match (self.ours.sure, holds(self.ours.mean)) {
            _ if !self.ours.mean.is_finite() => Verdict::Fails,
            (None, _) => Verdict::Open,
            (Some(_), false) => Verdict::Fails,
            (Some(sure), true) if ends(sure).into_iter().all(holds) => Verdict::Holds,
            (Some(_), true) => Verdict::Leans,
        }
    }
}

impl Expectation {
    /// The text in a table.
    pub fn text(self) -> String {
        match self {
            Self::Similar => format!("≈ 1 (± {:.0} %)", SIMILAR * 100.0),
            Self::More => "> 1".to_owned(),
            Self::Less => "< 1".to_owned(),
            Self::Ratio(paper) => format!("{paper:.3}"),
            Self::Figure(paper) => paper.to_string(),
            Self::Nothing => String::new(),
        }
    }
}

impl Verdict {
    /// The text in a table.
    pub fn text(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Leans => "holds in the mean",
            Self::Fails => "does not hold",
            Self::Open => "open: one run",
            Self::None => "",
        }
    }
}

impl Findings {
    /// Number of predicted rows with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.is_evidence() && row.verdict() == verdict).count()
    }

    /// Number of rows that are evidence of the model.
    pub fn predicted(&self) -> usize {
        self.rows.iter().filter(|row| row.is_evidence()).count()
    }

    /// Number of compared rows that the model was set by, and of those that could not come out otherwise.
    pub fn set_and_given(&self) -> [usize; 2] {
        ["set", "given"].map(|word| {
            let is_so = |row: &&Comparison| row.is_compared() && row.standing.word() == word;
            self.rows.iter().filter(is_so).count()
        })
    }

    /// One line a row.
    pub(super) fn csv(&self) -> String {
        let head =
            "heading,what,unit,ours,ci95_low,ci95_high,runs,paper,ratio,standing,verdict,why";
        let mut text = format!("{head}\n");
        for row in &self.rows {
            let [low, high] = row
                .ours
                .interval()
                .map_or([const { String::new() }; 2], |it| it.map(|it| it.to_string()));
            let ratio = row.ratio().map_or(String::new(), |it| it.to_string());
            let (heading, what) = (quoted(&row.heading), quoted(&row.what));
            // A row without a comparison was neither set nor predicted.
            let standing = if row.is_compared() { row.standing.word() } else { "" };
            let why = quoted(if row.is_compared() { row.standing.why() } else { "" });
            let _ = writeln!(
                text,
                "{heading},{what},{},{},{low},{high},{},{},{ratio},{standing},{},{why}",
                row.unit,
                row.ours.mean,
                row.ours.runs,
                quoted(&row.expected.text()),
                row.word()
            );
        }
        text
    }
}

/// A CSV field, quoted if necessary (RFC 4180).
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
        let narrow = [mean - 0.8 * half, mean + 0.8 * half];
        let sure = Some(Intervals { wide: [mean - half, mean + half], narrow });
        let ours = Estimate { mean, sure, runs: 5 };
        let standing = Standing::Predicted;
        let what = "a, b".to_owned();
        Comparison { heading: String::new(), what, ours, unit: "", expected, standing }
    }

    #[test]
    fn a_verdict_is_as_sure_as_its_interval() {
        for (mean, half, expected, verdict) in [
            (1.2, 0.1, Expectation::More, Verdict::Holds),
            (1.2, 0.3, Expectation::More, Verdict::Leans),
            (0.9, 0.3, Expectation::More, Verdict::Fails),
            (0.9, 0.05, Expectation::Less, Verdict::Holds),
            (0.97, 0.02, Expectation::Similar, Verdict::Holds),
            // The narrower interval decides: it ends at 1.046.
            (1.01, 0.045, Expectation::Similar, Verdict::Holds),
            (0.97, 0.04, Expectation::Similar, Verdict::Leans),
            (0.94, 0.005, Expectation::Similar, Verdict::Fails),
            (80.0, 2.0, Expectation::Figure(100.0), Verdict::Holds),
            (70.0, 2.0, Expectation::Figure(100.0), Verdict::Fails),
            // On neither side of 1.
            (1.0, 0.0, Expectation::More, Verdict::Fails),
            (1.0, 0.0, Expectation::Less, Verdict::Fails),
            (1.5, 0.5, Expectation::More, Verdict::Leans),
            (0.5, 0.5, Expectation::Less, Verdict::Leans),
            (1.1, 0.05, Expectation::Ratio(1.3), Verdict::Holds),
            (0.9, 0.05, Expectation::Ratio(0.8), Verdict::Holds),
            (1.2, 0.05, Expectation::Ratio(2.0), Verdict::Fails),
            (1.0, 0.0, Expectation::Ratio(1.0), Verdict::Holds),
            // Near, but on the other side of 1.
            (0.95, 0.01, Expectation::Ratio(1.2), Verdict::Fails),
            (1.1, 0.01, Expectation::Ratio(0.9), Verdict::Fails),
            (1.0, 0.0, Expectation::Ratio(1.2), Verdict::Fails),
            (75.0, 0.0, Expectation::Figure(100.0), Verdict::Holds),
            (125.0, 0.0, Expectation::Figure(100.0), Verdict::Holds),
            (125.5, 0.0, Expectation::Figure(100.0), Verdict::Fails),
            (f64::NAN, 0.0, Expectation::More, Verdict::Fails),
            (f64::INFINITY, 0.0, Expectation::More, Verdict::Fails),
            (70.0, 2.0, Expectation::Nothing, Verdict::None),
        ] {
            assert_eq!(row(mean, half, expected).verdict(), verdict, "{mean} {expected:?}");
        }
        assert_eq!(row(80.0, 2.0, Expectation::Figure(100.0)).ratio(), Some(0.8));
    }

    #[test]
    fn only_what_was_predicted_counts_and_nothing_else_holds() {
        let with = |standing| Comparison { standing, ..row(1.2, 0.1, Expectation::More) };
        let rows = vec![
            with(Standing::Predicted),
            with(Standing::Predicted),
            with(Standing::Set("loss was, by it")),
            with(Standing::Set("loss was, by it")),
            with(Standing::Given("a part of the whole")),
            Comparison { expected: Expectation::Nothing, ..with(Standing::Predicted) },
        ];
        let findings = Findings { rows, ..Findings::default() };
        assert_eq!((findings.count(Verdict::Holds), findings.predicted()), (2, 2));
        assert_eq!(findings.count(Verdict::Fails), 0);
        assert_eq!(findings.set_and_given(), [2, 1]);
        let csv = findings.csv();
        assert_eq!(csv.matches("holds").count(), 2);
        assert!(csv.contains(",set,met,\"loss was, by it\"\n"), "{csv}");
    }

    #[test]
    fn one_run_shows_nothing() {
        for (mean, expected) in [(2.0, Expectation::More), (0.5, Expectation::More)] {
            let ours = Estimate::of(&[mean]);
            let comparison = Comparison { ours, ..row(mean, 0.1, expected) };
            assert_eq!(comparison.verdict(), Verdict::Open);
            let findings = Findings { rows: vec![comparison], ..Findings::default() };
            assert_eq!((findings.predicted(), findings.count(Verdict::Open)), (1, 1));
            assert!(!findings.csv().contains("hold"));
        }
    }

    #[test]
    fn a_row_is_a_line() {
        let rows = vec![row(2.0, 0.5, Expectation::Figure(4.0))];
        let csv = Findings { rows, ..Findings::default() }.csv();
        assert_eq!(
            csv.lines().nth(1),
            Some(",\"a, b\",,2,1.5,2.5,5,4,0.5,predicted,does not hold,")
        );
    }
}
