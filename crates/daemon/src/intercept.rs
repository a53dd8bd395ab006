//! `hearsay intercept`: applies, checks and removes the rules of [`host::intercept`] from the
//! command line.

use std::path::PathBuf;

use host::egress;
use host::intercept::{Error, FamilyReport, Flows, Report, Rules, is_interface_name};
use node::uplink::Reach;
use serde_json::json;

use crate::ask;
use crate::cli::{Intercept as Action, InterceptWhat};
use crate::config::{Config, Overrides, some_or};
use crate::exit::Failure;
use crate::out;
use crate::transparent::nameable;

/// Performs the action. Settings that the command line lacks come from the running daemon; if none
/// runs that intercepts, from the configuration.
pub async fn run(action: &Action, paths: &[PathBuf]) -> Result<(), Failure> {
    let what = match action {
        Action::Apply(what) | Action::Check(what) => what,
        // The rules are found by fixed names, so that a wrong configuration does not prevent their
        // removal.
        Action::Remove(what) => return remove(&Rules::default(), what.json),
    };
    let running = ask::status(paths).await.ok().map(|status| status.intercept);
    let config = Config::load(None, &Overrides::default()).map_err(Failure::usage)?;
    let of_daemon = running.as_ref().and_then(|it| it.rules(&config.mesh.direct));
    let whence = if of_daemon.is_some() { Whence::Daemon } else { Whence::File };
    let out = match &running {
        Some(it) if of_daemon.is_some() => it.out.clone(),
        _ => {
            let egress = egress::follow(config.access.out.clone(), &[]).await;
            egress.map_err(Failure::failed)?.interfaces()
        }
    };
    // The configuration may intercept on no interface: the command line may name some.
    let rules = rules(what, of_daemon.unwrap_or_else(|| config.rules_of_any()))?;
    let rules = Rules { out: nameable(out), ..rules };
    match action {
        Action::Apply(_) => apply(&rules, what.json),
        _ => check(&rules, whence, what.json),
    }
}

/// Where the settings come from that the command line lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whence {
    Daemon,
    File,
}

impl Whence {
    fn words(self) -> &'static str {
        match self {
            Self::Daemon => "the running daemon",
            Self::File => "the configuration",
        }
    }
}

fn rules(what: &InterceptWhat, base: Rules) -> Result<Rules, Failure> {
    if let Some(name) = what.interface.iter().find(|name| !is_interface_name(name)) {
        return Err(failure(Error::InterfaceName(name.clone())));
    }
    Ok(Rules {
        interfaces: some_or(&what.interface, base.interfaces),
        ports: some_or(&what.dport, base.ports),
        listen_port: what.port.unwrap_or(base.listen_port),
        ..base
    })
}

fn apply(rules: &Rules, json: bool) -> Result<(), Failure> {
    let applied = rules.apply().map_err(failure)?;
    if json {
        return out::json(&json!({ "applied": true, "notes": applied.notes }));
    }
    let (interfaces, ports) = (rules.interfaces.join(" "), words(&rules.ports));
    if !interfaces.is_empty() && !ports.is_empty() {
        let to = rules.listen_port;
        out::line(format_args!("{interfaces}: port {ports} is intercepted, to port {to}"))?;
    }
    if let Some(Flows { interfaces, ports, reach }) = &rules.flows {
        let now = if *reach == Reach::default() { "once it answers" } else { "and it answers" };
        let on = interfaces.join(" ");
        out::line(format_args!("{on}: port {ports} is intercepted for the far end, {now}"))?;
    }
    applied.notes.iter().try_for_each(|note| out::line(format_args!("note: {note}")))
}

fn check(rules: &Rules, whence: Whence, json: bool) -> Result<(), Failure> {
    let report = rules.check().map_err(failure)?;
    if json {
        out::json(&as_json(rules, &report))?;
    } else {
        let (whence, summary) = (whence.words(), summary(rules));
        out::line(format_args!("expected, after {whence} and the command line: {summary}"))?;
        out::print(report.to_string())?;
    }
    if report.is_complete() {
        return Ok(());
    }
    Err(Failure::failed(if report.is_absent() {
        "nothing is intercepted: run `hearsay intercept apply`, or `hearsay run --intercept IFACE`"
    } else {
        "the rules are not complete: run `hearsay intercept apply`"
    }))
}

fn remove(rules: &Rules, json: bool) -> Result<(), Failure> {
    rules.remove().map_err(failure)?;
    if json {
        out::json(&json!({ "removed": true }))
    } else {
        out::line("the rules are removed: nothing is intercepted")
    }
}

fn summary(rules: &Rules) -> String {
    let interfaces = match rules.interfaces.join(" ") {
        none if none.is_empty() => "any interface".to_owned(),
        some => some,
    };
    let (ports, to) = (words(&rules.ports), rules.listen_port);
    let http = format!("{interfaces}: port {ports} to port {to}");
    match &rules.flows {
        Some(Flows { interfaces, ports, .. }) => {
            format!("{http}; for the far end, {}: port {ports}", interfaces.join(" "))
        }
        None => http,
    }
}

fn words(ports: &[u16]) -> String {
    ports.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
}

/// A wrong argument is an error of usage; other errors happened in the attempt.
fn failure(error: Error) -> Failure {
    match error {
        Error::InterfaceName(_) | Error::Empty(_) => Failure::usage(error),
        _ => Failure::failed(error),
    }
}

fn as_json(rules: &Rules, report: &Report) -> serde_json::Value {
    let family = |it: &FamilyReport| {
        json!({
            "family": it.family.to_string(),
            "available": it.available,
            "redirect": it.redirect,
            "rule": it.rule,
            "route": it.route,
        })
    };
    json!({
        "complete": report.is_complete(),
        "interfaces": rules.interfaces,
        "ports": rules.ports,
        "flows": rules.flows,
        "listen_port": rules.listen_port,
        "families": report.families.iter().map(family).collect::<Vec<_>>(),
        "interfaces_missing": report.interfaces_missing,
        "warnings": report.warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(interface: &[&str], dport: &[u16]) -> InterceptWhat {
        let interface = interface.iter().map(|&name| name.to_owned()).collect();
        InterceptWhat { interface, port: Some(3131), dport: dport.to_vec(), json: false }
    }

    #[test]
    fn the_command_line_counts_more() {
        let configured = Rules {
            interfaces: vec!["wl0".into()],
            listen_port: 3140,
            ports: vec![81],
            ..Rules::default()
        };
        let none = InterceptWhat { port: None, ..what(&[], &[]) };
        let held = rules(&none, configured.clone()).unwrap();
        assert_eq!(held, configured);
        let told = rules(&what(&["br-lan"], &[80, 8080]), configured.clone()).unwrap();
        assert_eq!(told.interfaces, ["br-lan"]);
        assert_eq!((told.listen_port, told.ports), (3131, vec![80, 8080]));
        let wrong = rules(&what(&["a b"], &[]), configured).unwrap_err();
        assert_eq!(wrong.exit, crate::exit::Exit::Usage);
    }

    #[test]
    fn a_report_as_json_says_whether_it_is_complete() {
        let report = Report {
            families: Vec::new(),
            interfaces_missing: vec!["x0".into()],
            warnings: Vec::new(),
        };
        assert_eq!(as_json(&Rules::default(), &report)["complete"], json!(false));
        assert_eq!(as_json(&Rules::default(), &report)["interfaces_missing"], json!(["x0"]));
    }
}
