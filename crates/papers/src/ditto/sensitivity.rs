//! What gains depend on: how well routers overhear, and whether partly overheard chunks are repaired. Nothing
//! here is fitted to a throughput or compared with the paper. It shows which part of a gain comes from the
//! model of the medium, and which from the system.

use super::fetch::{EMULAB, MAP};
use super::fetch::{Fetching, ON_PATH, PUBLISHED, SERVED, Served as Scheme, When, receivers};
use super::served::Served;
use super::{COLUMNS, targets};
use crate::experiment::{
    Chosen, Comparison, Expectation, Experiment, Extent, Findings, Key, Parameter, Picture, Point,
    Runs, Samples, Short, Standing,
};
use report::{Bars, Group};

pub(crate) const SENSITIVITY: Experiment = Experiment {
    name: "ditto-sensitivity",
    title: "Ditto, what its gains depend on",
    about: "Gains in ten orders of both testbeds for several ways of listening, of Ditto as published, which repairs nothing, and of ours",
    columns: COLUMNS,
    runs: Runs { simulated: 3, real: 0, quick: 1 },
    short: Short::SameSize,
    plan,
    summarise,
};

const ORDERS: &[u64] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// A testbed, and the panel without overhearing. Panels of ways of listening add the way's name to the
/// testbed's.
#[derive(Clone, Copy, Debug)]
struct Bed {
    scenario: &'static str,
    /// Its name in the legend.
    short: &'static str,
    fetching: Fetching,
}

static BEDS: [Bed; 2] = [
    Bed {
        scenario: "emulab8",
        short: "E",
        fetching: Fetching {
            panel: "emulab8",
            leaves: EMULAB,
            when: When::Sequential,
            orders: ORDERS,
        },
    },
    Bed {
        scenario: "map21",
        short: "M",
        fetching: Fetching { panel: "map21", leaves: MAP, when: When::Sequential, orders: ORDERS },
    },
];

/// A way of listening: the loss of frames for others.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Its name below the bars.
    name: &'static str,
    /// Its description.
    about: &'static str,
    /// Its panels by testbed, in the order of [`BEDS`].
    panels: [&'static str; 2],
    keys: [&'static [(&'static str, &'static str)]; 2],
}

/// From the way in which routers hear least.
static WAYS: [Way; 5] = [
    Way {
        name: "as one's own",
        about: "a link loses the same of frames for others as of one's own: overhear_m 0",
        panels: ["emulab8, as one's own", "map21, as one's own"],
        keys: [&[("overhear_m", "0")], &[("overhear_m", "0")]],
    },
    Way {
        name: "in spells",
        about: "all or nothing for 40 ms, 36 and 75 m, sixth power: what fits six figures of section 6.2 in map21 (decision 0017)",
        panels: ["emulab8, in spells", "map21, in spells"],
        keys: [
            &[("overhear_m", "36"), ("overhear_exponent", "6"), ("overhear_spell_ms", "40")],
            &[("overhear_m", "75"), ("overhear_exponent", "6"), ("overhear_spell_ms", "40")],
        ],
    },
    Way {
        name: "nearer",
        about: "45 and 75 m, third power, each frame by itself: the least that the calibration tried",
        panels: ["emulab8, nearer", "map21, nearer"],
        keys: [&[("overhear_m", "45")], &[("overhear_m", "75")]],
    },
    Way {
        name: "as set",
        about: "53 and 88 m, the same otherwise: what the scenarios have (decision 0015)",
        panels: ["emulab8, as set", "map21, as set"],
        keys: [&[], &[]],
    },
    Way {
        name: "farther",
        about: "63 and 96 m: the most that the calibration tried",
        panels: ["emulab8, farther", "map21, farther"],
        keys: [&[("overhear_m", "63")], &[("overhear_m", "96")]],
    },
];

const UNDER: [&str; 2] = ["end-to-end", ON_PATH];
const OVER: [&str; 2] = [PUBLISHED, "ditto"];

fn plan(extent: Extent) -> Vec<Point> {
    let is_quick = extent == Extent::Quick;
    let beds = if is_quick { &BEDS[..1] } else { &BEDS[..] };
    let orders = if is_quick { &ORDERS[..1] } else { ORDERS };
    let mut points = Vec::new();
    for (place, bed) in beds.iter().enumerate() {
        points.extend(schemes(UNDER).flat_map(|it| bed.points(bed.scenario, it, &[], orders)));
        for way in &WAYS[..if is_quick { 1 } else { WAYS.len() }] {
            let (panel, keys) = (way.panels[place], way.keys[place]);
            points.extend(schemes(OVER).flat_map(|it| bed.points(panel, it, keys, orders)));
        }
    }
    // Panels are listed in this order.
    points
}

fn schemes(series: [&'static str; 2]) -> impl Iterator<Item = Scheme> {
    SERVED.into_iter().filter(move |it| series.contains(&it.series))
}

impl Bed {
    /// A scheme in each order, with `keys` set in addition.
    fn points(
        &self,
        panel: &'static str,
        served: Scheme,
        keys: &'static [(&'static str, &'static str)],
        orders: &'static [u64],
    ) -> Vec<Point> {
        let fetching = self.fetching;
        let point = |order: &u64| {
            let order = *order;
            let key =
                Key { panel, series: served.series, x: order as f64, rank: rank(panel, served) };
            Point::tried(key, move |seed| fetching.trial(served, keys, order, seed), receivers)
        };
        orders.iter().map(point).collect()
    }
}

/// The rank of a panel's series among the others.
fn rank(panel: &str, served: Scheme) -> usize {
    let panels = BEDS.iter().enumerate().flat_map(|(place, bed)| {
        [bed.scenario].into_iter().chain(WAYS.iter().map(move |way| way.panels[place]))
    });
    let place = panels.into_iter().position(|it| it == panel).unwrap_or(0);
    let series = SERVED.iter().position(|it| it.series == served.series).unwrap_or(0);
    place * SERVED.len() + series
}

/// A row: the gain of one scheme over another, for a way of listening in a testbed.
struct Gain {
    place: usize,
    way: &'static Way,
    over: &'static str,
    under: &'static str,
}

impl Gain {
    fn panel(&self) -> &'static str {
        self.way.panels[self.place]
    }

    fn estimate(&self, samples: &Samples) -> crate::experiment::Estimate {
        let under = Served::new(samples, BEDS[self.place].scenario, self.under);
        Served::new(samples, self.panel(), self.over).gain(&under)
    }

    /// The paper's gain, which it gives for one testbed. It does not say how well its routers overhear.
    fn paper(&self) -> Option<f64> {
        let metric = format!("median_gain_vs_{}_random_orders", self.under);
        let is_theirs = self.place == 0 && self.over == PUBLISHED;
        is_theirs.then(|| targets::figure("emulab", "ditto", &metric)).flatten()
    }

    fn row(&self, samples: &Samples) -> Comparison {
        Comparison {
            heading: format!("median over {}'s, ten orders", self.under),
            what: format!("{}: {}", self.panel(), self.over),
            ours: self.estimate(samples),
            unit: "",
            expected: Expectation::Nothing,
            standing: Standing::Predicted,
        }
    }
}

fn gains(under: &'static str) -> impl Iterator<Item = Gain> {
    let ways = WAYS.iter();
    ways.flat_map(move |way| {
        (0..BEDS.len()).flat_map(move |place| OVER.map(|over| Gain { place, way, over, under }))
    })
}

fn summarise(samples: &Samples) -> Findings {
    let rows = UNDER.into_iter().flat_map(gains).map(|gain| gain.row(samples));
    let rows: Vec<_> = rows.collect();
    Findings {
        pictures: vec![picture(samples)],
        rows,
        parameters: parameters(),
        medium:
            "receiver lock, reception capture, 802.11b at 11 Mbit/s, no RTS; losses of links as \
                 the scenarios say, of frames for others as the ways of listening do"
                .to_owned(),
        notes: vec![format!(
            "the marks are the paper's gain over {} in ten orders, which it has of emulab8 alone; how \
             well its routers heard is not known, so no way of listening is held against it",
            UNDER[0]
        )],
    }
}

/// All gains over end-to-end.
fn picture(samples: &Samples) -> Picture {
    let bars = |way: &'static Way| {
        let of_way = gains(UNDER[0]).filter(move |it| it.way.name == way.name);
        let bars = of_way.map(|it| (it.estimate(samples), it.paper()));
        let ran: Vec<_> = bars.filter(|(ours, _)| ours.runs > 0).collect();
        (way.name, ran)
    };
    let groups = WAYS.iter().map(bars).filter(|(_, bars)| !bars.is_empty());
    let groups = groups.map(|(name, bars)| Group {
        name: name.to_owned(),
        bars: bars.into_iter().map(|(ours, paper)| (ours.into(), paper)).collect(),
    });
    let beds = BEDS.iter().filter(|it| samples.panels().contains(&it.scenario));
    let series = beds.flat_map(|bed| ["paper's", "ours"].map(|it| format!("{} {it}", bed.short)));
    let caption =
        format!("Median throughput over {}'s in ten orders, by how routers hear", UNDER[0]);
    let picture = Bars {
        label: caption.clone(),
        y: format!("times {}", UNDER[0]),
        x: String::new(),
        series: series.collect(),
        groups: groups.collect(),
    };
    Picture { name: "gains".to_owned(), caption, svg: picture.svg() }
}

fn parameters() -> Vec<Parameter> {
    let why = "the paper does not say what its observers lose; gains depend on it";
    let of = |it: &Way| Parameter {
        name: it.name,
        value: it.about.to_owned(),
        chosen: Chosen::AfterLooking,
        why,
    };
    WAYS.iter().map(of).collect()
}
