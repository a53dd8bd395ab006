//! One router with a mirror, between a client and the registries.

use super::{Registries, run};
use crate::world::network::CLIENT;
use crate::world::{Curl, Hearsay, Reply, World};

const MIRROR: &str = "http://10.1.0.1:3142";

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
        let world = World::new();
        let registries = Registries::start(&world);
        let text = format!(
            "listen = [\"127.0.0.1:0\"]\n[mirror]\nlisten = [\"0.0.0.0:3142\"]\nallow = {ALLOW:?}\n"
        );
        let config = world.write("hearsay.toml", text.as_bytes()).display().to_string();
        let trust = format!("SSL_CERT_FILE={}", registries.ca().display());
        let args = ["--config", &config, "--log", "debug"];
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

    /// Runs a package manager; an error is what it said.
    pub fn run(&self, client: &str, options: &[(&str, &str)]) -> Result<(), String> {
        run(client, CLIENT, MIRROR, options).map(|_| ())
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
