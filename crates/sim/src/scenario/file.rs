//! A scenario's file as written: its tables, and the line of each item for error messages.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::Router;
use super::choice::Choice as _;
use super::key::{self, Layout, Settings, Spec};
use super::keys::{self, METRES_MAX};
use super::problem::{ScenarioError, advice, quote};
use super::traffic::Traffic;

/// More routers are too many for one channel, and for one machine that runs them all.
const ROUTERS_MAX: usize = 1000;
/// Longest name of a router. Names become parts of the names of network namespaces and files.
const NAME_CHARS_MAX: usize = 16;
/// What a file may contain besides keys.
pub(super) const STRUCTURE: [&str; 3] = ["description", "routers", "routes"];

/// A TOML text, and its name for error messages.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

/// The contents of a file.
#[derive(Debug)]
pub(super) struct File {
    pub description: String,
    pub layout: Layout,
    /// Routers in the order of the file; empty for a chain.
    pub routers: Vec<Router>,
    /// Fixed routes, each with its place in the file. `None` if routes are to be computed.
    pub routes: Option<Vec<Route>>,
    pub settings: Settings,
}

impl File {
    /// Whether a key applies to this scenario.
    fn has(&self, spec: &Spec) -> bool {
        spec.applies_to(self.layout, self.settings.traffic)
    }
}

/// One route as written.
#[derive(Debug)]
pub(super) struct Route {
    /// Where it is written, as `file:line`.
    pub place: String,
    /// Names of routers separated by spaces, the gateway first.
    pub text: String,
}

impl Source<'_> {
    /// The place of a byte as `file:line`.
    fn place(&self, at: usize) -> String {
        let before = self.text.as_bytes().iter().take(at);
        format!("{}:{}", self.name, 1 + before.filter(|byte| **byte == b'\n').count())
    }

    fn place_of<T>(&self, value: &Spanned<T>) -> String {
        self.place(value.span().start)
    }

    fn raw<T>(&self, value: &Spanned<T>) -> &str {
        self.text.get(value.span()).unwrap_or_default()
    }
}

/// Reads a file. An unknown key is an error, because it would have no effect.
pub(super) fn read(source: Source<'_>) -> Result<File, ScenarioError> {
    let table = DeTable::parse(source.text).map_err(|error| {
        let place = error.span().map_or(source.name.to_owned(), |span| source.place(span.start));
        ScenarioError::one(&place, &error.message().replace('\n', "; "))
    })?;
    let says = |name: &str| table.get_ref().contains_key(name);
    let layout = match (says("routers"), says("nodes")) {
        (true, _) => Layout::Placed,
        (false, true) => Layout::Random,
        (false, false) => Layout::Chain,
    };
    let mut file = File {
        description: String::new(),
        layout,
        routers: Vec::new(),
        routes: None,
        settings: Settings::default(),
    };
    let mut reader = Reader { source, wrong: ScenarioError::default() };
    for (name, value) in in_order(table.get_ref()) {
        reader.entry(&mut file, name, value);
    }
    if layout == Layout::Chain && !says("hops") && reader.wrong.lines.is_empty() {
        let text = "says nothing of routers: give it a table [routers] with name = [x_m, y_m], \
                    `hops` for a chain, or `nodes` for a mesh at random";
        reader.wrong.add(source.name, text);
    }
    reader.wrong.unless(file)
}

/// Sets one key. Errors name the setting as `key=value`.
pub(super) fn set(file: &mut File, name: &str, value: &str) -> Result<(), ScenarioError> {
    let place = format!("{}={}", quote(name), quote(value));
    let wrong = |text: String| ScenarioError::one(&place, &text);
    let spec = match key::find(name) {
        Some(spec) if file.has(spec) => spec,
        Some(spec) => return Err(wrong(misplaced(spec, file))),
        None if STRUCTURE.contains(&name) => {
            return Err(wrong(format!("`{name}` is not a key: change it in a file of your own")));
        }
        None => return Err(wrong(unknown(name, known(file)))),
    };
    // A value that is not valid TOML is a string, so that words need no quotes in a shell.
    let parsed = DeValue::parse(value).map(Spanned::into_inner);
    let parsed = parsed.unwrap_or_else(|_| DeValue::String(DeString::from(value)));
    spec.set(&mut file.settings, &parsed, value).map_err(wrong)
}

struct Reader<'a> {
    source: Source<'a>,
    wrong: ScenarioError,
}

impl Reader<'_> {
    fn entry(
        &mut self,
        file: &mut File,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let place = self.source.place_of(name);
        let word: &str = name.get_ref();
        match (word, key::find(word)) {
            ("description", _) => match value.get_ref().as_str() {
                Some(text) => file.description = text.trim().to_owned(),
                None => self.wrong.add(&place, "`description` must be a text"),
            },
            ("routers", _) => self.routers(file, &place, value.get_ref()),
            ("routes", _) if file.layout == Layout::Chain => {
                self.wrong.add(&place, "`routes` has no meaning in a chain, which has only one");
            }
            ("routes", _) if file.layout == Layout::Random => {
                self.wrong.add(&place, "`routes` has no meaning where routers stand at random");
            }
            ("routes", _) => self.routes(file, &place, value.get_ref()),
            (_, Some(spec)) if file.has(spec) => {
                let raw = self.source.raw(value);
                if let Err(text) = spec.set(&mut file.settings, value.get_ref(), raw) {
                    self.wrong.add(&place, &text);
                }
            }
            (_, Some(spec)) => self.wrong.add(&place, &misplaced(spec, file)),
            (_, None) => {
                let known = known(file).chain(STRUCTURE);
                self.wrong.add(&place, &unknown(word, known));
            }
        }
    }

    fn routers(&mut self, file: &mut File, place: &str, value: &DeValue<'_>) {
        let Some(table) = value.as_table() else {
            return self.wrong.add(place, "`routers` must be a table of name = [x_m, y_m]");
        };
        if !(1..=ROUTERS_MAX).contains(&table.len()) {
            let text = format!("a mesh has from 1 to {ROUTERS_MAX} routers, not {}", table.len());
            return self.wrong.add(place, &text);
        }
        for (name, value) in in_order(table) {
            match router(name.get_ref(), value.get_ref()) {
                Ok(router) => file.routers.push(router),
                Err(text) => self.wrong.add(&self.source.place_of(name), &text),
            }
        }
    }

    fn routes(&mut self, file: &mut File, place: &str, value: &DeValue<'_>) {
        let form = "`routes` must be a list of texts like \"gateway relay router\"";
        let Some(list) = value.as_array() else { return self.wrong.add(place, form) };
        let mut routes = Vec::new();
        for value in list.iter() {
            let place = self.source.place_of(value);
            match value.get_ref().as_str() {
                Some(text) => routes.push(Route { place, text: text.to_owned() }),
                None => self.wrong.add(&place, form),
            }
        }
        file.routes = Some(routes);
    }
}

fn router(name: &str, value: &DeValue<'_>) -> Result<Router, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let coordinate = |value: &Spanned<DeValue<'_>>| {
        key::number(value.get_ref()).filter(|m| m.abs() <= METRES_MAX)
    };
    let position = value.as_array().and_then(|list| {
        let mut list = list.iter();
        let position = (coordinate(list.next()?)?, coordinate(list.next()?)?);
        list.next().is_none().then_some(position)
    });
    match position {
        // In TOML all lines below a table's head belong to that table.
        None if key::find(name).is_some() || STRUCTURE.contains(&name) => {
            Err(format!("`{name}` stands among the routers: move it above [routers]"))
        }
        None => Err(format!(
            "router `{}` must be a place, [x_m, y_m], with numbers from -{METRES_MAX} to \
             {METRES_MAX}",
            quote(name)
        )),
        Some(_) if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_name) => {
            Err(format!(
                "`{}` cannot be a router's name: at most {NAME_CHARS_MAX} letters, digits, '-' \
                 and '_'",
                quote(name)
            ))
        }
        Some((x_m, y_m)) => Ok(Router { name: name.to_owned(), x_m, y_m }),
    }
}

fn in_order<'a, 'i>(
    table: &'a DeTable<'i>,
) -> Vec<(&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| (rank(name.get_ref()), name.span().start));
    entries
}

/// The order in which keys are read: `traffic` and `paper` first, because other keys depend on them.
pub(super) fn rank(key: &str) -> usize {
    const FIRST: [&str; 2] = ["traffic", "paper"];
    FIRST.iter().position(|it| *it == key).unwrap_or(FIRST.len())
}

fn known(file: &File) -> impl Iterator<Item = &'static str> + Clone {
    let (layout, traffic) = (file.layout, file.settings.traffic);
    keys::all().filter(move |spec| spec.applies_to(layout, traffic)).map(|spec| spec.name)
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    format!("unknown key `{}`: {}", quote(name), advice(name, known))
}

fn misplaced(spec: &Spec, file: &File) -> String {
    let name = spec.name;
    if spec.applies_to(file.layout, spec.traffic.first().copied().unwrap_or(Traffic::Files)) {
        let fitting: Vec<_> = spec.traffic.iter().map(|it| format!("\"{}\"", it.word())).collect();
        let (here, fitting) = (file.settings.traffic.word(), fitting.join(" or "));
        return format!("`{name}` is for `traffic` {fitting}, and here it is \"{here}\"");
    }
    match (file.layout, spec.layouts) {
        (Layout::Placed, [Layout::Random]) => {
            format!("`{name}` is for routers at random, and this scenario places its [routers]")
        }
        (Layout::Placed, _) => {
            format!("`{name}` is for chains, and this scenario places its [routers]")
        }
        (Layout::Random, _) => {
            format!("`{name}` is for chains, and this scenario has its `nodes` at random")
        }
        (Layout::Chain, [Layout::Random]) => {
            format!("`{name}` is for routers at random, and this scenario is a chain")
        }
        (Layout::Chain, _) if name == "gateway" => {
            format!("`{name}` is for scenarios with [routers]; a chain's gateway is router 0")
        }
        (Layout::Chain, _) => {
            format!("`{name}` is for scenarios with [routers] or `nodes`, and this one is a chain")
        }
    }
}
