//! How the daemon is: what it counted, what it holds, where it listens; as JSON and as a page for people.
//!
//! *Who calls it:* the driver makes a [`Status`], the control socket sends it, `metrics.rs` and
//! [`Status::page`] show it. The JSON is an interface: fields are added, never renamed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use node::Report;
use serde::{Deserialize, Serialize};

mod mesh;
mod overhear;
mod page;
mod route;

pub use mesh::{Mesh, PeerLine, sealing, whence};
pub use node::driver::admission::Counters as Clients;
pub use overhear::Overhear;
pub use route::Route;

/// How the daemon is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Our version.
    pub version: String,
    /// What we call ourselves in `Via` and `Cache-Status`.
    pub name: String,
    /// The process.
    #[serde(flatten)]
    pub process: Process,
    /// Where the explicit proxy listens.
    pub listeners: Vec<SocketAddr>,
    /// Where metrics are served, besides on the control socket.
    pub metrics: Option<SocketAddr>,
    /// Transparent interception.
    pub intercept: Intercept,
    /// The way to the gateway; `null` where there is no mesh.
    #[serde(default)]
    pub route: Option<Route>,
    /// What this node is to its peers; `null` where there is no mesh.
    #[serde(default)]
    pub mesh: Option<Mesh>,
    /// What is heard of neighbours; `null` where that is off.
    #[serde(default)]
    pub overhear: Option<Overhear>,
    /// The store.
    pub store: Store,
    /// The budget of caches and buffers, in bytes.
    pub memory_budget_bytes: u64,
    /// Connections of clients.
    #[serde(default)]
    pub clients: Clients,
    /// Bytes that crossed unlooked at: tunnels, upgrades, and what was intercepted and is no HTTP.
    pub relayed_bytes: u64,
    /// What the engine counted and holds.
    pub report: Report,
}

wire::counters! {
    /// The process, as the kernel sees it.
    #[derive(Copy)]
    pub struct Process, "" {
        Process () {
            /// Time since the start.
            uptime_seconds: Gauge, Seconds;
        }
        Process ("process_start_time_seconds") {
            /// The start, in seconds since 1970; moves if the clock is set.
            start_time_seconds: Gauge, Seconds;
        }
        Process ("process_resident_memory_bytes") {
            /// Resident memory.
            rss_bytes: Gauge, Bytes;
        }
    }
}

/// Transparent interception.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intercept {
    /// Interfaces whose clients are served; none: nothing is intercepted.
    pub interfaces: Vec<String>,
    /// The port of the transparent listener.
    pub port: u16,
    /// Destination ports that are intercepted.
    pub ports: Vec<u16>,
    /// Interfaces that lead out: what the routes send out by them is intercepted, and dialled for others.
    #[serde(default)]
    pub out: Vec<String>,
    /// Interfaces that are not there now; their clients are intercepted once they are.
    #[serde(default)]
    pub interfaces_missing: Vec<String>,
    /// Whether it works.
    pub works: bool,
    /// Why not, or what the operator should know.
    pub note: Option<String>,
}

/// The store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Store {
    /// Where units rest.
    pub kind: StoreKind,
    /// The directory, for a store on disk.
    pub path: Option<PathBuf>,
    /// At most so many bytes.
    pub size_bytes: u64,
    /// Bytes used.
    pub used_bytes: u64,
    /// Whether it works; without it we go on as a proxy.
    pub works: bool,
    /// Why not.
    pub error: Option<String>,
}

/// Where units rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    /// On disk.
    #[default]
    Disk,
    /// In memory, until the daemon ends.
    Memory,
}

impl Process {
    /// This process, which began at `started`.
    pub fn here(started: Instant) -> Self {
        let uptime = started.elapsed();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            uptime_seconds: uptime.as_secs(),
            start_time_seconds: now.saturating_sub(uptime).as_secs(),
            rss_bytes: rss_bytes().unwrap_or(0),
        }
    }

    /// Time since the start.
    pub fn uptime(&self) -> Duration {
        Duration::from_secs(self.uptime_seconds)
    }
}

/// Resident memory; the kernel tells it without a page size, so nothing can be got wrong.
fn rss_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    pub(crate) use mesh::tests::{in_mesh, peer};
    use node::{NotStored, Recent, Requests, Unstored};
    pub(crate) use overhear::tests::{heard, hearing};
    pub(crate) use route::tests::over_one;
    use store::IndexReport;
    use wire::Date;

    /// A daemon that has seen some work.
    pub(crate) fn busy() -> Status {
        let unstored = |responses, bytes| Unstored { responses, bytes };
        Status {
            version: "0.1.0".into(),
            name: "router-12".into(),
            process: Process {
                uptime_seconds: 273_600,
                start_time_seconds: 1_790_000_000,
                rss_bytes: 23 << 20,
            },
            listeners: vec!["127.0.0.1:3128".parse().unwrap()],
            metrics: None,
            intercept: Intercept {
                interfaces: vec!["br-lan".into()],
                port: 3130,
                ports: vec![80],
                out: vec!["wan".into()],
                interfaces_missing: Vec::new(),
                works: true,
                note: None,
            },
            route: None,
            mesh: None,
            overhear: None,
            store: Store {
                kind: StoreKind::Disk,
                path: Some("/var/cache/hearsay".into()),
                size_bytes: 1 << 30,
                used_bytes: 512 << 20,
                works: true,
                error: None,
            },
            memory_budget_bytes: 16 << 20,
            clients: Clients { connections: 40, bytes: 1 << 20, ..Clients::default() },
            relayed_bytes: 7 << 20,
            report: Report {
                requests: Requests {
                    hit: 400,
                    miss: 500,
                    pass: 100,
                    tunnel: 50,
                    ..Requests::default()
                },
                served_local_bytes: 1 << 30,
                served_origin_bytes: 3 << 30,
                origin_bytes: 3 << 30,
                not_stored: [
                    (NotStored::NoStore, unstored(80, 1 << 30)),
                    (NotStored::Private, unstored(20, 1 << 20)),
                ]
                .into_iter()
                .collect(),
                units_cut: 100_000,
                units_known: 12_000,
                known_bytes: 96 << 20,
                index: IndexReport {
                    units: 65_432,
                    evicted_units: 123,
                    index_bytes: 1 << 20,
                    ..IndexReport::default()
                },
                store_works: true,
                ..Report::default()
            },
        }
    }

    #[test]
    fn a_status_survives_the_control_socket() {
        let json = serde_json::to_string(&busy()).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&json).unwrap(), busy());
        for field in ["\"uptime_seconds\":273600", "\"kind\":\"disk\"", "\"rss_bytes\":"] {
            assert!(json.contains(field), "{field} in {json}");
        }
    }

    #[test]
    fn this_process_has_a_size_and_a_start() {
        let here = Process::here(Instant::now());
        assert!(
            here.rss_bytes > 100_000 && here.start_time_seconds > 0 && here.uptime_seconds == 0
        );
    }

    #[test]
    fn the_engines_report_comes_through_whole() {
        let mut report = Report { units_cut: 7, ..Report::default() };
        report.requests.collapsed = 3;
        report.index.segments = 2;
        *report.not_stored.of(NotStored::Private) = Unstored { responses: 1, bytes: 9 };
        report.overheard.heard.headless_bytes = 5;
        report.recent = vec![Recent { when: Date::from_unix(4), ..Recent::default() }];
        let mut json = serde_json::to_value(&report).unwrap();
        assert_eq!(serde_json::from_value::<Report>(json.clone()).unwrap(), report);
        for (pointer, value) in [
            ("/requests/collapsed", 3),
            ("/not_stored/private/bytes", 9),
            ("/overheard/headless_bytes", 5),
            ("/recent/0/when", 4),
        ] {
            assert_eq!(json.pointer(pointer), Some(&value.into()), "{json}");
        }
        // A reason of another version is left out, and what another version does not count is zero.
        json["not_stored"]["of-tomorrow"] = json["not_stored"]["private"].clone();
        json.as_object_mut().unwrap().remove("recent");
        let read: Report = serde_json::from_value(json).unwrap_or_default();
        assert_eq!(
            (read.units_cut, read.recent.len(), read.not_stored.occurred().count()),
            (7, 0, 1)
        );
    }
}
