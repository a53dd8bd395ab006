//! The results of runs, by point.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use report::Curve;

use super::findings::quoted;
use super::resample::Series;
use super::{Clock, Estimate};

/// A point of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The picture, or the row of a table.
    pub panel: &'static str,
    /// The curve.
    pub series: &'static str,
    /// The place on the axis.
    pub x: f64,
    /// The rank of panel and series among the others.
    pub rank: usize,
}

/// The result of a run, or one part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The point that was run.
    pub key: Key,
    /// The seed of the run.
    pub seed: u64,
    /// Figures in the order of the experiment's columns.
    pub figures: Vec<f64>,
}

/// All runs of an experiment, in order.
#[derive(Clone, Debug)]
pub struct Samples {
    columns: &'static [&'static str],
    rows: Vec<Row>,
    clock: Clock,
}

impl Key {
    /// The order in which runs are listed.
    pub fn order(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank).then(self.x.total_cmp(&other.x))
    }
}

impl Samples {
    /// Takes rows that are in order.
    pub(super) fn new(columns: &'static [&'static str], rows: Vec<Row>, clock: Clock) -> Self {
        Self { columns, rows, clock }
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.rows.chunk_by(|a, b| a.seed == b.seed && a.key == b.key).count()
    }

    /// Whether there is no run.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of runs of a point.
    pub fn seeds(&self) -> usize {
        let of_first = |first: &Row| {
            let mut seeds: Vec<_> = self.of(&first.key).map(|row| row.seed).collect();
            seeds.dedup();
            seeds.len()
        };
        self.rows.first().map_or(0, of_first)
    }

    /// A figure of all rows of a point, in the order of seeds; empty if the point was not run.
    pub fn values(&self, panel: &str, series: &str, x: f64, column: &str) -> Vec<f64> {
        let Some(place) = self.columns.iter().position(|it| *it == column) else {
            return Vec::new();
        };
        let is_asked = |key: &Key| key.panel == panel && key.series == series && key.x == x;
        let rows = self.rows.iter().filter(|row| is_asked(&row.key));
        rows.filter_map(|row| row.figures.get(place).copied()).collect()
    }

    /// A figure of all rows of a series, for each seed, at any place on the axis.
    pub fn by_seed(&self, panel: &str, series: &str, column: &str) -> Vec<Vec<f64>> {
        let mut seeds = BTreeMap::<u64, Vec<f64>>::new();
        let Some(place) = self.columns.iter().position(|it| *it == column) else {
            return Vec::new();
        };
        for Row { key, seed, figures } in &self.rows {
            if key.panel == panel && key.series == series {
                seeds.entry(*seed).or_default().extend(figures.get(place));
            }
        }
        seeds.into_values().collect()
    }

    /// The rows of a series for resampling, or of one place on its axis: by order, which is the place on the
    /// axis; by receiver, if `receiver` names a column; and by seed.
    pub(crate) fn series(
        &self,
        [panel, series]: [&str; 2],
        x: Option<f64>,
        receiver: Option<&str>,
    ) -> Series<'_> {
        let is_there = |row: &&Row| row.key.panel == panel && x.is_none_or(|x| row.key.x == x);
        let rows = || self.rows.iter().filter(is_there);
        let column = receiver.and_then(|it| self.columns.iter().position(|name| *name == it));
        let receiver = |row: &Row| column.map_or(0.0, |it| row.figures[it]);
        let orders = distinct(rows().map(|row| row.key.x));
        let receivers = distinct(rows().map(receiver));
        let mut seeds = BTreeMap::<u64, Vec<_>>::new();
        let mut runs = 0;
        for run in rows().filter(|row| row.key.series == series).collect::<Vec<_>>().chunk_by(same)
        {
            runs += 1;
            let each = run.iter().filter_map(|row| {
                let order = orders.iter().position(|it| *it == row.key.x)?;
                let receiver = receivers.iter().position(|it| *it == receiver(row))?;
                Some(([order, receiver], &row.figures[..]))
            });
            seeds.entry(run[0].seed).or_default().extend(each);
        }
        let sizes = [orders.len(), receivers.len()];
        Series { seeds: seeds.into_values().collect(), sizes, runs, clock: self.clock }
    }

    /// The mean of a figure.
    pub fn mean(&self, panel: &str, series: &str, x: f64, column: &str) -> Estimate {
        Estimate::of(&self.values(panel, series, x, column))
    }

    /// The ratio of a figure of two series.
    pub fn ratio(&self, panel: &str, [over, under]: [&str; 2], x: f64, column: &str) -> Estimate {
        let values = |series| self.values(panel, series, x, column);
        Estimate::ratio(&values(over), &values(under))
    }

    /// The means of a figure of a series, along the axis.
    pub fn curve(&self, panel: &str, series: &str, column: &str) -> Curve {
        let mean = |x| (x, self.mean(panel, series, x, column).into());
        let points = self.xs(panel).into_iter().map(mean).collect();
        Curve { name: series.to_owned(), points }
    }

    /// The places on the axis at which a panel has runs, ascending.
    pub fn xs(&self, panel: &str) -> Vec<f64> {
        let of_panel = self.rows.iter().filter(|row| row.key.panel == panel);
        let mut xs: Vec<_> = of_panel.map(|row| row.key.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// The panels that were run, in order.
    pub fn panels(&self) -> Vec<&'static str> {
        let mut panels: Vec<_> = self.rows.iter().map(|row| row.key.panel).collect();
        panels.dedup();
        panels
    }

    /// One line a run.
    pub(super) fn csv(&self) -> String {
        let mut text = format!("panel,series,x,seed,{}\n", self.columns.join(","));
        for Row { key, seed, figures } in &self.rows {
            let (panel, series) = (quoted(key.panel), quoted(key.series));
            let _ = write!(text, "{panel},{series},{},{seed}", key.x);
            // A missing figure is left empty.
            let figure = |it: &f64| if it.is_nan() { String::new() } else { it.to_string() };
            figures.iter().for_each(|it| _ = write!(text, ",{}", figure(it)));
            text.push('\n');
        }
        text
    }

    fn of(&self, key: &Key) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.key == *key)
    }
}

/// Whether two rows belong to one run.
fn same(a: &&Row, b: &&Row) -> bool {
    a.seed == b.seed && a.key == b.key
}

fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values = report::stats::sorted(values);
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_drawn_by_order_receiver_and_seed() {
        let key = |x| Key { panel: "p", series: "a", x, rank: 0 };
        let row = |x, seed, node| Row { key: key(x), seed, figures: vec![node] };
        let rows = vec![row(1.0, 1, 5.0), row(1.0, 1, 7.0), row(2.0, 1, 7.0), row(2.0, 2, 5.0)];
        let samples = Samples::new(&["node"], rows, Clock::Real);
        let series = samples.series(["p", "a"], None, Some("node"));
        assert_eq!((series.runs, series.sizes, series.seeds.len()), (3, [2, 2], 2));
        let places: Vec<_> = series.seeds[0].iter().map(|(places, _)| *places).collect();
        assert_eq!(places, [[0, 0], [0, 1], [1, 1]]);
        let series = samples.series(["p", "a"], Some(2.0), None);
        assert_eq!((series.runs, series.sizes), (2, [1, 1]));
        assert_eq!(samples.series(["p", "b"], None, None).runs, 0);
    }

    #[test]
    fn figures_are_found_again_and_listed() {
        let key = |series, x, rank| Key { panel: "p", series, x, rank };
        let row = |key, seed, figure| Row { key, seed, figures: vec![figure, 0.5] };
        let rows = vec![
            row(key("a", 1.0, 0), 1, 4.0),
            row(key("a", 1.0, 0), 2, 8.0),
            row(key("b", 1.0, 1), 1, 2.0),
            row(key("b", 1.0, 1), 2, 4.0),
            row(key("b, c", 1.0, 2), 1, f64::NAN),
        ];
        let samples = Samples::new(&["kbps", "share"], rows, Clock::Virtual);
        assert_eq!(samples.values("p", "a", 1.0, "kbps"), [4.0, 8.0]);
        assert_eq!(samples.ratio("p", ["a", "b"], 1.0, "kbps").mean, 2.0);
        assert_eq!((samples.seeds(), samples.panels(), samples.xs("p")), (2, vec!["p"], vec![1.0]));
        assert!(samples.values("p", "a", 2.0, "kbps").is_empty());
        let csv = samples.csv();
        assert!(csv.starts_with("panel,series,x,seed,kbps,share\np,a,1,1,4,0.5\n"), "{csv}");
        assert!(csv.ends_with("\np,\"b, c\",1,1,,0.5\n"), "{csv}");
    }

    /// Two panels with two series each, at two places, with two seeds; figures say which row they are of.
    fn crossed() -> Samples {
        let mut rows = Vec::new();
        for (rank, (panel, series)) in
            [("p", "a"), ("p", "b"), ("q", "a"), ("q", "b")].into_iter().enumerate()
        {
            for x in [4.0, 8.0] {
                for seed in [1, 2] {
                    let figure = 100.0 * rank as f64 + 10.0 * x + seed as f64;
                    let key = Key { panel, series, x, rank };
                    rows.push(Row { key, seed, figures: vec![figure, -figure] });
                }
            }
        }
        Samples::new(&["kbps", "share"], rows, Clock::Virtual)
    }

    #[test]
    fn figures_are_of_the_panel_series_place_and_column_that_were_asked_for() {
        let samples = crossed();
        assert_eq!(samples.values("p", "b", 8.0, "kbps"), [181.0, 182.0]);
        assert_eq!(samples.values("q", "b", 4.0, "share"), [-341.0, -342.0]);
        assert_eq!(samples.by_seed("q", "a", "kbps"), [[241.0, 281.0], [242.0, 282.0]]);
        assert_eq!(samples.mean("q", "a", 4.0, "kbps").mean, 241.5);
        let curve = samples.curve("p", "a", "share");
        let points: Vec<_> = curve.points.iter().map(|(x, mean)| (*x, mean.mean)).collect();
        assert_eq!((&*curve.name, points), ("a", vec![(4.0, -41.5), (8.0, -81.5)]));
        assert_eq!((samples.xs("q"), samples.panels()), (vec![4.0, 8.0], vec!["p", "q"]));
        for (panel, series, column) in [("r", "a", "kbps"), ("p", "c", "kbps"), ("p", "a", "x")] {
            assert!(samples.values(panel, series, 4.0, column).is_empty());
            assert!(samples.by_seed(panel, series, column).is_empty());
        }
        assert!(samples.xs("r").is_empty());
    }

    #[test]
    fn a_series_has_the_orders_of_its_own_panel() {
        let mut samples = crossed();
        samples.rows.retain(|row| row.key.panel == "p" || row.key.x == 8.0);
        let [of_p, of_q] = ["p", "q"].map(|panel| samples.series([panel, "a"], None, None));
        assert_eq!((of_p.sizes, of_p.runs), ([2, 1], 4));
        assert_eq!((of_q.sizes, of_q.runs), ([1, 1], 2));
        assert_eq!(of_q.seeds[1], [([0, 0], &[282.0, -282.0][..])]);
    }

    #[test]
    fn a_run_may_have_several_rows_and_is_known_by_its_point_and_seed() {
        let row = |x, seed| {
            let key = Key { panel: "p", series: "a", x, rank: 0 };
            Row { key, seed, figures: vec![0.0] }
        };
        let of = |rows| Samples::new(&["kbps"], rows, Clock::Virtual);
        let samples =
            of(vec![row(1.0, 1), row(1.0, 1), row(1.0, 1), row(1.0, 2), row(2.0, 2), row(2.0, 3)]);
        assert_eq!((samples.len(), samples.seeds(), samples.is_empty()), (4, 2, false));
        assert_eq!(samples.series(["p", "a"], None, None).runs, 4);
        let none = of(Vec::new());
        assert_eq!((none.len(), none.seeds(), none.is_empty()), (0, 0, true));
    }
}
