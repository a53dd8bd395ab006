//! Validates JSON against the schemas in `docs/schema`, with the keywords of JSON Schema that they use and no
//! others.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// Keywords that are for people only.
const SILENT: [&str; 5] = ["$schema", "$defs", "title", "description", "format"];

/// Validates a program's output against the schema that it names.
#[track_caller]
pub fn assert_valid(json: &Value) {
    let name = json["schema"].as_str().unwrap_or_else(|| panic!("no schema in: {json:#}"));
    let file = name.strip_prefix("hearsay/").and_then(|it| it.split_once('/'));
    let (kind, version) = file.unwrap_or_else(|| panic!("{name}"));
    let wrong = wrong(json, kind, version);
    assert!(wrong.is_empty(), "not as {name} says:\n  {}", wrong.join("\n  "));
}

/// Lists each place that contradicts the schema.
pub fn wrong(json: &Value, kind: &str, version: &str) -> Vec<String> {
    let document = Document::read(&format!("{kind}-{version}.json"));
    let mut wrong = Vec::new();
    document.check(json, &document.0, "", &mut wrong);
    wrong
}

/// Lists each place that contradicts one definition of a schema.
pub fn wrong_as(json: &Value, definition: &str, kind: &str, version: &str) -> Vec<String> {
    let document = Document::read(&format!("{kind}-{version}.json"));
    let mut wrong = Vec::new();
    document.follow(json, &format!("#/$defs/{definition}"), "", &mut wrong);
    wrong
}

struct Document(Value);

impl Document {
    fn read(file: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(file);
        let text =
            fs::read_to_string(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
        Self(serde_json::from_str(&text).expect("a schema is JSON"))
    }

    fn check(&self, json: &Value, schema: &Value, place: &str, wrong: &mut Vec<String>) {
        for (keyword, rule) in schema.as_object().expect("a schema is an object") {
            let holds = match keyword.as_str() {
                it if SILENT.contains(&it) => true,
                "$ref" => {
                    self.follow(json, rule.as_str().expect("a place"), place, wrong);
                    true
                }
                "type" => one_or_more(rule).any(|it| is_of(json, it)),
                "const" => json == rule,
                "enum" => rule.as_array().expect("a list").contains(json),
                "minimum" => json.as_f64().is_none_or(|it| Some(it) >= rule.as_f64()),
                "required" => one_or_more(rule).all(|it| has(json, it)),
                "items" => {
                    for (at, item) in json.as_array().into_iter().flatten().enumerate() {
                        self.check(item, rule, &format!("{place}/{at}"), wrong);
                    }
                    true
                }
                "properties" => true,
                "additionalProperties" => true,
                other => panic!("{place}: what {other} means is not known here"),
            };
            if !holds {
                wrong.push(format!("{place}: {keyword} is {rule}"));
            }
        }
        self.check_members(json, schema, place, wrong);
    }

    fn check_members(&self, json: &Value, schema: &Value, place: &str, wrong: &mut Vec<String>) {
        for (name, member) in json.as_object().into_iter().flatten() {
            let place = format!("{place}/{name}");
            match (schema["properties"].get(name), &schema["additionalProperties"]) {
                (Some(rule), _) | (None, rule @ Value::Object(_)) => {
                    self.check(member, rule, &place, wrong);
                }
                (None, Value::Bool(false)) => wrong.push(format!("{place}: no such member")),
                (None, _) => {}
            }
        }
    }

    fn follow(&self, json: &Value, to: &str, place: &str, wrong: &mut Vec<String>) {
        match to.strip_prefix('#') {
            Some(pointer) => {
                let schema = self.0.pointer(pointer).expect("it is there");
                self.check(json, schema, place, wrong);
            }
            None => {
                let other = Self::read(to);
                other.check(json, &other.0, place, wrong);
            }
        }
    }
}

fn has(json: &Value, name: &str) -> bool {
    json.as_object().is_none_or(|it| it.contains_key(name))
}

fn one_or_more(rule: &Value) -> impl Iterator<Item = &str> {
    let several = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
    rule.as_str().into_iter().chain(several)
}

fn is_of(json: &Value, kind: &str) -> bool {
    match kind {
        "object" => json.is_object(),
        "array" => json.is_array(),
        "string" => json.is_string(),
        "boolean" => json.is_boolean(),
        "null" => json.is_null(),
        "number" => json.is_number(),
        "integer" => json.is_u64() || json.is_i64(),
        other => panic!("there is no type {other}"),
    }
}
