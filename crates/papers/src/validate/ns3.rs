//! The fresh cases as a program for ns-3, and its output as a table.
//!
//! *What this is:* [`files`], the program's text; [`table`], the figures in the form in which they are
//! stored. *Who calls it:* `hearsay-lab validate --ns3`, which builds and runs the program. *What it never
//! does:* build or run it.

use std::fmt::Write as _;

use radio::{LossScope, Rate, Station, power};
use sim::scenario::ScenarioError;
use sim::world::contention;
use sim::world::flows::{Flow, Kind};
use sim::world::{Setup, Stat};

use super::fresh::{self, Fresh};
use super::reference::COLUMNS;

/// More bytes than any frame has.
const NEVER_BYTES: u32 = 65_535;

/// Number of cases in the program.
pub fn count() -> usize {
    fresh::all().len()
}

/// The program's files, as names and contents.
pub fn files() -> Result<[(&'static str, String); 2], ScenarioError> {
    let cases: Vec<_> = fresh::all().iter().map(case).collect::<Result<_, _>>()?;
    let cases = format!("static const std::vector<Case> CASES = {{\n{}}};\n", cases.concat());
    Ok([("program.cc", include_str!("ns3/program.cc").to_owned()), ("cases.h", cases)])
}

/// A table with a line for each case: means and deviations of what its runs printed. `None` if a run printed
/// something else.
pub fn table<S: AsRef<str>>(printed: &[Vec<S>]) -> Option<String> {
    let mut table = "case,seeds".to_owned();
    COLUMNS.iter().for_each(|(column, _)| {
        let _ = write!(table, ",{column}_mean,{column}_sd");
    });
    table.push('\n');
    for (fresh, runs) in fresh::all().iter().zip(printed) {
        let _ = write!(table, "{},{}", fresh.name, runs.len());
        for (column, _) in COLUMNS {
            let values: Vec<_> = runs.iter().map(|run| value(run.as_ref(), column)).collect();
            // Some cases lack some figures, but all have this one.
            match values.into_iter().collect::<Option<Vec<_>>>() {
                Some(values) => {
                    let stat = Stat::of(values.into_iter());
                    let _ = write!(table, ",{},{}", short(stat.mean), short(stat.sd));
                }
                None if column == COLUMNS[0].0 => return None,
                None => table.push_str(",,"),
            }
        }
        table.push('\n');
    }
    Some(table)
}

fn value(printed: &str, column: &str) -> Option<f64> {
    let mut lines = printed.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == column)?.1.parse().ok()
}

/// Six digits at most after the point.
fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn case(fresh: &Fresh) -> Result<String, ScenarioError> {
    let scenario = fresh.play.scenario(&fresh.keys, 1)?;
    let contention::Case { setup, flows } =
        fresh.play.world(&scenario).expect("no fresh case is of fetches");
    let Setup { radio, links, lasts, .. } = &setup;
    // In ns-3 a packet stays in the queue while it is sent.
    let queue = radio.queue_frames_max + 1;
    let [data, basic] = [radio.data_rate, radio.basic_rate].map(mode);
    let [rts, short, long] = [
        radio.rts_threshold.unwrap_or(NEVER_BYTES),
        radio.short_tries_max.into(),
        radio.long_tries_max.into(),
    ];
    let holds = radio.locking == radio::Locking::First;
    let all_lost = radio.loss_scope == LossScope::All;
    Ok(format!(
        "{{\"{}\", {}, {}, \"{data}\", \"{basic}\", {queue}, {rts}, {short}, {long}, {holds}, {all_lost},\n \
         {{{}}},\n {{{}}},\n {{{}}}}},\n",
        fresh.name,
        links.stations(),
        lasts.as_secs_f64(),
        links_of(&setup),
        routes_of(&setup),
        flows.iter().map(flow).collect::<String>(),
    ))
}

/// The name of a rate in ns-3.
fn mode(rate: Rate) -> &'static str {
    match rate {
        Rate::Mbps1 => "DsssRate1Mbps",
        Rate::Mbps2 => "DsssRate2Mbps",
        Rate::Mbps5_5 => "DsssRate5_5Mbps",
        Rate::Mbps11 => "DsssRate11Mbps",
        _ => unreachable!("the fresh cases are of 802.11b"),
    }
}

fn links_of(setup: &Setup) -> String {
    let senders = (0..setup.links.stations()).map(|it| Station(it as u16));
    let links =
        senders.flat_map(|from| setup.links.hearers_of(from).iter().map(move |it| (from, it)));
    let text = |(from, (to, link)): (Station, &(Station, radio::Link))| {
        let dbm = power::to_dbm(link.power);
        format!("{{{}, {}, {dbm:.6}, {}, {}}}, ", from.0, to.0, link.decodable, link.loss)
    };
    links.map(text).collect()
}

fn routes_of(setup: &Setup) -> String {
    let (mut routes, stations) = (setup.routes.clone(), setup.links.stations());
    let pairs = (0..stations).flat_map(|at| (0..stations).map(move |to| (at, to)));
    let mut route = |(at, to)| Some(format!("{{{at}, {to}, {}}}, ", routes.next_hop(at, to)?));
    pairs.filter_map(&mut route).collect()
}

fn flow(flow: &Flow) -> String {
    let starts = (flow.starts - wire::Instant::ZERO).as_secs_f64();
    let bits = match flow.kind {
        Kind::Tcp => 0,
        Kind::Udp { bits_per_second } => bits_per_second,
        Kind::Cbr { .. } | Kind::Vbr { .. } | Kind::Ssh => unreachable!("all cases are saturated"),
    };
    format!("{{{}, {}, {starts}, {bits}}}, ", flow.from, flow.to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::{Checked, Verdict};

    #[test]
    fn the_program_has_every_case_with_its_links_and_flows() {
        let [(_, program), (name, cases)] = files().unwrap();
        assert!(program.contains(&format!("#include \"{name}\"")));
        assert_eq!(cases.matches("\n{\"").count(), count());
        let asymmetric = cases.split("{\"asymmetric pair 300 m\"").nth(1).unwrap();
        let asymmetric = asymmetric.split("},\n{\"").next().unwrap();
        // Three links in each direction: from each sender to its receiver, and from one receiver to the other
        // sender.
        assert_eq!(asymmetric.matches(", true, 0}").count(), 4, "{asymmetric}");
        assert_eq!(asymmetric.matches(", false, 0}").count(), 2, "{asymmetric}");
        assert!(asymmetric.contains("{0, 1, 0, 8000000}, {2, 3, 0, 8000000}"), "{asymmetric}");
        assert!(
            cases.contains(
                "\"5 hops of 230 m TCP 8 % of all frames lost\", 6, 30, \"DsssRate11Mbps\""
            )
        );
    }

    #[test]
    fn what_runs_print_is_a_table_that_cases_are_held_against() {
        let printed = |kbps: u32| format!("goodput_kbps {kbps}\ndrop_retry 2\n");
        let table = table(&vec![vec![printed(100), printed(300)]; count()]).unwrap();
        let cases = fresh::cases(&table).unwrap();
        assert_eq!(cases.len(), 2 * count());
        let [goodput, drops] = &cases[0].figures[..] else { panic!("{:?}", cases[0].figures) };
        let reference = goodput.reference.unwrap();
        assert_eq!((reference.mean, drops.name), (200.0, "retry_drops"));
        assert_eq!(reference.spread, Some((141.421356, 2.0)));
        assert_eq!(Checked::of(goodput, [211.0].into_iter()).verdict(), Verdict::Passed);
        assert!(super::table(&[vec!["Segmentation fault"]]).is_none());
    }
}
