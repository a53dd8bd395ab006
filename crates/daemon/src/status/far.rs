//! What `hearsay far status` shows of a running far end, for people and as JSON. The JSON is an interface
//! (`docs/schema/far-1.json`): members are added, and keep their meaning.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use node::driver::door::DoorReport;
use node::uplink::PairReport;
use serde::{Deserialize, Serialize};

use super::Process;
use crate::term::{self, Style};

/// The name of the JSON's schema.
pub const FAR_SCHEMA: &str = "hearsay/far/1";

/// A gateway's name in tables and metrics: this many digits of its key, as its directory has them.
const NAME_DIGITS: usize = 16;

/// A far end's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarStatus {
    /// [`FAR_SCHEMA`].
    pub schema: String,
    /// The version of the program.
    pub version: String,
    /// The process.
    #[serde(flatten)]
    pub process: Process,
    /// Where gateways connect.
    pub listen: Option<SocketAddr>,
    /// The TCP address where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// The key that gateways expect: `far-key`.
    pub key: String,
    /// Figures of the whole far end.
    pub counts: FarCounts,
    /// Connections at its port.
    pub door: DoorReport,
    /// Every gateway that may connect, in the order of their keys.
    pub gateways: Vec<GatewayLine>,
}

/// A gateway that may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayLine {
    /// Its key.
    pub key: String,
    /// Where it connects from, if it is connected.
    pub address: Option<IpAddr>,
    /// What was counted since the far end's start.
    #[serde(flatten)]
    pub counts: GatewayCounts,
}

wire::counters! {
    /// Figures of a whole far end.
    #[derive(Copy)]
    pub struct FarCounts, "far_" {
        Far () {
            /// The budget of indexes and of content under way, for all gateways together.
            memory_limit_bytes: Gauge, Bytes;
            /// Connections with servers, of all gateways.
            server_connections: Gauge, Connections;
            /// Connections with servers that were refused, because the gateway had its share of what there is room for.
            no_room: Counter, Connections;
        }
    }

    /// Figures of one gateway, since the far end's start.
    #[derive(Copy)]
    pub struct GatewayCounts, "far_" {
        Far () {
            /// Whether the gateway is connected.
            gateway_up: Flag, Flag;
            /// Requests and TCP connections under way.
            flows: Gauge, Flows;
            /// Units of content that references can name: those in the index.
            index_units: Gauge, Chunks;
            /// Connections of the gateway.
            connections: Counter, Connections;
            /// Requests of the gateway.
            requests: Counter, Requests;
            /// TCP connections of the gateway's clients, other than of HTTP.
            tcp_flows: Counter, Connections;
            /// Content that was not sent, because a reference was enough.
            saved_bytes: Counter, Bytes;
        }
        Far ("hearsay_far_content_bytes_total", direction, "Content that the far end and the gateway gave each other.") {
            /// To the gateway.
            content_out_bytes: Counter, Bytes, "out";
            /// From the gateway.
            content_in_bytes: Counter, Bytes, "in";
        }
        Far ("hearsay_far_crossed_bytes_total", direction, "Bytes on the connections with the gateway, without TCP's and IP's headers.") {
            /// To the gateway.
            crossed_out_bytes: Counter, Bytes, "out";
            /// From the gateway.
            crossed_in_bytes: Counter, Bytes, "in";
        }
    }
}

impl GatewayCounts {
    /// What a pair has counted, without what holds now.
    pub fn of(pair: &PairReport) -> Self {
        Self {
            connections: pair.connections,
            requests: pair.requests,
            tcp_flows: pair.tcp_flows,
            saved_bytes: pair.sent_as_references,
            content_out_bytes: pair.content_out_bytes,
            content_in_bytes: pair.content_in_bytes,
            crossed_out_bytes: pair.crossed_out_bytes(),
            crossed_in_bytes: pair.crossed_in_bytes(),
            ..Self::default()
        }
    }

    /// What was counted in both, with what holds now of the second.
    pub fn plus(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            requests: self.requests + other.requests,
            tcp_flows: self.tcp_flows + other.tcp_flows,
            saved_bytes: self.saved_bytes + other.saved_bytes,
            content_out_bytes: self.content_out_bytes + other.content_out_bytes,
            content_in_bytes: self.content_in_bytes + other.content_in_bytes,
            crossed_out_bytes: self.crossed_out_bytes + other.crossed_out_bytes,
            crossed_in_bytes: self.crossed_in_bytes + other.crossed_in_bytes,
            ..other
        }
    }
}

impl GatewayLine {
    /// Its name in tables and metrics.
    pub fn name(&self) -> &str {
        self.key.get(..NAME_DIGITS).unwrap_or(&self.key)
    }
}

impl FarStatus {
    /// For people.
    pub fn page(&self, style: Style) -> String {
        let gateways = self.gateways.iter().map(|it| it.counts);
        let all = gateways.fold(GatewayCounts::default(), GatewayCounts::plus);
        let mut page = String::new();
        let mut line = |name: &str, text: String| {
            let _ = writeln!(page, "{} {text}", style.strong(&format!("{name:<12}")));
        };
        let listen = self.listen.map(|it| it.to_string()).unwrap_or_default();
        let uptime = term::duration(self.process.uptime());
        line("far end", format!("{listen}, hearsay {}, up {uptime}", self.version));
        line("far-key", self.key.clone());
        let (rss, limit) = (self.process.rss_bytes, self.counts.memory_limit_bytes);
        let limit = term::bytes(limit);
        line("memory", format!("{} resident, up to {limit} for gateways", term::bytes(rss)));
        for (name, content, crossed) in [
            ("sent", all.content_out_bytes, all.crossed_out_bytes),
            ("received", all.content_in_bytes, all.crossed_in_bytes),
        ] {
            let less = term::percent(content.saturating_sub(crossed), content);
            let (content, crossed) = (term::bytes(content), term::bytes(crossed));
            line(name, format!("{content} of content as {crossed} ({less} less)"));
        }
        line("saved", format!("{} that was only referred to", term::bytes(all.saved_bytes)));
        let (servers, no_room) = (self.counts.server_connections, self.counts.no_room);
        line("servers", format!("{servers} connections, {no_room} refused for want of room"));
        line("strangers", self.door_line());
        let up = self.gateways.iter().filter(|it| it.counts.gateway_up).count();
        line("gateways", format!("{up} of {} connected", self.gateways.len()));
        page + &self.table(style)
    }

    fn door_line(&self) -> String {
        let it = &self.door;
        let refused = [
            ("without the far end's key", it.unproven),
            ("with a key that no gateway has", it.strangers),
            ("of another version", it.version),
            ("too slow", it.late),
            ("dropped for others", it.dropped),
            ("that broke the protocol", it.broken),
        ];
        let refused = refused.iter().filter(|(_, count)| *count > 0);
        let refused: Vec<_> = refused.map(|(why, count)| format!("{count} {why}")).collect();
        match refused.is_empty() {
            true => "none".to_owned(),
            false => format!("refused: {}", refused.join(", ")),
        }
    }

    fn table(&self, style: Style) -> String {
        let row = |cells: [&str; 6]| {
            let [name, address, flows, content, crossed, saved] = cells;
            format!(
                "{name:<16}  {address:<15}  {flows:>5}  {content:>9}  {crossed:>9}  {saved:>9}\n"
            )
        };
        let head = row(["GATEWAY", "ADDRESS", "FLOWS", "CONTENT", "CROSSED", "SAVED"]);
        let mut table = style.strong(head.trim_end()) + "\n";
        for gateway in &self.gateways {
            let counts = &gateway.counts;
            let address = gateway.address.map_or("–".to_owned(), |it| it.to_string());
            let amounts = [counts.content_out_bytes, counts.crossed_out_bytes, counts.saved_bytes];
            let [content, crossed, saved] = amounts.map(term::bytes);
            let flows = counts.flows.to_string();
            table += &row([gateway.name(), &address, &flows, &content, &crossed, &saved]);
        }
        table
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A far end with one gateway that is connected, and one that is not.
    pub(crate) fn two_gateways() -> FarStatus {
        let report = PairReport {
            connections: 1,
            content_out_bytes: 100 << 20,
            sent_payload_bytes: 9 << 20,
            sent_control_bytes: 1 << 20,
            sent_as_references: 80 << 20,
            requests: 7,
            ..PairReport::default()
        };
        let here = GatewayCounts { gateway_up: true, flows: 3, ..GatewayCounts::of(&report) };
        let line = |digit: &str, address: Option<&str>, counts| GatewayLine {
            key: digit.repeat(64),
            address: address.map(|it| it.parse().unwrap()),
            counts,
        };
        let process =
            Process { uptime_seconds: 273_600, rss_bytes: 23 << 20, ..Process::default() };
        FarStatus {
            schema: FAR_SCHEMA.into(),
            version: "0.1.0".into(),
            process,
            listen: "[::]:3144".parse().ok(),
            metrics: None,
            key: "f".repeat(64),
            counts: FarCounts { memory_limit_bytes: 66 << 20, server_connections: 2, no_room: 0 },
            door: DoorReport { entered: 9, unproven: 4, strangers: 1, ..DoorReport::default() },
            gateways: vec![
                line("a", Some("192.0.2.7"), here),
                line("b", None, GatewayCounts::default()),
            ],
        }
    }

    #[test]
    fn a_far_end_is_told_in_lines() {
        let page = two_gateways().page(Style { width: 80, colour: false });
        for expected in [
            "far end      [::]:3144, hearsay 0.1.0, up 3 d 4 h",
            "memory       23 MiB resident, up to 66 MiB for gateways",
            "sent         100 MiB of content as 10 MiB (90 % less)",
            "saved        80 MiB that was only referred to",
            "strangers    refused: 4 without the far end's key, 1 with a key that no gateway has",
            "gateways     1 of 2 connected",
            "aaaaaaaaaaaaaaaa  192.0.2.7            3    100 MiB     10 MiB     80 MiB",
            "bbbbbbbbbbbbbbbb  –                    0        0 B        0 B        0 B",
        ] {
            assert!(page.lines().any(|line| line == expected), "{expected}\n{page}");
        }
    }

    #[test]
    fn what_was_counted_before_a_gateway_was_closed_stays() {
        let before = two_gateways().gateways[0].counts;
        let now = GatewayCounts { requests: 2, saved_bytes: 5, ..GatewayCounts::default() };
        let all = before.plus(now);
        assert_eq!((all.requests, all.saved_bytes), (9, (80 << 20) + 5));
        assert_eq!((all.crossed_out_bytes, all.connections), (10 << 20, 1));
        assert_eq!((all.flows, all.gateway_up), (0, false), "what holds now is of now");
    }

    #[test]
    fn a_status_survives_the_control_socket() {
        let json = serde_json::to_string(&two_gateways()).unwrap();
        assert_eq!(serde_json::from_str::<FarStatus>(&json).unwrap(), two_gateways());
    }
}
