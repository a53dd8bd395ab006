//! The status as metrics: Prometheus' text format, version 0.0.4.
//!
//! Names follow <https://prometheus.io/docs/practices/naming/>: one prefix, base units, `_total` for
//! what only grows. Labels take a handful of values, or one for each peer; no URL, no client.

use std::fmt::Write as _;

use crate::status::{Clients, Counts, Overhear, Overheard, PeerLine, Status};

/// The media type of [`render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// One page of metrics.
pub fn render(status: &Status, peers: &[PeerLine]) -> String {
    let mut page = Page(String::with_capacity(8 << 10));
    page.process(status);
    page.route(status);
    if status.mesh.is_some() {
        page.mesh(&status.report);
        page.peers(peers);
    }
    if let Some(overhear) = &status.overhear {
        page.capture(overhear);
        page.overheard(&status.report.overheard);
    }
    page.requests(&status.report);
    let help = "Bytes passed on unlooked at: tunnels, upgrades, and what is no HTTP.";
    page.one("hearsay_relayed_bytes_total", Counter, help, status.relayed_bytes);
    page.clients(&status.clients);
    page.not_stored(&status.report);
    page.units(&status.report);
    page.store(status);
    page.memory(status);
    page.0
}

struct Page(String);

/// What a metric is to Prometheus.
#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}
use Kind::{Counter, Gauge};

impl Page {
    fn process(&mut self, status: &Status) {
        let name = "hearsay_build_info";
        self.head(name, Gauge, "1, labelled with what runs.");
        self.labelled(name, "version", &status.version, 1);
        let process = &status.process;
        let help = "Start of the process, in seconds since 1970.";
        self.one("process_start_time_seconds", Gauge, help, process.start_time_seconds);
        let help = "Resident memory, in bytes.";
        self.one("process_resident_memory_bytes", Gauge, help, process.rss_bytes);
        let intercept = &status.intercept;
        // As with other parts that can be off: no series where it is.
        if !intercept.interfaces.is_empty() {
            let help =
                "Whether everything that was to be intercepted is; absent where nothing is to be.";
            let works = intercept.works && intercept.interfaces_missing.is_empty();
            self.one("hearsay_intercept_up", Gauge, help, works.into());
        }
    }

    /// Nothing where there is no mesh; no metric or hops while they are not known.
    fn route(&mut self, status: &Status) {
        let Some(route) = &status.route else { return };
        let help = "Whether there is a way to the gateway.";
        self.one("hearsay_route_up", Gauge, help, route.up.into());
        let help = "Whether this node is the gateway.";
        self.one("hearsay_route_is_gateway", Gauge, help, route.is_gateway.into());
        if let Some(metric) = route.metric {
            let help = "Cost of the way to the gateway, in the routing protocol's unit.";
            self.one("hearsay_route_metric", Gauge, help, metric.into());
        }
        if let Some(hops) = route.hops {
            self.one("hearsay_route_hops", Gauge, "Hops to the gateway.", hops.into());
        }
    }

    fn mesh(&mut self, report: &Counts) {
        self.one("hearsay_peers", Gauge, "Peers that are there.", report.peers);
        let help = "Peers that left because the next hop or the gateway needed their place.";
        self.one("hearsay_peers_displaced_total", Counter, help, report.peers_displaced);
        let mut both = |name, help, inwards, outwards| {
            self.head(name, Counter, help);
            self.labelled(name, "direction", "in", inwards);
            self.labelled(name, "direction", "out", outwards);
        };
        let (inwards, outwards) = (report.peer_in_bytes, report.peer_out_bytes);
        both(
            "hearsay_mesh_bytes_total",
            "Bytes of everything from and to peers.",
            inwards,
            outwards,
        );
        let (inwards, outwards) = (report.peer_units_in_bytes, report.peer_units_out_bytes);
        both("hearsay_mesh_unit_bytes_total", "Bytes of units among them.", inwards, outwards);
        let (inwards, outwards) = (report.asks_in, report.asks_out);
        both("hearsay_asks_total", "Requests of peers, and to peers.", inwards, outwards);
        let help = "Requests of peers that were refused or ended for want of memory.";
        self.one("hearsay_asks_short_total", Counter, help, report.asks_short);
        let help = "Bytes of responses given on to peers without being stored.";
        self.one("hearsay_relayed_opaque_bytes_total", Counter, help, report.relayed_opaque_bytes);
        let help = "Transfers that went on by another way after theirs had broken.";
        self.one("hearsay_resumes_total", Counter, help, report.resumes);
        let help = "Units that a peer was asked for and did not have.";
        self.one("hearsay_wants_lost_total", Counter, help, report.wants_lost);
        let help = "Units that peers were asked for and that came from elsewhere first.";
        self.one("hearsay_wants_taken_back_total", Counter, help, report.wants_taken_back);
        let help = "Units that were not what a peer called them, or what their manifest says.";
        self.one("hearsay_units_false_total", Counter, help, report.units_false);
        let help = "Units that peers were asked for and have not sent yet.";
        self.one("hearsay_units_on_their_way", Gauge, help, report.units_on_their_way);
        let help = "Published objects that peers say they lead to.";
        self.one("hearsay_hints", Gauge, help, report.hints);
        let help = "Hints of peers that had to go for others.";
        self.one("hearsay_hints_evicted_total", Counter, help, report.hints_evicted);
    }

    /// A peer's counters begin anew when it comes back.
    fn peers(&mut self, peers: &[PeerLine]) {
        let name = "hearsay_peer_bytes_total";
        self.head(name, Counter, "Bytes of everything from and to a peer while it is there.");
        for peer in peers {
            let is_namesake = |other: &&PeerLine| other.name == peer.name;
            let is_name_enough = peers.iter().filter(is_namesake).count() == 1;
            // Nor can a name be taken for an identity.
            let is_short = peer.name.len() < peer.id.len();
            let label = if is_name_enough && is_short { &peer.name } else { &peer.id };
            let label = escaped(label);
            for (direction, bytes) in [("in", peer.in_bytes), ("out", peer.out_bytes)] {
                let labels = format_args!("peer=\"{label}\",direction=\"{direction}\"");
                self.line(format_args!("{name}{{{labels}}} {bytes}"));
            }
        }
    }

    /// What the interface shows.
    fn capture(&mut self, it: &Overhear) {
        let help = "Whether something can be overheard.";
        self.one("hearsay_capture_up", Gauge, help, it.works.into());
        let help = "Frames that passed the capture's filter and found room.";
        self.one("hearsay_capture_frames_total", Counter, help, it.frames);
        let help = "TCP segments in them that went to the engine.";
        self.one("hearsay_capture_segments_total", Counter, help, it.segments);
        let help = "Bytes of payload in these segments.";
        self.one("hearsay_capture_payload_bytes_total", Counter, help, it.payload_bytes);
        let name = "hearsay_capture_dropped_total";
        let help =
            "Frames that the kernel had no room for, and segments that the queue had none for.";
        self.head(name, Counter, help);
        self.labelled(name, "where", "kernel", it.dropped_frames);
        self.labelled(name, "where", "queue", it.dropped_segments);
        let name = "hearsay_capture_refused_total";
        self.head(name, Counter, "Frames and segments that were passed over, by reason.");
        for (reason, count) in &it.refused {
            self.labelled(name, "reason", reason, *count);
        }
    }

    /// What came of it.
    fn overheard(&mut self, it: &Overheard) {
        let help = "Units that were overheard and entered though nobody had asked for them.";
        self.one("hearsay_overheard_units_total", Counter, help, it.units);
        self.one("hearsay_overheard_bytes_total", Counter, "Their bytes.", it.bytes);
        let help = "Units that were overheard and found no place on their way to the disk.";
        self.one("hearsay_overheard_dropped_units_total", Counter, help, it.dropped_units);
        let help = "Units that were on their way from a peer and were overheard first.";
        self.one("hearsay_overheard_cancelled_units_total", Counter, help, it.cancelled_units);
        let help = "Units of which a peer sent only what had not been overheard.";
        self.one("hearsay_overheard_repaired_units_total", Counter, help, it.repaired_units);
        let help = "Bytes that were overheard and so not sent again.";
        self.one("hearsay_overheard_repaired_bytes_total", Counter, help, it.repaired_bytes);
        let help = "Units that were overheard, in part or whole, and not what they were called.";
        let falsehoods = it.false_units + it.falsehoods;
        self.one("hearsay_overheard_false_total", Counter, help, falsehoods);
        let help = "Bytes of overheard payload that made no unit.";
        self.one("hearsay_overheard_unused_bytes", Gauge, help, it.unused_bytes);
    }

    fn requests(&mut self, report: &Counts) {
        let name = "hearsay_requests_total";
        self.head(name, Counter, "Requests, by how they were answered.");
        for (result, count) in report.requests.by_result() {
            self.labelled(name, "result", result, count);
        }
        let name = "hearsay_served_bytes_total";
        self.head(name, Counter, "Content bytes given to clients, by where they came from.");
        self.labelled(name, "source", "local", report.served_local_bytes);
        self.labelled(name, "source", "peer", report.served_peer_bytes);
        self.labelled(name, "source", "overheard", report.served_overheard_bytes);
        self.labelled(name, "source", "repaired", report.served_repaired_bytes);
        self.labelled(name, "source", "origin", report.served_origin_bytes);
        let help = "Content bytes received from origins.";
        self.one("hearsay_origin_bytes_total", Counter, help, report.origin_bytes);
        let help = "Requests being answered.";
        self.one("hearsay_exchanges", Gauge, help, report.exchanges);
        let help = "Transfers from origins under way.";
        self.one("hearsay_fetches", Gauge, help, report.fetches);
    }

    fn clients(&mut self, it: &Clients) {
        let help = "Connections of clients.";
        self.one("hearsay_client_connections", Gauge, help, it.connections);
        let help = "Bytes of memory that connections of clients may take.";
        self.one("hearsay_client_bytes", Gauge, help, it.bytes);
        let name = "hearsay_client_closed_total";
        self.head(
            name,
            Counter,
            "Connections of clients closed for want of room, by what they did.",
        );
        self.labelled(name, "while", "idle", it.closed_idle);
        self.labelled(name, "while", "head", it.closed_head);
        self.labelled(name, "while", "tunnel", it.closed_tunnel);
        self.labelled(name, "while", "slow", it.closed_slow);
        let name = "hearsay_client_refused_total";
        self.head(name, Counter, "Connections of clients not taken in, by reason.");
        self.labelled(name, "reason", "full", it.refused);
        self.labelled(name, "reason", "share", it.over_share);
        let help = "How often the transparent port stopped listening for want of room.";
        self.one("hearsay_client_past_total", Counter, help, it.past);
    }

    fn not_stored(&mut self, report: &Counts) {
        let name = "hearsay_not_stored_total";
        self.head(name, Counter, "Responses that were not stored, by reason.");
        for (reason, it) in &report.not_stored {
            self.labelled(name, "reason", reason, it.responses);
        }
        let name = "hearsay_not_stored_bytes_total";
        self.head(name, Counter, "Content bytes that were not stored, by reason.");
        for (reason, it) in &report.not_stored {
            self.labelled(name, "reason", reason, it.bytes);
        }
    }

    fn units(&mut self, report: &Counts) {
        let help = "Units cut from content of origins.";
        self.one("hearsay_units_cut_total", Counter, help, report.units_cut);
        let help = "Units among them that the store already had.";
        self.one("hearsay_units_known_total", Counter, help, report.units_known);
        let help = "Bytes of the units that the store already had.";
        self.one("hearsay_known_bytes_total", Counter, help, report.known_bytes);
        let help = "Units that the disk gave back wrong or not at all.";
        self.one("hearsay_units_bad_total", Counter, help, report.units_bad);
    }

    fn store(&mut self, status: &Status) {
        let (report, index) = (&status.report, &status.report.index);
        let help = "Whether the store works.";
        self.one("hearsay_store_up", Gauge, help, status.store.works.into());
        let help = "Writes to the store that failed.";
        self.one("hearsay_store_failures_total", Counter, help, report.store_failures);
        let help = "Objects that are published here.";
        self.one("hearsay_published", Gauge, help, report.published);
        let help = "Bytes of what is published here.";
        self.one("hearsay_published_bytes", Gauge, help, report.published_bytes);
        let help = "Bytes that the store uses.";
        self.one("hearsay_store_bytes", Gauge, help, status.store.used_bytes);
        let help = "Bytes that the store may use.";
        self.one("hearsay_store_limit_bytes", Gauge, help, status.store.size_bytes);
        let help = "Units that can be found in the store.";
        self.one("hearsay_store_units", Gauge, help, index.units);
        let help = "Bytes of memory that the store's index takes.";
        self.one("hearsay_index_bytes", Gauge, help, index.index_bytes);
        let help = "Units that left to make room.";
        self.one("hearsay_evicted_units_total", Counter, help, index.evicted_units);
        let help = "Bytes of units that left to make room.";
        self.one("hearsay_evicted_bytes_total", Counter, help, index.evicted_bytes);
        let help = "Bytes of units written again because their segment was reclaimed.";
        self.one("hearsay_rewritten_bytes_total", Counter, help, index.rewritten_bytes);
        let help = "Units that the index had no room for.";
        self.one("hearsay_refused_units_total", Counter, help, index.refused_units);
    }

    fn memory(&mut self, status: &Status) {
        let name = "hearsay_memory_bytes";
        self.head(name, Gauge, "Bytes of memory, by what they are used for.");
        for (what, bytes) in status.report.memory() {
            self.labelled(name, "what", what, bytes);
        }
        let help = "The budget of caches and buffers, in bytes.";
        self.one("hearsay_memory_limit_bytes", Gauge, help, status.memory_budget_bytes);
    }

    fn one(&mut self, name: &str, kind: Kind, help: &str, value: u64) {
        self.head(name, kind, help);
        self.line(format_args!("{name} {value}"));
    }

    fn head(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Counter => "counter",
            Gauge => "gauge",
        };
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn labelled(&mut self, name: &str, label: &str, value: &str, count: u64) {
        let value = escaped(value);
        self.line(format_args!("{name}{{{label}=\"{value}\"}} {count}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing to a String cannot fail");
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn is_name(text: &str) -> bool {
        !text.is_empty() && text.bytes().all(|c| c.is_ascii_lowercase() || c == b'_')
    }

    /// The kind of each metric and the value of each series; panics at what is not a metric.
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
    fn a_label_cannot_break_out() {
        let mut page = Page(String::new());
        page.labelled("m", "l", "a\"b\\c\nd", 1);
        assert_eq!(page.0, "m{l=\"a\\\"b\\\\c\\nd\"} 1\n");
    }
}
