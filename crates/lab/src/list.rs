//! `hearsay-lab list`: the scenarios and their keys.

use serde_json::{Value, json};
use sim::scenario::Scenario;

use crate::failure::Failure;

/// Shows them all.
pub fn show(as_json: bool) -> Result<(), Failure> {
    let scenarios: Vec<_> = Scenario::built_in()
        .map(|name| Scenario::load(name, &[]))
        .collect::<Result<_, _>>()
        .map_err(Failure::failed)?;
    if as_json {
        let all: Vec<_> = scenarios.iter().map(object).collect();
        println!("{}", Value::from(all));
        return Ok(());
    }
    for scenario in &scenarios {
        println!("{}: {}", scenario.name, scenario.description);
        let width = scenario.keys.iter().map(|key| key.name.len() + key.value.len()).max();
        for key in &scenario.keys {
            let setting = format!("{} = {}", key.name, key.value);
            println!("  {setting:<width$}  {}", key.meaning, width = width.unwrap_or(0) + 3);
        }
        println!();
    }
    println!("Set a key with --set KEY=VALUE. A file of your own: hearsay-lab run ./NAME.toml");
    Ok(())
}

fn object(scenario: &Scenario) -> Value {
    let keys: Vec<_> = scenario
        .keys
        .iter()
        .map(|key| json!({ "name": key.name, "value": key.value, "meaning": key.meaning }))
        .collect();
    json!({ "name": scenario.name, "description": scenario.description, "keys": keys })
}
