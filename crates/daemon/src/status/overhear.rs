//! Overhearing in the status.

use host::capture::{Counts, PassedOver, Report};
use serde::{Deserialize, Serialize};
use wire::capture::Refusal;

/// Overhearing: its settings, and the capture's [`host::capture::Report`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overhear {
    /// The mode: `sniff`.
    pub mode: String,
    /// The interface that captures frames.
    pub interface: String,
    /// The kind of frames that the interface captures: `radiotap`, `802.11` or `ethernet`.
    pub link: Option<String>,
    /// Whether the capture works.
    pub works: bool,
    /// Why the capture does not work, or what else the operator should know.
    pub note: Option<String>,
    /// The budget of partly overheard chunks, in bytes.
    pub memory_budget_bytes: u64,
    /// The capture's counters.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Overhear {
    /// The status of an open capture.
    pub fn new(interface: String, memory_budget_bytes: u64, report: Report) -> Self {
        let encrypted = report.counts.refused.get(PassedOver::Frame(Refusal::Protected));
        let note = report.trouble.or_else(|| {
            (encrypted > 0 && report.counts.segments == 0).then(|| {
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
            counts: report.counts,
        }
    }

    /// The status if the capture could not be opened.
    pub fn failed(interface: String, memory_budget_bytes: u64, why: String) -> Self {
        let (mode, note) = ("sniff".into(), Some(why));
        Self { mode, interface, note, memory_budget_bytes, ..Self::default() }
    }
}

#[cfg(test)]
pub(in crate::status) mod tests {
    use super::*;
    use host::capture::Ignored;
    use node::{Overhearing, overhear};

    /// The engine's counters of what it overheard.
    pub fn heard() -> Overhearing {
        Overhearing {
            units: 1_500,
            bytes: 12 << 20,
            cancelled_units: 20,
            repaired_units: 30,
            repaired_bytes: 120 << 10,
            heard: overhear::Counters { memory_bytes: 2 << 20, ..overhear::Counters::default() },
            ..Overhearing::default()
        }
    }

    /// The status of a capture that has captured frames.
    pub fn hearing() -> Overhear {
        let protected = PassedOver::Frame(Refusal::Protected);
        let counts = Counts {
            frames: 20_000,
            segments: 12_000,
            payload_bytes: 16 << 20,
            dropped_segments: 7,
            refused: [(protected, 3), (PassedOver::Segment(Ignored::Empty), 7_990)]
                .into_iter()
                .collect(),
            ..Counts::default()
        };
        let report = Report { link: Some("radiotap"), counts, ..Report::default() };
        Overhear::new("mon0".into(), 8 << 20, report)
    }

    #[test]
    fn encryption_on_the_link_is_told_where_nothing_else_is_heard() {
        assert_eq!((hearing().works, hearing().note), (true, None));
        let refused = [(PassedOver::Frame(Refusal::Protected), 3)].into_iter().collect();
        let counts = Counts { refused, ..Counts::default() };
        let report = Report { link: Some("radiotap"), counts, ..Report::default() };
        let deaf = Overhear::new("mon0".into(), 1, report);
        assert!(deaf.works && deaf.note.is_some_and(|note| note.contains("encrypted")));
        let failed = Overhear::failed("mon0".into(), 1, "no right".into());
        assert_eq!((failed.works, failed.note), (false, Some("no right".into())));
    }
}
