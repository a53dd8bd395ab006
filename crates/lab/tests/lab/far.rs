//! The far end of a kept mesh's uplink.

use serde_json::Value;

use super::kept::{Kept, Within, end, hearsay, words};
use super::{Process, wait_until};

/// The far end's store, in the mesh.
const STORE: &str = "/run/lab/far.store";
/// The router that has the uplink.
const GATEWAY: &str = "gateway";

impl Kept {
    /// The process of the far end.
    #[track_caller]
    pub fn far(&self) -> Process {
        self.hearsay(STORE)
    }

    /// Kills the far end with SIGKILL, waits until the gateway knows, and returns the command line.
    #[track_caller]
    pub fn kill_far(&self) -> Vec<String> {
        let far = self.far();
        let words = words(&far);
        end(&far);
        // The end of the connection crosses the uplink, too.
        let is_up = || self.pair()["state"] == "up";
        wait_until(|| format!("{:#?}", self.pair()), || !is_up());
        words
    }

    /// Starts the far end by this command line, and waits until the gateway is connected to it.
    #[track_caller]
    pub fn start_far(&self, words: &[String]) -> Within {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let far = self.start_within("far", &words);
        self.wait_for_pair();
        far
    }

    /// Waits until the gateway is connected to the far end.
    #[track_caller]
    pub fn wait_for_pair(&self) {
        let is_up = || self.pair()["state"] == "up";
        wait_until(|| format!("{:#?}", self.pair()), is_up);
    }

    /// What the gateway says of the pair.
    pub fn pair(&self) -> Value {
        self.ask(GATEWAY, &["uplink", "--json"]).unwrap_or_default()
    }

    /// Removes the histories of the gateway or the far end, which is not running, and all else that it keeps
    /// but its key.
    #[track_caller]
    pub fn wipe(&self, namespace: &str) {
        let store = format!("/run/lab/{namespace}.store");
        self.say(
            namespace,
            &["find", &store, "-mindepth", "1", "!", "-name", "identity", "-delete"],
        );
    }

    /// Bytes that have crossed the uplink both ways, counted at its inner end: Ethernet frames.
    #[track_caller]
    pub fn crossed(&self) -> u64 {
        let text = self.say(&format!("router-{GATEWAY}"), &["cat", "/proc/net/dev"]);
        let line = text.lines().find_map(|line| line.trim().strip_prefix("wan0:"));
        let fields: Vec<_> = line.expect("the uplink").split_whitespace().collect();
        // The first field is of what came, the ninth of what went.
        [0, 8].into_iter().map(|it| fields[it].parse::<u64>().expect("a number")).sum()
    }

    /// Downloads a file, which must be exact, and returns what crossed the uplink for it.
    #[track_caller]
    pub fn cost(&self, name: &str, bytes: &[u8]) -> u64 {
        let before = self.crossed();
        self.get(GATEWAY, name).expect(bytes);
        self.crossed() - before
    }

    /// `hearsay get` of a URL at the gateway: what it wrote.
    #[track_caller]
    pub fn fetch(&self, url: &str) -> Vec<u8> {
        let control = format!("/run/lab/router-{GATEWAY}.control");
        let script = format!(
            "cd $(mktemp -d -p /run/lab) && {} get {url} --quiet --control {control} --output got >&2 \
             && cat got",
            hearsay()
        );
        let mut command = self.command(&format!("router-{GATEWAY}"), &["sh", "-ec", &script]);
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}
