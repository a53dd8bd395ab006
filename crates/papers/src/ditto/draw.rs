//! The paper's figures with our curves.

use super::fetch::{PUBLISHED, SERVED};
use super::heard::Heard;
use super::observe::{COARSE, DITTO, END_TO_END};
use super::served::Served;
use super::summary::{EFFICIENCY, OVERHEAD, paper_median};
use super::targets;
use super::{FETCHINGS, TESTBEDS};
use crate::experiment::{Estimate, Picture, Samples};
use report::{Bars, Distribution, Group, Mean, Row, Series, Shares};

/// Upper end of the axis, more than any hop carries. Faster transfers came from the router's own store.
const HIGHEST_KBPS: f64 = 8000.0;

/// The order of receivers in pictures of each.
const ORDER: &str = "receivers in the order in which they ask";

/// The schemes of figure 17, and ours. Variants of ours are shown in the distributions only.
const THE_PAPERS: [&str; 4] = ["end-to-end", "on-path", PUBLISHED, "ditto"];

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
        let figure = |metric| targets::figure(testbed.paper, "ditto", metric);
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

/// Figures 12 to 16, which the paper shows for the campus only.
fn of_testbed(samples: &Samples, panel: &'static str, paper: &str) -> Vec<Picture> {
    let heard = Heard::new(samples, panel, DITTO);
    let coarse = Heard::new(samples, panel, COARSE);
    let direct = Heard::new(samples, panel, END_TO_END);
    let target = |scheme, metric, share| {
        targets::figure(paper, scheme, metric).map(|it| (it, share)).into_iter().collect::<Vec<_>>()
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
        (report::stats::median(all).unwrap_or(0.0), most)
    };
    let mut nodes: Vec<_> = heard.nodes().into_iter().map(of_node).collect();
    nodes.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let bar = |value: f64| (Estimate::of(&[value]).into(), None);
    let group = |(place, (median, most)): (usize, &(f64, f64))| Group {
        name: (place + 1).to_string(),
        bars: vec![bar(*median), bar(*most)],
    };
    let bars = Bars {
        label: format!("chunks reconstructed by each router, {panel}"),
        y: "chunks reconstructed, %".to_owned(),
        x: "routers, by their median".to_owned(),
        series: ["median", "maximum"].map(str::to_owned).into(),
        groups: nodes.iter().enumerate().map(group).collect(),
    };
    Picture {
        name: format!("fig12-{panel}"),
        caption: format!("Figure 12, {panel}: each router over the transfers that it observed"),
        svg: bars.svg(),
    }
}

fn efficiency(name: &str, caption: &str, series: Vec<Series>) -> Picture {
    of_observers(name, caption, "chunks reconstructed, %", series)
}

fn overhead(name: &str, caption: &str, series: Vec<Series>) -> Picture {
    of_observers(name, caption, "bytes kept in vain, % of those heard", series)
}

fn of_observers(name: &str, caption: &str, x: &str, series: Vec<Series>) -> Picture {
    let (x, of) = (x.to_owned(), "observers".to_owned());
    let label = caption.to_owned();
    let picture = Distribution { label, x, until: Some(100.0), of, series };
    Picture { name: name.to_owned(), caption: caption.to_owned(), svg: picture.svg() }
}

/// Figures 17 to 20: the distribution; and each receiver, if there is only one order.
fn throughput(samples: &Samples, panel: &'static str) -> Vec<Picture> {
    let served = |series| Served::new(samples, panel, series);
    let series = SERVED.iter().map(|it| Series {
        name: it.series.to_owned(),
        values: served(it.series).throughputs(),
        paper: paper_median(panel, it.series).map(|it| (it, 0.5)).into_iter().collect(),
    });
    // Of runs with real daemons, some series may be missing.
    let series = series.filter(|it| !it.values.is_empty());
    let caption = format!("{}{panel}: throughput of receivers", figure(panel));
    let picture = Distribution {
        label: caption.clone(),
        x: "throughput, kbit/s".to_owned(),
        until: None,
        of: "receivers".to_owned(),
        series: series.collect(),
    };
    let name = format!("throughput-{}", panel.replace(' ', "-"));
    let mut pictures = vec![Picture { name, caption, svg: picture.svg() }];
    if panel.ends_with("one by one") {
        pictures.push(each(samples, panel));
    }
    if !panel.ends_with("orders") {
        pictures.push(sources(samples, panel));
    }
    pictures
}

/// Figure 17: each receiver, in the order of the requests.
fn each(samples: &Samples, panel: &'static str) -> Picture {
    let cut = |it: Estimate| match it.mean > HIGHEST_KBPS {
        true => Estimate { mean: HIGHEST_KBPS, sure: None, ..it },
        false => it,
    };
    let of = |series: &'static str| Served::new(samples, panel, series).each("kbps");
    let each = THE_PAPERS.map(of);
    let bar = |(_, kbps): &(f64, Estimate)| (cut(*kbps).into(), None);
    // Of real daemons some schemes may not have been run yet.
    let unknown = (Mean { mean: f64::NAN, interval: None }, None);
    let group = |(place, (node, _)): (usize, &(f64, Estimate))| Group {
        name: node.to_string(),
        bars: each.iter().map(|it| it.get(place).map_or(unknown, bar)).collect(),
    };
    let first = each.iter().max_by_key(|it| it.len());
    let caption = format!("Figure 17, {panel}: each receiver");
    let bars = Bars {
        label: caption.clone(),
        y: format!("throughput, kbit/s (above {HIGHEST_KBPS} drawn there)"),
        x: ORDER.to_owned(),
        series: THE_PAPERS.map(str::to_owned).into(),
        groups: first.into_iter().flatten().enumerate().map(group).collect(),
    };
    Picture { name: format!("fig17-{}", panel.replace(' ', "-")), caption, svg: bars.svg() }
}

/// The sources of each receiver's bytes with ditto.
fn sources(samples: &Samples, panel: &'static str) -> Picture {
    let columns = ["overheard", "repaired", "held", "peers", "gateway", "origin"];
    let served = Served::new(samples, panel, "ditto");
    let each = columns.map(|column| served.each(column));
    let row = |(place, (node, _)): (usize, &(f64, Estimate))| Row {
        name: format!("receiver {node}"),
        amounts: each.iter().map(|it| it[place].1.mean).collect(),
    };
    let caption = format!("Where each receiver's bytes came from, ditto, {panel}");
    let shares = Shares {
        label: caption.clone(),
        of: format!("bytes; {ORDER}"),
        sources: columns.map(str::to_owned).into_iter().zip([2, 5, 0, 6, 3, 1]).collect(),
        rows: each[0].iter().enumerate().map(row).collect(),
    };
    Picture { name: format!("sources-{}", panel.replace(' ', "-")), caption, svg: shares.svg() }
}

fn figure(panel: &str) -> &'static str {
    match panel {
        "emulab8 one by one" | "map21 one by one" => "Figure 18, ",
        "emulab8 every 5 s" => "Figure 19, ",
        "emulab8 in ten orders" => "Figure 20, ",
        _ => "",
    }
}
