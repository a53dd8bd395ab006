//! `--ns3`: runs the fresh cases in ns-3 on this machine.
//!
//! *Where to start:* [`cases`]. `papers::validate::ns3` has the program's text; this file writes, builds and runs
//! the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use papers::validate::{Case, fresh_cases, ns3};
use report::provenance::Provenance;

use crate::commands::jobs::Jobs;
use crate::failure::Failure;
use crate::origin::origin;

/// Linker options for the libraries of ns-3 that the program needs.
const LIBRARIES: [&str; 8] = [
    "-lns3-wifi",
    "-lns3-applications",
    "-lns3-internet",
    "-lns3-traffic-control",
    "-lns3-mobility",
    "-lns3-propagation",
    "-lns3-network",
    "-lns3-core",
];

/// Advice if ns-3 is missing.
const NEXT: &str = "on Debian 12 `scripts/setup --long` installs ns-3 3.37 and a compiler";

/// The file name of the table of figures, in the program's folder.
const TABLE: &str = "figures.csv";

/// Builds the program in a folder, runs each case with the seeds 1 to `seeds`, and returns the cases with ns-3's
/// figures.
pub fn cases(folder: &Path, seeds: u64, jobs: Jobs) -> Result<Vec<Case>, Failure> {
    let cannot = |error| Failure::refused(format!("cannot write in {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(cannot)?;
    for (name, text) in ns3::files().map_err(Failure::refused)? {
        fs::write(folder.join(name), text).map_err(cannot)?;
    }
    let program = build(folder)?;
    let printed = run(&program, seeds, jobs)?;
    let runs: Vec<_> = printed.chunks(seeds as usize).map(<[String]>::to_vec).collect();
    let table = ns3::table(&runs).ok_or_else(|| {
        Failure::failed(format!(
            "{} printed no figures: it is not the program that was written",
            program.display()
        ))
    })?;
    let cases = fresh_cases(&table).map_err(Failure::refused)?;
    let settings = cases.iter().map(Case::setting).collect::<Result<Vec<_>, _>>();
    let provenance = Provenance::new(origin(), &settings.map_err(Failure::refused)?, 1..=seeds);
    fs::write(folder.join(TABLE), provenance.on_csv(&table)).map_err(cannot)?;
    Ok(cases)
}

fn build(folder: &Path) -> Result<PathBuf, Failure> {
    let built = Command::new("c++")
        .current_dir(folder)
        .args(["-std=c++17", "-O2", "program.cc", "-o", "program"])
        .args(LIBRARIES)
        .output()
        .map_err(|error| Failure::refused(format!("cannot run c++: {error}; {NEXT}")))?;
    if built.status.success() {
        return folder.join("program").canonicalize().map_err(Failure::failed);
    }
    let said = String::from_utf8_lossy(&built.stderr);
    let why = said.lines().find(|line| line.contains("error") || line.contains("cannot find"));
    let why = why.or(said.lines().next()).unwrap_or("c++ does not say why");
    Err(Failure::refused(format!("the program for ns-3 cannot be built: {why}\n{NEXT}")))
}

/// The output of each case with each seed; the runs of a case are adjacent.
fn run(program: &Path, seeds: u64, jobs: Jobs) -> Result<Vec<String>, Failure> {
    jobs.run(ns3::count() * seeds as usize, |place| {
        let (case, seed) = (place as u64 / seeds, 1 + place as u64 % seeds);
        let ran = Command::new(program)
            .args([case.to_string(), seed.to_string()])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| {
                Failure::failed(format!("cannot run {}: {error}", program.display()))
            })?;
        if ran.status.success() {
            return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&ran.stderr);
        let (program, status) = (program.display(), ran.status);
        Err(Failure::failed(format!("{program} {case} {seed}: {status}\n{}", said.trim_end())))
    })
}
