//! InPCM, section 5: TCP over chains and a grid that lose packets above the MAC, without recovery, with the paper's,
//! and with ours; and each of its mechanisms by itself.
//!
//! *Where to start:* [`plan`]; `run.rs` for one run, `summary.rs` for the comparison, `timers.rs` for figure 4.

mod run;
mod summary;
mod targets;
mod timers;

use crate::experiment::{Experiment, Extent, Point, Runs, Short};
use run::{Case, Change, Ground, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "inpcm",
    title: "InPCM, section 5",
    about: "Recovery by routers: TCP over chains of 3 to 15 hops and a grid, with 0, 2 and 5 % of packets lost above the MAC",
    columns: COLUMNS,
    runs: Runs { simulated: 10, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise: summary::summarise,
};

/// The figures of a run: largest acknowledgement, in segments, summed over flows; share of their time in slow start, in
/// per cent; timeouts of senders; data packets that routers sent again; mean time to fetch 1 Mb, in seconds; standard
/// deviation of round trips at the first router, in milliseconds.
const COLUMNS: &[&str] =
    &["max_ack", "slow_start", "timeouts", "resent", "fetch_s", "rtt_deviation_ms"];

/// Figure 7, and the two halves of figure 8.
const CHAINS: [(&str, &str); 3] =
    [("chain, no loss", "0"), ("chain, 2 %", "0.02"), ("chain, 5 %", "0.05")];
/// Figure 10.
const FETCH: &str = "1 Mb over 6 hops, 5 %";
/// Figure 11.
const GRID: &str = "grid, 5 %";
/// Each mechanism by itself; the place on the axis is the loss, in per cent.
const EACH: &str = "each mechanism, 6 hops";

/// The hops of all but figures 7 and 8.
const HOPS: usize = 6;

/// Without recovery.
const PLAIN: Series = Series { name: "tcp", recover: "off", change: Change::None };
/// The paper's.
const PAPER: Series = Series { name: "inpcm", recover: "inpcm", change: Change::None };
/// Ours.
const OURS: Series = Series { name: "ours", recover: "on", change: Change::None };
/// What figures 7 to 11 compare.
const ALL: [Series; 3] = [PLAIN, PAPER, OURS];

/// The mechanisms: the paper's recovery without one of them or with another timer, then ours.
const MECHANISMS: [Series; 13] = [
    Series { name: "inpcm, no ELDD", recover: "inpcm", change: Change::NoEldd },
    Series { name: "inpcm, no Link-RED", recover: "inpcm", change: Change::NoRed },
    Series { name: "inpcm, no suppression", recover: "inpcm", change: Change::NoSuppression },
    Series { name: "inpcm, no notices", recover: "inpcm", change: Change::NoNotices },
    Series { name: "inpcm, notices double", recover: "inpcm", change: Change::Doubling },
    Series { name: "inpcm, no timer", recover: "inpcm", change: Change::NoTimer },
    Series { name: "inpcm, TCP-like timer", recover: "inpcm", change: Change::TcpLike },
    Series { name: "inpcm, beta by contention", recover: "inpcm", change: Change::Contention },
    Series { name: "inpcm, beta by sender", recover: "inpcm", change: Change::SenderTimeout },
    Series { name: "ours, no overhearing", recover: "on", change: Change::NoOverhearing },
    Series { name: "ours, no MAC trigger", recover: "on", change: Change::NoMacTrigger },
    Series { name: "ours, no suppression", recover: "on", change: Change::NoSuppression },
    Series { name: "ours, TCP-like timer", recover: "on", change: Change::TcpLike },
];

fn plan(extent: Extent) -> Vec<Point> {
    let is_quick = extent == Extent::Quick;
    let seconds = if is_quick { 20 } else { 1000 };
    let case = |ground, series, loss| Case { ground, series, loss, seconds };
    let mut points = Vec::new();
    let mut add = |panel: &'static str, x: f64, case: Case| {
        let panels = PANELS.iter().take_while(|it| **it != panel).count();
        let curves = ALL.iter().chain(&MECHANISMS).take_while(|it| **it != case.series).count();
        let rank = panels * (ALL.len() + MECHANISMS.len()) + curves;
        points.push(case.point(panel, x, rank));
    };
    let hops: &[usize] = if is_quick { &[3, 6] } else { &[3, 4, 5, 6, 8, 10, 12, 15] };
    for (panel, loss) in CHAINS {
        for series in ALL {
            for hops in hops {
                add(panel, *hops as f64, case(Ground::Chain(*hops), series, loss));
            }
        }
    }
    for series in ALL {
        // Plain TCP takes minutes.
        add(
            FETCH,
            0.0,
            Case { seconds: seconds.max(300), ..case(Ground::Fetch(HOPS), series, "0.05") },
        );
        add(GRID, 0.0, case(Ground::Grid, series, "0.05"));
    }
    for series in ALL.into_iter().chain(MECHANISMS) {
        for (percent, loss) in [(0.0, "0"), (2.0, "0.02"), (5.0, "0.05")] {
            if !is_quick || percent == 2.0 {
                add(EACH, percent, case(Ground::Chain(HOPS), series, loss));
            }
        }
    }
    points
}

/// The panels in their order.
const PANELS: [&str; 6] = [CHAINS[0].0, CHAINS[1].0, CHAINS[2].0, FETCH, GRID, EACH];
