//! Limits on the code's structure: no circles of modules, machines that do not name each other, small types.
//!
//! Code that exceeds a limit is in a table with its present number. A test fails when the number rises, and also
//! when it falls: the same commit must then lower the number in the table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use crate::code::Code;
use crate::{none, read, root, sources};

/// The machines of a node, by their folders in `crates/node/src`. They exchange values only.
const MACHINES: [&str; 6] = ["client", "object", "source", "publish", "overhear", "peers"];

/// The one file that holds several machines.
const JOINS_MACHINES: &str = "node.rs";

/// A type with more methods has more than one job.
const METHODS_MAX: usize = 60;

/// The limit for `Node`, which only routes between its machines.
const NODE_METHODS_MAX: usize = 30;

/// Types that exceed the limit, and the number of their methods.
const METHODS: [(&str, usize); 2] = [("node::Objects", 83), ("node::Peers", 89)];

/// Known circles: top files and folders of a crate that name each other.
const CIRCLES: [(&str, &[&str]); 5] = [
    ("daemon", &["clients", "driver", "origins"]),
    ("daemon", &["control", "publish"]),
    ("radio", &["airtime", "config"]),
    ("radio", &["links", "output", "propagation"]),
    ("store", &["catalogue", "files", "log", "reader", "recover"]),
];

static CODE: LazyLock<Code> = LazyLock::new(|| {
    let crates = root().join("crates");
    let sources = sources();
    Code::read(sources.iter().filter_map(|path| {
        let below = path.strip_prefix(&crates).ok()?;
        let name = below.iter().next()?.to_str()?;
        let file = below.strip_prefix(Path::new(name).join("src")).ok()?;
        (!file.starts_with("bin")).then(|| (name, file, read(path)))
    }))
});

#[test]
fn crates_have_no_circles() {
    let known: BTreeSet<_> =
        CIRCLES.iter().map(|(name, circle)| shown(name, circle.iter())).collect();
    let found: BTreeSet<_> = CODE
        .crates()
        .into_iter()
        .flat_map(|name| CODE.circles(name).into_iter().map(move |it| shown(name, it)))
        .collect();
    let new = found.difference(&known).map(|it| format!("new: {it}"));
    let gone = known.difference(&found).map(|it| format!("gone, strike it from CIRCLES: {it}"));
    none(&new.chain(gone).collect::<Vec<_>>(), "circles that are not as CIRCLES has them");
}

fn shown<T: AsRef<str>>(name: &str, circle: impl IntoIterator<Item = T>) -> String {
    let members: Vec<_> = circle.into_iter().map(|it| format!("{:?}", it.as_ref())).collect();
    format!("({name:?}, &[{}])", members.join(", "))
}

#[test]
fn no_machine_names_another() {
    none(&machines_that_name_others(&CODE), "machines that name another machine");
}

fn machines_that_name_others(code: &Code) -> Vec<String> {
    let imports = code.imports("node");
    let named = imports.iter().filter(|(from, _)| MACHINES.contains(from));
    let named = named.flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    let wrong = named.filter(|(_, to)| MACHINES.contains(&to.as_str()));
    wrong.map(|(from, to)| format!("{from} -> {to}")).collect()
}

#[test]
fn only_the_node_holds_several_machines() {
    none(&holders_of_several(&CODE), "functions and structs with `&mut` of two machines");
}

fn holders_of_several(code: &Code) -> Vec<String> {
    let mut wrong = Vec::new();
    for changer in code.changers("node") {
        let machines: BTreeSet<_> = changer
            .types
            .iter()
            .filter_map(|path| path.get(1))
            .filter(|top| MACHINES.contains(&top.as_str()))
            .collect();
        if machines.len() > 1 && changer.file != Path::new(JOINS_MACHINES) {
            wrong.push(format!("{}: {}: {machines:?}", changer.file.display(), changer.name));
        }
    }
    wrong
}

#[test]
fn types_have_few_methods() {
    let mut real = BTreeMap::<String, usize>::new();
    for (path, count) in CODE.methods() {
        let (name, it) = (&path[0], &path[path.len() - 1]);
        let most = real.entry(format!("{name}::{it}")).or_default();
        *most = count.max(*most);
    }
    let limits = BTreeMap::from(METHODS);
    let mut wrong = Vec::new();
    for (name, count) in &real {
        let usual = if name == "node::Node" { NODE_METHODS_MAX } else { METHODS_MAX };
        match limits.get(name.as_str()) {
            Some(limit) if count > limit => wrong.push(format!("{name}: {count}, not {limit}")),
            Some(_) if *count <= usual => {
                wrong.push(format!("{name}: {count}: strike it from METHODS"));
            }
            Some(limit) if count < limit => {
                wrong.push(format!("{name}: lower it from {limit} to {count}"));
            }
            None if *count > usual => wrong.push(format!("{name}: {count}, more than {usual}")),
            _ => {}
        }
    }
    let unknown = limits.keys().filter(|it| !real.contains_key(**it));
    wrong.extend(unknown.map(|it| format!("{it}: is no more: strike it from METHODS")));
    none(&wrong, "methods, with free functions that take `&mut` of it and impls of our own traits");
}

fn code(files: &[(&str, &str)]) -> Code {
    Code::read(files.iter().map(|(file, text)| ("node", Path::new(*file), (*text).to_owned())))
}

#[test]
fn a_circle_is_seen_through_the_root_and_through_macros() {
    let code = code(&[
        ("lib.rs", "mod a; mod b; mod c; pub use b::Of;"),
        ("a.rs", "fn f() { let it = crate::Of; }"),
        ("b/mod.rs", "mod deep; pub struct Of;"),
        ("b/deep.rs", "use super::super::c; #[cfg(test)] mod tests { use crate::a; }"),
        ("c.rs", "fn f() { say!(\"{}\", crate::b::Of) }"),
    ]);
    let circle = BTreeSet::from(["b".to_owned(), "c".to_owned()]);
    assert_eq!(code.imports("node")["a"], BTreeSet::from(["b".to_owned()]));
    assert_eq!(code.circles("node"), BTreeSet::from([circle]));
}

#[test]
fn machines_that_are_not_apart_are_seen() {
    let joined = "use crate::client::Client; use crate::object as of;
        pub struct Both<'a> { client: &'a mut Client, object: Option<&'a mut of::Object> }
        fn one(client: &mut Client, object: &of::Object) {}";
    let files = [
        ("lib.rs", "mod client; mod object; mod node; mod other;"),
        ("client/mod.rs", "pub struct Client; fn f(it: &crate::object::Object) {}"),
        ("object/mod.rs", "pub struct Object;"),
        ("node.rs", joined),
        ("other.rs", joined),
    ];
    let code = code(&files);
    assert_eq!(machines_that_name_others(&code), ["client -> object"]);
    assert_eq!(holders_of_several(&code), [r#"other.rs: Both: {"client", "object"}"#]);
}

#[test]
fn methods_are_counted_wherever_they_stand() {
    let code = code(&[
        ("lib.rs", "mod a; mod b; pub use a::It; pub trait Ours { fn f(&self); }"),
        ("a.rs", "pub struct It; impl It { fn a(&self) {} #[cfg(test)] fn t(&self) {} }"),
        (
            "b.rs",
            "use crate::*; use std::fmt::Display;
            impl It { fn b() {} } impl Ours for It { fn f(&self) {} }
            impl Display for It { fn fmt(&self) {} }
            fn free(it: Option<&mut It>) {} fn looks(it: &It) {}",
        ),
    ]);
    let name = ["node", "a", "It"].map(str::to_owned).to_vec();
    assert_eq!(code.methods(), BTreeMap::from([(name, 4)]));
}
