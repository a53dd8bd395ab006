//! `hearsay-lab plan interlay`: the routers that become interlay nodes. The crate `plan` decides; here are files and
//! threads.

mod json;
mod words;

use std::fs;
use std::path::Path;

use plan::simulate::Simulation;
use plan::{LINKS_MAX, Matrix, Mesh, picture, text, two_flow};
use report::Ground;
use report::provenance::{Provenance, Setting};
use sim::scenario::Scenario;

use crate::cli::{MatrixSource, PlanInterlay};
use crate::commands::jobs::Jobs;
use crate::console::output::is_stdout;
use crate::console::{self, writable};
use crate::failure::Failure;
use crate::ground::ground;
use crate::origin::origin;

/// More runs than this take hours.
const RUNS_MAX: usize = 100_000;

/// A mesh, the interference between its links, and where both come from.
struct Given {
    mesh: Mesh,
    matrix: Matrix,
    source: &'static str,
    ground: Ground,
    setting: Option<Setting>,
}

/// Plans, and writes the plan.
pub fn interlay(args: &PlanInterlay) -> Result<(), Failure> {
    let [json, picture] = [&args.json, &args.picture].map(Option::as_deref);
    writable::results(json, picture, None)?;
    let given = if is_matrix(&args.mesh) { of_file(args)? } else { of_scenario(args)? };
    let plan = plan::place(&given.mesh, &given.matrix);
    let settings: Vec<_> = given.setting.clone().into_iter().collect();
    let provenance = Provenance::new(origin(), &settings, settings.iter().map(|_| args.seed));
    if let Some(path) = picture {
        let svg = picture::svg(&given.mesh, &plan, &given.ground);
        console::write(path, &provenance.on_svg(&svg))?;
    }
    let json_goes_to_stdout = json.is_some_and(is_stdout);
    if let Some(path) = json {
        let text = json::text(&given, &plan, provenance);
        if json_goes_to_stdout {
            console::out(text.as_bytes())?;
        } else {
            console::write(path, &text)?;
        }
    }
    if !args.quiet && !json_goes_to_stdout && !picture.is_some_and(is_stdout) {
        console::out(words::page(&given, &plan).as_bytes())?;
    }
    Ok(())
}

/// Whether this names a file with a matrix: one that is no TOML. The names of scenarios go first.
fn is_matrix(mesh: &str) -> bool {
    let is_built_in = Scenario::built_in().any(|name| name == mesh);
    !is_built_in && !mesh.ends_with(".toml") && Path::new(mesh).is_file()
}

fn of_file(args: &PlanInterlay) -> Result<Given, Failure> {
    let refuse = |why: &dyn std::fmt::Display| Failure::refused(format!("{}: {why}", args.mesh));
    for (option, is_given) in [("--matrix", args.matrix.is_some()), ("--set", !args.set.is_empty())]
    {
        if is_given {
            let text = format!("{option} is for scenarios; a file of a scenario ends in .toml");
            return Err(refuse(&text));
        }
    }
    let text = fs::read_to_string(&args.mesh).map_err(|error| refuse(&error))?;
    let (mesh, matrix) = text::read(&text).map_err(|problem| refuse(&problem))?;
    let ground = picture::ground(&mesh);
    Ok(Given { mesh, matrix, source: "file", ground, setting: None })
}

fn of_scenario(args: &PlanInterlay) -> Result<Given, Failure> {
    let scenario = Scenario::load_seeded(&args.mesh, &args.set, args.seed);
    let scenario = scenario.map_err(Failure::refused)?;
    let mesh = Mesh::of(&scenario);
    let refuse = |why: &str| Err(Failure::refused(format!("{}: {why}", args.mesh)));
    match mesh.links().len() {
        0 => return refuse("no two routers can receive each other's frames"),
        links if links > LINKS_MAX => {
            return refuse(&format!("{links} links; at most {LINKS_MAX} can be planned"));
        }
        _ => {}
    }
    let (matrix, source) = match args.matrix.unwrap_or(MatrixSource::Model) {
        MatrixSource::Model => (two_flow::matrix(&mesh, &scenario.radio, &scenario.links), "model"),
        MatrixSource::Simulate => (simulated(args, &scenario, &mesh)?, "simulate"),
    };
    let setting = Some(scenario.setting(None));
    Ok(Given { mesh, matrix, source, ground: ground(&scenario, Vec::new()), setting })
}

fn simulated(args: &PlanInterlay, scenario: &Scenario, mesh: &Mesh) -> Result<Matrix, Failure> {
    let simulation = Simulation::new(scenario, mesh);
    let runs = simulation.runs();
    if runs > RUNS_MAX {
        let text = format!(
            "--matrix simulate: {runs} runs are too many, at most {RUNS_MAX}: take the model"
        );
        return Err(Failure::refused(text));
    }
    let jobs = Jobs { what: "pairs", at_a_time: args.jobs, quiet: args.quiet };
    let rates = jobs.run(runs, |at| Ok(simulation.run(at, args.seed)))?;
    Ok(simulation.matrix(&rates))
}
