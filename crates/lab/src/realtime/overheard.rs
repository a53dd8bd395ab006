//! The sources of a transfer's bytes, if some were overheard: only the access router's daemon knows, and
//! reports them with its latest transfers.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use sim::result::source::BytesBySource;
use sim::scenario::Scenario;

use super::routers;

/// How long to wait for the report: the client may be done before its router has recorded the transfer.
const TIMEOUT: Duration = Duration::from_secs(2);
const POLL_EVERY: Duration = Duration::from_millis(20);

/// A daemon's report of a transfer.
#[derive(Debug, Deserialize)]
struct Recent {
    uri: String,
    #[serde(flatten)]
    bytes: BytesBySource,
}

/// What the daemon of a client's router reports of the latest transfer of a file.
pub fn bytes(
    scenario: &Scenario,
    hearsay: &Path,
    router: usize,
    url: &str,
) -> Option<BytesBySource> {
    let began = Instant::now();
    loop {
        let status = routers::ask(scenario, hearsay, router, "status").ok().flatten();
        let recent = status.map(|mut status| status["report"]["recent"].take());
        let recent = recent.and_then(|it| serde_json::from_value::<Vec<Recent>>(it).ok());
        let latest = recent.and_then(|it| it.into_iter().rev().find(|it| it.uri == url));
        if latest.is_some() || began.elapsed() > TIMEOUT {
            return latest.map(|it| it.bytes);
        }
        thread::sleep(POLL_EVERY);
    }
}
