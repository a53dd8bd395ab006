//! One router with a mirror, between a client and the registries.

use super::{Registries, run};
use crate::world::network::CLIENT;
use crate::world::{Curl, Hearsay, Reply, World};

/// The addresses of the mirror and of the explicit proxy.
pub const MIRROR: &str = "http://10.1.0.1:3142";
pub const PROXY: &str = "http://10.1.0.1:3128";

/// Hosts of the registries that are in no table.
const ALLOW: [&str; 5] =
    ["faulty.test", "expired.test", "other-name.test", "untrusted.test", "inner.test"];

/// A router whose mirror may dial the hosts that break things. Fields are dropped in this order.
pub struct Single {
    pub hearsay: Hearsay,
    pub registries: Registries,
    _world: World,
}

impl Single {
    /// Starts the registries and the router inside a network of `network::inside`.
    pub fn start() -> Self {
        Self::start_with(&[], &[])
    }

    /// As [`Self::start`], with hosts that send neither validators nor lifetimes, and more arguments of the daemon.
    pub fn start_with(bare: &[&str], args: &[&str]) -> Self {
        let world = World::new();
        let registries = Registries::start(&world, bare);
        Self::before(world, registries, args)
    }

    /// As [`Self::start`], with registries whose indexes are stale after a second.
    pub fn start_stale() -> Self {
        let world = World::new();
        let registries = Registries::start_with(&world, &["--stale"]);
        Self::before(world, registries, &[])
    }

    fn before(world: World, registries: Registries, args: &[&str]) -> Self {
        let text = format!(
            "listen = [\"0.0.0.0:3128\"]\n[mirror]\nlisten = [\"0.0.0.0:3142\"]\nallow = {ALLOW:?}\n"
        );
        let config = world.write("hearsay.toml", text.as_bytes()).display().to_string();
        let trust = format!("SSL_CERT_FILE={}", registries.ca().display());
        let args = [&["--config", &config, "--log", "debug"], args].concat();
        let hearsay = Hearsay::start_under(&world, &["env", &trust], &args);
        Self { hearsay, registries, _world: world }
    }

    /// A curl of the client for a path of the mirror, which is sent as it stands.
    pub fn curl(&self, path: &str) -> Curl {
        Curl::new(CLIENT, &format!("{MIRROR}{path}")).args(&["--path-as-is"])
    }

    pub fn get(&self, path: &str) -> Reply {
        self.curl(path).run()
    }

    /// Whether the client's pip gets a project by the mirror.
    pub fn pip_gets(&self, project: &str) -> bool {
        run("pip", CLIENT, &[("MIRROR", MIRROR), ("PACKAGES", project)]).is_ok()
    }

    /// Runs the client's apt-get with these variables. It must get the right files; returns how many bytes of files
    /// the archive sent for it.
    #[track_caller]
    pub fn cost_of_apt(&self, variables: &[(&str, &str)]) -> u64 {
        let begin = self.registries.sent().len();
        let got = run("apt", CLIENT, variables).unwrap_or_else(|said| panic!("{said}"));
        assert_eq!(got, self.registries.wanted("apt"), "{variables:?}");
        self.hearsay.wait_until_durable();
        self.registries.file_bytes_since(begin)
    }

    /// The mirror's path for the file to which an index of PyPI links by this name.
    pub fn link(&self, project: &str) -> String {
        let page = self.get(&format!("/pypi/simple/{project}/")).expect(200).text();
        let name = format!("{}-1.0-", project.replace('-', "_"));
        let links = page.split("href=\"").skip(1).filter_map(|it| it.split_once('"'));
        let link = links.map(|it| it.0).find(|it| it.contains(&name)).expect("a link to the file");
        let link = link.split('#').next().unwrap_or_default();
        link.strip_prefix(MIRROR).expect("a link to the mirror").to_owned()
    }

    /// The most memory that the daemon has had, in KiB.
    pub fn peak_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.hearsay.id());
        let text = std::fs::read_to_string(path).expect("it runs");
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}
