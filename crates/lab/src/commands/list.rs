//! `hearsay-lab list`: the scenarios, and their keys.

use serde_json::{Value, json};
use sim::scenario::Scenario;

use crate::console;
use crate::failure::Failure;

/// Prints a line for each scenario; or one scenario with its keys. As JSON, all of either.
pub fn show(name: Option<&str>, as_json: bool) -> Result<(), Failure> {
    let load = |name: &str| Scenario::load(name, &[]).map_err(Failure::refused);
    let scenarios: Vec<_> = match name {
        Some(name) => vec![load(name)?],
        None => Scenario::built_in().map(load).collect::<Result<_, _>>()?,
    };
    let page = match name {
        _ if as_json => {
            format!("{}\n", Value::from(scenarios.iter().map(object).collect::<Vec<_>>()))
        }
        Some(_) => scenarios.iter().map(keys).collect(),
        None => lines(&scenarios),
    };
    console::out(page.as_bytes())
}

fn lines(scenarios: &[Scenario]) -> String {
    let width = scenarios.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let line = |it: &Scenario| format!("{:<width$}  {}\n", it.name, it.description);
    let lines: String = scenarios.iter().map(line).collect();
    lines
        + "\nThe keys of one: hearsay-lab list SCENARIO. A file of your own: hearsay-lab list ./NAME.toml\n"
}

fn keys(scenario: &Scenario) -> String {
    let mut text = format!("{}: {}\n", scenario.name, scenario.description);
    let width = scenario.keys.iter().map(|key| key.name.len() + key.value.len()).max();
    let width = width.unwrap_or(0) + " = ".len();
    for key in &scenario.keys {
        let setting = format!("{} = {}", key.name, key.value);
        text += &format!("  {setting:<width$}  {}\n", key.meaning);
    }
    text + "Set a key with --set KEY=VALUE.\n"
}

fn object(scenario: &Scenario) -> Value {
    let keys: Vec<_> = scenario
        .keys
        .iter()
        .map(|key| json!({ "name": key.name, "value": key.value, "meaning": key.meaning }))
        .collect();
    json!({ "name": scenario.name, "description": scenario.description, "keys": keys })
}
