//! `hearsay intercept`: the rules of [`host::intercept`] from the command line.

use std::path::Path;

use host::egress;
use host::intercept::{Error, FamilyReport, Report, Rules};
use serde_json::json;

use crate::cli::{Intercept as Action, InterceptWhat};
use crate::config::{Config, Overrides};
use crate::exit::Failure;
use crate::transparent::in_step;

/// Does what was asked. What the command line does not say, the configuration does.
pub async fn run(action: &Action) -> Result<(), Failure> {
    let (Action::Apply(what) | Action::Check(what) | Action::Remove(what)) = action;
    let (rules, named) = rules(what, None)?;
    let egress = egress::follow(named, &[]).await.map_err(Failure::failed)?;
    let rules = in_step(rules, &egress);
    match action {
        Action::Apply(_) => apply(&rules, what.json),
        Action::Check(_) => check(&rules, what.json),
        Action::Remove(_) => remove(&rules, what.json),
    }
}

/// The rules that are asked for, and the interfaces that the configuration says lead out.
fn rules(what: &InterceptWhat, file: Option<&Path>) -> Result<(Rules, Vec<String>), Failure> {
    let overrides = Overrides {
        intercept: what.interface.clone(),
        intercept_port: what.port,
        ..Overrides::default()
    };
    let Config { mut intercept, access, mesh, .. } =
        Config::load(file, &overrides).map_err(Failure::usage)?;
    if !what.dport.is_empty() {
        intercept.ports.clone_from(&what.dport);
    }
    let rules = Rules {
        interfaces: intercept.interfaces,
        ports: intercept.ports,
        direct: mesh.direct,
        listen_port: intercept.port,
        ..Rules::default()
    };
    Ok((rules, access.out))
}

fn apply(rules: &Rules, json: bool) -> Result<(), Failure> {
    let applied = rules.apply().map_err(failure)?;
    if json {
        println!("{}", json!({ "applied": true, "notes": applied.notes }));
        return Ok(());
    }
    let ports: Vec<_> = rules.ports.iter().map(u16::to_string).collect();
    let interfaces = rules.interfaces.join(" ");
    println!(
        "{interfaces}: port {} is intercepted, to port {}",
        ports.join(" "),
        rules.listen_port
    );
    applied.notes.iter().for_each(|note| println!("note: {note}"));
    Ok(())
}

fn check(rules: &Rules, json: bool) -> Result<(), Failure> {
    let report = rules.check().map_err(failure)?;
    if json {
        println!("{}", as_json(&report));
    } else {
        print!("{report}");
    }
    if report.is_complete() {
        return Ok(());
    }
    Err(Failure::failed(if report.is_absent() {
        "nothing is intercepted: `hearsay intercept apply`, or `hearsay run --intercept IFACE`"
    } else {
        "the rules are not complete: `hearsay intercept apply` puts them right"
    }))
}

fn remove(rules: &Rules, json: bool) -> Result<(), Failure> {
    rules.remove().map_err(failure)?;
    if json {
        println!("{}", json!({ "removed": true }));
    } else {
        println!("nothing is intercepted any more");
    }
    Ok(())
}

/// What the caller got wrong is a matter of usage; the rest was tried.
fn failure(error: Error) -> Failure {
    match error {
        Error::InterfaceName(_) | Error::Empty(_) => Failure::usage(error),
        _ => Failure::failed(error),
    }
}

fn as_json(report: &Report) -> serde_json::Value {
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
    fn the_command_line_counts_more_than_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("h.toml");
        std::fs::write(&file, "[intercept]\ninterfaces = [\"wl0\"]\nports = [81]").unwrap();
        let (from_file, _) = rules(&what(&[], &[]), Some(&file)).unwrap();
        assert_eq!((from_file.interfaces, from_file.ports), (vec!["wl0".to_owned()], vec![81]));
        let (told, _) = rules(&what(&["br-lan"], &[80, 8080]), Some(&file)).unwrap();
        assert_eq!(told.interfaces, ["br-lan"]);
        assert_eq!((told.listen_port, told.ports), (3131, vec![80, 8080]));
    }

    #[test]
    fn a_report_as_json_says_whether_it_is_complete() {
        let report = Report {
            families: Vec::new(),
            interfaces_missing: vec!["x0".into()],
            warnings: Vec::new(),
        };
        assert_eq!(as_json(&report)["complete"], json!(false));
        assert_eq!(as_json(&report)["interfaces_missing"], json!(["x0"]));
    }
}
