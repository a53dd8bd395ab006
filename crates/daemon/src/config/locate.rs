//! Where settings stand in the file, for errors that show only once all settings are known.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::file::Source;
use super::{ConfigError, Overrides};

impl Source<'_> {
    /// `file:line` of a setting, such as `memory`, `[store] size` or `[overhear]`; of the item of its list that `text`
    /// names first. `None` if the file lacks it, or cannot be read.
    pub fn place_of_setting(&self, setting: &str, text: &str) -> Option<String> {
        let file = DeTable::parse(self.text).ok()?;
        let (table, key) = match setting.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", setting),
        };
        let at = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| match value.get_ref() {
            DeValue::Array(items) => item(items, text).unwrap_or(key.span().start),
            _ => key.span().start,
        };
        let top = |name| file.get_ref().get_key_value(name);
        let found = match (table, key.trim_start()) {
            ("", key) => top(key).map(at),
            (table, "") => top(table).map(|(key, _)| key.span().start),
            (table, key) => match top(table)?.1.get_ref() {
                DeValue::Table(inner) => inner.get_key_value(key).map(at),
                _ => None,
            },
        };
        found.map(|at| self.place(at))
    }
}

/// Where the item of a list is that a text names first.
fn item(items: &DeArray<'_>, text: &str) -> Option<usize> {
    let named = |item: &Spanned<DeValue<'_>>| {
        let at = match item.get_ref() {
            DeValue::String(item) => text.find(&**item),
            _ => None,
        };
        at.map(|at| (at, item.span().start))
    };
    items.iter().filter_map(named).min().map(|(_, start)| start)
}

impl ConfigError {
    /// Names the line of each setting that the file has, or the option that replaces it.
    pub fn locate(mut self, source: Source<'_>, overrides: &impl Replaces) -> Self {
        for problem in &mut self.problems {
            let setting = &problem.place;
            if let Some(option) = overrides.option(setting) {
                problem.place = option.to_owned();
            } else if let Some(place) = source.place_of_setting(setting, &problem.text) {
                problem.text = format!("{setting}: {}", problem.text);
                problem.place = place;
            }
        }
        self
    }
}

/// A command line whose options replace settings of the file.
pub trait Replaces {
    /// The option that replaces a setting, if it was given.
    fn option(&self, setting: &str) -> Option<&'static str>;
}

impl Replaces for Overrides {
    fn option(&self, setting: &str) -> Option<&'static str> {
        let options = [
            ("listen", "--listen", !self.listen.is_empty()),
            ("[store] path", "--store", self.store.is_some()),
            ("[store] size", "--store-size", self.store_size.is_some()),
            ("memory", "--memory", self.memory.is_some()),
            ("[intercept] interfaces", "--intercept", !self.intercept.is_empty()),
            ("[intercept] port", "--intercept-port", self.intercept_port.is_some()),
            ("[mesh] interfaces", "--mesh", !self.mesh.is_empty()),
            ("[mesh] scheme", "--scheme", self.scheme.is_some()),
            ("[overhear] interface", "--overhear", self.overhear.is_some()),
            ("[overhear] mode", "--overhear", self.overhear.is_some()),
            ("[metrics] listen", "--metrics", self.metrics.is_some()),
            ("control", "--control", self.control.is_some()),
        ];
        options.iter().find(|(it, _, given)| *given && *it == setting).map(|(_, option, _)| *option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_the_line_of_its_key_and_an_item_its_own() {
        let text =
            "memory = 1\nlisten = [\n  \"a:1\",\n  \"b:1\",\n]\n\n[store]\nsize = 1\nports.x = 1\n";
        let source = Source { name: "h.toml", text };
        for (setting, text, line) in [
            ("memory", "", Some("h.toml:1")),
            ("listen", "b:1 is taken by a:1", Some("h.toml:4")),
            ("listen", "nothing", Some("h.toml:2")),
            ("[store] size", "", Some("h.toml:8")),
            ("[store]", "", Some("h.toml:7")),
            ("[store] path", "", None),
            ("[mesh] port", "", None),
            ("h.toml:2", "", None),
            ("[x", "", None),
        ] {
            assert_eq!(source.place_of_setting(setting, text).as_deref(), line, "{setting}");
        }
    }

    #[test]
    fn what_the_command_line_says_is_named_by_its_option() {
        let mut wrong = ConfigError::default();
        wrong.add("memory", "too little");
        wrong.add("[store] size", "too much");
        wrong.add("drain", "too long");
        let source = Source { name: "h.toml", text: "memory = 1\n[store]\nsize = 1" };
        let overrides = Overrides { memory: Some(super::super::Size(1)), ..Overrides::default() };
        let said = wrong.locate(source, &overrides).to_string();
        let expected = "--memory: too little\nh.toml:3: [store] size: too much\ndrain: too long";
        assert_eq!(said, expected);
    }
}
