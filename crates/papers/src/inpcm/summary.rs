//! Our figures beside the paper's.

use report::{Chart, text};

use super::run::{Case, Ground, SEGMENT};
use super::timers::Timer;
use super::{ALL, CHAINS, EACH, FETCH, GRID, HOPS, MECHANISMS, OURS, PAPER, PLAIN, targets};
use crate::experiment::parameters::keys;
use crate::experiment::{
    Chosen, Comparison, Estimate, Expectation, Findings, Parameter, Picture, Samples,
};

pub(super) fn summarise(samples: &Samples) -> Findings {
    let mut rows = deviations(samples);
    rows.extend(timers());
    rows.extend(chains(samples));
    rows.extend(phases(samples));
    rows.extend(fetches(samples));
    rows.extend(grid(samples));
    rows.extend(mechanisms(samples));
    Findings {
        pictures: pictures(samples),
        rows,
        parameters: parameters(),
        medium: medium(),
        notes: notes(),
    }
}

/// Figure 3, by the paper's recovery at the first router of each chain.
fn deviations(samples: &Samples) -> Vec<Comparison> {
    let (panel, _) = CHAINS[0];
    let heading = "standard deviation of round trips, no loss (figure 3)";
    let row = |hops: f64| {
        let ours = samples.mean(panel, PAPER.name, hops, "rtt_deviation_ms");
        Comparison::predicted(heading, format!("{hops} hops"), ours, "ms", Expectation::Nothing)
    };
    samples.xs(panel).into_iter().map(row).collect()
}

/// Figure 4: a calculation, and not a run.
fn timers() -> Vec<Comparison> {
    let heading =
        "retransmissions before the sender's timeout, receiver after 10 routers (figure 4)";
    let all = 11;
    let mut rows = Vec::new();
    for node in [1, 4, 7, 10] {
        for (timer, name) in
            [(Timer::Ideal, "ideal"), (Timer::TcpLike, "TCP-like"), (Timer::Esrto, "ESRTO")]
        {
            let count = timer.retransmissions(all - node, all);
            let ours = Estimate::of(&[f64::from(count)]);
            rows.push(Comparison::predicted(
                heading,
                format!("router {node}: {name}"),
                ours,
                "",
                Expectation::Nothing,
            ));
        }
    }
    rows
}

/// Figures 7 and 8.
fn chains(samples: &Samples) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for (panel, _) in CHAINS {
        for series in [PAPER, OURS] {
            for hops in samples.xs(panel) {
                let ours = samples.ratio(panel, [series.name, PLAIN.name], hops, "max_ack");
                let expected =
                    if series == PAPER { Expectation::More } else { Expectation::Nothing };
                let heading = format!("largest ACK over plain TCP's, {panel} (figures 7 and 8)");
                rows.push(Comparison::predicted(
                    heading,
                    format!("{}, {hops} hops", series.name),
                    ours,
                    "",
                    expected,
                ));
            }
        }
    }
    rows
}

/// Half of the time, in per cent.
const HALF: f64 = 50.0;

/// Figure 9: plain TCP is mostly in slow start, with InPCM it is not.
fn phases(samples: &Samples) -> Vec<Comparison> {
    let panel = CHAINS[2].0;
    let mut rows = Vec::new();
    for series in ALL {
        for hops in samples.xs(panel) {
            let shares = samples.values(panel, series.name, hops, "slow_start");
            let ratios: Vec<_> = shares.iter().map(|it| it / HALF).collect();
            let expected = match series {
                PLAIN => Expectation::More,
                PAPER => Expectation::Less,
                _ => Expectation::Nothing,
            };
            let heading = "time in slow start over half of all time, 5 % (figure 9)";
            let what = format!("{}, {hops} hops", series.name);
            rows.push(Comparison::predicted(heading, what, Estimate::of(&ratios), "", expected));
        }
    }
    rows
}

/// Figure 10.
fn fetches(samples: &Samples) -> Vec<Comparison> {
    let heading = "time to fetch 1 Mb over 6 hops, 5 % (figure 10)";
    beside_tcp(samples, FETCH, ("fetch_s", "s"), heading, Expectation::Less)
}

/// Figure 11.
fn grid(samples: &Samples) -> Vec<Comparison> {
    let gain = targets::figure(["section5", "grid4x4-4flows", "5", "max_ack_gain_aggregate"]);
    let paper = gain.map_or(Expectation::Nothing, |it| Expectation::Ratio(1.0 + it / 100.0));
    let heading = "largest ACKs of four flows together, grid, 5 % (figure 11)";
    beside_tcp(samples, GRID, ("max_ack", "segments"), heading, paper)
}

/// A figure of one point: all schemes, and the recovering ones over plain TCP. `expected`: of the paper's.
fn beside_tcp(
    samples: &Samples,
    panel: &'static str,
    (column, unit): (&str, &'static str),
    heading: &'static str,
    expected: Expectation,
) -> Vec<Comparison> {
    let row = |series: super::Series| {
        let ours = samples.mean(panel, series.name, 0.0, column);
        Comparison::predicted(heading, series.name, ours, unit, Expectation::Nothing)
    };
    let mut rows: Vec<_> = ALL.map(row).into();
    for (series, expected) in [(PAPER, expected), (OURS, Expectation::Nothing)] {
        let ours = samples.ratio(panel, [series.name, PLAIN.name], 0.0, column);
        let what = format!("{} over tcp", series.name);
        rows.push(Comparison::predicted(heading, what, ours, "", expected));
    }
    rows
}

/// What each mechanism does by itself: the paper does not say.
fn mechanisms(samples: &Samples) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for percent in samples.xs(EACH) {
        for series in ALL.into_iter().chain(MECHANISMS).filter(|it| *it != PLAIN) {
            let ours = samples.ratio(EACH, [series.name, PLAIN.name], percent, "max_ack");
            let heading = format!("largest ACK over plain TCP's, 6 hops, {percent} % lost");
            rows.push(Comparison::predicted(heading, series.name, ours, "", Expectation::Nothing));
        }
    }
    rows
}

fn pictures(samples: &Samples) -> Vec<Picture> {
    let names = ["no-loss", "2-percent", "5-percent"];
    let largest = CHAINS
        .iter()
        .zip(names)
        .map(|((panel, _), name)| (*panel, "max_ack", name.to_owned(), "largest ACK, segments"));
    let phases = (CHAINS[2].0, "slow_start", "slow-start".to_owned(), "time in slow start, %");
    let deviations = (
        CHAINS[0].0,
        "rtt_deviation_ms",
        "rtt-deviation".to_owned(),
        "standard deviation of round trips, ms",
    );
    let all = largest.chain([phases, deviations]);
    all.map(|(panel, column, name, title)| {
        let label = format!("{title}, {panel}");
        let chart = Chart {
            label: label.clone(),
            x: "hops".to_owned(),
            y: title.to_owned(),
            curves: ALL.map(|series| samples.curve(panel, series.name, column)).into(),
        };
        Picture { name, caption: text::capital(&label), svg: chart.svg() }
    })
    .collect()
}

fn medium() -> String {
    "receiver lock, reception capture: received up to 200 m, sensed up to 440 m, neighbours 200 m apart; 802.11b at 2 \
     Mbit/s, basic rate 1 Mbit/s, long preambles, RTS and CTS before each packet, queues of 50"
        .to_owned()
}

fn parameters() -> Vec<Parameter> {
    let once = |name, value: String, why| Parameter { name, value, chosen: Chosen::Once, why };
    let mut listed = vec![
        once(
            "losses",
            "of packets, by each router above its MAC".to_owned(),
            "the paper does not say where: below, the MAC's retransmissions hide 5 % from TCP",
        ),
        once(
            "TCP",
            format!("Reno, segments of {SEGMENT} bytes that are each acknowledged, a window of 20"),
            "the paper names Reno; the rest is ns-2's",
        ),
        once(
            "radio",
            "2 and 1 Mbit/s, RTS, carrier sense 440 m".to_owned(),
            "the paper gives 802.11, two-ray and 200 m; the rest is ns-2's",
        ),
        once("spacing", "200 m".to_owned(), "the paper gives none: as far as a frame is received"),
        once(
            "Link-RED",
            "none below an average of 1 repetition, all at 3, but at most 10 % dropped".to_owned(),
            "the paper names no thresholds: ours",
        ),
        once(
            "cache",
            "1 MB, 256 flows".to_owned(),
            "the paper leaves the size open: larger than what a window of 20 needs",
        ),
        once("routes", "fixed".to_owned(), "the paper ran DSR, which does not exist here"),
        once(
            "time to fetch 1 Mb",
            "mean of fetches one after the other".to_owned(),
            "with the request's round trip and the handshake",
        ),
    ];
    let case = Case { ground: Ground::Chain(HOPS), series: PLAIN, loss: "0", seconds: 1000 };
    let scenario: Vec<_> = case.scenario(1).into_iter().collect();
    listed.extend(keys(&scenario, &STATED, &OWN_ENTRY));
    listed
}

fn notes() -> Vec<String> {
    [
        "the paper's figures are pictures without numbers: rows compare with what its text says",
        "figure 3 is from the estimates of the first router of each chain; the text says only that they vary widely and \
         do not grow evenly with hops",
        "figure 4 is a calculation: four round trips of the sender over the router's timeout; ESRTO without deviation is the \
         ideal case, as round trips are taken as equal",
        "Link-RED drops nothing here: with RTS the MAC seldom repeats, and the average stays below the threshold",
        "figure 12 needs DSR and mobile nodes: its row is missing",
        "the grid's routes are fixed, so that nothing is gained from routes that change",
    ]
    .map(str::to_owned)
    .into()
}

/// Keys whose values the paper gives, or that the experiment varies.
const STATED: [&str; 5] = ["hops", "seconds", "range_m", "propagation", "recover"];
/// Keys that have an entry of their own.
const OWN_ENTRY: [&str; 10] = [
    "loss_above_mac",
    "tcp_recovery",
    "mss",
    "delayed_ack",
    "receive_buffer",
    "data_mbps",
    "basic_mbps",
    "rts",
    "carrier_sense_m",
    "spacing_m",
];
