//! Runs in which clients request files, as in the lab.

use std::fmt::Write as _;
use std::time::Instant;

use report::provenance::{Provenance, Stamped};
use sim::result::{self, RunResult, Transfer, page};
use sim::router::run::{self, Options, Watchers};
use sim::scenario::Scenario;
use sim::world::{HOPS_MAX, Stat};

use super::events::EventLog;
use super::{Runs, captures, judge, seeds, wanted};
use crate::cli::Sim;
use crate::console::table;
use crate::console::{Summary, deliver};
use crate::failure::Failure;
use crate::ground::{ground, static_routes};
use crate::origin::origin;

type Figure = fn(&RunResult) -> f64;

/// Figures that are shown over seeds, and how to compute them.
const FIGURES: [(&str, Figure); 5] = [
    ("median kbit/s", RunResult::median_kbps),
    ("hits", RunResult::hit_share),
    ("bytes from origin", |it| it.gateway.bytes_from_origin as f64),
    ("bytes over air", |it| it.gateway.bytes_over_air as f64),
    ("packets a file", |it| it.radio.packets_per_file),
];

/// Runs all seeds, and writes the results.
pub fn run(args: &Sim, scenario: &Scenario) -> Result<(), Failure> {
    let scheme = scenario.scheme(args.scheme).map_err(Failure::refused)?;
    check(args, scenario)?;
    let origin = origin();
    let runs = seeds::each(args, scenario, |scenario, seed| {
        let began = Instant::now();
        let setting = scenario.setting(Some(scheme));
        let provenance = Provenance::new(origin.clone(), &[setting], [seed]);
        let (frames, files) = captures::tap(args, scenario, seed)?;
        let log = EventLog::create(args, scenario, &provenance)?;
        let watchers = Watchers { frames, events: log.as_ref().map(EventLog::sink) };
        let result = run::run(scenario, scheme, seed, Options::default(), watchers, |_| {});
        files.finish()?;
        log.map_or(Ok(()), EventLog::finish)?;
        let result = result.map_err(Failure::failed)?;
        let result = RunResult { wall_seconds: began.elapsed().as_secs_f64(), ..result };
        Ok((provenance, result))
    })?;
    let (each, runs) = runs.unzip();
    let scenario = &runs.scenario;
    let seeds = runs.results.iter().map(|it| it.seed);
    let all = Provenance::new(origin, &[scenario.setting(Some(scheme))], seeds);
    let html = page::compare(&runs.results, &ground(scenario, static_routes(scenario)));
    let summary = Summary {
        json: json(each, &runs.results)?,
        html: all.on_html(&html),
        table: text(scenario, &runs),
    };
    deliver(wanted(args), &summary)?;
    judge(runs.results.iter().flat_map(failed).collect(), args.strict)
}

/// Largest number of transfers: the results of all runs are kept until the last run ends.
const TRANSFERS_MAX: u64 = 1_000_000;

fn check(args: &Sim, scenario: &Scenario) -> Result<(), Failure> {
    let each = scenario.requests(args.seed).len() as u64;
    let all = each.saturating_mul(args.seeds);
    if all > TRANSFERS_MAX {
        let text = format!(
            "--seeds: {} runs of {each} transfers make {all}, more than {TRANSFERS_MAX}: take fewer",
            args.seeds
        );
        return Err(Failure::refused(text));
    }
    Ok(())
}

/// A run's failed transfers, and those with wrong bytes.
fn failed(run: &RunResult) -> Vec<Failure> {
    let seed = run.seed;
    let judge = |it: &Transfer| {
        let name = format!("seed {seed}: {} to router {}", it.url, it.client);
        match &it.error {
            Some(why) if it.hops > HOPS_MAX => Some(Failure::failed(format!(
                "{name}: {why}: more than {HOPS_MAX} hops from the gateway, after which packets expire"
            ))),
            Some(why) => Some(Failure::failed(format!("{name}: {why}"))),
            None if it.sha256_ok => None,
            None => Some(Failure::wrong_bytes(format!("{name}: not what the origin has"))),
        }
    };
    run.transfers.iter().filter_map(judge).collect()
}

/// For one run the object that `run` writes, for several a list of such objects.
fn json(each: Vec<Provenance>, results: &[RunResult]) -> Result<String, Failure> {
    let stamped = each.into_iter().zip(results).map(|(it, result)| it.on(result::SCHEMA, result));
    let text = match stamped.collect::<Vec<Stamped<_>>>().as_slice() {
        [result] => serde_json::to_string_pretty(result),
        several => serde_json::to_string_pretty(several),
    };
    Ok(text.map_err(Failure::failed)? + "\n")
}

fn text(scenario: &Scenario, runs: &Runs<RunResult>) -> String {
    let (receiver, reception) = (scenario.key("receiver"), scenario.key("reception"));
    let medium = format!(
        "receiver {receiver}, reception {reception}; {:.2} s of a processor",
        runs.cpu_seconds
    );
    if let [result] = runs.results.as_slice() {
        return table::page(result, &medium);
    }
    let mut text = format!("{:<20} {:>14} {:>12}\n", "", "mean", "sd");
    for (name, figure) in FIGURES {
        let stat = Stat::of(runs.results.iter().map(figure));
        let _ = writeln!(text, "{name:<20} {:>14.3} {:>12.3}", stat.mean, stat.sd);
    }
    text + &format!("\n{} seeds; {medium}\n", runs.results.len())
}
