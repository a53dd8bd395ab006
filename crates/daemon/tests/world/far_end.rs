//! The far end of a gateway's uplink, as a real process on the origin's machine.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::network::ORIGIN;
use super::{Hearsay, Process, World, sh, wait_for, wait_until};

const BINARY: &str = env!("CARGO_BIN_EXE_hearsay");

/// The origin's own addresses, which a far end there may reach.
const PRIVATE: [&str; 3] = ["10.2.0.0/24", "198.51.100.0/24", "2001:db8:5::/64"];

/// A far end on the origin's machine, which is beyond the uplink.
pub struct FarEnd {
    pub process: Process,
    /// What it printed for the gateway's configuration.
    pub lines: String,
}

impl FarEnd {
    /// Starts it for a gateway with this key.
    pub fn start(world: &World, key: &str) -> Self {
        Self::start_under(world, "exec", &[key.to_owned()])
    }

    /// Starts it for gateways with these keys.
    pub fn start_for(world: &World, keys: &[&str]) -> Self {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        Self::start_under(world, "exec", &keys)
    }

    /// Starts it for gateways with these keys, by a shell's words before the command.
    pub fn start_under(world: &World, before: &str, keys: &[String]) -> Self {
        let store = world.path("far").display().to_string();
        let mut args = vec!["--listen", "10.2.0.2:3144", "--store", &store];
        args.extend(keys.iter().flat_map(|key| ["--near", key]));
        args.extend(PRIVATE.iter().flat_map(|prefix| ["--private", prefix]));
        Self::run(world, before, &args)
    }

    /// Starts it with the settings of a file.
    pub fn start_with_file(world: &World, file: &str) -> Self {
        Self::run(world, "exec", &["--config", file])
    }

    fn run(world: &World, before: &str, args: &[&str]) -> Self {
        let said = world.path("far.said");
        let child = ORIGIN
            .command("sh")
            .args(["-c", &format!("{before} \"$@\""), "sh", BINARY, "far"])
            .args(args)
            .arg("--control")
            .arg(Self::control(world))
            .env_remove("HEARSAY_LOG")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(fs::File::create(&said).expect("a file"))
            .stderr(
                fs::File::options()
                    .create(true)
                    .append(true)
                    .open(world.path("far.log"))
                    .expect("a log"),
            )
            .spawn()
            .expect("the far end starts");
        let mut process = Process(child);
        let lines = wait_for("the far end to be ready", || {
            assert!(!process.has_ended(), "the far end has ended: {}", Self::log(world));
            fs::read_to_string(&said).ok().filter(|text| text.contains("far-key"))
        });
        Self { process, lines }
    }

    /// What the far ends of this world have logged.
    pub fn log(world: &World) -> String {
        fs::read_to_string(world.path("far.log")).unwrap_or_default()
    }

    /// The control socket of the far end in this world.
    pub fn control(world: &World) -> PathBuf {
        world.path("far.sock")
    }

    /// Runs `hearsay far status` with these words behind it.
    pub fn status(world: &World, words: &[&str]) -> String {
        let mut command = Command::new(BINARY);
        command.args(["far", "status"]).args(words).arg("--control").arg(Self::control(world));
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// The key of the gateway whose store is in this world.
pub fn key_of_gateway(world: &World) -> String {
    let output = Command::new(BINARY)
        .args(["uplink", "--key", "--store"])
        .arg(world.path("store"))
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A gateway whose other protocols go by a far end, and that far end.
pub struct Site {
    pub gateway: Hearsay,
    pub far: FarEnd,
    pub world: World,
}

impl Site {
    /// Starts both. Outside the site are, on the origin's machine, 198.51.100.7 and 2001:db8:5::7.
    pub fn start(intercept: &str) -> Self {
        Self::start_with("", intercept)
    }

    /// The same, with settings outside of tables.
    fn start_with(settings: &str, intercept: &str) -> Self {
        Self::start_under("exec", settings, intercept)
    }

    /// The same, with a shell's words before the far end's command.
    pub fn start_under(before: &str, settings: &str, intercept: &str) -> Self {
        sh("ip -n origin addr add 198.51.100.7/32 dev lo
            ip -n origin addr add 2001:db8:5::7/128 dev lo nodad");
        let world = World::new();
        let far = FarEnd::start_under(&world, before, &[key_of_gateway(&world)]);
        let text = format!(
            "listen = [\"127.0.0.1:0\"]\n{settings}\n[intercept]\ninterfaces = [\"lan0\"]\n{intercept}\n{}",
            far.lines
        );
        let file = world.write("hearsay.toml", text.as_bytes());
        let gateway = Hearsay::start_with(&world, &["--config", &file.display().to_string()]);
        Self { gateway, far, world }
    }

    /// The same, once connections of both families go by the far end.
    pub fn up(intercept: &str) -> Self {
        Self::up_with("", intercept)
    }

    /// The same, with settings outside of tables.
    pub fn up_with(settings: &str, intercept: &str) -> Self {
        let site = Self::start_with(settings, intercept);
        site.wait_for_rules(4);
        site
    }

    /// Waits until this many rules redirect connections, IPv4's and IPv6's of HTTP among them.
    pub fn wait_for_rules(&self, count: usize) {
        wait_until("the rules", || {
            let rules = sh("nft list table inet hearsay");
            rules.lines().filter(|line| line.contains("tproxy")).count() == count
        });
    }

    /// What `hearsay uplink --json` says.
    pub fn uplink(&self) -> Value {
        let output = self.gateway.command(&["uplink", "--json"]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// A counter or a figure of `hearsay uplink`.
    pub fn counter(&self, name: &str) -> u64 {
        let uplink = self.uplink();
        let value = uplink.get(name).unwrap_or(&uplink["counts"][name]);
        value.as_u64().unwrap_or_else(|| panic!("{name} in {uplink}"))
    }
}
