//! `hearsay-lab sim`: runs of a scenario in virtual time, one for each seed, on all cores.
//!
//! *Where to start:* [`run`]. The crate `sim` makes the runs; here are threads, files and clocks.

use sim::scenario::{Congestion, Routing, Scenario, Traffic};

use crate::cli::Sim;
use crate::console::output::is_stdout;
use crate::console::writable;
use crate::console::{self, Wanted};
use crate::failure::Failure;

mod captures;
mod events;
mod files;
mod flows;
mod seeds;

use seeds::Runs;

/// `hearsay-lab sim`.
pub fn run(args: &Sim) -> Result<(), Failure> {
    let [json, html, events] = [&args.json, &args.html, &args.events].map(Option::as_deref);
    writable::results(json, html, events)?;
    let scenario = load(args, args.seed)?;
    captures::folder(args)?;
    events::check(args, &scenario)?;
    match (scenario.traffic, args.scheme) {
        (Traffic::Files | Traffic::Pages, _) => files::run(args, &scenario),
        (_, Some(_)) => {
            let traffic = scenario.key("traffic");
            let text = format!("--scheme: `traffic` is \"{traffic}\", which no router caches");
            Err(Failure::refused(text))
        }
        (Traffic::Tcp | Traffic::Udp | Traffic::Flows | Traffic::Fetches, None) => {
            flows::run(args, &scenario)
        }
    }
}

/// The scenario with a seed's random places.
fn load(args: &Sim, seed: u64) -> Result<Scenario, Failure> {
    let scenario =
        Scenario::load_seeded(&args.scenario, &args.set, seed).map_err(Failure::refused)?;
    if scenario.routing == Routing::Babel {
        let text = "`routing` is \"babel\", and in virtual time routes are static: leave it out, or \
            use `hearsay-lab run`";
        return Err(Failure::refused(text));
    }
    if scenario.congestion != Congestion::Reno {
        let text = "`congestion` is for the kernel's TCP, and in virtual time TCP is always NewReno: leave it \
            out, or use `hearsay-lab run`";
        return Err(Failure::refused(text));
    }
    Ok(scenario)
}

/// The requested outputs.
fn wanted(args: &Sim) -> Wanted<'_> {
    let quiet = args.quiet || args.events.as_deref().is_some_and(is_stdout);
    Wanted { json: args.json.as_deref(), html: args.html.as_deref(), quiet }
}

/// Failures named here; the JSON lists all.
const NAMED_MAX: usize = 20;

/// Names the failures of all runs. A flow or client without data is a result of the scenario, and a failure
/// only with `--strict`; wrong bytes always are a failure.
fn judge(failed: Vec<Failure>, is_strict: bool) -> Result<(), Failure> {
    let Some(code) = failed.iter().map(|it| it.code).max() else { return Ok(()) };
    let others = failed.len().saturating_sub(NAMED_MAX);
    let mut lines: Vec<_> = failed.into_iter().take(NAMED_MAX).map(|it| it.message).collect();
    if others > 0 {
        lines.push(format!("and {others} others: --json names them all"));
    }
    if code == 1 && !is_strict {
        lines.iter().for_each(|it| console::note(it));
        return Ok(());
    }
    Err(Failure { code, message: lines.join("\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_failure_decides_and_all_are_named() {
        assert_eq!(judge(Vec::new(), true), Ok(()));
        for is_strict in [true, false] {
            let both = judge(vec![Failure::wrong_bytes("a"), Failure::failed("b")], is_strict);
            assert_eq!(both, Err(Failure::wrong_bytes("a\nb")));
        }
        let many = judge((0..25).map(Failure::failed).collect(), true).unwrap_err();
        assert_eq!((many.code, many.message.lines().count()), (1, NAMED_MAX + 1));
        assert!(many.message.ends_with("and 5 others: --json names them all"));
        assert_eq!(judge(vec![Failure::failed("a")], false), Ok(()));
    }
}
