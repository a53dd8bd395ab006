//! The ledger as the control socket shows it. The JSON is an interface (`docs/schema/ledger-1.json`): members are added,
//! never renamed.

use super::counts::Figures;
use node::account::ClassBytes;
use serde::{Deserialize, Serialize};
use store::ledger::{Host, Ledger, Period};

/// The name of the JSON's schema.
const SCHEMA: &str = "hearsay/ledger/1";

/// The sums of a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerPage {
    /// [`SCHEMA`].
    pub schema: String,
    /// The daemon's name.
    pub name: String,
    /// When counting began, in seconds since 1970; 0 if the date was never known.
    pub begun: u64,
    /// When the first period begins.
    pub from: u64,
    /// When this was asked.
    pub until: u64,
    /// The periods: `hour`, `day` or `month`, in UTC.
    pub period: String,
    /// All of it.
    pub total: Figures,
    /// Each period that has any.
    pub parts: Vec<Part>,
    /// Hosts, the one with the most bytes first; each since it was first seen. Empty unless they are kept.
    pub hosts: Vec<HostLine>,
    /// An earlier ledger that was damaged and is kept; counting began anew after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<Damaged>,
}

/// An earlier ledger that was damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damaged {
    /// Its file.
    pub file: String,
    /// When it was last written, in seconds since 1970.
    pub written: u64,
}

/// The sums of a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// When it begins.
    pub start: u64,
    /// Its sums.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The sums of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLine {
    /// The host.
    pub host: String,
    /// When it was first seen.
    pub first: u64,
    /// When it was last seen.
    pub last: u64,
    /// Content bytes given to clients.
    pub served_bytes: u64,
    /// Content bytes brought in.
    pub fetched_bytes: u64,
}

impl From<Host> for HostLine {
    fn from(Host { name, first, last, counts: [served, fetched] }: Host) -> Self {
        Self { host: name, first, last, served_bytes: served, fetched_bytes: fetched }
    }
}

impl LedgerPage {
    /// The last `seconds` before `now`; `None`: all.
    pub fn of(ledger: &Ledger, name: &str, seconds: Option<u64>, now: u64) -> Self {
        let extract = ledger.extract(seconds, now);
        let part = |(start, amounts): &(u64, Vec<_>)| Part {
            start: *start,
            figures: Figures::of(amounts),
        };
        Self {
            schema: SCHEMA.into(),
            name: name.into(),
            begun: ledger.begun(),
            from: extract.from,
            until: now,
            period: extract.period.name().into(),
            total: Figures::of(&extract.total),
            parts: extract.parts.iter().map(part).collect(),
            hosts: ledger.hosts().into_iter().map(HostLine::from).collect(),
            damaged: None,
        }
    }
}

/// The ledger in the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Today, in UTC.
    pub today: Saved,
    /// Today and the 29 days before.
    pub days_30: Saved,
    /// Since counting began.
    pub ever: Saved,
    /// When that was, in seconds since 1970; 0 if the date was never known.
    pub begun: u64,
}

/// What was saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Saved {
    /// Content bytes given to clients and peers.
    pub given_bytes: u64,
    /// Content bytes brought in for them.
    pub brought_bytes: u64,
}

impl Saved {
    /// Bytes that did not have to be brought in.
    pub fn saved(&self) -> u64 {
        self.given_bytes.saturating_sub(self.brought_bytes)
    }
}

impl From<&ClassBytes> for Saved {
    fn from(bytes: &ClassBytes) -> Self {
        Self { given_bytes: bytes.given(), brought_bytes: bytes.brought() }
    }
}

impl Summary {
    /// The summary at this time.
    pub fn of(ledger: &Ledger, now: u64) -> Self {
        let saved = |amounts: &[_]| Saved::from(&Figures::of(amounts).total());
        Self {
            today: saved(&ledger.of(Period::Day, Period::Day.number(now))),
            days_30: saved(&ledger.extract(Some(30 * 86_400), now).total),
            ever: saved(&ledger.ever()),
            begun: ledger.begun(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::ledger::{Amount, Topic};

    const NOW: u64 = 1_795_636_800;

    #[test]
    fn today_the_last_days_and_all_time_differ() {
        let mut ledger = Ledger::default();
        let of = |column, count| Amount { topic: Topic::Class, name: "apt".into(), column, count };
        ledger.add(Some(NOW - 100 * 86_400), &[of(0, 1000), of(11, 10)]);
        ledger.add(Some(NOW - 10 * 86_400), &[of(0, 100), of(4, 7), of(9, 7)]);
        ledger.add(Some(NOW), &[of(6, 10), of(11, 10), of(16, 5)]);
        let summary = Summary::of(&ledger, NOW);
        let saved = |it: Saved| (it.given_bytes, it.brought_bytes, it.saved());
        assert_eq!(saved(summary.today), (15, 10, 5));
        assert_eq!(saved(summary.days_30), (122, 10, 112), "references are not brought in");
        assert_eq!(saved(summary.ever), (1122, 20, 1102));
        assert_eq!(summary.begun, NOW - 100 * 86_400);
    }

    #[test]
    fn a_page_survives_the_control_socket() {
        let mut ledger = Ledger::default();
        let amount = |topic, name: &str| Amount { topic, name: name.into(), column: 1, count: 9 };
        ledger.add(
            Some(NOW),
            &[amount(Topic::Class, "npm"), amount(Topic::Wire, "client"), amount(Topic::Host, "h")],
        );
        let page = LedgerPage::of(&ledger, "r1", Some(86_400), NOW);
        assert_eq!((page.period.as_str(), page.parts.len(), page.hosts.len()), ("hour", 1, 1));
        assert_eq!(page.parts[0].figures, page.total);
        let json = serde_json::to_string(&page).unwrap();
        assert_eq!(serde_json::from_str::<LedgerPage>(&json).unwrap(), page);
    }
}
