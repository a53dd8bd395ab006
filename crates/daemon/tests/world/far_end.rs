//! The far end of a gateway's uplink, as a real process on the origin's machine.

use std::fs;
use std::process::Stdio;

use super::network::ORIGIN;
use super::{Process, World, wait_for};

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
        let said = world.path("far.said");
        let child = ORIGIN
            .command(BINARY)
            .args(["far", "--listen", "10.2.0.2:3144", "--near", key])
            .args(PRIVATE.iter().flat_map(|prefix| ["--private", prefix]))
            .arg("--store")
            .arg(world.path("far"))
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
            let log = || fs::read_to_string(world.path("far.log")).unwrap_or_default();
            assert!(!process.has_ended(), "the far end has ended: {}", log());
            fs::read_to_string(&said).ok().filter(|text| text.contains("far-key"))
        });
        Self { process, lines }
    }
}

/// The key of the gateway whose store is in this world.
pub fn key_of_gateway(world: &World) -> String {
    let output = std::process::Command::new(BINARY)
        .args(["uplink", "--key", "--store"])
        .arg(world.path("store"))
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
