//! The facts about the user and the machine on which defaults and limits depend.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// The facts on which defaults and limits depend.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Whether the process runs as root.
    pub is_root: bool,
    /// The host name.
    pub host_name: String,
    /// The main memory, in bytes, if it is known.
    pub memory_bytes: Option<u64>,
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// `$XDG_CACHE_HOME`.
    pub cache_home: Option<PathBuf>,
    /// `$XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// `$CACHE_DIRECTORY`, by which systemd names a service's directory (systemd.exec(5)).
    pub service_cache: Option<PathBuf>,
    /// `$RUNTIME_DIRECTORY`, likewise.
    pub service_runtime: Option<PathBuf>,
    /// `$STATE_DIRECTORY`, likewise.
    pub service_state: Option<PathBuf>,
}

/// The control socket of a daemon that runs as root.
pub const CONTROL_OF_ROOT: &str = "/run/hearsay/control.sock";

/// The control socket of a far end that runs as root, or as the package's service.
pub const FAR_CONTROL_OF_ROOT: &str = "/run/hearsay-far/control.sock";

impl Machine {
    /// The facts about this machine and the user of this process.
    pub fn here() -> Self {
        let host_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            is_root: std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0),
            host_name: host_name.trim().to_owned(),
            memory_bytes: memory_bytes(),
            home: directory("HOME"),
            cache_home: directory("XDG_CACHE_HOME"),
            runtime_dir: directory("XDG_RUNTIME_DIR"),
            service_cache: directory("CACHE_DIRECTORY"),
            service_runtime: directory("RUNTIME_DIRECTORY"),
            service_state: directory("STATE_DIRECTORY"),
        }
    }

    /// The store's default directory: a service's, or the user's; `None` for a user without `$HOME` and
    /// `$XDG_CACHE_HOME`.
    pub fn store_dir(&self) -> Option<PathBuf> {
        if let Some(of_service) = &self.service_cache {
            return Some(of_service.clone());
        }
        if self.is_root {
            return Some(PathBuf::from("/var/cache/hearsay"));
        }
        let caches = self.cache_home.clone().or_else(|| Some(self.home.as_ref()?.join(".cache")));
        Some(caches?.join("hearsay"))
    }

    /// The default directory of a far end: a service's, or the user's; `None` for a user without `$HOME` and
    /// `$XDG_CACHE_HOME`.
    pub fn far_dir(&self) -> Option<PathBuf> {
        if let Some(of_service) = &self.service_state {
            return Some(of_service.clone());
        }
        if self.is_root {
            return Some(PathBuf::from("/var/lib/hearsay-far"));
        }
        Some(self.store_dir()?.with_file_name("hearsay-far"))
    }

    /// The default path of a far end's control socket, chosen as the daemon's.
    pub fn far_control(&self) -> Option<PathBuf> {
        if let Some(of_service) = &self.service_runtime {
            return Some(of_service.join("control.sock"));
        }
        if self.is_root {
            return Some(PathBuf::from(FAR_CONTROL_OF_ROOT));
        }
        let beside = || Some(self.far_dir()?.join("control.sock"));
        self.runtime_dir.as_ref().map(|dir| dir.join("hearsay-far.sock")).or_else(beside)
    }

    /// The control socket's default path. A service has it in its own directory. For a user other than root it is in
    /// the runtime directory, else in the store's default directory; `None` if neither exists.
    pub fn control(&self) -> Option<PathBuf> {
        if let Some(of_service) = &self.service_runtime {
            return Some(of_service.join("control.sock"));
        }
        if self.is_root {
            return Some(PathBuf::from(CONTROL_OF_ROOT));
        }
        let beside = || Some(self.store_dir()?.join("control.sock"));
        self.runtime_dir.as_ref().map(|dir| dir.join("hearsay.sock")).or_else(beside)
    }

    /// The daemon's default name: the host name, if it is valid in a header.
    pub fn pseudonym(&self) -> String {
        let name = if is_pseudonym(&self.host_name) { &self.host_name } else { "hearsay" };
        name.to_owned()
    }
}

/// Whether a text is a valid name in `Via` and in `Cache-Status`. `Via` takes a token (RFC 9110
/// §5.6.2), `Cache-Status` a token that begins with a letter or `*` (RFC 9651 §3.3.4).
pub fn is_pseudonym(text: &str) -> bool {
    let is_token = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    text.bytes().all(is_token) && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*')
}

/// The directory in an environment variable. A relative path is ignored, as the XDG Base Directory
/// Specification requires.
fn directory(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_follow_the_user() {
        let root = Machine { is_root: true, host_name: "router-12".into(), ..Machine::default() };
        assert_eq!(root.store_dir(), Some("/var/cache/hearsay".into()));
        assert_eq!(root.control(), Some(CONTROL_OF_ROOT.into()));
        assert_eq!(root.pseudonym(), "router-12");
        let mut user = Machine { home: Some("/home/ann".into()), ..Machine::default() };
        assert_eq!(user.store_dir(), Some("/home/ann/.cache/hearsay".into()));
        assert_eq!(user.control(), Some("/home/ann/.cache/hearsay/control.sock".into()));
        user.cache_home = Some("/c".into());
        user.runtime_dir = Some("/run/user/7".into());
        assert_eq!(user.store_dir(), Some("/c/hearsay".into()));
        assert_eq!(user.control(), Some("/run/user/7/hearsay.sock".into()));
        assert_eq!(Machine::default().store_dir(), None);
        user.service_cache = Some("/var/cache/hearsay".into());
        user.service_runtime = Some("/run/hearsay".into());
        assert_eq!(user.store_dir(), Some("/var/cache/hearsay".into()));
        assert_eq!(user.control(), Some(CONTROL_OF_ROOT.into()));
    }

    #[test]
    fn a_far_end_has_places_of_its_own() {
        let root = Machine { is_root: true, ..Machine::default() };
        assert_eq!(root.far_dir(), Some("/var/lib/hearsay-far".into()));
        assert_eq!(root.far_control(), Some(FAR_CONTROL_OF_ROOT.into()));
        let mut user = Machine { home: Some("/home/ann".into()), ..Machine::default() };
        assert_eq!(user.far_dir(), Some("/home/ann/.cache/hearsay-far".into()));
        let beside = Some("/home/ann/.cache/hearsay-far/control.sock".into());
        assert_eq!(user.far_control(), beside);
        user.runtime_dir = Some("/run/user/7".into());
        assert_eq!(user.far_control(), Some("/run/user/7/hearsay-far.sock".into()));
        user.service_state = Some("/var/lib/x".into());
        user.service_runtime = Some("/run/x".into());
        assert_eq!(user.far_dir(), Some("/var/lib/x".into()));
        assert_eq!(user.far_control(), Some("/run/x/control.sock".into()));
        assert_eq!(Machine::default().far_control(), None);
    }

    #[test]
    fn what_cannot_stand_in_a_header_is_no_name() {
        for name in ["", "1st", "my router", "routér", "a,b"] {
            assert!(!is_pseudonym(name), "{name}");
        }
        assert!(is_pseudonym("a.mesh-1"));
    }
}
