//! The daemon's status: counters, gauges, settings and problems; as JSON and as a page for people.
//!
//! *Who calls it:* `observe.rs` makes a [`Status`], the control socket sends it, `metrics.rs` and
//! [`Status::page`] show it. The JSON is an interface: fields are added, never renamed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::ledger::Summary;
use host::datagrams::DatagramCounts;
use host::intercept::{Flows, ForwardedBytes, Rules};
use host::traffic::WireBytes;
use node::account::ClassBytes;
use node::{Prefix, Report};
use serde::{Deserialize, Serialize};

mod far;
mod mesh;
mod overhear;
mod page;
mod rights;
mod route;
mod selftest;
mod uplink;

pub use far::{FAR_SCHEMA, FarCounts, FarStatus, GatewayCounts, GatewayLine};
pub use mesh::{Mesh, PeerLine, sealing, whence};
pub use node::driver::admission::Counters as Clients;
pub use overhear::Overhear;
pub use rights::Rights;
pub use route::Route;
pub use selftest::{Check, Finding, SelfTest, Verdict};
pub use uplink::UplinkLine;

/// The daemon's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The daemon's version.
    pub version: String,
    /// The daemon's name in `Via` and `Cache-Status`.
    pub name: String,
    /// The process.
    #[serde(flatten)]
    pub process: Process,
    /// What the daemon may still do; `null` from a daemon that limits nothing.
    #[serde(default)]
    pub rights: Option<Rights>,
    /// Where the explicit proxy listens.
    pub listeners: Vec<SocketAddr>,
    /// Where the mirror listens.
    pub mirrors: Vec<SocketAddr>,
    /// The TCP address where metrics are served, besides on the control socket.
    pub metrics: Option<SocketAddr>,
    /// Transparent interception.
    pub intercept: Intercept,
    /// The route to the gateway; `null` without a mesh.
    #[serde(default)]
    pub route: Option<Route>,
    /// This node's identity and settings in the mesh; `null` without a mesh.
    #[serde(default)]
    pub mesh: Option<Mesh>,
    /// Datagrams of searches; `null` unless the scheme searches.
    #[serde(default)]
    pub datagrams: Option<DatagramCounts>,
    /// Overhearing; `null` if it is off.
    #[serde(default)]
    pub overhear: Option<Overhear>,
    /// The pair of the uplink; `null` without a far end.
    #[serde(default)]
    pub uplink: Option<UplinkLine>,
    /// The store.
    pub store: Store,
    /// The budget of caches and buffers, in bytes.
    pub memory_budget_bytes: u64,
    /// Connections of clients.
    #[serde(default)]
    pub clients: Clients,
    /// Bytes that were relayed without parsing: tunnels, upgrades, and intercepted connections that
    /// are not HTTP.
    pub relayed_bytes: u64,
    /// What was saved today, of late, and since counting began; `null` from a daemon without a ledger.
    #[serde(default)]
    pub ledger: Option<Summary>,
    /// Content bytes by class, since the start.
    #[serde(default)]
    pub classes: BTreeMap<String, ClassBytes>,
    /// What crossed the wire on connections that end here, by whom they are with, since the start.
    #[serde(default)]
    pub wire: BTreeMap<String, WireBytes>,
    /// What was only forwarded, by kind, since the rules were set; empty unless clients are intercepted.
    #[serde(default)]
    pub forwarded: BTreeMap<String, ForwardedBytes>,
    /// What the daemon's own checks found last, by check; empty before the first.
    #[serde(default)]
    pub selftest: BTreeMap<String, SelfTest>,
    /// The log of requests; `null` if it is off.
    #[serde(default)]
    pub request_log: Option<RequestLog>,
    /// The engine's counters and gauges.
    pub report: Report,
}

wire::counters! {
    /// The log of requests.
    pub struct RequestLog, "request_log_" {
        Requests () {
            /// Lines written to the log of requests.
            lines: Counter, Requests;
            /// Lines that are missing in the log of requests: its disk was full, too slow, or not there.
            dropped_lines: Counter, Requests;
        }
        + {
            /// The file.
            pub file: PathBuf,
            /// Why nothing can be written.
            pub error: Option<String>,
        }
    }

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
    /// Interfaces whose clients' connections are intercepted; if empty, none are.
    pub interfaces: Vec<String>,
    /// The port of the transparent listener.
    pub port: u16,
    /// Destination ports of HTTP that are intercepted.
    pub ports: Vec<u16>,
    /// What else is intercepted, for the uplink's pair, if it has a far end.
    #[serde(default)]
    pub flows: Option<Flows>,
    /// Interfaces that lead out of the site. Connections that are routed through them are
    /// intercepted, and dialled for clients and peers.
    #[serde(default)]
    pub out: Vec<String>,
    /// Interfaces that do not exist now; interception on them starts once they do.
    #[serde(default)]
    pub interfaces_missing: Vec<String>,
    /// Whether interception works.
    pub works: bool,
    /// Why interception does not work, or what else the operator should know.
    pub note: Option<String>,
}

impl Intercept {
    /// Whether anything is to be intercepted.
    pub fn is_on(&self) -> bool {
        !self.interfaces.is_empty() || self.flows.is_some()
    }

    /// The firewall rules that the daemon means to be set, still without what changes while it runs; `None` if nothing is
    /// intercepted. `direct` are the destinations in the mesh.
    pub fn rules(&self, direct: &[Prefix]) -> Option<Rules> {
        let Self { interfaces, ports, flows, .. } = self.clone();
        let (direct, listen_port) = (direct.to_vec(), self.port);
        let rules = Rules { interfaces, ports, flows, direct, listen_port, ..Rules::default() };
        Some(rules).filter(Rules::is_on)
    }
}

/// The store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Store {
    /// Where units are stored.
    pub kind: StoreKind,
    /// The directory, for a store on disk.
    pub path: Option<PathBuf>,
    /// The most bytes that the store may use.
    pub size_bytes: u64,
    /// Bytes used.
    pub used_bytes: u64,
    /// Whether the store works; without it the daemon still runs as a proxy.
    pub works: bool,
    /// Why the store does not work.
    pub error: Option<String>,
}

/// Where units are stored.
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

/// Resident memory, from a file where the kernel counts it in KiB instead of pages.
fn rss_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ledger::Saved;
    pub(crate) use far::tests::two_gateways;
    pub(crate) use mesh::tests::{in_mesh, peer};
    use node::{NotStored, Recent, Requests, Unstored};
    pub(crate) use overhear::tests::{heard, hearing};
    pub(crate) use route::tests::over_one;
    use store::IndexReport;
    use wire::Date;

    /// A daemon that has served requests.
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
            mirrors: vec!["127.0.0.1:3142".parse().unwrap()],
            metrics: None,
            intercept: Intercept {
                interfaces: vec!["br-lan".into()],
                port: 3130,
                ports: vec![80],
                flows: None,
                out: vec!["wan".into()],
                interfaces_missing: Vec::new(),
                works: true,
                note: None,
            },
            route: None,
            mesh: None,
            overhear: None,
            uplink: None,
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
                uplink_up: true,
                ..Report::default()
            },
            ..counted()
        }
    }

    /// What the ledger adds to a status.
    fn counted() -> Status {
        let apt = ClassBytes {
            served_local_bytes: 1 << 30,
            served_origin_bytes: 3 << 30,
            fetched_origin_bytes: 3 << 30,
            ..ClassBytes::default()
        };
        Status {
            ledger: Some(Summary {
                today: Saved { given_bytes: 4 << 30, brought_bytes: 3 << 30 },
                days_30: Saved { given_bytes: 40 << 30, brought_bytes: 10 << 30 },
                ever: Saved { given_bytes: 400 << 30, brought_bytes: 300 << 30 },
                begun: 1_780_000_000,
            }),
            classes: [("apt".to_owned(), apt)].into(),
            wire: [("client".to_owned(), WireBytes { out_bytes: 5 << 30, ..WireBytes::default() })]
                .into(),
            forwarded: [(
                "tls".to_owned(),
                ForwardedBytes { up_bytes: 1 << 20, down_bytes: 9 << 30 },
            )]
            .into(),
            ..Status::default()
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
        // A reason that this version does not know is left out. A counter that the other version
        // lacks is zero.
        json["not_stored"]["of-tomorrow"] = json["not_stored"]["private"].clone();
        json.as_object_mut().unwrap().remove("recent");
        let read: Report = serde_json::from_value(json).unwrap_or_default();
        assert_eq!(
            (read.units_cut, read.recent.len(), read.not_stored.occurred().count()),
            (7, 0, 1)
        );
    }
}
