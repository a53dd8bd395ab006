//! The settings: one TOML file, which the command line overrides and defaults complete.
//!
//! *What this is:* [`Config`], the settings after all checks. `config/file.rs` describes the file,
//! `config/machine.rs` the facts that the defaults depend on. *Who calls it:* `main.rs`, for the
//! daemon and for the commands that look for its control socket. *What it never does:* open sockets or
//! the store, so `hearsay check-config` is safe beside a running daemon. *Where to start:*
//! [`Config::load`], then `packaging/hearsay.toml`, which shows every key.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::level::Level;
use node::Prefix;
use toml::Spanned;
use wire::Selection;

mod access;
mod classes;
mod display;
mod experiment;
mod far;
mod file;
mod idle;
mod intercept;
mod locate;
mod machine;
mod mesh;
mod mirror;
mod overhear;
mod place;
mod problem;
mod published;
mod requests;
mod size;
mod span;
mod uplink;

pub use access::Access;
pub use classes::Tables;
pub use experiment::Experiment;
pub use far::{FarGiven, FarOverrides, FarSettings, far_control_paths};
use file::{File, Source};
pub use intercept::Intercept;
pub use machine::{CONTROL_OF_ROOT, Machine};
pub use mesh::Mesh;
pub use mirror::Mirror;
pub use overhear::Overhear;
pub use place::Place;
pub use problem::ConfigError;
pub use requests::{Format, Naming, Requests};
pub use size::Size;
pub use span::Span;
pub use uplink::{FarEnd, Uplink};
#[cfg(test)]
pub use {far::KEYS as FAR_KEYS, file::KEYS, tests::load as load_text};

/// The file that is read if it exists and no other is named.
pub const FILE_DEFAULT: &str = "/etc/hearsay/hearsay.toml";

/// Caches and buffers must have room for a few transfers at once.
const MEMORY_MIN: Size = Size::mib(4);
const MEMORY_DEFAULT: Size = Size::mib(16);
const DRAIN_DEFAULT: Duration = Duration::from_secs(60);
/// A store on disk reclaims whole segments, so it must have room for several.
const STORE_MIN: Size = Size::mib(16);
/// The most that the store's index can address; no router has a larger disk.
pub const STORE_MAX: Size = Size::mib(2 << 20);
const STORE_DEFAULT: Size = Size::mib(1024);
const MEMORY_STORE_MIN: Size = Size::mib(8);
/// A store in memory is smaller by default: most routers have less than a gigabyte of memory.
const MEMORY_STORE_DEFAULT: Size = Size::mib(32);
const POLICIES: [(&str, store::Policy); 2] =
    [("s3-fifo", store::Policy::S3Fifo), ("lru", store::Policy::Lru)];
/// Opening a port below this takes CAP_NET_BIND_SERVICE.
const PORT_MIN: u16 = 1024;
const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);

/// The daemon's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the explicit proxy listens.
    pub listen: Vec<SocketAddr>,
    /// Clients that may use the proxy, besides those with private and local addresses.
    pub allow: Vec<Prefix>,
    /// The daemon's name in `Via` and `Cache-Status`.
    pub name: String,
    /// The budget of caches and buffers, in bytes.
    pub memory_bytes: u64,
    /// How long open connections may take to finish when the daemon is told to stop.
    pub drain: Duration,
    /// The control socket's path.
    pub control: PathBuf,
    /// The store.
    pub store: Store,
    /// Which destinations are dialled for clients and peers.
    pub access: Access,
    /// Tables of content classes, besides the program's own.
    pub classes: Tables,
    /// Transparent interception.
    pub intercept: Intercept,
    /// The mirror of package archives.
    pub mirror: Mirror,
    /// The mesh.
    pub mesh: Mesh,
    /// Overhearing: whether chunks that neighbours send each other are stored.
    pub overhear: Overhear,
    /// The uplink.
    pub uplink: Uplink,
    /// The TCP address where metrics are served, besides on the control socket.
    pub metrics: Option<SocketAddr>,
    /// The ledger.
    pub ledger: Ledger,
    /// How much is logged, if neither the command line nor the environment says.
    pub log: Level,
    /// The log of requests.
    pub requests: Requests,
    /// Deviations from normal behaviour, for experiments.
    pub experiment: Experiment,
    /// Settings that are allowed but should be corrected; a sentence for each.
    pub warnings: Vec<String>,
}

/// The store's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Where units are stored.
    pub place: Place,
    /// The most bytes that the store may use.
    pub size_bytes: u64,
    /// Which units are evicted when the store is full.
    pub policy: store::Policy,
    /// Objects larger than this, in bytes, are not stored if no content class says how long they are kept; `None`: of any
    /// size.
    pub object_bytes_max: Option<u64>,
}

/// The ledger's settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Whether bytes are also kept by host. They tell about people.
    pub hosts: bool,
}

/// The settings of the command line; they override the file's.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Replaces the whole list.
    pub listen: Vec<SocketAddr>,
    /// `[store] path`.
    pub store: Option<Place>,
    /// `[store] size`.
    pub store_size: Option<Size>,
    /// `memory`.
    pub memory: Option<Size>,
    /// `drain`.
    pub drain: Option<Span>,
    /// Replaces the whole list of interfaces.
    pub intercept: Vec<String>,
    /// `[intercept] port`.
    pub intercept_port: Option<u16>,
    /// Replaces the whole list of `[mesh] interfaces`.
    pub mesh: Vec<String>,
    /// `[mesh] scheme`.
    pub scheme: Option<Selection>,
    /// Replaces `[mesh] key` and `key-file`.
    pub mesh_key_file: Option<PathBuf>,
    /// `[overhear] interface`, and mode `sniff`.
    pub overhear: Option<String>,
    /// `[metrics] listen`.
    pub metrics: Option<SocketAddr>,
    /// `control`.
    pub control: Option<PathBuf>,
}

/// The sources of the settings; a reload reads them again.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The file that was named; `None`: [`FILE_DEFAULT`], if it exists.
    pub file: Option<PathBuf>,
    /// The settings of the command line.
    pub overrides: Overrides,
}

impl Given {
    /// Loads the current settings, and checks that the store's directory can be used.
    pub fn load(&self) -> Result<Config, ConfigError> {
        let config = Config::load(self.file.as_deref(), &self.overrides)?;
        let mut wrong = ConfigError::default();
        if let Place::Dir(path) = &config.store.place
            && let Err(unfit) = store::check_place(path)
        {
            wrong.add("[store] path", unfit.to_string());
        }
        self.locate(wrong).unless(config)
    }

    /// Names the lines of settings in errors.
    pub fn locate(&self, wrong: ConfigError) -> ConfigError {
        let file = self.file.as_deref();
        let (name, text) = (path_or_default(file).display().to_string(), read_text(file));
        let source = Source { name: &name, text: text.as_deref().unwrap_or_default() };
        wrong.locate(source, &self.overrides)
    }
}

impl Config {
    /// Loads the settings of the file and the command line. Without a path, the file is
    /// [`FILE_DEFAULT`], if it exists.
    pub fn load(path: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let path_or_default = path_or_default(path);
        let name = path_or_default.display().to_string();
        let text = read_text(path)?;
        let source = Source { name: &name, text: &text };
        let mut config = Self::from_text(source, overrides, &Machine::here())?;
        config.warnings.extend(exposed_key(source, path_or_default));
        let idle = config.idle(source, &idle::Here).locate(source, overrides);
        config.warnings.extend(idle.problems.iter().map(ToString::to_string));
        let mut wrong = ConfigError::default();
        config.classes = Tables::beside(path_or_default, &mut wrong);
        wrong.unless(config)
    }

    fn from_text(
        source: Source<'_>,
        overrides: &Overrides,
        machine: &Machine,
    ) -> Result<Self, ConfigError> {
        let file = file::read(source)?;
        let mut wrong = ConfigError::default();
        let mut reader = Reader { source, machine, wrong: &mut wrong };
        let config = reader.config(file, overrides);
        // A misspelt setting is reported once, and not once more as missing.
        wrong.unless(())?;
        config.check(machine).locate(source, overrides).unless(config)
    }

    /// Finds settings that conflict with each other or with the machine, from either source.
    fn check(&self, machine: &Machine) -> ConfigError {
        let mut wrong = ConfigError::default();
        self.check_addresses(&mut wrong);
        self.check_sizes(&mut wrong, machine);
        self.check_low_ports(&mut wrong);
        self.check_requests(&mut wrong);
        let is_idle = self.intercept.ports.is_empty() && self.uplink.far.is_none();
        if !self.intercept.interfaces.is_empty() && is_idle {
            let text = "none of them is 80 or in `http`, and there is no far end for others: nothing would be intercepted";
            wrong.add("[intercept] ports", text);
        } else if let Some(rules) = self.rules()
            && let Err(error) = rules.validate()
        {
            wrong.add("[intercept] interfaces", error.to_string());
        }
        self.access.check(&mut wrong);
        self.mesh.check(&mut wrong);
        self.overhear.check(&self.mesh, &mut wrong);
        self.experiment.check(self, &mut wrong);
        wrong
    }

    fn check_addresses(&self, wrong: &mut ConfigError) {
        let intercepts = self.rules().is_some();
        if self.listen.is_empty() && self.mirror.listen.is_empty() && !intercepts {
            let text = "nothing to listen on: give `listen` or [mirror] an address, or [intercept] \
                        an interface";
            wrong.add("listen", text);
        }
        let mut taken: Vec<(&str, SocketAddr)> = Vec::new();
        let explicit = self.listen.iter().map(|address| ("listen", *address));
        let mirror = self.mirror.listen.iter().map(|address| ("[mirror] listen", *address));
        let metrics = self.metrics.iter().map(|address| ("[metrics] listen", *address));
        let everywhere = |port| {
            let all: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
            all.map(|ip| SocketAddr::new(ip, port))
        };
        let intercept = intercepts.then_some(("[intercept] port", self.intercept.port));
        let mesh = self.mesh.routing().map(|_| ("[mesh] port", self.mesh.port));
        let wide = intercept.into_iter().chain(mesh);
        let wide = wide.flat_map(|(key, port)| everywhere(port).map(|address| (key, address)));
        for (key, address) in explicit.chain(mirror).chain(metrics).chain(wide) {
            if let Some((other, before)) = taken.iter().find(|(_, it)| collide(*it, address)) {
                let text = format!("{address} is taken by {other} ({before}): choose another port");
                wrong.add(key, text);
            }
            taken.push((key, address));
        }
    }

    /// Those of `listen`, of the mirror and of metrics are opened before the daemon gives up its rights, and may be low.
    fn check_low_ports(&self, wrong: &mut ConfigError) {
        let ports = [
            ("[intercept] port", self.intercept.port, "the helper process, which opens it, has"),
            (
                "[mesh] port",
                self.mesh.port,
                "it is opened when interfaces appear, and then the daemon has",
            ),
        ];
        for (key, port, who) in ports.into_iter().filter(|(_, port, _)| *port < PORT_MIN) {
            let right = "no right to open a lower one (CAP_NET_BIND_SERVICE)";
            wrong.add(
                key,
                format!("{port}: needs a port from {PORT_MIN} on, because {who} {right}"),
            );
        }
    }

    fn check_sizes(&self, wrong: &mut ConfigError, machine: &Machine) {
        let (memory, size) = (Size(self.memory_bytes), Size(self.store.size_bytes));
        if memory < MEMORY_MIN {
            wrong.add("memory", format!("{memory} is too little: at least {MEMORY_MIN}"));
        }
        let (min, in_memory) = match self.store.place {
            Place::Memory => (MEMORY_STORE_MIN, size),
            Place::Dir(_) => (STORE_MIN, Size(0)),
        };
        if size < min {
            wrong.add("[store] size", format!("{size} is too little: at least {min}"));
        }
        if size > STORE_MAX {
            wrong.add("[store] size", format!("{size} is too much: at most {STORE_MAX}"));
        }
        let overheard = self.overhear.budget_bytes().unwrap_or(0);
        let wanted = Size(memory.0.saturating_add(in_memory.0).saturating_add(overheard));
        if let Some(there) = machine.memory_bytes.filter(|there| wanted.0 > *there) {
            let (key, of) = match self.store.place {
                _ if overheard > 0 => ("[overhear] memory", "all that is in memory together"),
                Place::Memory => ("[store] size", "the store and `memory` together"),
                Place::Dir(_) => ("memory", "the budget"),
            };
            let there = there >> 20;
            let text =
                format!("{of} would be {wanted}, and this machine has {there}MiB: take less");
            wrong.add(key, text);
        }
    }
}

/// The paths where commands look for the control socket, in order. If the command line gives a path,
/// it is the only one. Otherwise they are the file's, the user's default and root's default.
pub fn control_paths(asked: Option<&Path>) -> Vec<PathBuf> {
    if let Some(path) = asked {
        return vec![path.to_owned()];
    }
    let candidates =
        [configured_control(), Machine::here().control(), Some(CONTROL_OF_ROOT.into())];
    let mut seen = BTreeSet::new();
    candidates.into_iter().flatten().filter(|path| seen.insert(path.clone())).collect()
}

/// The control socket's path in the default file. Other errors in the file are ignored: a user may
/// ask for the status without permission to read the mesh's key.
fn configured_control() -> Option<PathBuf> {
    let source = Source { name: FILE_DEFAULT, text: &read_text(None).ok()? };
    let file = file::read(source).ok()?;
    let mut wrong = ConfigError::default();
    let mut reader = Reader { source, machine: &Machine::here(), wrong: &mut wrong };
    let control = reader.control(file.control, &Overrides::default());
    wrong.unless(control).ok()
}

fn path_or_default(path: Option<&Path>) -> &Path {
    path.unwrap_or(Path::new(FILE_DEFAULT))
}

fn read_text(path: Option<&Path>) -> Result<String, ConfigError> {
    read_or_default(path, FILE_DEFAULT)
}

/// The text of a file, or of the default one: that need not exist.
fn read_or_default(path: Option<&Path>, default: &str) -> Result<String, ConfigError> {
    let file = path.unwrap_or(Path::new(default));
    match std::fs::read_to_string(file) {
        Err(error) if path.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            Ok(String::new())
        }
        outcome => outcome.map_err(|error| {
            let mut wrong = ConfigError::default();
            wrong.add(file.display().to_string(), format!("cannot be read: {error}"));
            wrong
        }),
    }
}

/// A warning, if the mesh's key is in a file that other users can read.
fn exposed_key(source: Source<'_>, path: &Path) -> Option<String> {
    let key = file::read(source).ok()?.mesh.key?;
    let is_open = std::fs::metadata(path).is_ok_and(|it| mesh::is_open_to_others(&it));
    let (place, path) = (source.place_of(&key), path.display());
    is_open.then(|| {
        format!(
            "{place}: others can read the mesh's key: `chmod 600 {path}`, or give it a file of its \
             own ([mesh] key-file)"
        )
    })
}

/// Whether two listeners cannot be open at the same time. A listener has one address family. Port 0
/// stands for any free port, so it never collides.
fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let covers = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && a.port() != 0 && a.is_ipv4() == b.is_ipv4() && covers
}

/// Whether a prefix covers two addresses that cannot belong to one site.
fn is_the_world(prefix: &Prefix) -> bool {
    let far_apart = [("8.8.8.8", "100.0.0.1"), ("129.0.0.1", "200.0.0.1"), ("2001::1", "3fff::1")];
    let covers = |text: &str| text.parse().is_ok_and(|address| prefix.covers(address));
    far_apart.iter().any(|(a, b)| covers(a) && covers(b))
}

/// Converts the file's values to settings, and collects the errors.
struct Reader<'a> {
    source: Source<'a>,
    machine: &'a Machine,
    wrong: &'a mut ConfigError,
}

impl Reader<'_> {
    fn config(&mut self, file: File, overrides: &Overrides) -> Config {
        let listen = match &file.listen {
            Some(texts) => texts.iter().filter_map(|text| self.address(text)).collect(),
            None => vec![LISTEN_DEFAULT],
        };
        let metrics = file.metrics.listen.and_then(|text| self.address(&text));
        let memory = overrides.memory.or(file.memory.map(Spanned::into_inner));
        let experiment = self.experiment(file.experiment);
        let level = file.log.level.as_ref();
        let log = level.and_then(|text| self.level(text)).unwrap_or_default();
        Config {
            listen: some_or(&overrides.listen, listen),
            allow: file.allow.iter().filter_map(|text| self.prefix(text)).collect(),
            name: self.name(file.name),
            memory_bytes: memory.unwrap_or(MEMORY_DEFAULT).0,
            drain: self.drain(file.drain, overrides),
            control: self.control(file.control, overrides),
            store: self.store(file.store, overrides),
            access: self.access(file.access),
            classes: Tables::default(),
            mirror: self.mirror(&file.mirror),
            intercept: Intercept::read(file.intercept, overrides),
            mesh: self.mesh(file.mesh, overrides, &experiment),
            overhear: self.overhear(file.overhear, overrides, &experiment),
            uplink: self.uplink(file.uplink),
            metrics: overrides.metrics.or(metrics),
            ledger: Ledger { hosts: file.ledger.hosts.unwrap_or(false) },
            log,
            requests: self.requests(file.log),
            experiment,
            warnings: Vec::new(),
        }
    }

    fn drain(&mut self, text: Option<Spanned<String>>, overrides: &Overrides) -> Duration {
        let read = text.and_then(|text| match text.get_ref().parse::<Span>() {
            Ok(span) => Some(span),
            Err(error) => {
                self.complain(&text, &format!("drain: {:?} is {error}", text.get_ref()));
                None
            }
        });
        overrides.drain.or(read).map_or(DRAIN_DEFAULT, |span| span.0)
    }

    fn store(&mut self, file: file::Store, overrides: &Overrides) -> Store {
        let place = match (&overrides.store, file.path) {
            (Some(place), _) => place.clone(),
            (None, Some(text)) if text.get_ref() == "memory" => Place::Memory,
            (None, Some(text)) => Place::Dir(self.path("[store] path", &text)),
            (None, None) => Place::Dir(self.default_path("[store] path", self.machine.store_dir())),
        };
        let size_default =
            if place == Place::Memory { MEMORY_STORE_DEFAULT } else { STORE_DEFAULT };
        let size = overrides.store_size.or(file.size.map(Spanned::into_inner));
        let policy = file.policy.map_or(store::Policy::S3Fifo, |text| self.policy(&text));
        let object_bytes_max = file.object_max.map(|size| size.into_inner().0);
        Store { place, size_bytes: size.unwrap_or(size_default).0, policy, object_bytes_max }
    }

    fn policy(&mut self, text: &Spanned<String>) -> store::Policy {
        self.choice(text, "is no policy", &POLICIES).unwrap_or(store::Policy::S3Fifo)
    }

    fn level(&mut self, text: &Spanned<String>) -> Option<Level> {
        self.choice(text, "is no level", &Level::ALL)
    }

    /// The value of a keyword. If it is unknown, the error lists the known ones.
    fn choice<T: Copy>(
        &mut self,
        text: &Spanned<String>,
        is_none: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let found = words.iter().find(|(word, _)| word == text.get_ref());
        if found.is_none() {
            let (written, known) = (text.get_ref(), words.iter().map(|(word, _)| *word));
            let all: Vec<_> = known.clone().map(|word| format!("{word:?}")).collect();
            let advice = file::meant(written, known, all.join(" or "));
            self.complain(text, &format!("{written:?} {is_none}: {advice}"));
        }
        found.map(|(_, value)| *value)
    }

    fn address(&mut self, text: &Spanned<String>) -> Option<SocketAddr> {
        let address = text.get_ref().parse().ok();
        if address.is_none() {
            let form = "an address and a port, like 127.0.0.1:3128 or [::1]:3128";
            self.complain(text, &format!("{:?} is not {form}", text.get_ref()));
        }
        address
    }

    /// Parses a prefix. A prefix that covers the whole internet is refused: it would make an open proxy.
    fn prefix(&mut self, text: &Spanned<String>) -> Option<Prefix> {
        match text.get_ref().parse() {
            Ok(prefix) if is_the_world(&prefix) => {
                let advice = "would make an open proxy of us: name your own networks";
                self.complain(text, &format!("{:?} {advice}", text.get_ref()));
                None
            }
            Ok(prefix) => Some(prefix),
            Err(error) => {
                self.complain(text, &format!("{:?} is {error}", text.get_ref()));
                None
            }
        }
    }

    fn name(&mut self, text: Option<Spanned<String>>) -> String {
        let Some(text) = text else { return self.machine.pseudonym() };
        if !machine::is_pseudonym(text.get_ref()) {
            let advice = "letters, digits, '.', '-' and '_', beginning with a letter";
            self.complain(&text, &format!("{:?} cannot be our name: {advice}", text.get_ref()));
        }
        text.into_inner()
    }

    fn control(&mut self, text: Option<Spanned<String>>, overrides: &Overrides) -> PathBuf {
        match (&overrides.control, text) {
            (Some(path), _) => path.clone(),
            (None, Some(text)) => self.path("control", &text),
            (None, None) => self.default_path("control", self.machine.control()),
        }
    }

    /// Checks that a path is absolute: a daemon's working directory may be any.
    fn path(&mut self, key: &str, text: &Spanned<String>) -> PathBuf {
        let path = PathBuf::from(text.get_ref());
        if !path.is_absolute() {
            let advice = "is relative: give the whole path, from / on";
            self.complain(text, &format!("{key}: {:?} {advice}", text.get_ref()));
        }
        path
    }

    fn default_path(&mut self, key: &str, path: Option<PathBuf>) -> PathBuf {
        if path.is_none() {
            self.wrong.add(key, "no default without $HOME or $XDG_CACHE_HOME: give the path");
        }
        path.unwrap_or_default()
    }

    fn complain<T>(&mut self, value: &Spanned<T>, text: &str) {
        self.wrong.add(self.source.place_of(value), text);
    }
}

/// `first`, or `second` if `first` is empty.
pub fn some_or<T: Clone>(first: &[T], second: Vec<T>) -> Vec<T> {
    if first.is_empty() { second } else { first.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Machine {
        Machine {
            is_root: true,
            host_name: "router-12".into(),
            memory_bytes: Some(128 << 20),
            ..Machine::default()
        }
    }

    pub fn load(text: &str) -> Result<Config, ConfigError> {
        load_with(text, &Overrides::default())
    }

    pub(super) fn load_with(text: &str, overrides: &Overrides) -> Result<Config, ConfigError> {
        Config::from_text(Source { name: "h.toml", text }, overrides, &root())
    }

    pub(super) fn complaint(text: &str) -> String {
        load(text).unwrap_err().to_string()
    }

    #[test]
    fn no_file_at_all_is_enough() {
        let config = load("").unwrap();
        assert_eq!(config.listen, [LISTEN_DEFAULT]);
        assert_eq!(config.name, "router-12");
        assert_eq!((config.memory_bytes, config.drain.as_secs()), (16 << 20, 60));
        assert_eq!(config.control, Path::new("/run/hearsay/control.sock"));
        assert_eq!(config.store.place, Place::Dir("/var/cache/hearsay".into()));
        assert_eq!(config.store.size_bytes, 1 << 30);
        assert_eq!((config.rules(), config.metrics), (None, None));
        assert_eq!(config.mesh.routing(), None);
    }

    const EXAMPLE: &str = include_str!("../../../packaging/hearsay.toml");

    /// The example file with its settings uncommented. They are lines like `#key`; prose is `# text`.
    fn example_in_force() -> String {
        let is_setting =
            |line: &&str| line.starts_with(|c: char| c.is_ascii_lowercase() || c == '[');
        let line = |line: &'static str| {
            line.strip_prefix('#').filter(is_setting).unwrap_or(line).to_owned() + "\n"
        };
        EXAMPLE.lines().map(line).collect()
    }

    #[test]
    fn the_packaged_example_is_the_defaults() {
        let defaults = load("").unwrap();
        assert_eq!(load(EXAMPLE).unwrap(), defaults);
        assert_ne!(example_in_force(), EXAMPLE);
        assert_eq!(load(&example_in_force()).unwrap(), defaults);
    }

    #[test]
    fn the_packaged_example_shows_every_key() {
        for key in KEYS.iter().flat_map(|(_, keys)| keys.iter()) {
            let forms = [format!("#{key} = "), format!("# {key} = "), format!("[{key}]")];
            let has = |form: &String| EXAMPLE.lines().any(|line| line.starts_with(form.as_str()));
            assert!(forms.iter().any(has), "{key}");
        }
    }

    #[test]
    fn a_file_says_all_there_is() {
        let text = r#"
            listen = ["192.0.2.1:8080", "[::1]:0"]
            allow = ["2001:db8::/32"]
            name = "mesh.north"
            memory = 8388608
            drain = "5min"
            control = "/tmp/c.sock"
            [store]
            path = "memory"
            policy = "lru"
            object-max = "16MB"
            [intercept]
            interfaces = ["br-lan"]
            port = 3132
            ports = [80]
            http = [8080]
            [mesh]
            interfaces = ["wl0", "wl1"]
            babeld = "[::1]:33124"
            gateway = "10.77.0.8"
            [metrics]
            listen = "127.0.0.1:9128"
        "#;
        let config = load(text).unwrap();
        assert_eq!(config.listen.len(), 2);
        assert_eq!(config.allow, ["2001:db8::/32".parse().unwrap()]);
        assert_eq!((config.name.as_str(), config.memory_bytes), ("mesh.north", 8 << 20));
        assert_eq!(config.drain.as_secs(), 300);
        assert_eq!(config.store.place, Place::Memory);
        assert_eq!(config.store.size_bytes, MEMORY_STORE_DEFAULT.0);
        assert_eq!(config.store.policy, store::Policy::Lru);
        assert_eq!(config.store.object_bytes_max, Some(16_000_000));
        let rules = config.rules().unwrap();
        assert_eq!((rules.listen_port, rules.ports), (3132, vec![80, 8080]));
        let mesh = config.mesh.routing().unwrap();
        assert_eq!((mesh.interfaces.len(), mesh.babeld.port()), (2, 33124));
        assert_eq!(mesh.gateway, "10.77.0.8".parse().ok());
        assert_eq!(config.metrics, Some("127.0.0.1:9128".parse().unwrap()));
    }

    #[test]
    fn the_command_line_counts_more() {
        let overrides = Overrides {
            listen: vec!["127.0.0.1:1".parse().unwrap()],
            store: Some(Place::Memory),
            store_size: Some(Size::mib(9)),
            intercept: vec!["wl0".into()],
            intercept_port: Some(7007),
            mesh: vec!["wl1".into()],
            scheme: Some(Selection::Thcp),
            ..Overrides::default()
        };
        let text = "listen = [\"127.0.0.1:2\"]\n[store]\npath = \"/x\"\n[intercept]\nport = 8008\n[mesh]\ninterfaces = [\"wl0\"]";
        let config = load_with(text, &overrides).unwrap();
        assert_eq!(config.listen, overrides.listen);
        assert_eq!((config.store.place, config.store.size_bytes), (Place::Memory, 9 << 20));
        assert_eq!(
            (config.intercept.interfaces, config.intercept.port),
            (vec!["wl0".into()], 7007)
        );
        assert_eq!(
            (config.mesh.interfaces, config.mesh.selection),
            (vec!["wl1".into()], Selection::Thcp)
        );
    }

    #[test]
    fn each_mistake_is_one_clear_line() {
        for (text, expected) in [
            (
                "\nlisten = [\"localhost\"]",
                "h.toml:2: \"localhost\" is not an address and a port, like 127.0.0.1:3128 or [::1]:3128",
            ),
            (
                "listen = [\"127.0.0.1:1\", \"0.0.0.0:1\"]",
                "h.toml:1: listen: 0.0.0.0:1 is taken by listen (127.0.0.1:1): choose another port",
            ),
            (
                "[metrics]\nlisten = \"127.0.0.1:3128\"",
                "h.toml:2: [metrics] listen: 127.0.0.1:3128 is taken by listen (127.0.0.1:3128): choose another port",
            ),
            ("memory = \"1MiB\"", "h.toml:1: memory: 1MiB is too little: at least 4MiB"),
            (
                "memory = \"1GiB\"",
                "h.toml:1: memory: the budget would be 1GiB, and this machine has 128MiB: take less",
            ),
            (
                "drain = \"forever\"",
                "h.toml:1: drain: \"forever\" is not a span of time: expected something like 60s, 5min or 0s",
            ),
            ("[store]\nsize = 5", "h.toml:2: [store] size: 5 is too little: at least 16MiB"),
            ("[store]\nsize = \"3TiB\"", "h.toml:2: [store] size: 3TiB is too much: at most 2TiB"),
            (
                "[store]\npath = \"memory\"\nsize = \"120MiB\"",
                "h.toml:3: [store] size: the store and `memory` together would be 136MiB, and this machine has 128MiB: take less",
            ),
            (
                "[store]\npolicy = \"fifo\"",
                "h.toml:2: \"fifo\" is no policy: \"s3-fifo\" or \"lru\"",
            ),
            (
                "[store]\npath = \"cache\"",
                "h.toml:2: [store] path: \"cache\" is relative: give the whole path, from / on",
            ),
            (
                "allow = [\"0.0.0.0/0\"]",
                "h.toml:1: \"0.0.0.0/0\" would make an open proxy of us: name your own networks",
            ),
            (
                "allow = [\"lan\"]",
                "h.toml:1: \"lan\" is not an address prefix: expected something like 192.0.2.0/24 or 2001:db8::/32",
            ),
            (
                "name = \"my router\"",
                "h.toml:1: \"my router\" cannot be our name: letters, digits, '.', '-' and '_', beginning with a letter",
            ),
            (
                "[mesh]\ngateway = \"127.0.0.1\"",
                "h.toml:2: \"127.0.0.1\" is not the address of a host: expected something like 10.77.0.8 or fd77::8",
            ),
            (
                "[mesh]\ninterfaces = [\"a b\"]",
                "h.toml:2: [mesh] interfaces: \"a b\" is not the name of an interface; see `ip link`",
            ),
            (
                "listen = []",
                "h.toml:1: listen: nothing to listen on: give `listen` or [mirror] an address, or [intercept] an interface",
            ),
        ] {
            assert_eq!(complaint(text), expected);
        }
        assert!(
            complaint("[intercept]\ninterfaces = [\"a b\"]")
                .starts_with("h.toml:2: [intercept] interfaces: \"a b\"")
        );
        assert_eq!(complaint("memory = 1\n[store]\nsize = 1").lines().count(), 2);
    }

    #[test]
    fn low_ports_are_for_what_is_opened_before_the_rights_go() {
        for (text, expected) in [
            (
                "[intercept]\nport = 1023",
                "h.toml:2: [intercept] port: 1023: needs a port from 1024 on, because the helper process, which opens it, has no right to open a lower one (CAP_NET_BIND_SERVICE)",
            ),
            (
                "[mesh]\nport = 80",
                "h.toml:2: [mesh] port: 80: needs a port from 1024 on, because it is opened when interfaces appear, and then the daemon has no right to open a lower one (CAP_NET_BIND_SERVICE)",
            ),
        ] {
            assert_eq!(complaint(text), expected);
        }
        let low = "listen = [\"127.0.0.1:80\"]\n[metrics]\nlisten = \"127.0.0.1:81\"";
        assert!(load(&format!("{low}\n[intercept]\nport = 1024\n[mesh]\nport = 1025")).is_ok());
    }

    #[test]
    fn a_user_without_a_home_is_told_what_to_give() {
        let machine = Machine::default();
        let source = Source { name: "h.toml", text: "" };
        let error = Config::from_text(source, &Overrides::default(), &machine).unwrap_err();
        assert!(error.to_string().contains("give the path"), "{error}");
    }

    #[test]
    fn half_of_the_internet_is_not_ones_own_network() {
        let is_world = |text: &str| is_the_world(&text.parse().unwrap());
        for world in ["0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1", "::/0", "2000::/3"] {
            assert!(is_world(world), "{world}");
        }
        for site in ["192.0.2.0/24", "44.0.0.0/8", "2001:db8::/32", "2a00::/12"] {
            assert!(!is_world(site), "{site}");
        }
    }
}
