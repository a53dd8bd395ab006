//! Parameters that papers do not give, and our values: first those with an entry of their own, then every
//! other key of the scenarios.

use sim::scenario::Scenario;

/// A parameter, the same for all schemes.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Our value.
    pub value: String,
    /// How we chose it.
    pub chosen: Chosen,
    /// The reason.
    pub why: &'static str,
}

/// How we chose a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The paper gives it, or we read it so.
    Paper,
    /// Chosen before anything was compared, and not changed since.
    Once,
    /// Fitted to a figure of the paper.
    Fitted,
    /// Chosen after results were known.
    AfterLooking,
    /// Different from the paper on purpose.
    Ours,
    /// Chosen for no figure: the default of the scenario or the simulator.
    AsItIs,
}

impl Chosen {
    /// The text in a table.
    pub fn text(self) -> &'static str {
        match self {
            Self::Paper => "the paper's",
            Self::Once => "once, before",
            Self::Fitted => "by a figure",
            Self::AfterLooking => "after looking",
            Self::Ours => "ours",
            Self::AsItIs => "as it is",
        }
    }
}

/// Every key of some scenarios that the paper does not state and that has no entry of its own, in order.
pub(crate) fn keys(scenarios: &[Scenario], stated: &[&str], listed: &[&str]) -> Vec<Parameter> {
    let mut names: Vec<_> = scenarios.iter().flat_map(|it| &it.keys).map(|it| it.name).collect();
    let known = |name: &&&str| !names.contains(*name);
    debug_assert_eq!(stated.iter().chain(listed).find(known), None, "no such key");
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name) && !stated.contains(name) && !listed.contains(name));
    names.into_iter().map(|name| key(scenarios, name)).collect()
}

/// One value if all scenarios have the same.
fn key(scenarios: &[Scenario], name: &'static str) -> Parameter {
    let have = || scenarios.iter().filter(|it| it.keys.iter().any(|key| key.name == name));
    let value = |it: &Scenario| match it.key(name) {
        "" => "none".to_owned(),
        value => value.to_owned(),
    };
    let mut values: Vec<_> = have().map(value).collect();
    values.dedup();
    if values.len() > 1 {
        values = have().map(|it| format!("{} in {}", value(it), it.name)).collect();
    }
    let meaning = have().flat_map(|it| &it.keys).find(|key| key.name == name);
    let why = meaning.map_or("", |key| key.meaning);
    Parameter { name, value: values.join(", "), chosen: Chosen::AsItIs, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_without_an_entry_is_listed() {
        let scenarios = ["map21", "emulab8"].map(|it| Scenario::load(it, &[]).unwrap());
        let all = keys(&scenarios, &["bytes"], &["loss"]);
        let of = |name| all.iter().find(|it| it.name == name);
        assert!(of("bytes").is_none() && of("loss").is_none());
        assert_eq!(of("range_m").unwrap().value, "80 in map21, 36 in emulab8");
        assert_eq!(of("queue_frames").unwrap().value, "50");
        assert_eq!(all.len() + 2, scenarios[0].keys.len());
    }

    #[test]
    fn a_key_is_of_the_scenarios_that_have_it() {
        let scenarios = ["emulab8", "chain"].map(|it| Scenario::load(it, &[]).unwrap());
        let all = keys(&scenarios, &[], &[]);
        let hops = all.iter().find(|it| it.name == "hops").unwrap();
        assert_eq!((&*hops.value, hops.chosen), ("4", Chosen::AsItIs));
        let key = scenarios[1].keys.iter().find(|it| it.name == "hops").unwrap();
        assert_eq!(hops.why, key.meaning);
    }
}
