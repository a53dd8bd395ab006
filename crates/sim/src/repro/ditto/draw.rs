//! The paper's figures, with our curves.

use super::super::Estimate;
use super::super::{Picture, Samples, targets};
use super::fetch::SERVED;
use super::heard::Heard;
use super::observe::{COARSE, DITTO, END_TO_END};
use super::served::Served;
use super::tell::{EFFICIENCY, OVERHEAD, paper_median};
use super::{FETCHINGS, TESTBEDS};
use crate::report::{Chart, Curve, Distribution, Series};

pub(super) fn pictures(samples: &Samples) -> Vec<Picture> {
    let mut pictures = reconstruction(samples);
    let has = |panel: &str| samples.panels().contains(&panel);
    for testbed in TESTBEDS.iter().filter(|it| has(it.scenario)) {
        pictures.extend(of_testbed(samples, testbed.scenario, testbed.paper));
    }
    let fetchings = FETCHINGS.iter().filter(|it| has(it.panel));
    for fetching in fetchings {
        pictures.extend(throughput(samples, fetching.panel));
    }
    pictures
}

/// Figure 11.
fn reconstruction(samples: &Samples) -> Vec<Picture> {
    let has = |panel: &str| samples.panels().contains(&panel);
    let series = |testbed: &super::Testbed| {
        let figure = |metric| targets::ditto(testbed.paper, "ditto", metric);
        let share = |metric| figure(metric).map(|it: f64| 1.0 - it / 100.0);
        let any = share("observers_reconstructing_any").map(|it| (0.0, it));
        let half = share("observers_reconstructing_over_half").map(|it| (50.0, it));
        Series {
            name: testbed.scenario.to_owned(),
            values: Heard::new(samples, testbed.scenario, DITTO).means(EFFICIENCY),
            paper: any.into_iter().chain(half).collect(),
        }
    };
    let series = TESTBEDS.iter().filter(|it| has(it.scenario)).map(series).collect();
    vec![efficiency("fig11", "Figure 11: chunks of a transfer that observers reconstruct", series)]
}

/// Figures 12 to 16, which the paper has of the campus alone.
fn of_testbed(samples: &Samples, panel: &'static str, paper: &str) -> Vec<Picture> {
    let heard = Heard::new(samples, panel, DITTO);
    let coarse = Heard::new(samples, panel, COARSE);
    let direct = Heard::new(samples, panel, END_TO_END);
    let target = |scheme, metric, share| {
        targets::ditto(paper, scheme, metric).map(|it| (it, share)).into_iter().collect::<Vec<_>>()
    };
    let series = |name: &str, values, paper| Series { name: name.to_owned(), values, paper };
    let best = "chunks_reconstructed_by_best_20pct_observers";
    let below = "memory_overhead_of_60pct_observers_below";
    vec![
        proximity(&heard, panel),
        efficiency(
            &format!("fig13-{panel}"),
            &format!("Figure 13, {panel}: chunks reconstructed, by their size"),
            vec![
                series("8 KiB", heard.means(EFFICIENCY), target("ditto-8KB", best, 0.8)),
                series("32 KiB", coarse.means(EFFICIENCY), target("ditto-32KB", best, 0.8)),
            ],
        ),
        overhead(
            &format!("fig14-{panel}"),
            &format!("Figure 14, {panel}: memory overhead, by the size of chunks"),
            vec![
                series("8 KiB", heard.means(OVERHEAD), target("ditto-8KB", below, 0.6)),
                series("32 KiB", coarse.means(OVERHEAD), target("ditto-32KB", below, 0.6)),
            ],
        ),
        efficiency(
            &format!("fig15-{panel}"),
            &format!("Figure 15, {panel}: chunks reconstructed, by scheme"),
            vec![
                series("ditto", heard.means(EFFICIENCY), Vec::new()),
                series("each stream alone", heard.means("efficiency_alone"), Vec::new()),
                series("end-to-end", direct.means(EFFICIENCY), Vec::new()),
                series("ditto, first packet not needed", heard.means("efficiency"), Vec::new()),
            ],
        ),
        overhead(
            &format!("fig16-{panel}"),
            &format!("Figure 16, {panel}: memory overhead, by scheme"),
            vec![
                series("ditto", heard.means(OVERHEAD), Vec::new()),
                series("each stream alone", heard.means("overhead_alone"), Vec::new()),
            ],
        ),
    ]
}

/// Figure 12: each router's median and maximum over all transfers that it observed, sorted.
fn proximity(heard: &Heard<'_>, panel: &str) -> Picture {
    let of_node = |node: f64| {
        let all = heard.of_node(node, EFFICIENCY);
        let most = all.iter().copied().fold(0.0, f64::max);
        (crate::report::stats::median(all).unwrap_or(0.0), most)
    };
    let mut nodes: Vec<_> = heard.nodes().into_iter().map(of_node).collect();
    nodes.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let curve = |name: &str, of: fn(&(f64, f64)) -> f64| Curve {
        name: name.to_owned(),
        points: nodes
            .iter()
            .enumerate()
            .map(|(place, it)| (place as f64 + 1.0, Estimate::of(&[of(it)])))
            .collect(),
    };
    let chart = Chart {
        label: format!("chunks reconstructed by each router, {panel}"),
        x: "routers, by their median".to_owned(),
        y: "chunks reconstructed, %".to_owned(),
        curves: vec![curve("median", |it| it.0), curve("maximum", |it| it.1)],
    };
    Picture {
        name: format!("fig12-{panel}"),
        caption: format!("Figure 12, {panel}: each router over the transfers that it observed"),
        svg: chart.svg(),
    }
}

fn efficiency(name: &str, caption: &str, series: Vec<Series>) -> Picture {
    distribution(name, caption, "chunks reconstructed, %", "observers", series)
}

fn overhead(name: &str, caption: &str, series: Vec<Series>) -> Picture {
    distribution(name, caption, "bytes kept in vain, % of those heard", "observers", series)
}

fn distribution(name: &str, caption: &str, x: &str, of: &str, series: Vec<Series>) -> Picture {
    let picture =
        Distribution { label: caption.to_owned(), x: x.to_owned(), of: of.to_owned(), series };
    Picture { name: name.to_owned(), caption: caption.to_owned(), svg: picture.svg() }
}

/// Figures 17 to 20: the distribution, and where there is one order each receiver in it.
fn throughput(samples: &Samples, panel: &'static str) -> Vec<Picture> {
    let served = |series| Served::new(samples, panel, series);
    let series = SERVED.iter().map(|it| Series {
        name: it.series.to_owned(),
        values: served(it.series).throughputs(),
        paper: paper_median(panel, it.series).map(|it| (it, 0.5)).into_iter().collect(),
    });
    let (figure, name) = (figure(panel), panel.replace(' ', "-"));
    let mut pictures = vec![distribution(
        &format!("throughput-{name}"),
        &format!("{figure}{panel}: throughput of receivers"),
        "throughput, kbit/s",
        "receivers",
        series.collect(),
    )];
    if panel == "emulab8 one by one" {
        let curve = |it: &super::fetch::Served| {
            let each = served(it.series).each("kbps").into_iter().enumerate();
            let points = each.map(|(place, (_, kbps))| (place as f64 + 1.0, kbps)).collect();
            Curve { name: it.series.to_owned(), points }
        };
        let order: Vec<_> =
            served("ditto").each("kbps").iter().map(|(node, _)| node.to_string()).collect();
        let chart = Chart {
            label: format!("throughput of each receiver, {panel}"),
            x: format!("receivers in the order in which they ask: {}", order.join(", ")),
            y: "throughput, kbit/s".to_owned(),
            curves: SERVED.iter().map(curve).collect(),
        };
        pictures.push(Picture {
            name: format!("fig17-{name}"),
            caption: format!("Figure 17, {panel}: each receiver"),
            svg: chart.svg(),
        });
    }
    pictures
}

fn figure(panel: &str) -> &'static str {
    match panel {
        "emulab8 one by one" | "map21 one by one" => "Figure 18, ",
        "emulab8 every 5 s" => "Figure 19, ",
        "emulab8 in ten orders" => "Figure 20, ",
        _ => "",
    }
}
