//! The tables of the catalogue, and the effect of each change on them.
//!
//! *What this is:* the tables within one write transaction. *Who calls it:* `catalogue.rs`. *What
//! it never does:* commit.

use redb::{
    Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, Table, TableDefinition,
    WriteTransaction,
};
use wire::{ObjectKey, RecordId};

use super::{CatalogueReport, Change};

type Key = &'static [u8; 32];
type Record = &'static [u8; 16];
/// A record and a segment's number, big-endian, so that the segments of a record are adjacent.
type SegmentKey = [u8; 20];

/// Object key → [`Row`].
pub(super) const ROWS: TableDefinition<'_, Key, &[u8]> = TableDefinition::new("rows");
/// The count of writes when a row was written → its object key.
const ORDER: TableDefinition<'_, u64, Key> = TableDefinition::new("order");
/// Record and number → bytes.
pub(super) const SEGMENTS: TableDefinition<'_, &'static SegmentKey, &[u8]> =
    TableDefinition::new("segments");
/// Record → the key of the row that names it.
const OWNERS: TableDefinition<'_, Record, Key> = TableDefinition::new("owners");
/// Records that have segments and no row.
const OPEN: TableDefinition<'_, Record, ()> = TableDefinition::new("open");
/// Counters that are kept across restarts.
const COUNTERS: TableDefinition<'_, &str, u64> = TableDefinition::new("counters");

const USED: &str = "used bytes";
const WRITES: &str = "writes";

pub(super) fn segment_key(record: &RecordId, number: u32) -> SegmentKey {
    let mut key = [0; 20];
    key[..16].copy_from_slice(record.as_bytes());
    key[16..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Creates the tables, so that readers find them.
pub(super) fn begin(database: &Database) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    Tables::open(&transaction, CatalogueReport::default())?.close()?;
    transaction.commit()?;
    Ok(())
}

/// The report, completed from a database that is only read.
pub(super) fn held(
    database: &Database,
    report: CatalogueReport,
) -> Result<CatalogueReport, redb::Error> {
    let transaction = database.begin_read()?;
    let used_bytes = transaction.open_table(COUNTERS)?.get(USED)?.map_or(0, |count| count.value());
    let rows = transaction.open_table(ROWS)?.len()?;
    Ok(CatalogueReport { rows, used_bytes, ..report })
}

/// The format of a stored row: write count 8 B | number of records 2 B | records | bytes.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    written: u64,
    records: &'a [[u8; 16]],
    pub bytes: &'a [u8],
}

impl<'a> Row<'a> {
    pub fn parse(stored: &'a [u8]) -> Option<Self> {
        let (written, rest) = stored.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (records, bytes) =
            rest.split_at_checked(usize::from(u16::from_le_bytes(*count)) * RecordId::LEN)?;
        let (records, _) = records.as_chunks();
        Some(Self { written: u64::from_le_bytes(*written), records, bytes })
    }

    fn emit(written: u64, records: &[RecordId], bytes: &[u8]) -> Vec<u8> {
        let count = records.len().min(usize::from(u16::MAX));
        let mut out = Vec::with_capacity(10 + count * RecordId::LEN + bytes.len());
        out.extend_from_slice(&written.to_le_bytes());
        out.extend_from_slice(&(count as u16).to_le_bytes());
        records[..count].iter().for_each(|record| out.extend_from_slice(record.as_bytes()));
        out.extend_from_slice(bytes);
        out
    }
}

/// The bytes that a value of this length counts for: its share of the pages. A leaf page of 4 KiB
/// is about three quarters full; a value too large for one has its own pages, a power of two.
fn cost(length: usize) -> u64 {
    const PAGE: u64 = 4096;
    // 160 bytes for the key, offsets, and the rows of the smaller tables.
    let length = length as u64 + 160;
    if length < PAGE { length * 4 / 3 } else { length.next_power_of_two() }
}

pub(super) struct Tables<'t> {
    rows: Table<'t, Key, &'static [u8]>,
    order: Table<'t, u64, Key>,
    segments: Table<'t, &'static SegmentKey, &'static [u8]>,
    owners: Table<'t, Record, Key>,
    open: Table<'t, Record, ()>,
    counters: Table<'t, &'static str, u64>,
    used_bytes: u64,
    writes: u64,
    report: CatalogueReport,
}

type Done = Result<(), redb::Error>;

impl<'t> Tables<'t> {
    pub fn open(
        transaction: &'t WriteTransaction,
        report: CatalogueReport,
    ) -> Result<Self, redb::Error> {
        let counters = transaction.open_table(COUNTERS)?;
        let count = |name| counters.get(name).map(|count| count.map_or(0, |count| count.value()));
        let (used_bytes, writes) = (count(USED)?, count(WRITES)?);
        Ok(Self {
            rows: transaction.open_table(ROWS)?,
            order: transaction.open_table(ORDER)?,
            segments: transaction.open_table(SEGMENTS)?,
            owners: transaction.open_table(OWNERS)?,
            open: transaction.open_table(OPEN)?,
            counters,
            used_bytes,
            writes,
            report,
        })
    }

    /// Writes the counters; returns the report as it will be after the commit.
    pub fn close(mut self) -> Result<CatalogueReport, redb::Error> {
        self.counters.insert(USED, self.used_bytes)?;
        self.counters.insert(WRITES, self.writes)?;
        self.report.rows = self.rows.len()?;
        self.report.used_bytes = self.used_bytes;
        Ok(self.report)
    }

    pub fn apply(&mut self, change: &Change, budget_bytes: u64) -> Done {
        match change {
            Change::Put { key, row, records } => self.put(key, row, records),
            Change::Remove { key } => self.remove(key.as_bytes(), &[]),
            Change::PutSegment { record, number, bytes } => {
                self.put_segment(record, *number, bytes, budget_bytes)
            }
            Change::DropSegments { record } => self.drop_record(record.as_bytes()),
            Change::Adopt { from, to } => self.adopt(from, to),
            Change::Keep { key } => self.keep(key),
        }
    }

    fn put(&mut self, key: &ObjectKey, row: &[u8], records: &[RecordId]) -> Done {
        self.remove(key.as_bytes(), records)?;
        let row = Row::emit(self.writes, records, row);
        self.rows.insert(key.as_bytes(), row.as_slice())?;
        self.order.insert(self.writes, key.as_bytes())?;
        self.used_bytes += cost(row.len());
        self.writes += 1;
        for record in records {
            self.owners.insert(record.as_bytes(), key.as_bytes())?;
            self.open.remove(record.as_bytes())?;
        }
        Ok(())
    }

    /// Removes a row, and the segments of its records except those in `stay`.
    fn remove(&mut self, key: &[u8; 32], stay: &[RecordId]) -> Done {
        let Some(stored) = self.rows.remove(key)?.map(|row| row.value().to_vec()) else {
            return Ok(());
        };
        self.used_bytes = self.used_bytes.saturating_sub(cost(stored.len()));
        let Some(row) = Row::parse(&stored) else { return Ok(()) };
        self.order.remove(row.written)?;
        for record in row.records.iter().filter(|id| !stay.contains(&RecordId(**id))) {
            // Another row may have taken over the record.
            let owner = self.owners.get(record)?.map(|owner| *owner.value());
            if owner.as_ref() == Some(key) {
                self.drop_record(record)?;
            }
        }
        Ok(())
    }

    fn put_segment(
        &mut self,
        record: &RecordId,
        number: u32,
        bytes: &[u8],
        budget_bytes: u64,
    ) -> Done {
        let key = segment_key(record, number);
        let before = self.segments.remove(&key)?.map_or(0, |old| cost(old.value().len()));
        self.used_bytes = self.used_bytes.saturating_sub(before);
        self.fit(budget_bytes.saturating_sub(cost(bytes.len())))?;
        if self.used_bytes + cost(bytes.len()) > budget_bytes {
            // All other segments belong to records without a row yet. Readers accept a missing
            // segment.
            self.report.refused_segments += 1;
            return Ok(());
        }
        self.segments.insert(&key, bytes)?;
        self.used_bytes += cost(bytes.len());
        if self.owners.get(record.as_bytes())?.is_none() {
            self.open.insert(record.as_bytes(), ())?;
        }
        Ok(())
    }

    fn drop_record(&mut self, record: &[u8; 16]) -> Done {
        let record = RecordId(*record);
        let (first, last) = (segment_key(&record, 0), segment_key(&record, u32::MAX));
        let mut freed = 0;
        self.segments.retain_in::<&SegmentKey, _>(&first..=&last, |_, bytes| {
            freed += cost(bytes.len());
            false
        })?;
        self.used_bytes = self.used_bytes.saturating_sub(freed);
        self.owners.remove(record.as_bytes())?;
        self.open.remove(record.as_bytes())?;
        Ok(())
    }

    fn adopt(&mut self, from: &RecordId, to: &RecordId) -> Done {
        if from == to {
            return Ok(());
        }
        let owner = self.owners.get(to.as_bytes())?.map(|owner| *owner.value());
        self.drop_record(to.as_bytes())?;
        let (first, last) = (segment_key(from, 0), segment_key(from, u32::MAX));
        let mut next = 0;
        // One at a time: a whole manifest may be too large for memory.
        while let Some((number, bytes)) = self.pop_segment(&first, &last)? {
            self.segments.insert(&segment_key(to, number), bytes.as_slice())?;
            next = number.saturating_add(1);
        }
        self.owners.remove(from.as_bytes())?;
        self.open.remove(from.as_bytes())?;
        match owner {
            Some(key) => drop(self.owners.insert(to.as_bytes(), &key)?),
            None if next > 0 => drop(self.open.insert(to.as_bytes(), ())?),
            None => {}
        }
        Ok(())
    }

    fn pop_segment(
        &mut self,
        first: &SegmentKey,
        last: &SegmentKey,
    ) -> Result<Option<(u32, Vec<u8>)>, redb::Error> {
        let found = self.segments.range::<&SegmentKey>(first..=last)?.next().transpose()?;
        let found = found.map(|(key, bytes)| (*key.value(), bytes.value().to_vec()));
        let Some((key, bytes)) = found else { return Ok(None) };
        self.segments.remove(&key)?;
        let (_, number) = key.split_last_chunk::<4>().unwrap_or((&[], &[0; 4]));
        Ok(Some((u32::from_be_bytes(*number), bytes)))
    }

    /// A row that is not in the order is never the oldest, so it is not evicted.
    fn keep(&mut self, key: &ObjectKey) -> Done {
        let written =
            self.rows.get(key.as_bytes())?.and_then(|row| Some(Row::parse(row.value())?.written));
        if let Some(written) = written {
            self.order.remove(written)?;
        }
        Ok(())
    }

    /// Evicts the oldest rows until this number of bytes suffices.
    pub fn fit(&mut self, budget_bytes: u64) -> Done {
        while self.used_bytes > budget_bytes {
            let oldest = self.order.pop_first()?.map(|(_, key)| *key.value());
            let Some(key) = oldest else { break };
            self.remove(&key, &[])?;
            self.report.evicted_rows += 1;
        }
        Ok(())
    }

    /// Deletes the segments of all records without a row; returns the number of such records.
    pub fn sweep(&mut self) -> Result<u64, redb::Error> {
        let mut swept = 0;
        loop {
            let first = self.open.first()?.map(|(record, _)| *record.value());
            let Some(record) = first else { return Ok(swept) };
            self.drop_record(&record)?;
            swept += 1;
        }
    }
}
