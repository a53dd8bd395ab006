//! A catalogue in memory, which behaves like the store's except that it does not survive a crash. The store's
//! database would take a quarter of a simulation's time, and megabytes for each router.

use std::collections::BTreeMap;

use store::Change;
use wire::{ObjectKey, RecordId};

/// Rows by object, and segments of manifests by record. A test compares it with the store's.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    budget_bytes: u64,
    used_bytes: u64,
    /// Number of rows written so far; each row's place in `order`.
    writes: u64,
    rows: BTreeMap<ObjectKey, Row>,
    /// Rows by the time of their latest write, the oldest first.
    order: BTreeMap<u64, ObjectKey>,
    segments: BTreeMap<(RecordId, u32), Vec<u8>>,
    /// The row that names each record.
    owners: BTreeMap<RecordId, ObjectKey>,
}

#[derive(Debug)]
struct Row {
    written: u64,
    records: Vec<RecordId>,
    bytes: Vec<u8>,
}

impl Row {
    /// Its cost in the budget, including what the store writes beside its bytes.
    fn cost(&self) -> u64 {
        cost(10 + self.records.len() * RecordId::LEN + self.bytes.len())
    }
}

impl Catalogue {
    /// An empty catalogue with a budget of `budget_bytes`, counted as in the store.
    pub fn new(budget_bytes: u64) -> Self {
        Self { budget_bytes, ..Self::default() }
    }

    /// An object's row.
    pub fn get(&self, key: &ObjectKey) -> Option<Vec<u8>> {
        self.rows.get(key).map(|row| row.bytes.clone())
    }

    /// One segment of a record's manifest.
    pub fn segment(&self, record: &RecordId, number: u32) -> Option<Vec<u8>> {
        self.segments.get(&(*record, number)).cloned()
    }

    /// Makes changes. If the budget is exceeded, the rows written longest ago are evicted.
    pub fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Put { key, row, records } => self.put(key, row, records),
                Change::Remove { key } => self.remove(&key, &[]),
                Change::PutSegment { record, number, bytes } => {
                    self.put_segment(record, number, bytes);
                }
                Change::DropSegments { record } => self.drop_record(&record),
                Change::Adopt { from, to } => self.adopt(&from, &to),
                Change::Keep { key } => self.keep(&key),
            }
        }
        self.fit(self.budget_bytes);
    }

    fn put(&mut self, key: ObjectKey, bytes: Vec<u8>, records: Vec<RecordId>) {
        self.remove(&key, &records);
        for record in &records {
            self.owners.insert(*record, key);
        }
        let row = Row { written: self.writes, records, bytes };
        self.used_bytes += row.cost();
        self.order.insert(self.writes, key);
        self.writes += 1;
        self.rows.insert(key, row);
    }

    /// Removes a row and its records, except those in `stay`.
    fn remove(&mut self, key: &ObjectKey, stay: &[RecordId]) {
        let Some(row) = self.rows.remove(key) else { return };
        self.used_bytes -= row.cost();
        self.order.remove(&row.written);
        for record in row.records.iter().filter(|record| !stay.contains(record)) {
            // Another row may name the record by now.
            if self.owners.get(record) == Some(key) {
                self.drop_record(record);
            }
        }
    }

    fn put_segment(&mut self, record: RecordId, number: u32, bytes: Vec<u8>) {
        let before = self.segments.remove(&(record, number));
        self.used_bytes -= before.map_or(0, |old| cost(old.len()));
        let more = cost(bytes.len());
        self.fit(self.budget_bytes.saturating_sub(more));
        // If it still does not fit, records that are being written use the whole budget. The segment is
        // dropped: readers cope with a missing one.
        if self.used_bytes + more <= self.budget_bytes {
            self.segments.insert((record, number), bytes);
            self.used_bytes += more;
        }
    }

    fn drop_record(&mut self, record: &RecordId) {
        let all = (*record, 0)..=(*record, u32::MAX);
        let numbers: Vec<_> = self.segments.range(all).map(|((_, number), _)| *number).collect();
        for number in numbers {
            let dropped = self.segments.remove(&(*record, number));
            self.used_bytes -= dropped.map_or(0, |bytes| cost(bytes.len()));
        }
        self.owners.remove(record);
    }

    /// Moves all segments of a record to another, replacing those that it has.
    fn adopt(&mut self, from: &RecordId, to: &RecordId) {
        if from == to {
            return;
        }
        let owner = self.owners.get(to).copied();
        self.drop_record(to);
        let all = (*from, 0)..=(*from, u32::MAX);
        let numbers: Vec<_> = self.segments.range(all).map(|((_, number), _)| *number).collect();
        for number in numbers {
            let moved = self.segments.remove(&(*from, number));
            self.segments.extend(moved.map(|bytes| ((*to, number), bytes)));
        }
        self.owners.remove(from);
        self.owners.extend(owner.map(|key| (*to, key)));
    }

    /// Takes a row out of the order, so that it is never evicted.
    fn keep(&mut self, key: &ObjectKey) {
        if let Some(row) = self.rows.get(key) {
            self.order.remove(&row.written);
        }
    }

    /// Evicts the rows written longest ago until `budget_bytes` are enough.
    fn fit(&mut self, budget_bytes: u64) {
        while self.used_bytes > budget_bytes {
            let Some((_, key)) = self.order.pop_first() else { return };
            self.remove(&key, &[]);
        }
    }
}

/// Bytes counted for a value of this length: its share of the database's 4 KiB pages.
fn cost(length: usize) -> u64 {
    let length = length as u64 + 160;
    if length < 4096 { length * 4 / 3 } else { length.next_power_of_two() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use store::{CatalogueOptions, Memory};

    use super::*;

    fn key(number: u8) -> ObjectKey {
        ObjectKey([number; 32])
    }

    fn record(number: u8) -> RecordId {
        RecordId([number; 16])
    }

    fn change() -> impl Strategy<Value = Change> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..3000);
        let records = proptest::collection::vec((0_u8..4).prop_map(record), 0..3);
        prop_oneof![
            (0_u8..5, bytes(), records).prop_map(|(it, row, records)| Change::Put {
                key: key(it),
                row,
                records
            }),
            (0_u8..5).prop_map(|it| Change::Remove { key: key(it) }),
            (0_u8..4, 0_u32..3, bytes()).prop_map(|(it, number, bytes)| {
                Change::PutSegment { record: record(it), number, bytes }
            }),
            (0_u8..4).prop_map(|it| Change::DropSegments { record: record(it) }),
            (0_u8..4, 0_u8..4)
                .prop_map(|(from, to)| Change::Adopt { from: record(from), to: record(to) }),
            (0_u8..5).prop_map(|it| Change::Keep { key: key(it) }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_holds_what_the_stores_catalogue_holds(
            batches in proptest::collection::vec(proptest::collection::vec(change(), 1..4), 1..20),
            budget_bytes in 3_000_u64..40_000,
        ) {
            let options = CatalogueOptions { cache_bytes: 1 << 16, budget_bytes };
            let mut model = store::Catalogue::open(Arc::new(Memory::new()), options).unwrap();
            let rows = model.reader();
            let mut ours = Catalogue::new(budget_bytes);
            for batch in batches {
                model.apply(&batch).unwrap();
                ours.apply(batch);
                for it in 0..5 {
                    prop_assert_eq!(ours.get(&key(it)), rows.get(&key(it)).unwrap());
                    for number in 0..3 {
                        let expected = rows.segment(&record(it), number).unwrap();
                        prop_assert_eq!(ours.segment(&record(it), number), expected);
                    }
                }
                prop_assert_eq!(ours.used_bytes, model.report().used_bytes);
            }
        }
    }
}
