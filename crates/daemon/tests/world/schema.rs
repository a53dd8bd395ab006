//! Values against the schemas in `docs/schema`.

use serde_json::Value;

/// Panics unless a value has what its schema requires, and nothing that the schema does not know.
pub fn check_schema(root: &Value, schema: &Value, value: &Value, at: &str) {
    let mut known: Vec<&str> = Vec::new();
    let parts = schema["allOf"].as_array().cloned().unwrap_or_default();
    let all: Vec<Value> =
        std::iter::once(schema.clone()).chain(parts).map(|it| resolved(root, it)).collect();
    for schema in &all {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(value.get(name).is_some(), "{at} lacks {name}");
        }
        if let Some(constant) = schema.get("const") {
            assert_eq!(value, constant, "{at}");
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            known.push(name);
            if let Some(value) = value.get(name) {
                check_schema(root, &resolved(root, inner.clone()), value, &format!("{at}.{name}"));
            }
        }
        if let Some(inner) = schema.get("additionalProperties") {
            for (name, value) in value.as_object().expect("an object") {
                known.push(name);
                check_schema(root, &resolved(root, inner.clone()), value, &format!("{at}.{name}"));
            }
        }
        for value in value.as_array().into_iter().flatten().filter(|_| schema["items"].is_object())
        {
            check_schema(root, &schema["items"], value, &format!("{at}[]"));
        }
        if let Some(values) = schema["enum"].as_array() {
            assert!(values.contains(value), "{at} is {value}");
        }
        let is_right = match schema["type"].as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("integer") => value.is_u64(),
            _ => true,
        };
        assert!(is_right, "{at} is {value}");
    }
    let unknown =
        value.as_object().into_iter().flatten().find(|it| !known.contains(&it.0.as_str()));
    assert!(unknown.is_none(), "{at} has {unknown:?}");
}

/// What a schema refers to, together with itself.
fn resolved(root: &Value, schema: Value) -> Value {
    match schema["$ref"].as_str().and_then(|it| it.strip_prefix('#')) {
        Some(pointer) => root.pointer(pointer).expect("the schema has it").clone(),
        None => schema,
    }
}
