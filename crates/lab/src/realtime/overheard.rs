//! Where a transfer's bytes came from when some of them were overheard: only the access router's daemon
//! knows, and tells it with its latest transfers.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use sim::result::source::BytesBySource;
use sim::scenario::Scenario;

use super::routers;

/// The client may be done before its router has written down that it is.
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(20);

/// What a daemon tells of a transfer.
#[derive(Debug, Deserialize)]
struct Recent {
    uri: String,
    #[serde(flatten)]
    bytes: BytesBySource,
}

/// What the daemon of a client's router tells of the latest transfer of a file.
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
        if latest.is_some() || began.elapsed() > PATIENCE {
            return latest.map(|it| it.bytes);
        }
        thread::sleep(AGAIN);
    }
}
