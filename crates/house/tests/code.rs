//! The product's modules, read with `syn`: the items that each names, and the types that functions and structs
//! have by `&mut`. Unit tests are left out. In macros only `crate::` paths are seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path as File, PathBuf};

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, FnArg, Item, ItemMod, ReceiverKind, Signature, Type, UseTree};

/// A crate's name, modules, and perhaps an item: `["node", "overhear", "Overhear"]`.
pub type Path = Vec<String>;

/// A path as a file spells it.
type Written = Vec<String>;

/// All modules by their paths.
#[derive(Default)]
pub struct Code {
    modules: BTreeMap<Path, Module>,
}

/// One module, inline or a file.
#[derive(Default)]
struct Module {
    file: PathBuf,
    /// Names of the module's items.
    defined: BTreeSet<String>,
    /// Paths that `use` imports, by their names in this module.
    used: BTreeMap<String, Written>,
    globs: Vec<Written>,
    /// Paths of two names or more, and all paths in `use`.
    mentions: Vec<Written>,
    functions: Vec<Function>,
    /// Each struct, and the types of its `&mut` fields.
    structs: Vec<(String, Vec<Written>)>,
}

/// A function with a body.
struct Function {
    name: String,
    /// The type whose `impl` block has the function, and the block's trait.
    owner: Option<Written>,
    by_trait: Option<Written>,
    /// Types of the `&mut` parameters.
    changed: Vec<Written>,
}

/// A function with `&mut` parameters, or a struct with `&mut` fields.
pub struct Changer {
    /// The name of the function or struct.
    pub name: String,
    /// The file, below `src`.
    pub file: PathBuf,
    /// The types behind `&mut`.
    pub types: BTreeSet<Path>,
}

impl Code {
    /// Reads files: each with its crate's name and its path below `src`.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a File, String)>) -> Self {
        let (mut code, mut tests) = (Self::default(), Tests::default());
        for (name, file, text) in files {
            let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            let mut path = vec![name.to_owned()];
            path.extend(file.with_extension("").iter().map(|it| it.to_string_lossy().into_owned()));
            if path.last().is_some_and(|it| ["lib", "main", "mod"].contains(&it.as_str())) {
                path.pop();
            }
            let mut reader = Reader { code: &mut code, tests: &mut tests, file, path, owner: None };
            reader.module().file = file.to_owned();
            reader.items(&parsed.items);
        }
        let is_test = |path: &Path, module: &Module| {
            tests.files.contains(&(path[0].clone(), module.file.clone()))
                || (1..=path.len()).any(|it| tests.modules.contains(&path[..it]))
        };
        code.modules.retain(|path, module| !is_test(path, module));
        code
    }

    /// The crates' names.
    pub fn crates(&self) -> BTreeSet<&str> {
        self.modules.keys().map(|path| path[0].as_str()).collect()
    }

    /// A crate's top files and folders, each with the others that it names. The crate's root may name all.
    pub fn imports(&self, name: &str) -> BTreeMap<&str, BTreeSet<String>> {
        let mut imports = BTreeMap::<_, BTreeSet<_>>::new();
        for (path, module) in self.modules.iter().filter(|(path, _)| path[0] == name) {
            let Some(from) = path.get(1) else { continue };
            let to = module.mentions.iter().filter_map(|it| self.top(path, it));
            imports.entry(from.as_str()).or_default().extend(to.filter(|it| it != from));
        }
        imports
    }

    /// The groups of a crate's top files and folders that name each other.
    pub fn circles(&self, name: &str) -> BTreeSet<BTreeSet<String>> {
        let imports = self.imports(name);
        let reached = |from: &str| {
            let (mut seen, mut ahead) = (BTreeSet::new(), vec![from.to_owned()]);
            while let Some(at) = ahead.pop() {
                for next in imports.get(at.as_str()).into_iter().flatten() {
                    if seen.insert(next.clone()) {
                        ahead.push(next.clone());
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<_, _> = imports.keys().map(|it| (*it, reached(it))).collect();
        let circle = |from: &str| {
            let back = |it: &&String| reached.get(it.as_str()).is_some_and(|it| it.contains(from));
            reached[from].iter().filter(back).cloned().collect()
        };
        imports.keys().map(|it| circle(it)).filter(|it: &BTreeSet<_>| !it.is_empty()).collect()
    }

    /// The number of each type's methods: its own, those of our traits, and free functions that take `&mut` of it.
    pub fn methods(&self) -> BTreeMap<Path, usize> {
        let mut methods = BTreeMap::new();
        for (path, module) in &self.modules {
            for function in &module.functions {
                let is_ours =
                    function.by_trait.as_ref().is_none_or(|it| self.resolve(path, it).is_some());
                let types = match &function.owner {
                    Some(owner) if is_ours => std::slice::from_ref(owner),
                    Some(_) => &[],
                    None => function.changed.as_slice(),
                };
                let types: BTreeSet<_> =
                    types.iter().filter_map(|it| self.resolve(path, it)).collect();
                types.into_iter().for_each(|it| *methods.entry(it).or_default() += 1);
            }
        }
        methods
    }

    /// All functions and structs of a crate, with the types that they take or hold by `&mut`.
    pub fn changers(&self, name: &str) -> Vec<Changer> {
        let mut changers = Vec::new();
        for (path, module) in self.modules.iter().filter(|(path, _)| path[0] == name) {
            let functions = module.functions.iter().map(|it| (&it.name, &it.changed));
            let structs = module.structs.iter().map(|(name, held)| (name, held));
            changers.extend(functions.chain(structs).map(|(name, types)| Changer {
                name: name.clone(),
                file: module.file.clone(),
                types: types.iter().filter_map(|it| self.resolve(path, it)).collect(),
            }));
        }
        changers
    }

    /// The top file or folder that a path of this module leads into, if that is in the module's own crate.
    fn top(&self, from: &[String], written: &[String]) -> Option<String> {
        let mut path = vec![from[0].clone()];
        let supers = written.iter().take_while(|it| *it == "super").count();
        match written[0].as_str() {
            "crate" => path.extend(written.get(1).cloned()),
            "super" if supers == from.len() - 1 => path.extend(written.get(supers).cloned()),
            _ => return None,
        }
        if !self.modules.contains_key(&path) {
            path = self.resolve(from, written)?;
        }
        let is_top = path[0] == from[0] && self.modules.contains_key(path.get(..2)?);
        is_top.then(|| path[1].clone())
    }

    /// The definition that a path in this module names, if it is ours.
    fn resolve(&self, from: &[String], written: &[String]) -> Option<Path> {
        self.resolve_within(from, written, 16)
    }

    /// As [`Self::resolve`], in this many steps at most: imports can form a circle.
    fn resolve_within(&self, from: &[String], written: &[String], steps: usize) -> Option<Path> {
        let steps = steps.checked_sub(1)?;
        let (first, mut rest) = written.split_first()?;
        let mut at = match first.as_str() {
            "crate" => vec![from[0].clone()],
            "self" => from.to_vec(),
            "super" => from[..from.len() - 1].to_vec(),
            "" => vec![rest.split_off_first()?.clone()],
            name => self.item(from, name, steps).or_else(|| Some(vec![name.to_owned()]))?,
        };
        while let Some((name, more)) = rest.split_first() {
            if !self.modules.contains_key(&at) {
                break;
            }
            at = match name.as_str() {
                "super" => at[..at.len() - 1].to_vec(),
                "self" => at,
                name => self.item(&at, name, steps)?,
            };
            rest = more;
        }
        let is_ours = self.modules.keys().any(|path| path[0] == at[0]);
        (is_ours && !at.is_empty()).then_some(at)
    }

    /// The definition that a name stands for in a module.
    fn item(&self, module: &[String], name: &str, steps: usize) -> Option<Path> {
        let own = [module, &[name.to_owned()]].concat();
        let it = self.modules.get(module)?;
        if it.defined.contains(name) || self.modules.contains_key(&own) {
            return Some(own);
        }
        if let Some(written) = it.used.get(name) {
            return self.resolve_within(module, written, steps);
        }
        it.globs.iter().find_map(|glob| {
            let there = self.resolve_within(module, glob, steps)?;
            (there != module).then(|| self.item(&there, name, steps.checked_sub(1)?))?
        })
    }
}

/// Modules of unit tests, and files that their `#[path]` attributes name.
#[derive(Default)]
struct Tests {
    modules: BTreeSet<Path>,
    files: BTreeSet<(String, PathBuf)>,
}

/// Reads one file.
struct Reader<'a> {
    code: &'a mut Code,
    tests: &'a mut Tests,
    file: &'a File,
    /// The module that is being read.
    path: Path,
    /// The type of the `impl` block that is being read, and the block's trait.
    owner: Option<(Written, Option<Written>)>,
}

impl Reader<'_> {
    fn module(&mut self) -> &mut Module {
        self.code.modules.entry(self.path.clone()).or_default()
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.visit_item(item);
        }
    }

    fn test_module(&mut self, item: &ItemMod) {
        let path = [&self.path[..], &[item.ident.to_string()]].concat();
        for attribute in item.attrs.iter().filter(|it| it.path().is_ident("path")) {
            if let Ok(syn::Expr::Lit(lit)) = attribute.meta.require_name_value().map(|it| &it.value)
                && let syn::Lit::Str(place) = &lit.lit
            {
                let file = self.file.with_file_name(place.value());
                self.tests.files.insert((path[0].clone(), file));
            }
        }
        self.tests.modules.insert(path);
    }

    fn function(&mut self, signature: &Signature) {
        let owner = self.owner.clone();
        let mut changed = Vec::new();
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(it)
                    if matches!(it.kind, ReceiverKind::Reference(_, _, Some(_))) =>
                {
                    changed.extend(owner.as_ref().map(|(owner, _)| owner.clone()));
                }
                FnArg::Receiver(_) => {}
                FnArg::Typed(it) => changed.extend(by_mut(&it.ty)),
            }
        }
        let name = signature.ident.to_string();
        let (owner, by_trait) = owner.map_or((None, None), |(owner, by)| (Some(owner), by));
        self.module().functions.push(Function { name, owner, by_trait, changed });
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (name, attributes) = match item {
            Item::Const(it) => (Some(&it.ident), &it.attrs),
            Item::Enum(it) => (Some(&it.ident), &it.attrs),
            Item::Fn(it) => (Some(&it.sig.ident), &it.attrs),
            Item::Impl(it) => (None, &it.attrs),
            Item::Mod(it) => (Some(&it.ident), &it.attrs),
            Item::Static(it) => (Some(&it.ident), &it.attrs),
            Item::Struct(it) => (Some(&it.ident), &it.attrs),
            Item::Trait(it) => (Some(&it.ident), &it.attrs),
            Item::Type(it) => (Some(&it.ident), &it.attrs),
            Item::Use(it) => (None, &it.attrs),
            other => return visit::visit_item(self, other),
        };
        if attributes.iter().any(is_of_tests) {
            if let Item::Mod(it) = item {
                self.test_module(it);
            }
            return;
        }
        if let Some(name) = name {
            let name = name.to_string();
            self.module().defined.insert(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let Some((_, items)) = &item.content else { return };
        self.path.push(item.ident.to_string());
        let file = self.file.to_owned();
        self.module().file = file;
        self.items(items);
        self.path.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let begin = if item.leading_colon.is_some() { vec![String::new()] } else { Vec::new() };
        let module = self.module();
        flatten(&item.tree, &begin, &mut |name, written| {
            module.mentions.push(written.clone());
            match name {
                Some(name) => drop(module.used.insert(name, written)),
                None => module.globs.push(written),
            }
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let by_trait = item.trait_.as_ref().map(|it| written(&it.0));
        let owner = type_path(&item.self_ty).map(|owner| (owner, by_trait));
        let before = std::mem::replace(&mut self.owner, owner);
        visit::visit_item_impl(self, item);
        self.owner = before;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !item.attrs.iter().any(is_of_tests) {
            self.function(&item.sig);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let owner = self.owner.take();
        self.function(&item.sig);
        visit::visit_item_fn(self, item);
        self.owner = owner;
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let held = item.fields.iter().flat_map(|it| by_mut(&it.ty)).collect();
        self.module().structs.push((item.ident.to_string(), held));
        visit::visit_item_struct(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.module().mentions.push(written(path));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, it: &'ast syn::Macro) {
        let tokens = it.tokens.to_string();
        let tokens: Vec<_> = tokens.split_whitespace().collect();
        for at in tokens.windows(3).filter(|it| it[..2] == ["crate", "::"]) {
            self.module().mentions.push(vec!["crate".to_owned(), at[2].to_owned()]);
        }
        visit::visit_macro(self, it);
    }
}

/// Calls `each` for every path of a `use`, with its local name; `None` for a glob.
fn flatten(tree: &UseTree, begin: &[String], each: &mut impl FnMut(Option<String>, Written)) {
    let with = |name: String| [begin, &[name]].concat();
    match tree {
        UseTree::Path(it) => flatten(&it.tree, &with(it.ident.to_string()), each),
        UseTree::Name(it) if it.ident == "self" => each(begin.last().cloned(), begin.to_vec()),
        UseTree::Name(it) => each(Some(it.ident.to_string()), with(it.ident.to_string())),
        UseTree::Rename(it) if it.ident == "self" => {
            each(Some(it.rename.to_string()), begin.to_vec());
        }
        UseTree::Rename(it) => each(Some(it.rename.to_string()), with(it.ident.to_string())),
        UseTree::Glob(_) => each(None, begin.to_vec()),
        UseTree::Group(it) => it.items.iter().for_each(|it| flatten(it, begin, each)),
    }
}

fn written(path: &syn::Path) -> Written {
    let begin = path.leading_colon.as_ref().map(|_| String::new());
    begin.into_iter().chain(path.segments.iter().map(|it| it.ident.to_string())).collect()
}

fn type_path(it: &Type) -> Option<Written> {
    match it {
        Type::Path(it) => Some(written(&it.path)),
        _ => None,
    }
}

/// The types behind `&mut` within a type.
fn by_mut(it: &Type) -> Vec<Written> {
    struct Found(Vec<Written>);
    impl<'ast> Visit<'ast> for Found {
        fn visit_type_reference(&mut self, it: &'ast syn::TypeReference) {
            if it.mutability.is_some() {
                self.0.extend(type_path(&it.elem));
            }
            visit::visit_type_reference(self, it);
        }
    }
    let mut found = Found(Vec::new());
    found.visit_type(it);
    found.0
}

/// Whether an attribute is `#[cfg(test)]`, alone or among other conditions.
fn is_of_tests(attribute: &Attribute) -> bool {
    let words = Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated;
    let is_test = |it: &syn::Meta| it.path().is_ident("test");
    attribute.path().is_ident("cfg")
        && attribute.parse_args_with(words).is_ok_and(|it| it.iter().any(is_test))
}
