//! The store, in memory, driven as the daemon drives it: one writer in order, reads in any order.

use super::{Dice, Options};
use bytes::Bytes;
use node::driver::{DiskQueue, Waiting};
use node::{StoreInput, StoreOutput};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::{
    Catalogue, CatalogueOptions, CatalogueReader, Change, Error, Files, Index, Log, LogOptions,
    Memory, Policy, Reader,
};
use wire::{ChunkId, Instant, ObjectKey, RecordId};

/// What the disk will do when its time comes.
pub enum Answer {
    /// The next write in line.
    Write,
    Read(StoreOutput),
    /// Units that have waited for room for too long do not get any.
    NoRoom,
}

/// What it says now, and what it will do later.
type Answers = (Vec<StoreInput>, Option<(Duration, Answer)>);

/// The store and what goes wrong with it.
pub struct Shelf {
    files: Arc<dyn Files>,
    log: Log,
    catalogue: Catalogue,
    units: Reader,
    rows: CatalogueReader,
    /// No unit can be written.
    pub fail_appends: bool,
    /// The catalogue takes nothing.
    pub fail_changes: bool,
    /// Nothing can be made durable.
    pub fail_syncs: bool,
    /// No row can be read.
    pub fail_lookups: bool,
    /// Every read of units fails.
    pub fail_reads: bool,
    /// One byte of each unit that is read is wrong.
    pub corrupt: bool,
    /// Segments of manifests are gone.
    pub lose_segments: bool,
    /// The last two units of each segment of a manifest have changed places.
    pub swap_units: bool,
    /// One bit of each key in manifests is wrong.
    pub spoil_keys: bool,
    /// Writes are not answered until this is false again.
    pub stuck: bool,
    /// Syncs that were asked for.
    pub syncs: u64,
    writes: VecDeque<StoreOutput>,
    writer_free: Instant,
    roomless: DiskQueue,
    dice: Dice,
    delay: Duration,
}

impl Shelf {
    pub fn open(options: &Options) -> (Self, Index) {
        let files: Arc<dyn Files> = Arc::new(Memory::new());
        let (log, catalogue, index) = open(&files, options);
        let shelf = Self {
            units: log.reader(),
            rows: catalogue.reader(),
            files,
            log,
            catalogue,
            fail_appends: false,
            fail_changes: false,
            fail_syncs: false,
            fail_lookups: false,
            fail_reads: false,
            corrupt: false,
            lose_segments: false,
            swap_units: false,
            spoil_keys: false,
            stuck: false,
            syncs: 0,
            writes: VecDeque::new(),
            writer_free: Instant::ZERO,
            roomless: DiskQueue::default(),
            dice: Dice(options.seed ^ 0xd15c),
            delay: options.disk_delay,
        };
        (shelf, index)
    }

    pub fn reopen(&mut self, options: &Options) -> Index {
        self.log.sync().expect("memory does not fail");
        self.catalogue.sync().expect("memory does not fail");
        // The old ones must be closed first.
        let (other, _) = Self::open(options);
        let Self { files, .. } = std::mem::replace(self, other);
        let (log, catalogue, index) = open(&files, options);
        (self.units, self.rows) = (log.reader(), catalogue.reader());
        (self.files, self.log, self.catalogue) = (files, log, catalogue);
        index
    }

    /// All that rests on it.
    pub fn raw(&mut self) -> Vec<u8> {
        self.log.sync().expect("memory does not fail");
        self.catalogue.sync().expect("memory does not fail");
        let mut raw = Vec::new();
        for name in self.files.names().expect("memory does not fail") {
            let file = self.files.open(&name).expect("it was just named");
            let mut bytes = vec![0; file.len().expect("memory does not fail") as usize];
            file.read_at(0, &mut bytes).expect("memory does not fail");
            raw.extend(bytes);
        }
        raw
    }

    /// Puts this under a name of the catalogue.
    pub fn put_row(&mut self, key: ObjectKey, row: Vec<u8>) {
        let put = Change::Put { key, row, records: Vec::new() };
        self.catalogue.apply(&[put, Change::Keep { key }]).expect("it does not fail");
    }

    /// What lies under a name of the catalogue.
    pub fn row(&self, key: ObjectKey) -> Option<Vec<u8>> {
        self.rows.get(&key).expect("memory does not fail")
    }

    /// Whether the catalogue has a segment of a record's manifest.
    pub fn has_segment(&self, record: RecordId, number: u32) -> bool {
        self.rows.segment(&record, number).expect("memory does not fail").is_some()
    }

    /// Puts what lies under one name of the catalogue under another too.
    pub fn copy_row(&mut self, from: ObjectKey, to: ObjectKey) {
        let row = self.rows.get(&from).expect("memory does not fail").expect("it is there");
        let records = node::Row::decode(&row).expect("a row").records;
        let records = records.iter().map(|record| record.id).collect();
        self.catalogue.apply(&[Change::Put { key: to, row, records }]).expect("it does not fail");
    }

    /// From now on, each answer takes up to this long.
    pub fn slow_down(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// Takes in what is to be done; says when it will be.
    pub fn perform(&mut self, output: StoreOutput, now: Instant) -> Option<(Duration, Answer)> {
        let wait = match self.delay.as_micros() as u64 {
            0 => Duration::ZERO,
            most => Duration::from_micros(self.dice.below(most)),
        };
        match output {
            StoreOutput::Read(..) | StoreOutput::Lookup(_) | StoreOutput::ReadSegment(..) => {
                Some((wait, Answer::Read(output)))
            }
            write => {
                self.writes.push_back(write);
                self.writer_free = self.writer_free.max(now) + wait;
                Some((self.writer_free - now, Answer::Write))
            }
        }
    }

    /// Does the next thing.
    pub fn happen(&mut self, now: Instant, answer: Answer) -> Answers {
        match answer {
            Answer::Read(output) => (vec![self.read(output)], None),
            Answer::Write if self.stuck => (Vec::new(), None),
            Answer::Write => match self.writes.pop_front() {
                Some(output) => self.write(now, output),
                None => (Vec::new(), None),
            },
            Answer::NoRoom => {
                let in_vain = self.roomless.expire(now);
                (in_vain.map(|ticket| StoreInput::Appended(ticket, None)).collect(), None)
            }
        }
    }

    fn read(&mut self, output: StoreOutput) -> StoreInput {
        match output {
            StoreOutput::Lookup(key) if self.fail_lookups => StoreInput::RowUnread(key),
            StoreOutput::Lookup(key) => StoreInput::Row(key, self.rows.get(&key).ok().flatten()),
            StoreOutput::ReadSegment(record, number) => {
                let bytes = self.rows.segment(&record, number).ok().flatten();
                let bytes = bytes.filter(|_| !self.lose_segments);
                let spoil = |bytes: Vec<u8>| if self.spoil_keys { spoiled(&bytes) } else { bytes };
                let swap = |bytes: Vec<u8>| if self.swap_units { swapped(&bytes) } else { bytes };
                StoreInput::Segment(record, number, bytes.map(spoil).map(swap))
            }
            StoreOutput::Read(ticket, first, lengths) => {
                let units = self.units.read(first, &lengths).ok().filter(|_| !self.fail_reads);
                StoreInput::Units(ticket, units.map(|units| self.spoiled(units)))
            }
            other => panic!("this is no read: {other:?}"),
        }
    }

    fn spoiled(&self, units: Vec<(ChunkId, Bytes)>) -> Vec<(ChunkId, Bytes)> {
        let spoil = |(id, bytes): (ChunkId, Bytes)| {
            let mut bytes = bytes.to_vec();
            bytes[0] ^= u8::from(self.corrupt);
            (id, bytes.into())
        };
        units.into_iter().map(spoil).collect()
    }

    fn write(&mut self, now: Instant, output: StoreOutput) -> Answers {
        match output {
            StoreOutput::Sync => {
                self.syncs += 1;
                let done =
                    !self.fail_syncs && self.log.sync().is_ok() && self.catalogue.sync().is_ok();
                (vec![StoreInput::Synced(done)], None)
            }
            StoreOutput::Append(ticket, units) => {
                self.append(now, Waiting::new(now, ticket, units))
            }
            StoreOutput::Change(ticket, changes) => {
                let done = !self.fail_changes && self.catalogue.apply(&changes).is_ok();
                (vec![StoreInput::Changed(ticket, done)], None)
            }
            StoreOutput::List(segment) => {
                (vec![StoreInput::Entries(segment, self.log.entries(segment).ok())], None)
            }
            StoreOutput::Rewrite(segment, keep) => {
                let moved = self.log.rewrite(segment, &keep).ok();
                let again = self.roomless.take(now, moved.is_some());
                let mut inputs = vec![StoreInput::Rewritten(segment, moved)];
                let mut later = None;
                for waiting in again {
                    let (answers, wait) = self.append(now, waiting);
                    inputs.extend(answers);
                    later = wait.or(later);
                }
                (inputs, later)
            }
            other => panic!("this is no write: {other:?}"),
        }
    }

    fn append(&mut self, now: Instant, waiting: Waiting) -> Answers {
        if self.fail_appends {
            return (vec![StoreInput::Appended(waiting.ticket, None)], None);
        }
        match self.log.append(&waiting.units) {
            Err(Error::Full { .. }) => {
                let until = waiting.until;
                self.roomless.wait(waiting);
                (Vec::new(), Some((until - now, Answer::NoRoom)))
            }
            places => (vec![StoreInput::Appended(waiting.ticket, places.ok())], None),
        }
    }

    /// The writer goes on after it was stuck.
    pub fn unstick(&mut self, now: Instant) -> Vec<StoreInput> {
        self.stuck = false;
        let mut inputs = Vec::new();
        while let Some(output) = self.writes.pop_front() {
            inputs.extend(self.write(now, output).0);
        }
        inputs
    }
}

fn open(files: &Arc<dyn Files>, options: &Options) -> (Log, Catalogue, Index) {
    let mut index = Index::new(options.store_bytes, Policy::S3Fifo);
    let log_options = LogOptions { segment_bytes: None, seed: options.seed };
    let (log, _) = Log::open(Arc::clone(files), log_options, &mut index).expect("memory opens");
    let options = CatalogueOptions {
        cache_bytes: 1 << 20,
        budget_bytes: options.store_bytes / 16 + (1 << 20),
    };
    let catalogue = Catalogue::open(Arc::clone(files), options).expect("memory opens");
    (log, catalogue, index)
}

/// A segment as the catalogue of who dialled the origin keeps it, with other keys.
fn spoiled(segment: &[u8]) -> Vec<u8> {
    let mut segment = content::Segment::decode(segment).expect("a segment of its own");
    for entry in &mut segment.entries {
        entry.key.as_mut().expect("it is sealed")[0] ^= 1;
    }
    segment.encode()
}

/// A segment as the catalogue keeps it, with what vouches for it before it if a peer sent it, in another order.
fn swapped(kept: &[u8]) -> Vec<u8> {
    let (before, segment) = kept.split_at(if kept[0] == 1 { 65 } else { 0 });
    let mut segment = content::Segment::decode(segment).expect("a segment of its own");
    let last = segment.entries.len() - 1;
    segment.entries.swap(last - 1, last);
    [before, &segment.encode()].concat()
}
