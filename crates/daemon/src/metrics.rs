//! The status as metrics: Prometheus' text format, version 0.0.4.
//!
//! Names follow <https://prometheus.io/docs/practices/naming/>: one prefix, base units, `_total` for
//! counters. All metrics are in the tables of counters; `docs/metrics.md` lists them. A label has few
//! values, or one for each peer. No label names a URL or a client.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use host::intercept::Kind as Forwarded;
use host::traffic::With;
use node::NotStored;
use wire::counters::{Counters, Kind, Part, Reason as _, Row};

use crate::status::{Check, FarStatus, PeerLine, Status};

/// The media type of [`render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

wire::counters! {
    /// Figures that are computed from other fields of the status.
    pub struct Standing, "" {
        Clients () {
            /// Whether all configured interception works; absent if none is configured.
            intercept_up: Maybe, Flag;
        }
        Route () {
            /// Whether there is a route to the gateway.
            route_up: Flag, Flag;
            /// Whether this node is the gateway.
            route_is_gateway: Flag, Flag;
            /// Cost of the route to the gateway, in the routing protocol's unit; absent if it is not known.
            route_metric: Maybe, Number;
            /// Hops to the gateway; absent if they are not known.
            route_hops: Maybe, Hops;
        }
        Overhearing () {
            /// Whether the capture works.
            capture_up: Flag, Flag;
        }
        Store () {
            /// Whether the store works.
            store_up: Flag, Flag;
            /// Bytes that the store may use.
            store_limit_bytes: Gauge, Bytes;
        }
        Process () {
            /// The budget of caches and buffers.
            memory_limit_bytes: Gauge, Bytes;
            /// Whether the helper process runs and answers, which has the rights over the network; absent if none was started.
            helper_up: Maybe, Flag;
            /// Whether the kernel holds the daemon to all limits of its rights; `hearsay status` says which are missing.
            rights_limited: Flag, Flag;
        }
        Clients () {
            /// Bytes relayed without parsing: tunnels, upgrades, and intercepted connections that are not HTTP.
            relayed_bytes: Counter, Bytes;
        }
    }

    /// The version of the program.
    pub struct Build, "" {
        Process () {
            /// 1, labelled with the version.
            build_info: Gauge, Number;
        }
    }
}

impl Standing {
    fn of(status: &Status) -> Self {
        let (intercept, route) = (&status.intercept, status.route.as_ref());
        let works = intercept.works && intercept.interfaces_missing.is_empty();
        Self {
            intercept_up: intercept.is_on().then_some(works.into()),
            route_up: route.is_some_and(|route| route.up),
            route_is_gateway: route.is_some_and(|route| route.is_gateway),
            route_metric: route.and_then(|route| route.metric).map(Into::into),
            route_hops: route.and_then(|route| route.hops).map(Into::into),
            capture_up: status.overhear.as_ref().is_some_and(|it| it.works),
            store_up: status.store.works,
            store_limit_bytes: status.store.size_bytes,
            memory_limit_bytes: status.memory_budget_bytes,
            helper_up: status.rights.as_ref().and_then(|it| {
                let is_up = it.helper? && !it.helper_silent;
                Some(is_up.into())
            }),
            rights_limited: status.rights.as_ref().is_some_and(|it| it.limits.is_complete()),
            relayed_bytes: status.relayed_bytes,
        }
    }
}

/// All metrics, as one page.
pub fn render(status: &Status, peers: &[PeerLine]) -> String {
    let off = [
        (Part::Route, status.route.is_none()),
        (Part::Mesh, status.mesh.is_none()),
        (Part::Overhearing, status.overhear.is_none()),
        (Part::Uplink, status.uplink.is_none()),
    ];
    let off = off.into_iter().filter(|(_, is_off)| *is_off).map(|(part, _)| part).collect();
    Page { off, metrics: BTreeMap::new() }.with(&tables(status, peers))
}

/// All metrics of a far end, as one page.
pub fn render_far(status: &FarStatus) -> String {
    let mut tables = vec![build(&status.version), Table::one(Some("."), &status.process)];
    tables.extend(far_tables(status));
    Page { off: Vec::new(), metrics: BTreeMap::new() }.with(&tables)
}

/// A label, and what each of its values means.
type Label = (&'static str, fn() -> Vec<(&'static str, &'static str)>);

/// One struct of figures, or several that a label distinguishes.
struct Table<'a> {
    /// Where they are in JSON: the path of the struct in `hearsay status --json`, in `hearsay peers --json`, or in
    /// `hearsay far status --json`.
    /// `.` is the top. `None`: the figures are made for the metrics.
    #[cfg_attr(not(test), expect(dead_code, reason = "docs/metrics.md is made of it, by a test"))]
    path: Option<&'static str>,
    rows: &'static [Row],
    label: Option<Label>,
    /// The label's value, empty without a label, and the values of each row.
    each: Vec<(&'a str, Vec<Values>)>,
}

/// The values of a figure, with their reasons.
type Values = Vec<(Option<&'static str>, u64)>;

impl<'a> Table<'a> {
    fn of<'b, T: Counters + 'b>(
        path: Option<&'static str>,
        label: Option<Label>,
        each: impl IntoIterator<Item = (&'a str, &'b T)>,
    ) -> Self {
        let values = |it: &T| it.figures().iter().map(|figure| figure.values()).collect();
        let each = each.into_iter().map(|(name, it)| (name, values(it))).collect();
        Self { path, rows: T::ROWS, label, each }
    }

    fn one<T: Counters>(path: Option<&'static str>, it: &T) -> Self {
        Self::of(path, None, [("", it)])
    }
}

/// All structs of figures. A part that is off has a table without figures.
fn tables<'a>(status: &'a Status, peers: &'a [PeerLine]) -> Vec<Table<'a>> {
    let reason: Label = ("reason", || NotStored::all().map(|it| (it.name(), it.help())).collect());
    let peer: Label = ("peer", || {
        vec![("NAME", "The peer's name, or its identity where the name is not enough.")]
    });
    let class: Label =
        ("class", || vec![("NAME", "The content class; `other` is what no class has.")]);
    let with: Label = ("with", || With::all().map(|it| (it.name(), it.help())).collect());
    let kind: Label = ("kind", || Forwarded::all().map(|it| (it.name(), it.help())).collect());
    let check: Label = ("check", || Check::OWN.map(|it| (it.name(), it.help())).into());
    let report = &status.report;
    let not_stored = NotStored::ALL.map(|it| (it.name(), report.not_stored.get(it)));
    let not_stored = not_stored.iter().map(|(name, it)| (*name, it));
    let datagrams = status.datagrams.iter().map(|it| ("", it));
    let overhear = status.overhear.iter().map(|it| ("", &it.counts));
    let request_log = status.request_log.iter().map(|it| ("", it));
    let uplink = status.uplink.iter().map(|it| ("", &it.counts));
    let peers = peers.iter().map(|it| (name_of(it, peers), it));
    vec![
        build(&status.version),
        Table::one(None, &Standing::of(status)),
        Table::one(Some("."), &status.process),
        Table::one(Some(".clients"), &status.clients),
        Table::of(Some(".request_log"), None, request_log),
        Table::of(Some(".datagrams"), None, datagrams),
        Table::of(Some(".overhear"), None, overhear),
        Table::of(Some(".uplink.counts"), None, uplink),
        Table::one(Some(".report"), report),
        Table::one(Some(".report.requests"), &report.requests),
        Table::of(Some(".report.not_stored.REASON"), Some(reason), not_stored),
        Table::of(Some(".classes.NAME"), Some(class), named(&status.classes)),
        Table::of(Some(".wire.WITH"), Some(with), named(&status.wire)),
        Table::of(Some(".forwarded.KIND"), Some(kind), named(&status.forwarded)),
        Table::of(Some(".selftest.CHECK"), Some(check), named(&status.selftest)),
        Table::one(Some(".report.index"), &report.index),
        Table::one(Some(".report.overheard"), &report.overheard),
        Table::one(Some(".report.overheard"), &report.overheard.heard),
        Table::of(Some(".[]"), Some(peer), peers),
    ]
}

/// Structs of figures that only a far end has.
fn far_tables(status: &FarStatus) -> Vec<Table<'_>> {
    let gateway: Label =
        ("gateway", || vec![("NAME", "The first 16 digits of the gateway's key.")]);
    let gateways = status.gateways.iter().map(|it| (it.name(), &it.counts));
    vec![
        Table::one(Some(".counts"), &status.counts),
        Table::one(Some(".door"), &status.door),
        Table::of(Some(".gateways[]"), Some(gateway), gateways),
    ]
}

fn build(version: &str) -> Table<'_> {
    let label: Label = ("version", || vec![("VERSION", "Our version.")]);
    Table::of(None, Some(label), [(version, &Build { build_info: 1 })])
}

fn named<T>(rows: &BTreeMap<String, T>) -> impl Iterator<Item = (&str, &T)> {
    rows.iter().map(|(name, row)| (name.as_str(), row))
}

/// A peer's label: the name, if no other peer has it and it is too short to be an identity;
/// otherwise the identity.
fn name_of<'a>(peer: &'a PeerLine, peers: &[PeerLine]) -> &'a str {
    let is_name_enough = peers.iter().filter(|other| other.name == peer.name).count() == 1;
    let is_short = peer.name.len() < peer.id.len();
    if is_name_enough && is_short { &peer.name } else { &peer.id }
}

/// The lines of each metric, by its name.
struct Page {
    /// Parts of the daemon that are off; they have no series.
    off: Vec<Part>,
    metrics: BTreeMap<&'static str, String>,
}

impl Page {
    /// The page of these tables.
    fn with(mut self, tables: &[Table<'_>]) -> String {
        tables.iter().for_each(|table| self.table(table));
        self.metrics.into_values().collect()
    }

    /// Adds the figures of a table.
    fn table(&mut self, table: &Table<'_>) {
        for (name, values) in &table.each {
            let label = table.label.map(|(label, _)| (label, *name));
            for (row, values) in table.rows.iter().zip(values) {
                if !self.off.contains(&row.part) {
                    self.figure(row, values, label);
                }
            }
        }
    }

    fn figure(&mut self, row: &Row, values: &Values, label: Option<(&str, &str)>) {
        for (reason, value) in values {
            let reason = Some("reason").zip(*reason);
            let labels = label.into_iter().chain(row.label).chain(reason);
            let lines = self.metrics.entry(row.metric).or_insert_with(|| head(row));
            writeln!(lines, "{}{} {value}", row.metric, braced(labels)).expect(INFALLIBLE);
        }
    }
}

const INFALLIBLE: &str = "writing to a String cannot fail";

fn head(row: &Row) -> String {
    let (name, help) = (row.metric, row.about.unwrap_or(row.help));
    format!("# HELP {name} {help}\n# TYPE {name} {}\n", kind(row))
}

fn kind(row: &Row) -> &'static str {
    match row.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    }
}

fn braced<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let pairs: Vec<_> =
        labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod reference_tests;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn is_name(text: &str) -> bool {
        !text.is_empty() && text.bytes().all(|c| c.is_ascii_lowercase() || c == b'_')
    }

    /// The kind of each metric and the value of each series; panics if a line is not a metric.
    fn parse(text: &str) -> (BTreeMap<String, String>, BTreeMap<String, u64>) {
        let (mut kinds, mut series) = (BTreeMap::new(), BTreeMap::new());
        let mut helped = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                helped = rest.split_once(' ').expect("a help text").0;
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a kind");
                assert_eq!(name, helped);
                assert!(is_name(name) && ["counter", "gauge"].contains(&kind), "{line}");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
                assert_eq!(kinds.insert(name.to_owned(), kind.to_owned()), None, "{line}");
            } else {
                let (key, value) = line.rsplit_once(' ').expect("a value");
                let name = key.split_once('{').map_or(key, |(name, _)| name);
                assert_eq!(name, helped, "{line}");
                if let Some((_, labels)) = key.split_once('{') {
                    let (label, value) = labels.split_once("=\"").expect("a label");
                    assert!(is_name(label) && value.ends_with("\"}"), "{line}");
                }
                assert_eq!(series.insert(key.to_owned(), value.parse().unwrap()), None, "{line}");
            }
        }
        (kinds, series)
    }

    #[test]
    fn every_line_is_a_metric() {
        let (kinds, series) = parse(&render(&crate::status::tests::busy(), &[]));
        for (key, value) in [
            ("hearsay_requests_total{result=\"hit\"}", 400),
            ("hearsay_served_bytes_total{source=\"local\"}", 1 << 30),
            ("hearsay_not_stored_total{reason=\"private\"}", 20),
            ("hearsay_not_stored_bytes_total{reason=\"no-store\"}", 1 << 30),
            ("hearsay_memory_bytes{what=\"index\"}", 1 << 20),
            ("hearsay_store_up", 1),
            ("hearsay_client_connections", 40),
            ("hearsay_client_closed_total{while=\"head\"}", 0),
            ("hearsay_build_info{version=\"0.1.0\"}", 1),
            ("process_resident_memory_bytes", 23 << 20),
        ] {
            assert_eq!(series.get(key), Some(&value), "{key}");
        }
        assert!(kinds.len() > 25, "{kinds:?}");
    }

    #[test]
    fn interception_is_up_if_all_of_it_is_and_absent_where_it_is_off() {
        use crate::status::tests::busy;
        let up = |change: fn(&mut crate::status::Intercept)| {
            let mut status = busy();
            change(&mut status.intercept);
            parse(&render(&status, &[])).1.get("hearsay_intercept_up").copied()
        };
        assert_eq!(up(|_| ()), Some(1));
        assert_eq!(up(|it| it.works = false), Some(0));
        assert_eq!(up(|it| it.interfaces_missing = vec!["br-lan".into()]), Some(0));
        assert_eq!(up(|it| it.interfaces.clear()), None);
    }

    #[test]
    fn in_a_mesh_the_way_is_told() {
        let route = Some(crate::status::tests::over_one());
        let (_, series) = parse(&render(&Status { route, ..crate::status::tests::busy() }, &[]));
        for (key, value) in [
            ("hearsay_route_up", 1),
            ("hearsay_route_is_gateway", 0),
            ("hearsay_route_metric", 512),
        ] {
            assert_eq!(series.get(key), Some(&value), "{key}");
        }
        assert!(!series.contains_key("hearsay_route_hops"));
        let (_, series) = parse(&render(&crate::status::tests::busy(), &[]));
        assert!(!series.keys().any(|key| key.starts_with("hearsay_route")));
    }

    #[test]
    fn peers_have_series_of_their_own() {
        use crate::status::tests::{busy, in_mesh, peer};
        let mut status = Status { mesh: Some(in_mesh()), ..busy() };
        status.report.peer_units_in_bytes = 7;
        let peers = [peer("r2", 1), peer("r3", 2), peer("r3", 3)];
        let (kinds, series) = parse(&render(&status, &peers));
        let id = "02".repeat(16);
        for (key, value) in [
            ("hearsay_peer_bytes_total{peer=\"r2\",direction=\"in\"}", 99 << 20),
            ("hearsay_peer_bytes_total{peer=\"r2\",direction=\"out\"}", 1 << 20),
            (&format!("hearsay_peer_bytes_total{{peer=\"{id}\",direction=\"in\"}}"), 99 << 20),
            ("hearsay_mesh_unit_bytes_total{direction=\"in\"}", 7),
            ("hearsay_served_bytes_total{source=\"peer\"}", 0),
        ] {
            assert_eq!(series.get(key), Some(&value), "{key}");
        }
        assert!(kinds.contains_key("hearsay_peers"));
        let (kinds, _) = parse(&render(&busy(), &peers));
        assert!(!kinds.contains_key("hearsay_peers"));
    }

    #[test]
    fn overhearing_is_counted_where_it_is_on() {
        use crate::status::tests::{busy, heard, hearing};
        let mut status = Status { overhear: Some(hearing()), ..busy() };
        status.report.overheard = heard();
        let (_, series) = parse(&render(&status, &[]));
        for (key, value) in [
            ("hearsay_capture_up", 1),
            ("hearsay_capture_segments_total", 12_000),
            ("hearsay_capture_dropped_total{where=\"queue\"}", 7),
            ("hearsay_capture_refused_total{reason=\"empty\"}", 7_990),
            ("hearsay_overheard_units_total", 1_500),
            ("hearsay_overheard_repaired_bytes_total", 120 << 10),
            ("hearsay_memory_bytes{what=\"overhearing\"}", 2 << 20),
        ] {
            assert_eq!(series.get(key), Some(&value), "{key}");
        }
        let (_, series) = parse(&render(&busy(), &[]));
        assert!(!series.keys().any(|key| key.starts_with("hearsay_capture")));
    }

    #[test]
    fn a_far_ends_gateways_have_series_of_their_own() {
        let (kinds, series) = parse(&render_far(&crate::status::tests::two_gateways()));
        for (key, value) in [
            ("hearsay_far_gateway_up{gateway=\"aaaaaaaaaaaaaaaa\"}", 1),
            ("hearsay_far_gateway_up{gateway=\"bbbbbbbbbbbbbbbb\"}", 0),
            ("hearsay_far_saved_bytes_total{gateway=\"aaaaaaaaaaaaaaaa\"}", 80 << 20),
            (
                "hearsay_far_crossed_bytes_total{gateway=\"aaaaaaaaaaaaaaaa\",direction=\"out\"}",
                10 << 20,
            ),
            ("hearsay_far_refused_total{reason=\"unproven\"}", 4),
            ("hearsay_build_info{version=\"0.1.0\"}", 1),
            ("process_resident_memory_bytes", 23 << 20),
        ] {
            assert_eq!(series.get(key), Some(&value), "{key}");
        }
        assert!(!kinds.contains_key("hearsay_requests_total"), "{kinds:?}");
    }

    #[test]
    fn a_label_cannot_break_out() {
        let label = braced([("l", "a\"b\\c\nd")].into_iter());
        assert_eq!(label, "{l=\"a\\\"b\\\\c\\nd\"}");
    }
}
