//! Table `[mesh]`: how other nodes are reached, and whose signatures are trusted.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use host::intercept::is_interface_name;
use host::routing;
use node::Prefix;
use toml::Spanned;
use wire::{PublicKey, Selection};

use super::experiment::Experiment;
use super::file;
use super::{ConfigError, Overrides, Reader, some_or};

/// The default port for peers.
pub const PORT_DEFAULT: u16 = 3131;

/// The mesh's secret has at least this many characters.
const KEY_CHARS_MIN: usize = 16;
/// The mesh's secret has at most this many bytes.
const KEY_BYTES_MAX: u64 = 4096;

/// The settings of the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Interfaces to other nodes; if empty, there is no mesh.
    pub interfaces: Vec<String>,
    /// The address of babeld's local socket.
    pub babeld: SocketAddr,
    /// The gateway; `None`: the node to which the default route leads.
    pub gateway: Option<routing::Gateway>,
    /// The setting `scheme`: which node is asked for content that this node lacks.
    pub selection: Selection,
    /// The secret that all nodes of the mesh share.
    pub key: Option<MeshKey>,
    /// The file that has it, if it has one of its own.
    pub key_file: Option<PathBuf>,
    /// Nodes whose signatures are trusted; if empty, the signature of the node that was asked.
    pub gateways: Vec<PublicKey>,
    /// The port for peers, the same on all nodes.
    pub port: u16,
    /// Addresses of origins within the mesh, which are dialled directly.
    pub direct: Vec<Prefix>,
}

/// The mesh's secret; never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct MeshKey(String);

impl MeshKey {
    /// Makes a key of the text without the space around it; the error says what is wrong.
    fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.chars().count() >= KEY_CHARS_MIN {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("the mesh's key is too short: at least {KEY_CHARS_MIN} characters"))
    }

    fn read(path: &Path) -> Result<Self, String> {
        let mut text = String::new();
        let failed = |error: io::Error| format!("cannot be read: {error}");
        let file = File::open(path).map_err(failed)?;
        if is_open_to_others(&file.metadata().map_err(failed)?) {
            return Err(format!(
                "others can read or change the mesh's key there: `chmod 600 {}`",
                path.display()
            ));
        }
        let read = file.take(KEY_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed);
        if read? as u64 > KEY_BYTES_MAX {
            return Err(format!("the mesh's key is too long: at most {KEY_BYTES_MAX} bytes"));
        }
        Self::new(&text)
    }

    /// The key that peers prove to each other that they know.
    pub fn for_peers(&self) -> [u8; 32] {
        blake3::derive_key("hearsay 2026-11 key between peers", self.0.as_bytes())
    }

    /// The key from which the names of objects are derived, and with which their units are sealed.
    fn for_objects(&self) -> [u8; 32] {
        blake3::derive_key("hearsay 2026-11 key of object names", self.0.as_bytes())
    }
}

/// Whether users besides the owner may read or write a regular file; `false` for a pipe, for instance.
pub(super) fn is_open_to_others(file: &Metadata) -> bool {
    file.is_file() && file.mode() & 0o066 != 0
}

impl fmt::Debug for MeshKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MeshKey(…)")
    }
}

impl Mesh {
    /// Which routes to follow; `None` if there is no mesh.
    pub fn routing(&self) -> Option<routing::Settings> {
        (!self.interfaces.is_empty()).then(|| routing::Settings {
            interfaces: self.interfaces.clone(),
            babeld: self.babeld,
            gateway: self.gateway,
        })
    }

    /// The key from which the names of objects are derived, and with which their units are sealed. Without
    /// it, stored and requested objects cannot be recognised.
    pub fn object_secret(&self) -> [u8; 32] {
        self.key.as_ref().map_or(node::OPEN_KEY, MeshKey::for_objects)
    }

    pub(super) fn check(&self, wrong: &mut ConfigError) {
        for name in self.interfaces.iter().filter(|it| !is_interface_name(it)) {
            let text = format!("{name:?} is not the name of an interface; see `ip link`");
            wrong.add("[mesh] interfaces", text);
        }
    }
}

/// One line, without the key.
impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.interfaces.is_empty() {
            return f.write_str("off");
        }
        let interfaces = self.interfaces.join(", ");
        write!(f, "{interfaces}: {}, port {}", self.selection, self.port)?;
        if self.key.is_some() {
            f.write_str(", with a key")?;
        }
        if !self.gateways.is_empty() {
            write!(f, ", {} gateways believed", self.gateways.len())?;
        }
        self.gateway.map_or(Ok(()), |gateway| write!(f, ", gateway {gateway}"))
    }
}

impl Reader<'_> {
    pub(super) fn mesh(
        &mut self,
        file: file::Mesh,
        overrides: &Overrides,
        experiment: &Experiment,
    ) -> Mesh {
        let babeld = file.babeld.and_then(|text| self.address(&text));
        let schemes = Selection::ALL.map(|it| (it.name(), it));
        let scheme = file.scheme.and_then(|text| self.choice(&text, "is no scheme", &schemes));
        let port = file.port.and_then(|port| self.peers_port(&port));
        let key_file = overrides.mesh_key_file.clone();
        let key_file = key_file.or(file.key_file.as_ref().map(|it| it.get_ref().into()));
        let key = self.key(file.key, file.key_file, overrides.mesh_key_file.as_ref());
        Mesh {
            interfaces: some_or(&overrides.mesh, file.interfaces.unwrap_or_default()),
            babeld: babeld.unwrap_or(routing::BABELD_DEFAULT),
            gateway: file.gateway.and_then(|text| self.parse(&text)),
            selection: overrides.scheme.or(scheme).or(experiment.selection()).unwrap_or_default(),
            key,
            key_file,
            gateways: file.gateways.iter().filter_map(|text| self.public_key(text)).collect(),
            port: port.unwrap_or(PORT_DEFAULT),
            direct: file.direct.iter().filter_map(|text| self.parse(text)).collect(),
        }
    }

    pub(super) fn parse<T>(&mut self, text: &Spanned<String>) -> Option<T>
    where
        T: std::str::FromStr<Err: fmt::Display>,
    {
        let parsed = text.get_ref().parse::<T>();
        parsed
            .map_err(|error| self.complain(text, &format!("{:?} is {error}", text.get_ref())))
            .ok()
    }

    fn peers_port(&mut self, port: &Spanned<u16>) -> Option<u16> {
        if *port.get_ref() == 0 {
            self.complain(port, "0 is no port: all nodes of the mesh must know it");
        }
        Some(*port.get_ref())
    }

    fn public_key(&mut self, text: &Spanned<String>) -> Option<PublicKey> {
        let key = text.get_ref().parse().ok();
        if key.is_none() {
            let advice = "64 hexadecimal digits, as `hearsay status` shows them on the gateway";
            self.complain(text, &format!("{:?} is no public key: {advice}", text.get_ref()));
        }
        key
    }

    fn key(
        &mut self,
        key: Option<Spanned<String>>,
        file: Option<Spanned<String>>,
        asked: Option<&PathBuf>,
    ) -> Option<MeshKey> {
        if let (Some(_), Some(file)) = (&key, &file) {
            self.complain(file, "the mesh has one key: give `key` or `key-file`, not both");
        }
        if let Some(path) = asked {
            let key = MeshKey::read(path);
            let place = format!("--mesh-key-file {}", path.display());
            return key.map_err(|text| self.wrong.add(place, text)).ok();
        }
        if let Some(text) = file {
            let path = self.path("[mesh] key-file", &text);
            // A relative path was reported already.
            let key = path.is_absolute().then(|| MeshKey::read(&path))?;
            let complain = |why| self.complain(&text, &format!("{}: {why}", path.display()));
            return key.map_err(complain).ok();
        }
        let text = key?;
        MeshKey::new(text.get_ref()).map_err(|why| self.complain(&text, &why)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{complaint, load, load_with};
    use super::*;

    use std::os::unix::fs::PermissionsExt as _;

    const KEY: &str = "correct horse battery staple";

    #[test]
    fn all_of_a_mesh_is_read() {
        let id = "ab".repeat(32);
        let text = format!(
            "[mesh]\ninterfaces = [\"wl0\"]\nscheme = \"thcp\"\nkey = \"{KEY}\"\n\
             gateways = [\"{id}\"]\nport = 7007\ndirect = [\"10.0.0.0/8\"]"
        );
        let mesh = load(&text).unwrap().mesh;
        assert_eq!((mesh.selection, mesh.port), (Selection::Thcp, 7007));
        assert_eq!(mesh.gateways, [PublicKey([0xab; 32])]);
        assert_eq!(mesh.direct, ["10.0.0.0/8".parse().unwrap()]);
        assert_eq!(mesh.to_string(), "wl0: thcp, port 7007, with a key, 1 gateways believed");
        assert!(!format!("{mesh:?}{mesh}").contains("horse"));
        let plain = load("[mesh]\ninterfaces = [\"wl0\"]").unwrap().mesh;
        assert_eq!(plain.to_string(), "wl0: auto, port 3131");
        assert_eq!(plain.object_secret(), node::OPEN_KEY);
    }

    #[test]
    fn a_key_means_the_same_wherever_it_stands() {
        let dir = tempfile::tempdir().unwrap();
        let (file, other) = (dir.path().join("key"), dir.path().join("other"));
        write_key(&file, &format!("{KEY}\n"), 0o600);
        write_key(&other, "another key of another mesh", 0o400);
        let here = load(&format!("[mesh]\nkey = \"{KEY}\"")).unwrap().mesh.key.unwrap();
        let text = format!("[mesh]\nkey-file = {file:?}");
        let there = load(&text).unwrap().mesh.key.unwrap();
        assert_eq!(
            (here.for_peers(), here.for_objects()),
            (there.for_peers(), there.for_objects())
        );
        assert_ne!(here.for_peers(), here.for_objects());
        let overrides = Overrides { mesh_key_file: Some(other), ..Overrides::default() };
        assert_ne!(load_with(&text, &overrides).unwrap().mesh.key, Some(here));
    }

    fn write_key(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_file_that_others_can_read_or_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let text = format!("[mesh]\nkey-file = {path:?}");
        for mode in [0o644, 0o640, 0o620, 0o604, 0o602] {
            write_key(&path, KEY, mode);
            let advice = format!(
                "h.toml:2: {0}: others can read or change the mesh's key there: `chmod 600 {0}`",
                path.display()
            );
            assert_eq!(complaint(&text), advice, "{mode:o}");
            let overrides = Overrides { mesh_key_file: Some(path.clone()), ..Overrides::default() };
            let error = load_with("", &overrides).unwrap_err().to_string();
            assert!(error.ends_with(&format!("`chmod 600 {}`", path.display())), "{error}");
        }
        write_key(&path, KEY, 0o600);
        assert!(load(&text).is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_mesh_names_its_line() {
        for (text, expected) in [
            ("scheme = \"phbcp\"", "\"phbcp\" is no scheme: did you mean \"ph-bcp\"?"),
            (
                "scheme = \"best\"",
                "\"best\" is no scheme: \"auto\" or \"ph-thcp\" or \"thcp\" or \"ph-bcp\" or \"bcp\" or \"ph-ghcp\" or \"ghcp\" or \"ph-hints\"",
            ),
            ("key = \"short\"", "the mesh's key is too short: at least 16 characters"),
            (
                "key-file = \"key\"",
                "[mesh] key-file: \"key\" is relative: give the whole path, from / on",
            ),
            (
                "key-file = \"/nowhere\"",
                "/nowhere: cannot be read: No such file or directory (os error 2)",
            ),
            ("port = 0", "0 is no port: all nodes of the mesh must know it"),
            (
                "gateways = [\"10.0.0.1\"]",
                "\"10.0.0.1\" is no public key: 64 hexadecimal digits, as `hearsay status` shows them on the gateway",
            ),
            (
                "direct = [\"lan\"]",
                "\"lan\" is not an address prefix: expected something like 192.0.2.0/24 or 2001:db8::/32",
            ),
        ] {
            assert_eq!(complaint(&format!("[mesh]\n{text}")), format!("h.toml:2: {expected}"));
        }
        let both = complaint(&format!("[mesh]\nkey = \"{KEY}\"\nkey-file = \"/dev/null\""));
        assert!(both.starts_with("h.toml:3: the mesh has one key"), "{both}");
        let endless = complaint("[mesh]\nkey-file = \"/dev/zero\"");
        assert!(endless.ends_with("too long: at most 4096 bytes"), "{endless}");
        let taken = "listen = [\"[::]:3131\"]\n[mesh]\ninterfaces = [\"wl0\"]";
        assert!(complaint(taken).contains("[mesh] port"), "{}", complaint(taken));
        let overrides =
            Overrides { mesh_key_file: Some("/nowhere".into()), ..Overrides::default() };
        let error = load_with("", &overrides).unwrap_err().to_string();
        assert!(error.starts_with("--mesh-key-file /nowhere: cannot be read"), "{error}");
    }
}
