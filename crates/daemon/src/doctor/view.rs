//! What is known before the checks look: the settings, and what the running daemon says of itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use host::intercept::Rules;

use super::kernel::Kernel;
use crate::config::{Config, Place};
use crate::status::{PeerLine, Status};
use crate::transparent::nameable;

/// What is known before the checks look. The running daemon's word counts more than the file's: it may have been
/// started with other settings.
#[derive(Clone, Debug)]
pub struct View {
    /// The settings of the file.
    pub config: Config,
    /// What the running daemon says; `None` if none answers.
    pub status: Option<Status>,
    /// Its peers.
    pub peers: Vec<PeerLine>,
    /// The daemon's process, if it is known.
    pub process: Option<u32>,
    /// Interfaces that lead out now.
    pub out: Vec<String>,
    /// Who reads the kernel's rules.
    pub kernel: Kernel,
}

impl View {
    /// Whether the daemon itself looks. It changes nothing for that, and asks no other machine but its resolver.
    pub fn is_daemon(&self) -> bool {
        matches!(self.kernel, Kernel::Helper(_))
    }

    /// The interception rules that must be set; `None` if nothing is intercepted.
    pub fn rules(&self) -> Option<Rules> {
        let rules = match &self.status {
            Some(status) => status.intercept.rules(&self.config.mesh.direct)?,
            None => self.config.rules()?,
        };
        Some(Rules { out: nameable(self.out.clone()), ..rules })
    }

    /// The mesh's interfaces; none without a mesh.
    pub fn mesh(&self) -> Vec<String> {
        match &self.status {
            Some(status) => {
                status.route.as_ref().map(|it| it.interfaces.clone()).unwrap_or_default()
            }
            None => self.config.mesh.interfaces.clone(),
        }
    }

    /// The interfaces on which clients or peers are, without repetition.
    pub fn interfaces(&self) -> Vec<String> {
        let mut names = self.rules().map(|rules| rules.interfaces).unwrap_or_default();
        names.extend(self.mesh());
        let mut seen = Vec::new();
        names.retain(|name| {
            !seen.contains(name) && {
                seen.push(name.clone());
                true
            }
        });
        names
    }

    /// The scheme by which peers are chosen; `None` without a mesh.
    pub fn scheme(&self) -> Option<String> {
        match &self.status {
            Some(status) => status.mesh.as_ref().map(|mesh| mesh.scheme.clone()),
            None => {
                let is_in_mesh = !self.config.mesh.interfaces.is_empty();
                is_in_mesh.then(|| self.config.mesh.selection.name().to_owned())
            }
        }
    }

    /// The store's directory; `None` if the store is in memory.
    pub fn store(&self) -> Option<PathBuf> {
        match (&self.status, &self.config.store.place) {
            (Some(status), _) => status.store.path.clone(),
            (None, Place::Dir(path)) => Some(path.clone()),
            (None, Place::Memory) => None,
        }
    }

    /// The most bytes of the store, and those that it uses now.
    pub fn store_bytes(&self) -> (u64, u64) {
        match &self.status {
            Some(status) => (status.store.size_bytes, status.store.used_bytes),
            None => (self.config.store.size_bytes, 0),
        }
    }

    /// Whether this node asks origins itself, so that it must reach them.
    pub fn asks_origins(&self) -> bool {
        let status = self.status.as_ref();
        let has_far =
            status.is_some_and(|it| it.uplink.as_ref().is_some_and(|it| it.state == "up"));
        let is_behind =
            status.is_some_and(|it| it.route.as_ref().is_some_and(|it| it.up && !it.is_gateway));
        !has_far && !is_behind
    }

    /// The addresses where the daemon listens or is to listen, each with its setting.
    pub fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        let everywhere = |port| SocketAddr::from(([0; 16], port));
        let (config, mut all) = (&self.config, Vec::new());
        let (listen, mirror, metrics) = match &self.status {
            Some(it) => (&it.listeners, &it.mirrors, it.metrics),
            None => (&config.listen, &config.mirror.listen, config.metrics),
        };
        all.extend(listen.iter().map(|it| ("listen", *it)));
        all.extend(mirror.iter().map(|it| ("[mirror] listen", *it)));
        all.extend(metrics.map(|it| ("[metrics] listen", it)));
        all.extend(self.rules().map(|it| ("[intercept] port", everywhere(it.listen_port))));
        if !self.mesh().is_empty() {
            let port = self.status.as_ref().and_then(|it| it.mesh.as_ref()).map(|it| it.port);
            all.push(("[mesh] port", everywhere(port.unwrap_or(config.mesh.port))));
        }
        // A port that the kernel is to choose is always free.
        all.retain(|(_, address)| address.port() != 0);
        all
    }
}
