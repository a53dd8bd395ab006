//! Our figures beside the thesis's.

use report::{Chart, text};

use super::run::{BASIC, CHAIN, Case, OURS, THINNED, WINE};
use super::{
    ALL, CBR, CROSS, FTP, FTP_OURS, NODES_OURS, NODES_WINE, PLACES, RENO, SACK, SSH, VIDEO, targets,
};
use crate::experiment::parameters::keys;
use crate::experiment::{
    Chosen, Comparison, Estimate, Expectation, Findings, Parameter, Picture, Samples, Standing,
};

pub(super) fn summarise(samples: &Samples) -> Findings {
    let mut rows = table(samples);
    for panel in [FTP, FTP_OURS, RENO, SACK] {
        rows.extend(gains(samples, panel));
    }
    rows.extend(nodes(samples));
    rows.extend(constant(samples));
    rows.extend(cross(samples));
    rows.extend(ssh(samples));
    rows.extend(video(samples));
    // Where nothing was dropped without pacing, no ratio says anything.
    rows.retain(|it| it.ours.runs == 0 || it.ours.mean.is_finite());
    Findings {
        pictures: pictures(samples),
        rows,
        parameters: parameters(),
        medium: medium(),
        notes: notes(),
    }
}

/// The thesis's pacing was run with two lengths of probes.
const PROBES: Standing =
    Standing::Set("the length of probes was chosen after throughput was known");

fn row(
    heading: impl Into<String>,
    what: impl Into<String>,
    ours: Estimate,
    unit: &'static str,
    expected: Expectation,
) -> Comparison {
    let row = Comparison::predicted(heading, what, ours, unit, expected);
    let is_theirs = row.what.starts_with(WINE.name);
    Comparison { standing: if is_theirs { PROBES } else { row.standing }, ..row }
}

/// Table 5.1 itself.
fn table(samples: &Samples) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for (column, metric, unit, heading) in [
        ("received_mb", "received", "MB", "table 5.1, received"),
        ("dropped", "dropped", "", "table 5.1, packets dropped"),
    ] {
        for series in [BASIC, WINE] {
            for flows in samples.xs(FTP) {
                let ours = samples.mean(FTP, series.name, flows, column);
                let workload = format!("ftp-{flows}");
                let expected =
                    targets::expected(["table5.1", "chain8", &workload, series.name, metric]);
                rows.push(row(
                    heading,
                    format!("{}, {}", series.name, of(flows)),
                    ours,
                    unit,
                    expected,
                ));
            }
        }
    }
    rows
}

/// What each pacing gains over none.
fn gains(samples: &Samples, panel: &str) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for (column, metric, what) in
        [("received_mb", "received", "received"), ("dropped", "dropped", "packets dropped")]
    {
        for series in [WINE, OURS, THINNED] {
            for flows in samples.xs(panel) {
                let ours = samples.ratio(panel, [series.name, BASIC.name], flows, column);
                let workload = format!("ftp-{flows}");
                let expected = match series {
                    WINE => targets::ratio(["table5.1", "chain8", &workload, metric]),
                    _ => Expectation::Nothing,
                };
                let heading = format!("{what} over basic, {panel}");
                rows.push(row(
                    heading,
                    format!("{}, {}", series.name, of(flows)),
                    ours,
                    "",
                    expected,
                ));
            }
        }
    }
    rows
}

/// Figure 5.4: pacing everywhere is no better than none, and the chosen nodes are.
fn nodes(samples: &Samples) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for (panel, name) in [(NODES_WINE, WINE.name), (NODES_OURS, THINNED.name)] {
        for (column, what) in [("received_mb", "received"), ("dropped", "packets dropped")] {
            for (place, _) in PLACES {
                let over = samples.values(panel, place, 1.0, column);
                let under = samples.values(FTP_OURS, BASIC.name, 1.0, column);
                let expected = match (name, place, column) {
                    ("wine", "all", _) => Expectation::Similar,
                    ("wine", "0, 3, 6, 8", "received_mb") => Expectation::More,
                    ("wine", "0, 3, 6, 8", _) => Expectation::Less,
                    _ => Expectation::Nothing,
                };
                let ours = Estimate::ratio(&over, &under);
                let heading = format!("{what} over basic, by who paces (figure 5.4)");
                rows.push(row(heading, format!("{name} at {place}"), ours, "", expected));
            }
        }
    }
    rows
}

fn constant(samples: &Samples) -> Vec<Comparison> {
    let mut rows = Vec::new();
    let heading = "cbr at 2.66 Mbit/s (section 5.1)";
    for (column, metric, what) in [
        ("variation_mean_ms", "delay_variation_mean", "variation of delay, mean"),
        ("variation_p95_ms", "delay_variation_p95", "variation of delay, 95th percentile"),
    ] {
        for series in ALL {
            let ours = samples.mean(CBR, series.name, 0.0, column);
            let expected =
                targets::expected(["section5.1", "chain8", "cbr-2.66Mbps", series.name, metric]);
            rows.push(row(heading, format!("{}: {what}", series.name), ours, "ms", expected));
        }
        let ours = samples.ratio(CBR, [WINE.name, BASIC.name], 0.0, column);
        let expected = targets::ratio(["section5.1", "chain8", "cbr-2.66Mbps", metric]);
        rows.push(row(heading, format!("wine over basic: {what}"), ours, "", expected));
    }
    for (column, what, unit) in
        [("received_mb", "received", "MB"), ("dropped", "packets dropped in the mesh", "")]
    {
        for series in ALL {
            let ours = samples.mean(CBR, series.name, 0.0, column);
            let what = format!("{}: {what}", series.name);
            rows.push(row(heading, what, ours, unit, Expectation::Nothing));
        }
    }
    rows
}

fn cross(samples: &Samples) -> Vec<Comparison> {
    let mut rows = Vec::new();
    let reduction = targets::figure(["section5.1", "cross9x9", "ftp-2", "wine", "drop_reduction"]);
    for series in [WINE, OURS, THINNED] {
        for (column, what) in [("received_mb", "received"), ("dropped", "packets dropped")] {
            let ours = samples.ratio(CROSS, [series.name, BASIC.name], 0.0, column);
            let expected = match (series, column, reduction) {
                (WINE, "dropped", Some(percent)) => Expectation::Ratio(1.0 - percent / 100.0),
                (WINE, "received_mb", _) => Expectation::Similar,
                _ => Expectation::Nothing,
            };
            let what = format!("{} over basic: {what}", series.name);
            rows.push(row("the cross (section 5.1)", what, ours, "", expected));
        }
    }
    rows
}

fn ssh(samples: &Samples) -> Vec<Comparison> {
    let mut rows = Vec::new();
    let heading = "ssh beside ftp (section 5.2)";
    for series in ALL {
        let loss = targets::expected(["section5.2", "chain8", "ftp+ssh", series.name, "ssh_loss"]);
        for (column, what, unit, expected) in [
            ("ssh_lost", "key strokes without an echo", "%", loss),
            ("ssh_kbps", "ssh", "kbit/s", Expectation::Nothing),
            ("ssh_echo_p95_ms", "time to an echo, 95th percentile", "ms", Expectation::Nothing),
            ("received_mb", "ftp and ssh", "MB", Expectation::Nothing),
        ] {
            let ours = samples.mean(SSH, series.name, 0.0, column);
            rows.push(row(heading, format!("{}: {what}", series.name), ours, unit, expected));
        }
    }
    rows
}

fn video(samples: &Samples) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for series in [WINE, OURS] {
        for (column, what, expected) in [
            ("received_mb", "received", Expectation::More),
            ("dropped", "packets dropped in the mesh", Expectation::Less),
        ] {
            let ours = samples.ratio(VIDEO, [series.name, BASIC.name], 0.0, column);
            let expected = if series == WINE { expected } else { Expectation::Nothing };
            let what = format!("{} over basic: {what}", series.name);
            rows.push(row("two videos (table 5.2)", what, ours, "", expected));
        }
    }
    rows
}

fn of(flows: f64) -> String {
    format!("{flows} {}", if flows == 1.0 { "flow" } else { "flows" })
}

fn pictures(samples: &Samples) -> Vec<Picture> {
    let kinds = [
        ("received_mb", "received", "received, MB"),
        ("dropped", "dropped", "packets dropped in the mesh"),
    ];
    let picture = |(column, name, title): (&str, &str, &str)| {
        let chart = Chart {
            label: format!("{name}, by number of flows"),
            x: "flows".to_owned(),
            y: title.to_owned(),
            curves: ALL.iter().map(|series| samples.curve(FTP, series.name, column)).collect(),
        };
        let caption = format!("{} in table 5.1's runs", text::capital(name));
        Picture { name: name.to_owned(), caption, svg: chart.svg() }
    };
    kinds.map(picture).into()
}

fn medium() -> String {
    "receiver lock, reception capture: received up to 250 m, sensed up to 550 m, neighbours 240 m apart; 802.11b at 11 \
     Mbit/s, basic rate 2 Mbit/s, long preambles, queues of 50"
        .to_owned()
}

fn parameters() -> Vec<Parameter> {
    let once = |name, value: &str, why| Parameter {
        name,
        value: value.to_owned(),
        chosen: Chosen::Once,
        why,
    };
    let ours = |name, value: &str, why| Parameter {
        name,
        value: value.to_owned(),
        chosen: Chosen::Ours,
        why,
    };
    let mut listed = vec![
        once(
            "TCP and RTS of table 5.1",
            "segments of 1000 bytes, each acknowledged; a window of 20 KB; RTS before each packet",
            "the paper names NewReno alone; these are ns-2's defaults",
        ),
        once(
            "TCP and RTS of all else",
            "segments of 1460 bytes, delayed acknowledgements, 128 KB, no RTS",
            "the scenario's",
        ),
        Parameter {
            name: "wine: probes",
            value: "1500 bytes, one a second to each neighbour".to_owned(),
            chosen: Chosen::AfterLooking,
            why: "the paper leaves both open. As long as a full packet, so that the overhead's size matters little; with 64 bytes the chain's throughput was a quarter less",
        },
        once("wine: low-pass filter", "an eighth of each new rate", "the paper says standard"),
        once(
            "wine: per-hop overhead",
            "178 bytes",
            "headers and preambles of RTS, CTS, data and ACK; the paper names none",
        ),
        once(
            "packets dropped",
            "by MACs after the last try, and by relays' queues",
            "those at the source are not losses of the mesh",
        ),
        once(
            "videos",
            "two of 0.6 Mbit/s",
            "about what the chain carries; the paper's traces are not ours",
        ),
        ours(
            "ours: what is under way",
            "1 packet and half of one a hop",
            "set on this chain, by throughput and drops of one and eight flows without a look at the paper's figures",
        ),
    ];
    let case = Case {
        ground: CHAIN,
        series: BASIC,
        between: "0:8:tcp".to_owned(),
        seconds: 200,
        keys: &[],
    };
    let scenario: Vec<_> = case.scenario(1).into_iter().collect();
    listed.extend(keys(&scenario, &STATED, &OWN_ENTRY));
    listed
}

fn notes() -> Vec<String> {
    [
        "section 5.3 needs DSR, which does not exist here: its rows are missing",
        "chapter 6's testbed is not repeated",
        "ssh's losses are those of key strokes, since TCP sends lost packets again; the paper does not say what it counted",
        "one node alone paces nothing, because it has no neighbour to measure: with 0 and 8, only the source paces data",
        "the videos' frames are drawn by our own model: only directions are compared",
    ]
    .map(str::to_owned)
    .into()
}

/// Keys whose values the paper gives, or that the experiment varies.
const STATED: [&str; 9] = [
    "hops",
    "spacing_m",
    "seconds",
    "range_m",
    "carrier_sense_m",
    "data_mbps",
    "basic_mbps",
    "between",
    "pace",
];
/// Keys that have an entry of their own.
const OWN_ENTRY: [&str; 5] = ["rts", "mss", "delayed_ack", "receive_buffer", "tcp_recovery"];
