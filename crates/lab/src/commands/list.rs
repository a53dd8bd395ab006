//! `hearsay-lab list`: the scenarios and their keys.

use serde_json::{Value, json};
use sim::scenario::Scenario;

use crate::console;
use crate::failure::Failure;

/// Prints all scenarios and their keys.
pub fn show(as_json: bool) -> Result<(), Failure> {
    let scenarios: Vec<_> = Scenario::built_in()
        .map(|name| Scenario::load(name, &[]))
        .collect::<Result<_, _>>()
        .map_err(Failure::failed)?;
    let page = if as_json {
        format!("{}\n", Value::from(scenarios.iter().map(object).collect::<Vec<_>>()))
    } else {
        let each: String = scenarios.iter().map(text).collect();
        each + "Set a key with --set KEY=VALUE. A file of your own: hearsay-lab run ./NAME.toml\n"
    };
    Ok(console::out(page.as_bytes())?)
}

fn text(scenario: &Scenario) -> String {
    let mut text = format!("{}: {}\n", scenario.name, scenario.description);
    let width = scenario.keys.iter().map(|key| key.name.len() + key.value.len()).max();
    let width = width.unwrap_or(0) + " = ".len();
    for key in &scenario.keys {
        let setting = format!("{} = {}", key.name, key.value);
        text += &format!("  {setting:<width$}  {}\n", key.meaning);
    }
    text + "\n"
}

fn object(scenario: &Scenario) -> Value {
    let keys: Vec<_> = scenario
        .keys
        .iter()
        .map(|key| json!({ "name": key.name, "value": key.value, "meaning": key.meaning }))
        .collect();
    json!({ "name": scenario.name, "description": scenario.description, "keys": keys })
}
