//! A run, inside its namespaces: builds, starts, transfers, writes. It removes nothing: the kernel does that
//! when this process ends.

use std::io;
use std::path::Path;
use std::time::{Instant, SystemTime};

use radio::Medium;
use report::provenance::Provenance;
use sim::hosts::content::Source;
use sim::losses::AboveMac;
use sim::result::{self, RunResult, Transfer};
use sim::scenario::{FarEnd, Routing, Scenario};
use wire::Scheme;

use super::air::{Air, Engines, Ports, Snapshot};
use super::captures::Captures;
use super::child::Background;
use super::clients::Plan;
use super::lifeline::Lifeline;
use super::origin::Files;
use super::require::Programs;
use super::{address, clients, far, launch, network, origin, require, routers, verdict};
use crate::cli::Run;
use crate::console::output::is_stdout;
use crate::console::progress::Progress;
use crate::console::{self, table};
use crate::failure::Failure;
use crate::ground::{ground, lines};
use crate::origin::origin;

/// The environment variable with the command that enters the namespaces from outside.
pub const ENTER: &str = "HEARSAY_LAB_ENTER";

/// `hearsay-lab inside`.
pub fn run(args: &Run) -> Result<(), Failure> {
    // In another process this would hide the machine's own /run.
    if std::process::id() != 1 || std::env::var_os(ENTER).is_none() {
        return Err(Failure::refused("`inside` is for `hearsay-lab run` to start"));
    }
    let lifeline = Lifeline::watch();
    let began = Instant::now();
    let scenario =
        Scenario::load_seeded(&args.scenario, &args.set, args.seed).map_err(Failure::refused)?;
    let scheme = launch::scheme(args, &scenario)?;
    let programs = require::programs(&scenario, scheme)?;
    let progress = Progress::new(args.quiet);
    network::make_private_places(&scenario)?;
    let mut air = build(args, &scenario, &progress)?;
    let mut running = start(scheme, &scenario, &programs, &progress)?;
    let (transfers, snapshots) = transfer(args, &scenario, &programs, &progress, &mut air)?;
    // If a program has ended, the measurement is invalid.
    running.iter_mut().try_for_each(Background::check)?;
    let counted = routers::counted(&scenario, &programs.hearsay)?;
    let ends = [&snapshots[0], &snapshots[1]];
    let result =
        verdict::result(args, scheme, &scenario, transfers, ends, counted, began.elapsed());
    write(args, &scenario, &result, [&snapshots[0], &snapshots[1]])?;
    if args.keep {
        keep(&scenario, lifeline);
        let [_, before] = &snapshots;
        console::err(&format!("medium   {}", verdict::medium([before, &air.snapshot()?])));
    }
    drop(air);
    verdict::judge(&result)
}

fn build(args: &Run, scenario: &Scenario, progress: &Progress) -> Result<Air, Failure> {
    let step = progress.step("namespaces", network::size(scenario));
    let ports = network::build(scenario, || step.tick())?;
    step.done();
    let engines = engines(args, scenario, &ports)?;
    Ok(Air::start(ports, engines)?)
}

fn engines(args: &Run, scenario: &Scenario, ports: &Ports) -> io::Result<Engines> {
    let wanted: Vec<_> = args
        .pcap
        .iter()
        .filter_map(|(router, path)| {
            let station = scenario.routers.iter().position(|it| it.name == *router)?;
            Some((station, Path::new(path)))
        })
        .collect();
    let (zero, epoch) = (Instant::now(), SystemTime::now());
    Ok(Engines {
        medium: Medium::new(scenario.radio.clone(), scenario.links.clone(), args.seed),
        zero,
        epoch,
        uplink: scenario.uplink.pipes(args.seed),
        above_mac: AboveMac::new(scenario.loss_above_mac, ports.mesh.len(), args.seed),
        captures: Captures::start(ports.mesh.len(), &wanted, epoch)?,
    })
}

/// Starts all programs and waits until they are ready. They end when the returned values are dropped.
fn start(
    scheme: Scheme,
    scenario: &Scenario,
    programs: &Programs,
    progress: &Progress,
) -> io::Result<Vec<Background>> {
    let mut running = vec![origin::start(scenario, &programs.nginx)?];
    if scenario.routing == Routing::Babel {
        let step = progress.step("routes", scenario.receivers.len());
        let babeld = programs.babeld.as_deref().expect("it was looked for");
        let mut babelds = routers::start_babeld(scenario, babeld)?;
        routers::wait_for_routes(scenario, &mut babelds, || step.tick())?;
        step.done();
        running.append(&mut babelds);
    }
    let step = progress.step("daemons", scenario.routers.len());
    let hearsay = &programs.hearsay;
    if scenario.far == FarEnd::Pair {
        running.push(far::start(hearsay, &routers::store(scenario, scenario.gateway))?);
    }
    let mut daemons = routers::start_hearsay(scenario, scheme, hearsay, || step.tick())?;
    step.done();
    running.append(&mut daemons);
    Ok(running)
}

fn transfer(
    args: &Run,
    scenario: &Scenario,
    programs: &Programs,
    progress: &Progress,
    air: &mut Air,
) -> io::Result<(Vec<Transfer>, [Snapshot; 2])> {
    let source = Source::from(args.seed).with_changed(scenario.changed);
    let files = Files::make(scenario.workload.files, scenario.workload.bytes, source)?;
    let requests = scenario.requests(args.seed);
    let step = progress.step("transfers", requests.len());
    let before = air.snapshot()?;
    let scheme = scenario.scheme(args.scheme).map_err(io::Error::other)?;
    let plan = Plan { scenario, requests: &requests, files: &files, scheme, programs };
    let transfers = clients::run(plan, |transfer| {
        step.tick_with(format!("router {}: {:.0} kbit/s", transfer.client, transfer.kbps));
    });
    let after = air.snapshot()?;
    step.done();
    Ok((transfers, [before, after]))
}

fn write(
    args: &Run,
    scenario: &Scenario,
    run: &RunResult,
    snapshots: [&Snapshot; 2],
) -> Result<(), Failure> {
    let setting = scenario.setting(Some(launch::scheme(args, scenario)?));
    let provenance = Provenance::new(origin(), &[setting], [args.seed]);
    let stamped = provenance.clone().on(result::SCHEMA, run);
    let json = serde_json::to_string_pretty(&stamped).map_err(Failure::failed)? + "\n";
    let json_goes_to_stdout = args.json.as_deref().is_some_and(is_stdout);
    let captures = args.pcap.iter().map(|(_, path)| Path::new(path));
    let is_taken = args.html.as_deref().into_iter().chain(captures).any(is_stdout);
    // Files come first, because the reader of standard output may close it.
    if let Some(path) = args.json.as_deref().filter(|_| !json_goes_to_stdout) {
        console::write(path, &json)?;
    }
    if let Some(path) = &args.html {
        let ground = ground(scenario, lines(scenario, routers::routes(scenario)?));
        console::write(path, &provenance.on_html(&result::page::html(run, &ground)))?;
    }
    if !run.valid {
        console::note(&verdict::late(run));
    }
    let page = if json_goes_to_stdout {
        json
    } else if args.quiet || is_taken {
        String::new()
    } else {
        table::page(run, &verdict::medium(snapshots))
    };
    console::out(page.as_bytes())
}

/// Prints how to enter the mesh, and waits for ctrl-C.
fn keep(scenario: &Scenario, lifeline: Lifeline) {
    let enter = std::env::var(ENTER).unwrap_or_default();
    let namespace = address::router(scenario, scenario.gateway);
    console::note("the mesh runs until ctrl-C. A shell on its gateway:");
    console::err(&format!("  {enter} \\\n    ip netns exec {namespace} bash"));
    lifeline.wait();
}
