//! The figures of the daemon as amounts of the ledger, and back. Pure.

use host::intercept::ForwardedBytes;
use host::traffic::WireBytes;
use node::account::ClassBytes;
use node::{NotStored, Unstored};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::ledger::{Amount, Topic};
use wire::counters::Tally;

/// A column of the ledger: its number on disk, which is never given to another figure, and its figure.
type Column<T> = (u8, fn(&mut T) -> &mut u64);

const UNSTORED: [Column<Unstored>; 2] = [(0, |it| &mut it.bytes), (1, |it| &mut it.responses)];
const WIRE: [Column<WireBytes>; 4] = [
    (0, |it| &mut it.in_bytes),
    (1, |it| &mut it.out_bytes),
    (2, |it| &mut it.in_segments),
    (3, |it| &mut it.out_segments),
];
const FORWARDED: [Column<ForwardedBytes>; 2] =
    [(0, |it| &mut it.up_bytes), (1, |it| &mut it.down_bytes)];

/// What the daemon has counted since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// By class.
    pub classes: BTreeMap<String, ClassBytes>,
    /// By whom connections are with.
    pub wire: BTreeMap<String, WireBytes>,
    /// By kind of traffic; empty unless clients are intercepted.
    pub forwarded: BTreeMap<String, ForwardedBytes>,
}

/// What was counted up to the last time, since the start of what counts.
#[derive(Default)]
pub struct Counted(BTreeMap<(Topic, String, u8), u64>);

impl Counted {
    /// What is new since the last call. A counter that is smaller than before began anew, as the firewall's do when
    /// its table is replaced.
    pub fn since(&mut self, now: &Now, unstored: &Tally<NotStored, Unstored>) -> Vec<Amount> {
        let mut amounts = Vec::new();
        rows(&mut amounts, Topic::Class, &ClassBytes::COLUMNS, &now.classes);
        let unstored = unstored.occurred().map(|(reason, it)| (reason.name().to_owned(), it));
        rows(&mut amounts, Topic::Unstored, &UNSTORED, &unstored.collect());
        rows(&mut amounts, Topic::Wire, &WIRE, &now.wire);
        rows(&mut amounts, Topic::Forwarded, &FORWARDED, &now.forwarded);
        for amount in &mut amounts {
            let key = (amount.topic, amount.name.clone(), amount.column);
            let before = self.0.insert(key, amount.count).unwrap_or(0);
            amount.count = amount.count.checked_sub(before).unwrap_or(amount.count);
        }
        amounts.retain(|amount| amount.count > 0);
        amounts
    }
}

fn rows<T: Copy>(
    amounts: &mut Vec<Amount>,
    topic: Topic,
    columns: &[Column<T>],
    rows: &BTreeMap<String, T>,
) {
    for (name, row) in rows {
        let mut row = *row;
        for (column, figure) in columns {
            let (name, column, count) = (name.clone(), *column, *figure(&mut row));
            if count > 0 {
                amounts.push(Amount { topic, name, column, count });
            }
        }
    }
}

/// The sums of a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Content bytes by class.
    pub classes: BTreeMap<String, ClassBytes>,
    /// What was not stored, by reason.
    pub not_stored: BTreeMap<String, Unstored>,
    /// What crossed the wire, by whom the connections were with.
    pub wire: BTreeMap<String, WireBytes>,
    /// What was only forwarded, by kind.
    pub forwarded: BTreeMap<String, ForwardedBytes>,
}

impl Figures {
    /// Reads amounts of the ledger; those of columns that this version does not know are left out.
    pub fn of(amounts: &[Amount]) -> Self {
        let mut all = Self::default();
        for amount in amounts {
            match amount.topic {
                Topic::Class => put(&mut all.classes, &ClassBytes::COLUMNS, amount),
                Topic::Unstored => put(&mut all.not_stored, &UNSTORED, amount),
                Topic::Wire => put(&mut all.wire, &WIRE, amount),
                Topic::Forwarded => put(&mut all.forwarded, &FORWARDED, amount),
                Topic::Host => {}
            }
        }
        all
    }

    /// All classes together.
    pub fn total(&self) -> ClassBytes {
        total(&self.classes)
    }
}

/// All classes together.
pub fn total(classes: &BTreeMap<String, ClassBytes>) -> ClassBytes {
    let mut total = ClassBytes::default();
    classes.values().for_each(|it| total.add(*it));
    total
}

fn put<T: Default>(rows: &mut BTreeMap<String, T>, columns: &[Column<T>], amount: &Amount) {
    let Some((_, figure)) = columns.iter().find(|(column, _)| *column == amount.column) else {
        return;
    };
    let row = rows.entry(amount.name.clone()).or_default();
    *figure(row) = figure(row).saturating_add(amount.count);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(served: u64, up: u64) -> Now {
        let class = ClassBytes { served_origin_bytes: served, ..ClassBytes::default() };
        let forwarded = ForwardedBytes { up_bytes: up, down_bytes: 0 };
        Now {
            classes: [("apt".to_owned(), class)].into(),
            wire: [("client".to_owned(), WireBytes { out_bytes: served, ..Default::default() })]
                .into(),
            forwarded: [("tls".to_owned(), forwarded)].into(),
        }
    }

    #[test]
    fn only_what_is_new_is_added_and_a_counter_may_begin_anew() {
        let mut counted = Counted::default();
        let unstored: Tally<_, _> =
            [(NotStored::NoStore, Unstored { responses: 1, bytes: 50 })].into_iter().collect();
        let first = Figures::of(&counted.since(&now(100, 10), &unstored));
        assert_eq!(first.classes["apt"].served_origin_bytes, 100);
        assert_eq!(first.not_stored["no-store"], Unstored { responses: 1, bytes: 50 });
        assert_eq!(first.forwarded["tls"].up_bytes, 10);
        assert_eq!(first.wire["client"].out_bytes, 100);
        assert_eq!(counted.since(&now(100, 10), &unstored), []);
        let second = Figures::of(&counted.since(&now(130, 4), &unstored));
        assert_eq!(second.total().served(), 30);
        assert_eq!(second.forwarded["tls"].up_bytes, 4, "its table was replaced");
        assert!(second.not_stored.is_empty());
    }

    #[test]
    fn columns_of_another_version_are_left_out() {
        let amount = |column| Amount { topic: Topic::Wire, name: "peer".into(), column, count: 7 };
        let figures = Figures::of(&[amount(31), amount(1)]);
        assert_eq!(figures.wire["peer"], WireBytes { out_bytes: 7, ..WireBytes::default() });
    }
}
