//! MeshCache's section 6.1: one connection from end to end against one connection a hop, over a chain; and
//! our chunks, end to end (`thcp`) and hop by hop (`ph-thcp`).

use std::time::Duration;

use radio::{LossScope, Station};
use wire::Scheme;

use crate::experiment::parameters::keys;
use crate::experiment::{
    Chosen, Comparison, Expectation, Findings, Key, Parameter, Picture, Point, Samples, Standing,
};
use report::provenance::Setting;
use report::{Chart, text};
use sim::net::tcp;
use sim::router::relay::{Download, RELAY_BUFFER, SOCKET_BUFFER, Transport};
use sim::router::run::{self, Options, Watchers};
use sim::scenario::{self, Scenario};

/// The figures of a run.
pub(super) const COLUMNS: &[&str] = &["kbps", "packets", "whole"];
/// The transports that are compared.
pub(super) const SERIES: [&str; 4] = ["direct", "per-hop", "thcp", "ph-thcp"];
/// The ratios: hop by hop over end to end, for plain bytes and for chunks.
const PAIRS: [[&str; 2]; 2] = [["per-hop", "direct"], ["ph-thcp", "thcp"]];
/// A transfer fails after this long.
const TIMEOUT: Duration = Duration::from_secs(1_000);
/// Number of the random stream of links' losses.
const LOSSES: u16 = 7;

/// A chain, and the file that is fetched over it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    /// Its picture.
    pub panel: &'static str,
    /// Its place on the axis.
    pub x: f64,
    /// Number of hops.
    pub hops: usize,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Whether signals fade (Rayleigh).
    pub fading: bool,
    /// Random frame loss of each link.
    pub loss: Loss,
}

/// Random frame loss of links, in addition to that of the radio.
#[derive(Clone, Copy, Debug)]
pub(super) enum Loss {
    /// This share on each link.
    Each(f64),
    /// Up to this share, uniform, drawn for each link by the seed.
    UpTo(f64),
}

/// A point for each chain and transport. Panels are in the given order.
pub(super) fn points(chains: &[Chain]) -> Vec<Point> {
    let mut panels: Vec<_> = chains.iter().map(|it| it.panel).collect();
    panels.dedup();
    let rank = |panel| panels.iter().position(|it| *it == panel).unwrap_or(0) * SERIES.len();
    let of_chain = |chain: &Chain| {
        let chain = *chain;
        SERIES.into_iter().enumerate().map(move |(place, series)| {
            let rank = rank(chain.panel) + place;
            let key = Key { panel: chain.panel, series, x: chain.x, rank };
            Point::single(key, move |seed| chain.run(series, seed))
                .within(move |seed| chain.setting(series, seed))
        })
    };
    chains.iter().flat_map(of_chain).collect()
}

impl Chain {
    fn run(self, series: &str, seed: u64) -> Result<Vec<f64>, String> {
        match series {
            "direct" => self.download(Transport::Direct, seed),
            "per-hop" => self.download(Transport::PerHop, seed),
            "thcp" => self.chunks(Scheme::Thcp, seed),
            _ => self.chunks(Scheme::PhThcp, seed),
        }
    }

    /// Its setting. The random losses are not a key of the scenario.
    fn setting(self, series: &str, seed: u64) -> Result<Setting, String> {
        let mut setting = self.scenario(seed)?.setting(series.parse().ok());
        let loss = match self.loss {
            Loss::Each(loss) => loss.to_string(),
            Loss::UpTo(most) => format!("up to {most}"),
        };
        setting.keys.insert("loss of each link".to_owned(), loss);
        Ok(setting)
    }

    /// Runs the download of plain bytes.
    fn download(self, transport: Transport, seed: u64) -> Result<Vec<f64>, String> {
        let scenario = self.scenario(seed)?;
        let download = Download {
            radio: scenario.radio,
            links: scenario.links,
            transport,
            bytes: self.bytes,
            seed,
            // The paper does not switch Nagle's algorithm off. The engines do for what they send at once.
            tcp: tcp::Config { nodelay: false, ..scenario.tcp },
            timeout: TIMEOUT,
        };
        let got = download.run();
        Ok(vec![got.kbps, got.packets as f64, f64::from(u8::from(got.is_whole))])
    }

    /// Runs the download through the engines, from an origin beside the gateway, with empty stores.
    fn chunks(self, scheme: Scheme, seed: u64) -> Result<Vec<f64>, String> {
        let scenario = self.scenario(seed)?;
        let result =
            run::run(&scenario, scheme, seed, Options::default(), Watchers::default(), |_| {})
                .map_err(|error| error.to_string())?;
        let Some(transfer) = result.transfers.first() else { return Err("no transfer".to_owned()) };
        let is_whole = f64::from(u8::from(transfer.sha256_ok));
        Ok(vec![transfer.kbps, result.radio.packets_per_file, is_whole])
    }

    fn scenario(self, seed: u64) -> Result<Scenario, String> {
        let fading = if self.fading { "rayleigh" } else { "none" };
        let settings = [
            ("hops", self.hops.to_string()),
            ("bytes", self.bytes.to_string()),
            ("fading", fading.to_owned()),
            ("send_buffer", SOCKET_BUFFER.to_string()),
            ("receive_buffer", SOCKET_BUFFER.to_string()),
            ("range_m", RANGES_M[0].to_string()),
            ("carrier_sense_m", RANGES_M[1].to_string()),
            ("rto_min_s", RTO_MIN_S.to_string()),
            ("uplink_delay_ms", "0".to_owned()),
        ];
        let settings: Vec<_> = MEDIUM
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .chain(settings.into_iter().map(|(key, value)| (key.to_owned(), value)))
            .collect();
        let mut scenario =
            Scenario::load_seeded("chain", &settings, seed).map_err(|error| error.to_string())?;
        scenario.radio.loss_scope = LossScope::All;
        for hop in 0..self.hops {
            let loss = match self.loss {
                Loss::Each(loss) => loss,
                Loss::UpTo(most) => most * unit(scenario::seed(seed, hop, LOSSES)),
            };
            let (a, b) = (Station(hop as u16), Station(hop as u16 + 1));
            for (from, to) in [(a, b), (b, a)] {
                if let Some(link) = scenario.links.get(from, to).copied() {
                    scenario.links.set(from, to, radio::Link { loss, ..link });
                }
            }
        }
        Ok(scenario)
    }
}

/// The radio of all runs that repeat those of GloMoSim.
///
/// There a receiver follows the first frame that it can decode, and all else is noise. A frame must be 10 dB
/// above the noise. Unicast packets use RTS, and then have four transmissions instead of seven.
pub(super) const MEDIUM: [(&str, &str); 4] =
    [("receiver", "nolock"), ("reception", "capture"), ("dcf", "standard"), ("rts", "true")];

/// Ranges of reception and carrier sense on the chains, in metres, from GloMoSim's example file (15 dBm, -81
/// and -91 dBm, two-ray ground reflection with antennas at 1.5 m). Without fading only the next router
/// receives a frame, with 11 dB to spare.
pub(super) const RANGES_M: [f64; 2] = [377.0, 670.0];

/// The smallest retransmission timeout on the chains, in seconds, as in RFC 6298 and in GloMoSim's TCP, which
/// is that of FreeBSD 2.2.2. A single segment's acknowledgement may be delayed by 0.2 s, and a relay may wait
/// as long for the medium; with a smaller timeout, timers of single hops would expire spuriously.
const RTO_MIN_S: u32 = 1;

/// A number from 0 to below 1, made from 53 bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// The expectation for a panel and a place on the axis.
pub(super) type Expected = fn(panel: &str, x: f64) -> Expectation;
/// The standing of its row.
pub(super) type Standings = fn(panel: &str, x: f64) -> Standing;
/// Three radios and two TCPs were run and compared before these were chosen.
pub(super) const AFTER_LOOKING: Standing =
    Standing::Set("radio and TCP were chosen after such rows were known");

/// The rows of throughput and load: the ratio of hop by hop to end to end, for each panel and place.
pub(super) fn rows(
    samples: &Samples,
    unit: &str,
    [throughput, load]: [Expected; 2],
    standing: Standings,
) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for (column, name, expected) in [("kbps", "throughput", throughput), ("packets", "load", load)]
    {
        for [over, under] in PAIRS {
            for panel in samples.panels() {
                let heading = format!("{name}, {over} over {under}, {panel}");
                rows.extend(samples.xs(panel).into_iter().map(|x| Comparison {
                    heading: heading.clone(),
                    what: format!("{x} {unit}"),
                    ours: samples.ratio(panel, [over, under], x, column),
                    unit: "",
                    expected: expected(panel, x),
                    standing: standing(panel, x),
                }));
            }
        }
    }
    rows
}

/// Throughput and load of each panel.
pub(super) fn pictures(samples: &Samples, axis: &str) -> Vec<Picture> {
    let kinds =
        [("kbps", "throughput", "throughput, kbit/s"), ("packets", "load", "packets a file")];
    let mut pictures = Vec::new();
    for (column, name, title) in kinds {
        for panel in samples.panels() {
            let chart = Chart {
                label: format!("{name}, {panel}"),
                x: axis.to_owned(),
                y: title.to_owned(),
                curves: SERIES.iter().map(|series| samples.curve(panel, series, column)).collect(),
            };
            pictures.push(Picture {
                name: format!("{name}-{}", panel.replace(' ', "-")),
                caption: format!("{}, {panel}", text::capital(name)),
                svg: chart.svg(),
            });
        }
    }
    pictures
}

/// The findings of one of the figures.
pub(super) fn findings(
    samples: &Samples,
    rows: Vec<Comparison>,
    axis: &str,
    own: Vec<Parameter>,
) -> Findings {
    let whole = |series| {
        let panels = samples.panels().into_iter();
        let each = panels.flat_map(|panel| {
            samples
                .xs(panel)
                .into_iter()
                .flat_map(move |x| samples.values(panel, series, x, "whole"))
        });
        each.filter(|it| *it < 1.0).count()
    };
    let broken: Vec<_> =
        SERIES.into_iter().map(|it| (it, whole(it))).filter(|(_, count)| *count > 0).collect();
    let notes = broken.into_iter().map(|(series, count)| {
        format!("{series}: {count} transfers failed; the bytes that they got count")
    });
    Findings {
        pictures: pictures(samples, axis),
        rows,
        parameters: own.into_iter().chain(parameters()).collect(),
        medium: medium(),
        notes: notes.collect(),
    }
}

/// A sentence on the radio.
pub(super) fn medium() -> String {
    "receiver nolock (an idle one follows the first frame that it can decode; weaker ones only add \
     interference), reception capture (a frame arrives if it is 10 dB above all interference \
     together), two-ray ground: received up to 250 m, sensed up to 550 m (on chains 377 m and 670 m); 802.11b at 11 Mbit/s, \
     basic rate 1 Mbit/s, long preambles, RTS and CTS before each packet, queues of 50"
        .to_owned()
}

fn parameters() -> Vec<Parameter> {
    let parameter = |name, value: String, chosen, why| Parameter { name, value, chosen, why };
    let listed = vec![
        parameter(
            "socket buffers",
            format!("{} KB each way", SOCKET_BUFFER / 1024),
            Chosen::Paper,
            "the paper's; for chunks too",
        ),
        parameter(
            "relay's buffer",
            format!("{} KB", RELAY_BUFFER / 1024),
            Chosen::Paper,
            "the paper's; chunks wait in the router's store",
        ),
        parameter(
            "TCP",
            format!(
                "NewReno, segments of 1460 bytes, initial window 2, delayed acknowledgements, Nagle's \
                 algorithm, retransmission timeout {RTO_MIN_S} s and more; chunks set no delay"
            ),
            Chosen::AfterLooking,
            "the paper says TCP; the timeout and Nagle's algorithm are GloMoSim's. Chosen after the \
             packets had been taken apart: docs/notebook/2026-11-22.md has what 0.2 s and no delay give",
        ),
        parameter(
            "ranges",
            format!("{} m and {} m", RANGES_M[0], RANGES_M[1]),
            Chosen::AfterLooking,
            "two-ray, 200 m between neighbours, no power: GloMoSim's example file, 11 dB to spare. One of \
             three radios that were tried; docs/notebook/2026-11-22.md has what the others give",
        ),
        parameter(
            "routes",
            "fixed".to_owned(),
            Chosen::Once,
            "the paper ran AODV; on a chain there is one route",
        ),
        parameter(
            "RTS and CTS",
            "before each packet, which then has 4 tries".to_owned(),
            Chosen::AfterLooking,
            "GloMoSim's rule; without it a packet has 7 tries, and figure 5's losses never reach TCP",
        ),
        parameter(
            "losses",
            "of all frames, acknowledgements too, the same both ways".to_owned(),
            Chosen::Paper,
            "the paper says: at the radio layer",
        ),
    ];
    let chain =
        Chain { panel: "", x: 0.0, hops: 4, bytes: 1, fading: false, loss: Loss::Each(0.0) };
    let scenario: Vec<_> = chain.scenario(1).into_iter().collect();
    listed.into_iter().chain(keys(&scenario, &STATED, &OWN_ENTRY)).collect()
}

/// Keys whose values the paper gives, or that the figure varies.
const STATED: [&str; 6] = ["hops", "spacing_m", "bytes", "fading", "propagation", "phy"];
/// Keys that have an entry of their own.
const OWN_ENTRY: [&str; 10] = [
    "range_m",
    "carrier_sense_m",
    "rts",
    "loss",
    "mss",
    "rto_min_s",
    "initial_window",
    "delayed_ack",
    "send_buffer",
    "receive_buffer",
];
