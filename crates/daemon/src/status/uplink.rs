//! The pair of the uplink in the status: the far end, and what crossed, for people and as JSON.

use std::fmt::Write as _;

use node::uplink::{PairReport, State};
use serde::{Deserialize, Serialize};

use crate::config::FarEnd;
use crate::term::{self, Style};

/// The pair's state and counters, as the control socket shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkLine {
    /// The far end's host and port.
    pub far: String,
    /// `down`, `connecting` or `up`.
    pub state: String,
    /// The latest round trip, in milliseconds.
    pub round_trip_ms: u64,
    /// Content that the pair delivered here, and that it was given, in bytes.
    pub content_in_bytes: u64,
    /// See there.
    pub content_out_bytes: u64,
    /// All bytes that arrived on the pair's connections, and that were sent, without TCP's and IP's headers.
    pub crossed_in_bytes: u64,
    /// See there.
    pub crossed_out_bytes: u64,
    /// All counters.
    pub counts: PairReport,
}

/// What was saved, in words.
const REFERRED: &str =
    "that the far end only referred to, as `hearsay status` and the ledger count it";

impl UplinkLine {
    /// Of a pair.
    pub fn new(far: &FarEnd, state: State, counts: PairReport) -> Self {
        let state = match state {
            State::Down => "down",
            State::Connecting => "connecting",
            State::Up => "up",
        };
        Self {
            far: far.to_string(),
            state: state.into(),
            round_trip_ms: counts.round_trip_micros / 1000,
            content_in_bytes: counts.content_in_bytes,
            content_out_bytes: counts.content_out_bytes,
            crossed_in_bytes: counts.crossed_in_bytes(),
            crossed_out_bytes: counts.crossed_out_bytes(),
            counts,
        }
    }

    /// For people. `referred` is what the ledger has counted since the start as content to which the far end only
    /// referred.
    pub fn page(&self, referred: u64, style: Style) -> String {
        let counts = &self.counts;
        let mut page = String::new();
        let mut line = |name: &str, text: String| {
            let _ = writeln!(page, "{} {text}", style.strong(&format!("{name:<12}")));
        };
        line("far end", format!("{}, {}", self.far, self.state));
        if counts.round_trip_micros > 0 {
            line("round trip", format!("{} ms", self.round_trip_ms));
        }
        if counts.rate_bytes > 0 {
            line("to there", format!("{}/s, when it is busy", term::bytes(counts.rate_bytes)));
        }
        for (name, content, crossed, payload, control, framing) in [
            (
                "received",
                self.content_in_bytes,
                self.crossed_in_bytes,
                counts.received_payload_bytes,
                counts.received_control_bytes,
                counts.received_framing_bytes,
            ),
            (
                "sent",
                self.content_out_bytes,
                self.crossed_out_bytes,
                counts.sent_payload_bytes,
                counts.sent_control_bytes,
                counts.sent_framing_bytes,
            ),
        ] {
            let less = content.saturating_sub(crossed);
            line(
                name,
                format!(
                    "{} of content as {} ({} less): new and differences {}, references and heads {}, framing {}",
                    term::bytes(content),
                    term::bytes(crossed),
                    term::percent(less, content),
                    term::bytes(payload),
                    term::bytes(control),
                    term::bytes(framing),
                ),
            );
        }
        line("saved", format!("{} {REFERRED}", term::bytes(referred)));
        line(
            "requests",
            format!(
                "{} by the far end, {} past it, {} broken off when it fell silent",
                counts.requests, counts.requests_past, counts.requests_broken
            ),
        );
        let tcp = counts.tcp_flows + counts.tcp_flows_past;
        if tcp > 0 {
            line(
                "connections",
                format!(
                    "{} of other protocols by the far end, {} past it, {} broken off; {} crossed uncut",
                    counts.tcp_flows,
                    counts.tcp_flows_past,
                    counts.tcp_flows_broken,
                    term::bytes(counts.sent_uncut),
                ),
            );
        }
        self.troubles(line);
        page
    }

    /// What did not go as it should.
    fn troubles(&self, mut line: impl FnMut(&str, String)) {
        let counts = &self.counts;
        let broken = counts.flows_broken_off;
        if broken > 0 {
            line(
                "broken off",
                format!("{broken} here: their units were lost, or their readers slow"),
            );
        }
        let unknown = counts.messages_unknown + counts.parts_unknown;
        if unknown > 0 {
            line("skipped", format!("{unknown} messages of a later version, or parts of them"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_told_in_numbers() {
        let counts = PairReport {
            content_in_bytes: 100 << 20,
            received_payload_bytes: 9 << 20,
            received_control_bytes: 1 << 20,
            round_trip_micros: 212_000,
            requests: 7,
            messages_unknown: 2,
            parts_unknown: 1,
            ..PairReport::default()
        };
        let far =
            FarEnd { host: "far.example.org".into(), port: 3144, key: wire::PublicKey([0; 32]) };
        let page = UplinkLine::new(&far, State::Up, counts)
            .page(80 << 20, Style { width: 80, colour: false });
        assert!(page.contains("far.example.org:3144, up") && page.contains("212 ms"), "{page}");
        assert!(page.contains("100 MiB of content as 10 MiB (90 % less)"), "{page}");
        assert!(page.contains("saved        80 MiB that the far end only referred to"), "{page}");
        assert!(page.contains("3 messages of a later version"), "{page}");
    }
}
