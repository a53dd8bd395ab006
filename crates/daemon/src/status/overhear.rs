//! Capturing on its way through the control socket.

use std::collections::BTreeMap;

use host::capture::Report;
use serde::{Deserialize, Serialize};

/// What is heard of neighbours: [`host::capture::Report`], and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overhear {
    /// How: `sniff`.
    pub mode: String,
    /// The interface that shows it.
    pub interface: String,
    /// The kind of frames that it shows: `radiotap`, `802.11` or `ethernet`.
    pub link: Option<String>,
    /// Whether something can be heard.
    pub works: bool,
    /// Why not, or what the operator should know.
    pub note: Option<String>,
    /// The budget of what is half heard, in bytes.
    pub memory_budget_bytes: u64,
    /// Frames that passed the filter and found room.
    pub frames: u64,
    /// Segments in them that the engine was told.
    pub segments: u64,
    /// Their payload, in bytes.
    pub payload_bytes: u64,
    /// Frames that found no room in the kernel's ring.
    pub dropped_frames: u64,
    /// Segments that found no room in the queue to the engine.
    pub dropped_segments: u64,
    /// Frames, and segments of them, that were passed over, by reason.
    pub refused: BTreeMap<String, u64>,
}

impl Overhear {
    /// As a capture tells it.
    pub fn new(interface: String, memory_budget_bytes: u64, report: Report) -> Self {
        let refused: BTreeMap<_, _> =
            report.refused.into_iter().map(|(why, count)| (why.to_owned(), count)).collect();
        let encrypted = refused.get("protected").copied().unwrap_or(0);
        let note = report.trouble.or_else(|| {
            (encrypted > 0 && report.segments == 0).then(|| {
                "nothing is heard but frames that are encrypted on the link; if they are the mesh's, \
                 they cannot be read here"
                    .into()
            })
        });
        Self {
            mode: "sniff".into(),
            interface,
            link: report.link.map(Into::into),
            works: report.link.is_some(),
            note,
            memory_budget_bytes,
            frames: report.frames,
            segments: report.segments,
            payload_bytes: report.payload_bytes,
            dropped_frames: report.dropped_frames,
            dropped_segments: report.dropped_segments,
            refused,
        }
    }

    /// There is no capture.
    pub fn failed(interface: String, memory_budget_bytes: u64, why: String) -> Self {
        let (mode, note) = ("sniff".into(), Some(why));
        Self { mode, interface, note, memory_budget_bytes, ..Self::default() }
    }
}

/// [`node::Overhearing`], and of [`node::overhear::Counters`] what an operator may ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Overheard {
    pub units: u64,
    pub bytes: u64,
    pub dropped_units: u64,
    pub dropped_bytes: u64,
    pub cancelled_units: u64,
    pub cancelled_bytes: u64,
    pub repaired_units: u64,
    pub repaired_bytes: u64,
    pub false_units: u64,
    pub aside_bytes: u64,
    pub waiting_bytes: u64,
    /// Of all that was captured: segments, their payload, and what of it made no unit.
    pub segments: u64,
    pub payload_bytes: u64,
    pub unused_bytes: u64,
    pub flows: u64,
    pub chunks: u64,
    pub falsehoods: u64,
    /// What is half heard, now, and the most that it ever was.
    pub memory_bytes: u64,
    pub memory_peak_bytes: u64,
}

impl From<&node::Overhearing> for Overheard {
    fn from(it: &node::Overhearing) -> Self {
        let heard = &it.heard;
        Self {
            units: it.units,
            bytes: it.bytes,
            dropped_units: it.dropped_units,
            dropped_bytes: it.dropped_bytes,
            cancelled_units: it.cancelled_units,
            cancelled_bytes: it.cancelled_bytes,
            repaired_units: it.repaired_units,
            repaired_bytes: it.repaired_bytes,
            false_units: it.false_units,
            aside_bytes: it.aside_bytes,
            waiting_bytes: it.waiting_bytes,
            segments: heard.segments,
            payload_bytes: heard.payload_bytes,
            unused_bytes: heard.unused_bytes(),
            flows: heard.flows,
            chunks: heard.chunks,
            falsehoods: heard.falsehoods,
            memory_bytes: heard.memory_bytes,
            memory_peak_bytes: heard.memory_peak_bytes,
        }
    }
}

#[cfg(test)]
pub(in crate::status) mod tests {
    use super::*;

    /// What came of it.
    pub fn heard() -> Overheard {
        Overheard {
            units: 1_500,
            bytes: 12 << 20,
            cancelled_units: 20,
            repaired_units: 30,
            repaired_bytes: 120 << 10,
            memory_bytes: 2 << 20,
            ..Overheard::default()
        }
    }

    /// One that has heard something.
    pub fn hearing() -> Overhear {
        let report = Report {
            link: Some("radiotap"),
            frames: 20_000,
            segments: 12_000,
            payload_bytes: 16 << 20,
            dropped_segments: 7,
            refused: BTreeMap::from([("protected", 3), ("empty", 7_990)]),
            ..Report::default()
        };
        Overhear::new("mon0".into(), 8 << 20, report)
    }

    #[test]
    fn encryption_on_the_link_is_told_where_nothing_else_is_heard() {
        assert_eq!((hearing().works, hearing().note), (true, None));
        let refused = BTreeMap::from([("protected", 3)]);
        let report = Report { link: Some("radiotap"), refused, ..Report::default() };
        let deaf = Overhear::new("mon0".into(), 1, report);
        assert!(deaf.works && deaf.note.is_some_and(|note| note.contains("encrypted")));
        let failed = Overhear::failed("mon0".into(), 1, "no right".into());
        assert_eq!((failed.works, failed.note), (false, Some("no right".into())));
    }
}
