//! The settings of a far end: /etc/hearsay/far.toml, which the command line of `hearsay far` overrides.
//!
//! *What this is:* [`FarSettings`], after all checks; `packaging/far.toml` shows every key. *Who calls it:* `far.rs`, for
//! the far end, `hearsay far status` and `hearsay check-config --far`. *What it never does:* open sockets or the store.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use node::Prefix;
use serde::Deserialize;
use toml::Spanned;
use wire::PublicKey;

use super::file::{self, Source};
use super::locate::Replaces;
use super::machine::FAR_CONTROL_OF_ROOT;
use super::uplink::PORT_DEFAULT;
use super::{ConfigError, Machine, Place, Reader, Size, collide, read_or_default, some_or};
use crate::level::Level;

/// The file that is read if it exists and no other is named.
pub const FAR_FILE_DEFAULT: &str = "/etc/hearsay/far.toml";

const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT_DEFAULT);
const STORE_DEFAULT: Size = Size::mib(4096);
/// Memory for all gateways by default …
const MEMORY_DEFAULT: Size = Size::mib(64);
/// … and what each adds.
const MEMORY_EACH: Size = Size::mib(1);

/// Every key of far.toml.
pub const KEYS: [(&str, &[&str]); 5] = [
    ("", &["listen", "gateways", "memory", "ca", "control", "store", "access", "metrics", "log"]),
    ("store", &["path", "size"]),
    ("access", &["private"]),
    ("metrics", &["listen"]),
    ("log", &["level"]),
];

/// A far end's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarSettings {
    /// Where gateways connect.
    pub listen: SocketAddr,
    /// The keys of the gateways that may connect.
    pub gateways: Vec<PublicKey>,
    /// Memory for indexes and content of all gateways, in bytes, if it is given.
    pub memory: Option<u64>,
    /// A file with CAs that are trusted besides the system's.
    pub ca: Option<PathBuf>,
    /// The control socket's path.
    pub control: PathBuf,
    /// Where what has crossed is kept.
    pub place: Place,
    /// How much of it for each gateway, in bytes.
    pub store_bytes: u64,
    /// Private destinations that gateways may reach.
    pub private: Vec<Prefix>,
    /// The TCP address where metrics are served, besides on the control socket.
    pub metrics: Option<SocketAddr>,
    /// How much is logged, if neither the command line nor the environment says.
    pub log: Level,
}

/// The settings of the command line; they override the file's.
#[derive(Clone, Debug, Default)]
pub struct FarOverrides {
    /// Replaces the whole list of `gateways`.
    pub gateways: Vec<PublicKey>,
    /// `listen`.
    pub listen: Option<SocketAddr>,
    /// `[store] path`.
    pub store: Option<Place>,
    /// `[store] size`.
    pub store_size: Option<Size>,
    /// `memory`.
    pub memory: Option<Size>,
    /// Replaces the whole list of `[access] private`.
    pub private: Vec<Prefix>,
    /// `ca`.
    pub ca: Option<PathBuf>,
    /// `control`.
    pub control: Option<PathBuf>,
}

/// The sources of a far end's settings; a reload reads them again.
#[derive(Clone, Debug, Default)]
pub struct FarGiven {
    /// The file that was named; `None`: [`FAR_FILE_DEFAULT`], if it exists.
    pub file: Option<PathBuf>,
    /// The settings of the command line.
    pub overrides: FarOverrides,
}

/// The file; a key that it lacks is `None` or empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    listen: Option<Spanned<String>>,
    gateways: Vec<Spanned<String>>,
    memory: Option<Spanned<Size>>,
    ca: Option<Spanned<String>>,
    control: Option<Spanned<String>>,
    store: Store,
    access: Access,
    metrics: file::Metrics,
    log: file::Log,
}

/// Table `[store]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Store {
    path: Option<Spanned<String>>,
    size: Option<Spanned<Size>>,
}

/// Table `[access]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Access {
    private: Vec<Spanned<String>>,
}

impl FarGiven {
    /// The file that is read, if it exists.
    pub fn path(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(FAR_FILE_DEFAULT))
    }

    /// Loads the current settings.
    ///
    /// # Errors
    /// All mistakes, each with its line or its option.
    pub fn load(&self) -> Result<FarSettings, ConfigError> {
        let text = read_or_default(self.file.as_deref(), FAR_FILE_DEFAULT)?;
        let source = Source { name: &self.path().display().to_string(), text: &text };
        FarSettings::from_text(source, &self.overrides, &Machine::here())
    }
}

impl FarSettings {
    fn from_text(
        source: Source<'_>,
        overrides: &FarOverrides,
        machine: &Machine,
    ) -> Result<Self, ConfigError> {
        let file = file::read_as(source, &KEYS)?;
        let mut wrong = ConfigError::default();
        let settings = Reader { source, machine, wrong: &mut wrong }.far(file, overrides);
        wrong.unless(())?;
        settings.check().locate(source, overrides).unless(settings)
    }

    fn check(&self) -> ConfigError {
        let mut wrong = ConfigError::default();
        if self.gateways.is_empty() {
            let text = "nobody could connect: name the key of each gateway, which `hearsay uplink --key` prints there";
            wrong.add("gateways", text);
        }
        if let Some(metrics) = self.metrics.filter(|it| collide(*it, self.listen)) {
            let text =
                format!("{metrics} is taken by listen ({}): choose another port", self.listen);
            wrong.add("[metrics] listen", text);
        }
        wrong
    }

    /// Memory for indexes and content of all gateways, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let default = || MEMORY_DEFAULT.0 + MEMORY_EACH.0 * self.gateways.len() as u64;
        self.memory.unwrap_or_else(default)
    }

    /// What requests and connections of gateways may reach, besides the internet.
    pub fn access(&self) -> node::Access {
        node::Access { direct: self.private.clone(), ..node::Access::default() }
    }
}

impl Reader<'_> {
    fn far(&mut self, file: File, overrides: &FarOverrides) -> FarSettings {
        let listen = file.listen.and_then(|text| self.address(&text));
        let gateways = file.gateways.iter().filter_map(|text| self.gateways_key(text)).collect();
        let memory = overrides.memory.or(file.memory.map(Spanned::into_inner));
        let ca = file.ca.map(|text| self.path("ca", &text));
        let size = overrides.store_size.or(file.store.size.map(Spanned::into_inner));
        let private = file.access.private.iter().filter_map(|text| self.parse(text)).collect();
        FarSettings {
            listen: overrides.listen.or(listen).unwrap_or(LISTEN_DEFAULT),
            gateways: some_or(&overrides.gateways, gateways),
            memory: memory.map(|size| size.0),
            ca: overrides.ca.clone().or(ca),
            control: self.far_control(file.control, overrides),
            place: self.far_place(file.store.path, overrides),
            store_bytes: size.unwrap_or(STORE_DEFAULT).0,
            private: some_or(&overrides.private, private),
            metrics: file.metrics.listen.and_then(|text| self.address(&text)),
            log: file.log.level.and_then(|text| self.level(&text)).unwrap_or_default(),
        }
    }

    fn gateways_key(&mut self, text: &Spanned<String>) -> Option<PublicKey> {
        let key = text.get_ref().parse().ok();
        if key.is_none() {
            let advice = "`hearsay uplink --key` on the gateway prints it, 64 hexadecimal digits";
            self.complain(text, &format!("{:?} is no key: {advice}", text.get_ref()));
        }
        key
    }

    fn far_control(&mut self, text: Option<Spanned<String>>, overrides: &FarOverrides) -> PathBuf {
        match (&overrides.control, text) {
            (Some(path), _) => path.clone(),
            (None, Some(text)) => self.path("control", &text),
            (None, None) => self.default_path("control", self.machine.far_control()),
        }
    }

    fn far_place(&mut self, text: Option<Spanned<String>>, overrides: &FarOverrides) -> Place {
        match (&overrides.store, text) {
            (Some(place), _) => place.clone(),
            (None, Some(text)) if text.get_ref() == "memory" => Place::Memory,
            (None, Some(text)) => Place::Dir(self.path("[store] path", &text)),
            (None, None) => Place::Dir(self.default_path("[store] path", self.machine.far_dir())),
        }
    }
}

impl Replaces for FarOverrides {
    fn option(&self, setting: &str) -> Option<&'static str> {
        match setting {
            "listen" if self.listen.is_some() => Some("--listen"),
            "[store] path" if self.store.is_some() => Some("--store"),
            "control" if self.control.is_some() => Some("--control"),
            _ => None,
        }
    }
}

/// The settings as a page for people.
impl fmt::Display for FarSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "listens    {}", self.listen)?;
        writeln!(f, "gateways   {}", self.gateways.len())?;
        writeln!(f, "memory     {}", Size(self.memory_bytes()))?;
        writeln!(f, "store      {}, {} for each gateway", self.place, Size(self.store_bytes))?;
        if !self.private.is_empty() {
            let private: Vec<_> = self.private.iter().map(ToString::to_string).collect();
            writeln!(f, "private    {}", private.join(", "))?;
        }
        if let Some(ca) = &self.ca {
            writeln!(f, "ca         {}", ca.display())?;
        }
        if let Some(metrics) = self.metrics {
            writeln!(f, "metrics    {metrics}")?;
        }
        writeln!(f, "control    {}", self.control.display())
    }
}

/// The paths where `hearsay far status` looks for the control socket, in order; as [`super::control_paths`].
pub fn far_control_paths(asked: Option<&Path>) -> Vec<PathBuf> {
    if let Some(path) = asked {
        return vec![path.to_owned()];
    }
    let user = Machine::here().far_control();
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in [configured_control(), user, Some(FAR_CONTROL_OF_ROOT.into())].into_iter().flatten()
    {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// The control socket's path in the default file, whatever else is wrong there.
fn configured_control() -> Option<PathBuf> {
    let text = read_or_default(None, FAR_FILE_DEFAULT).ok()?;
    let file: File = file::read_as(Source { name: FAR_FILE_DEFAULT, text: &text }, &KEYS).ok()?;
    Some(PathBuf::from(file.control?.into_inner())).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../../packaging/far.toml");

    fn root() -> Machine {
        Machine { is_root: true, ..Machine::default() }
    }

    fn load_with(text: &str, overrides: &FarOverrides) -> Result<FarSettings, ConfigError> {
        FarSettings::from_text(Source { name: "far.toml", text }, overrides, &root())
    }

    fn load(text: &str) -> Result<FarSettings, ConfigError> {
        load_with(text, &FarOverrides::default())
    }

    fn complaint(text: &str) -> String {
        load(text).unwrap_err().to_string()
    }

    fn key(byte: u8) -> PublicKey {
        PublicKey([byte; 32])
    }

    fn one_gateway() -> FarOverrides {
        FarOverrides { gateways: vec![key(7)], ..FarOverrides::default() }
    }

    #[test]
    fn the_keys_of_gateways_are_enough() {
        let settings = load(&format!("gateways = [\"{}\", \"{}\"]", key(1), key(2))).unwrap();
        assert_eq!(settings.gateways, [key(1), key(2)]);
        assert_eq!(settings.listen.to_string(), "[::]:3144");
        assert_eq!((settings.memory_bytes(), settings.store_bytes), (66 << 20, 4 << 30));
        assert_eq!(settings.place, Place::Dir("/var/lib/hearsay-far".into()));
        assert_eq!(settings.control, Path::new(FAR_CONTROL_OF_ROOT));
        assert_eq!(load_with("", &one_gateway()).unwrap().gateways, [key(7)]);
    }

    #[test]
    fn a_file_says_all_there_is_and_options_go_over_it() {
        let text = format!(
            "listen = \"192.0.2.1:99\"\ngateways = [\"{}\"]\nmemory = \"9MiB\"\nca = \"/ca.pem\"\ncontrol = \"/c\"\n\
             [store]\npath = \"memory\"\nsize = \"64MiB\"\n[access]\nprivate = [\"10.0.0.0/8\"]\n\
             [metrics]\nlisten = \"127.0.0.1:9144\"\n[log]\nlevel = \"debug\"",
            key(1)
        );
        let expected = FarSettings {
            listen: "192.0.2.1:99".parse().unwrap(),
            gateways: vec![key(1)],
            memory: Some(9 << 20),
            ca: Some("/ca.pem".into()),
            control: "/c".into(),
            place: Place::Memory,
            store_bytes: 64 << 20,
            private: vec!["10.0.0.0/8".parse().unwrap()],
            metrics: Some("127.0.0.1:9144".parse().unwrap()),
            log: Level::Debug,
        };
        assert_eq!(load(&text).unwrap(), expected);
        let overrides = FarOverrides {
            listen: "[::1]:7".parse().ok(),
            store: Some(Place::Dir("/s".into())),
            store_size: Some(Size(5)),
            memory: Some(Size(6)),
            private: vec!["fd00::/8".parse().unwrap()],
            ca: Some("/other.pem".into()),
            control: Some("/d".into()),
            ..one_gateway()
        };
        let over = FarSettings {
            listen: "[::1]:7".parse().unwrap(),
            gateways: vec![key(7)],
            memory: Some(6),
            ca: Some("/other.pem".into()),
            control: "/d".into(),
            place: Place::Dir("/s".into()),
            store_bytes: 5,
            private: overrides.private.clone(),
            ..expected
        };
        assert_eq!(load_with(&text, &overrides).unwrap(), over);
    }

    #[test]
    fn mistakes_are_told_with_their_lines() {
        let nobody = "nobody could connect: name the key of each gateway, which `hearsay uplink --key` prints there";
        assert_eq!(complaint("gateways = []"), format!("far.toml:1: gateways: {nobody}"));
        assert_eq!(complaint(""), format!("gateways: {nobody}"));
        let ours = format!("gateways = [\"{}\"]\n", key(1));
        for (text, expected) in [
            ("gatways = []", "far.toml:2: unknown key `gatways`: did you mean `gateways`?"),
            (
                "[store]\npolicy = 1",
                "far.toml:3: unknown key `policy` in [store]: known here: path, size",
            ),
            ("listen = \"x\"", "far.toml:2: \"x\" is not an address and a port"),
            ("ca = \"ca.pem\"", "far.toml:2: ca: \"ca.pem\" is relative"),
            ("[access]\nprivate = [\n\"10.0.0.0/99\"]", "far.toml:4: \"10.0.0.0/99\" is "),
            ("[log]\nlevel = \"loud\"", "far.toml:3: \"loud\" is no level"),
            (
                "[metrics]\nlisten = \"[::1]:3144\"",
                "far.toml:3: [metrics] listen: [::1]:3144 is taken by listen ([::]:3144)",
            ),
        ] {
            let said = complaint(&format!("{ours}{text}"));
            assert!(said.starts_with(expected), "{said}");
        }
        let said = complaint("gateways = [\n  \"00\",\n]");
        assert!(said.starts_with("far.toml:2: \"00\" is no key: `hearsay uplink --key`"), "{said}");
    }

    /// The example file with its settings uncommented.
    fn example_in_force() -> String {
        let is_setting =
            |line: &&str| line.starts_with(|c: char| c.is_ascii_lowercase() || c == '[');
        let line = |line: &'static str| {
            line.strip_prefix('#').filter(is_setting).unwrap_or(line).to_owned() + "\n"
        };
        EXAMPLE.lines().map(line).collect()
    }

    #[test]
    fn the_packaged_file_is_the_defaults_and_shows_every_key() {
        let defaults = load_with("", &one_gateway()).unwrap();
        assert_eq!(load_with(EXAMPLE, &one_gateway()).unwrap(), defaults);
        assert_ne!(example_in_force(), EXAMPLE);
        assert_eq!(load_with(&example_in_force(), &one_gateway()).unwrap(), defaults);
        for key in KEYS.iter().flat_map(|(_, keys)| keys.iter()) {
            let forms = [format!("#{key} = "), format!("# {key} = "), format!("[{key}]")];
            let has = |form: &String| EXAMPLE.lines().any(|line| line.starts_with(form.as_str()));
            assert!(forms.iter().any(has), "{key}");
        }
    }
}
