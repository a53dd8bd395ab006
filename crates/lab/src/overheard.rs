//! Where a transfer's bytes came from when some of them were overheard: only the access router's daemon
//! knows, and tells it with its latest transfers.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use sim::scenario::Scenario;
use sim::source::{OVERHEARD, REPAIRED, Source};

use crate::routers;

/// The client may be done before its router has written down that it is.
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(20);

/// What a daemon tells of a transfer.
#[derive(Debug, Default, Deserialize)]
pub struct Told {
    uri: String,
    local_bytes: u64,
    peer_bytes: u64,
    origin_bytes: u64,
    overheard_bytes: u64,
    repaired_bytes: u64,
}

/// What the daemon of a client's router tells of the latest transfer of a file.
pub fn told(scenario: &Scenario, hearsay: &Path, router: usize, url: &str) -> Option<Told> {
    let began = Instant::now();
    loop {
        let status = routers::ask(scenario, hearsay, router, "status").ok().flatten();
        let recent = status.map(|mut status| status["report"]["recent"].take());
        let recent = recent.and_then(|it| serde_json::from_value::<Vec<Told>>(it).ok());
        let told = recent.and_then(|it| it.into_iter().rev().find(|told| told.uri == url));
        if told.is_some() || began.elapsed() > PATIENCE {
            return told;
        }
        thread::sleep(AGAIN);
    }
}

impl Told {
    /// The bytes that each source had; `head` is whence the response's head came, `asked_before` whether
    /// clients of this router had asked for the same.
    pub fn by_source(&self, head: Source, asked_before: bool, bytes: u64) -> BTreeMap<String, u64> {
        let here = if asked_before { Source::Local } else { Source::PhLocal };
        // Whose head was here has its other bytes from whoever is asked next.
        let peer = match head {
            Source::Local | Source::PhLocal => Source::Remote,
            other => other,
        };
        let parts = [
            (OVERHEARD, self.overheard_bytes),
            (REPAIRED, self.repaired_bytes),
            (here.name(), self.local_bytes),
            (peer.name(), self.peer_bytes),
            (Source::Origin.name(), self.origin_bytes),
        ];
        let mut sums = BTreeMap::new();
        for (name, part) in parts.into_iter().filter(|(_, part)| *part > 0) {
            *sums.entry(name.to_owned()).or_insert(0) += part;
        }
        // A client may have had more than was counted: what came as the head did.
        let rest = bytes.saturating_sub(sums.values().sum());
        if rest > 0 || sums.is_empty() {
            *sums.entry(head.name().to_owned()).or_insert(0) += rest;
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_one_source() {
        let told = Told {
            local_bytes: 10,
            peer_bytes: 20,
            overheard_bytes: 60,
            repaired_bytes: 5,
            ..Told::default()
        };
        let sums = |head, asked_before| {
            let sums = told.by_source(head, asked_before, 100);
            assert_eq!(sums.values().sum::<u64>(), 100);
            sums.into_iter().map(|(name, bytes)| format!("{name} {bytes}")).collect::<Vec<_>>()
        };
        let expected = ["gateway 25", "overheard 60", "ph-local 10", "repaired 5"];
        assert_eq!(sums(Source::Gateway, false), expected);
        let expected = ["local 15", "overheard 60", "remote 20", "repaired 5"];
        assert_eq!(sums(Source::Local, true), expected);
        let nothing = Told::default().by_source(Source::Origin, false, 0);
        assert_eq!(nothing, BTreeMap::from([("origin".to_owned(), 0)]));
    }
}
