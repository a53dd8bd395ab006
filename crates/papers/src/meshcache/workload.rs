//! Parameters of table 2 that the paper does not give, and our values.

use super::caches::PLACES;
use crate::experiment::parameters::keys;
use crate::experiment::{Chosen, Parameter};
use sim::scenario::Scenario;

/// All parameters. `wanted_mb` is what clients get in the hour, in MB.
pub(super) fn parameters(wanted_mb: f64) -> Vec<Parameter> {
    let mut all = of_clients(wanted_mb);
    all.extend(of_mesh());
    let scenarios: Vec<_> = PLACES.iter().filter_map(|it| Scenario::load(it.1, &[]).ok()).collect();
    all.extend(keys(&scenarios, &STATED, &OWN_ENTRY));
    all
}

fn parameter(name: &'static str, value: &str, chosen: Chosen, why: &'static str) -> Parameter {
    Parameter { name, value: value.to_owned(), chosen, why }
}

fn of_clients(wanted_mb: f64) -> Vec<Parameter> {
    vec![
        parameter(
            "places of the gateway",
            "nearest to the middle (S1), to a corner (S2), to 0.4, 0.65 of the square (S3)",
            Chosen::Once,
            "figure 7 is a drawing; the text says that S2 is imbalanced, S1 and S3 are not",
        ),
        parameter(
            "routers",
            "50 uniformly at random for each seed, redrawn until connected",
            Chosen::Paper,
            "the paper averages over random scenarios, too",
        ),
        parameter(
            "think times",
            &format!(
                "log-normal, mean 1100 s, sigma 1.5: clients get {wanted_mb:.1} MB in the hour"
            ),
            Chosen::Fitted,
            "after Mah, without numbers; by what default's gateway gives: 58 to 61 MB",
        ),
        parameter(
            "files of a page",
            "geometric, mean 3",
            Chosen::Once,
            "after Mah, without numbers",
        ),
        parameter(
            "popularity",
            "shifted by a rank from each square of 250 m to the next",
            Chosen::Once,
            "nearby nodes like nearly the same, without numbers",
        ),
        parameter(
            "sizes",
            "uniform from 1 to 100 KB of 1024 bytes",
            Chosen::Once,
            "no distribution is said",
        ),
    ]
}

fn of_mesh() -> Vec<Parameter> {
    vec![
        parameter(
            "clients' wire",
            "11 Mbit/s, shared by a router's clients",
            Chosen::Once,
            "the paper simulates no clients; without a wire, who has only local hits is infinitely fast",
        ),
        parameter(
            "origin",
            "at the gateway: 1 Gbit/s, no delay",
            Chosen::AfterLooking,
            "none is said; 10 ms away, as it was first, throughput with caches was below default's",
        ),
        parameter("ranges", "250 m and 550 m", Chosen::Once, "two-ray, without powers"),
        parameter(
            "TCP",
            "NewReno, segments of 1460 bytes, initial window 2, buffers of 128 KB, retransmission \
             timeout 0.2 s and more",
            Chosen::Once,
            "the paper says TCP",
        ),
        parameter(
            "routes",
            "shortest, fixed",
            Chosen::Once,
            "the paper ran AODV: its packets are in its load",
        ),
        parameter(
            "gateway load",
            "bytes of files that were no hits",
            Chosen::Paper,
            "so the text has it; retransmissions and heads are not in it",
        ),
        parameter(
            "peers that are idle",
            "announce themselves to each other every 300 s",
            Chosen::AfterLooking,
            "ours; with 60 s and 20 s the network's load had been higher",
        ),
    ]
}

/// Keys whose values the paper gives.
const STATED: [&str; 13] = [
    "nodes",
    "area_m",
    "clients",
    "traffic",
    "seconds",
    "files",
    "readers",
    "bytes_min",
    "bytes_max",
    "zipf",
    "max_age_s",
    "store_kb",
    "propagation",
];
/// Keys that have an entry of their own.
const OWN_ENTRY: [&str; 16] = [
    "gateway",
    "gateway_x",
    "gateway_y",
    "receivers",
    "alike_m",
    "page_files",
    "think_mean_s",
    "think_sigma",
    "access_mbps",
    "range_m",
    "carrier_sense_m",
    "uplink_mbps",
    "uplink_delay_ms",
    "mss",
    "rto_min_s",
    "initial_window",
];
