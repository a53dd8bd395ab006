//! How the daemon is: what it counted, what it holds, where it listens; as JSON and as a page for people.
//!
//! *Who calls it:* the driver makes a [`Status`], the control socket sends it, `metrics.rs` and
//! [`Status::page`] show it. The JSON is an interface: fields are added, never renamed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

mod mesh;
mod overhear;
mod page;
mod route;

pub use mesh::{Mesh, PeerLine, Recent, sealing};
pub use overhear::{Overhear, Overheard};
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
    pub report: Counts,
}

/// The process, as the kernel sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// The start, in seconds since 1970; moves if the clock is set.
    pub start_time_seconds: u64,
    /// Resident memory, in bytes.
    pub rss_bytes: u64,
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

/// Connections of clients: those that are there, and those for which there was no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clients {
    /// Connections that are there.
    pub connections: u64,
    /// What they may take of the budget, in bytes.
    pub bytes: u64,
    /// Connections closed for others while they waited for their next request.
    pub closed_idle: u64,
    /// Connections closed for others with an incomplete head.
    pub closed_head: u64,
    /// Tunnels closed for others in which nothing moved.
    pub closed_tunnel: u64,
    /// Connections closed because their client was too slow while much was taken.
    pub closed_slow: u64,
    /// Connections not taken in because their client had its share.
    pub over_share: u64,
    /// Connections that the explicit port answered with 503.
    pub refused: u64,
    /// How often the transparent port stopped listening, so that new connections went past.
    pub past: u64,
}

/// [`node::Report`] on its way through the control socket; see there for what each is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Counts {
    pub requests: Requests,
    pub served_local_bytes: u64,
    pub served_origin_bytes: u64,
    pub served_peer_bytes: u64,
    pub served_overheard_bytes: u64,
    pub served_repaired_bytes: u64,
    pub origin_bytes: u64,
    pub peers: u64,
    pub peers_displaced: u64,
    pub peer_units_in_bytes: u64,
    pub peer_units_out_bytes: u64,
    pub peer_in_bytes: u64,
    pub peer_out_bytes: u64,
    pub relayed_opaque_bytes: u64,
    pub asks_in: u64,
    pub asks_out: u64,
    pub asks_short: u64,
    pub asked_bytes: u64,
    pub backlog_bytes: u64,
    pub resumes: u64,
    pub wants_out: u64,
    pub wants_lost: u64,
    pub wants_taken_back: u64,
    pub overheard: Overheard,
    pub units_false: u64,
    pub units_on_their_way: u64,
    pub early_bytes: u64,
    pub early_dropped: u64,
    pub hints: u64,
    pub hints_evicted: u64,
    pub published: u64,
    pub published_bytes: u64,
    pub published_foreign: u64,
    pub not_stored: BTreeMap<String, Unstored>,
    pub units_cut: u64,
    pub units_known: u64,
    pub known_bytes: u64,
    pub units_bad: u64,
    pub pinned_bytes: u64,
    pub hot_bytes: u64,
    pub row_bytes: u64,
    pub manifest_bytes: u64,
    pub lingering: u64,
    pub lingering_refused: u64,
    pub exchanges: u64,
    pub fetches: u64,
    pub store_works: bool,
    pub unsynced: bool,
    pub store_failures: u64,
    pub index: Index,
    /// The latest objects that clients got, the newest last.
    pub recent: Vec<Recent>,
}

/// [`node::Requests`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Requests {
    pub hit: u64,
    pub stale: u64,
    pub revalidated: u64,
    pub miss: u64,
    pub collapsed: u64,
    pub pass: u64,
    pub tunnel: u64,
    pub error: u64,
}

/// [`node::Unstored`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Unstored {
    pub responses: u64,
    pub bytes: u64,
}

/// [`store::IndexReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Index {
    pub units: u64,
    pub bytes_on_disk: u64,
    pub index_bytes: u64,
    pub evicted_units: u64,
    pub evicted_bytes: u64,
    pub rewritten_bytes: u64,
    pub refused_units: u64,
    pub segments: u64,
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

impl Requests {
    /// Each result and how often; the names are labels of the metrics.
    pub fn by_result(&self) -> [(&'static str, u64); 8] {
        [
            ("hit", self.hit),
            ("stale", self.stale),
            ("revalidated", self.revalidated),
            ("collapsed", self.collapsed),
            ("miss", self.miss),
            ("pass", self.pass),
            ("tunnel", self.tunnel),
            ("error", self.error),
        ]
    }

    /// Requests answered without a transfer of their own from an origin.
    pub fn local(&self) -> u64 {
        self.hit + self.stale + self.revalidated + self.collapsed
    }

    /// Requests whose answer we could see. Tunnels are not ours to look into, errors no content.
    pub fn visible(&self) -> u64 {
        self.local() + self.miss + self.pass
    }
}

impl From<&node::Report> for Counts {
    fn from(report: &node::Report) -> Self {
        Self {
            requests: (&report.requests).into(),
            served_local_bytes: report.served_local_bytes,
            served_origin_bytes: report.served_origin_bytes,
            served_peer_bytes: report.served_peer_bytes,
            served_overheard_bytes: report.served_overheard_bytes,
            served_repaired_bytes: report.served_repaired_bytes,
            origin_bytes: report.origin_bytes,
            peers: report.peers,
            peers_displaced: report.peers_displaced,
            peer_units_in_bytes: report.peer_units_in_bytes,
            peer_units_out_bytes: report.peer_units_out_bytes,
            peer_in_bytes: report.peer_in_bytes,
            peer_out_bytes: report.peer_out_bytes,
            relayed_opaque_bytes: report.relayed_opaque_bytes,
            asks_in: report.asks_in,
            asks_out: report.asks_out,
            asks_short: report.asks_short,
            asked_bytes: report.asked_bytes,
            backlog_bytes: report.backlog_bytes,
            resumes: report.resumes,
            wants_out: report.wants_out,
            wants_lost: report.wants_lost,
            wants_taken_back: report.wants_taken_back,
            overheard: (&report.overheard).into(),
            units_false: report.units_false,
            units_on_their_way: report.units_on_their_way,
            early_bytes: report.early_bytes,
            early_dropped: report.early_dropped,
            hints: report.hints,
            hints_evicted: report.hints_evicted,
            published: report.published,
            published_bytes: report.published_bytes,
            published_foreign: report.published_foreign,
            not_stored: unstored(report),
            units_cut: report.units_cut,
            units_known: report.units_known,
            known_bytes: report.known_bytes,
            units_bad: report.units_bad,
            pinned_bytes: report.pinned_bytes,
            hot_bytes: report.hot_bytes,
            row_bytes: report.row_bytes,
            manifest_bytes: report.manifest_bytes,
            lingering: report.lingering,
            lingering_refused: report.lingering_refused,
            exchanges: report.exchanges,
            fetches: report.fetches,
            store_works: report.store_works,
            unsynced: report.unsynced,
            store_failures: report.store_failures,
            index: (&report.index).into(),
            recent: report.recent.iter().map(Recent::from).collect(),
        }
    }
}

fn unstored(report: &node::Report) -> BTreeMap<String, Unstored> {
    let unstored = |it: &node::Unstored| Unstored { responses: it.responses, bytes: it.bytes };
    report.not_stored.iter().map(|(reason, it)| ((*reason).to_owned(), unstored(it))).collect()
}

impl From<&node::Requests> for Requests {
    fn from(it: &node::Requests) -> Self {
        Self {
            hit: it.hit,
            stale: it.stale,
            revalidated: it.revalidated,
            miss: it.miss,
            collapsed: it.collapsed,
            pass: it.pass,
            tunnel: it.tunnel,
            error: it.error,
        }
    }
}

impl From<&store::IndexReport> for Index {
    fn from(it: &store::IndexReport) -> Self {
        Self {
            units: it.units,
            bytes_on_disk: it.bytes_on_disk,
            index_bytes: it.index_bytes,
            evicted_units: it.evicted_units,
            evicted_bytes: it.evicted_bytes,
            rewritten_bytes: it.rewritten_bytes,
            refused_units: it.refused_units,
            segments: it.segments,
        }
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
    pub(crate) use overhear::tests::{heard, hearing};
    pub(crate) use route::tests::over_one;

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
            report: Counts {
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
                    ("no-store".to_owned(), unstored(80, 1 << 30)),
                    ("private".to_owned(), unstored(20, 1 << 20)),
                ]
                .into(),
                units_cut: 100_000,
                units_known: 12_000,
                known_bytes: 96 << 20,
                index: Index {
                    units: 65_432,
                    evicted_units: 123,
                    index_bytes: 1 << 20,
                    ..Index::default()
                },
                store_works: true,
                ..Counts::default()
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
        let mut report = node::Report { units_cut: 7, ..node::Report::default() };
        report.requests.collapsed = 3;
        report.index.segments = 2;
        report.not_stored.insert("private", node::Unstored { responses: 1, bytes: 9 });
        let counts = Counts::from(&report);
        assert_eq!((counts.units_cut, counts.requests.local(), counts.index.segments), (7, 3, 2));
        assert_eq!(counts.not_stored["private"].bytes, 9);
    }
}
