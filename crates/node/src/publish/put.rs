//! Putting a file: it comes in like an origin's body, is cut and written like one, and gets its name and is
//! entered under it once the disk has all of it.

use super::list::List;
use super::{Publish, Value, Waiter, answer};
use crate::catalogue::{OBJECTS_MAX, Object};
use crate::context::Context;
use crate::http::{OPEN_KEY, Record, Row};
use crate::input::{ExchangeId, FetchId, PutError};
use crate::named;
use crate::output::{OriginOutput, Output, StoreOutput};
use content::{Root, Segment};
use std::rc::Rc;
use store::Change;
use wire::{ObjectKey, Oid};

/// What is published here and is to be kept takes one part in so many of the store, at most: what is
/// only cached needs room, too.
const SHARE: u64 = 2;

/// A file while it comes.
#[derive(Debug)]
pub struct Put {
    pub exchange: ExchangeId,
    /// Its length, as was announced.
    pub bytes: u64,
    /// Of all that has come.
    hasher: blake3::Hasher,
    /// Of each segment of its manifest so far.
    segments: Vec<[u8; 32]>,
    /// What will be said if it ends now.
    error: PutError,
}

impl Put {
    fn new(exchange: ExchangeId, bytes: u64) -> Self {
        let hasher = blake3::Hasher::new();
        Self { exchange, bytes, hasher, segments: Vec::new(), error: PutError::Broken }
    }

    /// Notes the next segment of its manifest; false if there are more than a root can have.
    fn listed(&mut self, segment: &Segment) -> bool {
        self.segments.push(Segment::digest(&segment.encode()));
        self.segments.len() <= Root::SEGMENTS_MAX
    }

    /// What certifies the file, now that all of it has come; `None` if it is too long for that.
    fn root(self) -> Option<Root> {
        let content = *self.hasher.finalize().as_bytes();
        let fits = self.segments.len() <= Root::SEGMENTS_MAX;
        fits.then_some(Root { length: self.bytes, content, segments: self.segments })
    }
}

impl Publish {
    /// Somebody wants to publish a file of this length.
    pub fn handle_put(&mut self, cx: &mut Context, exchange: ExchangeId, bytes: u64) {
        self.load(cx);
        match &mut self.list {
            List::Unasked | List::Unread(_) => answer(cx, exchange, Err(PutError::Unlisted)),
            List::Asked(early) => early.push((exchange, bytes)),
            List::Loaded => match self.may_put(cx, bytes) {
                Ok(()) => self.take_in(cx, exchange, bytes),
                Err(error) => answer(cx, exchange, Err(error)),
            },
        }
    }

    fn take_in(&mut self, cx: &mut Context, exchange: ExchangeId, bytes: u64) {
        let id = cx.ids.fetch();
        self.puts.insert(id, Put::new(exchange, bytes));
        self.values.push_back(Value::Begin(id, bytes));
        cx.chunks.keep_for(id);
        cx.out.push_back(Output::Origin(OriginOutput::TakeIn(exchange, id)));
    }

    fn may_put(&self, cx: &Context, bytes: u64) -> Result<(), PutError> {
        let bytes_max = cx.chunks.index().budget_bytes() / SHARE;
        if bytes > named_bytes_max(cx) {
            return Err(PutError::TooLong(named_bytes_max(cx)));
        }
        if bytes > cx.config.object_bytes_max {
            return Err(PutError::TooLarge(cx.config.object_bytes_max));
        }
        if self.bytes(cx).saturating_add(bytes) > bytes_max {
            return Err(PutError::Full(bytes_max));
        }
        if cx.published.objects.len() + self.puts.len() >= OBJECTS_MAX {
            return Err(PutError::TooMany(OBJECTS_MAX));
        }
        if cx.store_works() { Ok(()) } else { Err(PutError::Store) }
    }

    /// Bytes of a body have come, perhaps of a file.
    pub fn handle_bytes(&mut self, id: FetchId, bytes: &[u8]) {
        if let Some(put) = self.puts.get_mut(&id) {
            put.hasher.update(bytes);
        }
    }

    /// The manifest of what comes has another segment: ends a file if no name can certify so many.
    pub fn handle_listed(&mut self, cx: &Context, id: FetchId, segment: &Segment) {
        let Some(put) = self.puts.get_mut(&id) else { return };
        if !put.listed(segment) {
            put.error = PutError::TooLong(named_bytes_max(cx));
            self.values.push_back(Value::End(id));
        }
    }

    /// The store did not take all of what comes.
    pub fn handle_refused(&mut self, id: FetchId) {
        if let Some(put) = self.puts.get_mut(&id) {
            put.error = PutError::Store;
        }
    }

    /// A transfer is over. If it was of a file, that has failed.
    pub fn handle_ended(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(put) = self.puts.remove(&id) {
            cx.chunks.keep_for_nobody(id);
            answer(cx, put.exchange, Err(put.error));
            self.unmark(cx);
        }
    }

    /// The disk has all of a file: it gets its name, and is entered under it.
    pub fn handle_written(&mut self, cx: &mut Context, id: FetchId, written: &Record) {
        let Some(put) = self.puts.remove(&id) else { return };
        cx.chunks.keep_for_nobody(id);
        let exchange = put.exchange;
        let Some(root) = put.root() else {
            let drop = Change::DropSegments { record: written.id };
            let output = StoreOutput::Change(cx.ids.draw(), vec![drop]);
            cx.out.push_back(Output::Store(output));
            answer(cx, exchange, Err(PutError::TooLong(named_bytes_max(cx))));
            return self.unmark(cx);
        };
        let name = root.name();
        let key = named::key(&name, &cx.config.secret);
        // What was put before is put again: it may have lost something. Without units to be sealed, perhaps
        // under another mesh key.
        let before = cx.published.objects.get(&name).copied();
        let (same, other) = (before.filter(|it| !it.foreign), before.filter(|it| it.foreign));
        let (bytes, since) = (root.length, cx.date());
        let new = Object { bytes, since, key, foreign: false, whole: false };
        cx.published.objects.insert(name, same.unwrap_or(new));
        let record = Record {
            id: named::record_id(&name),
            headers: named::headers(&name, &root.encode()),
            ..Record::clone(written)
        };
        let remove = other.map(|it| Change::Remove { key: it.key });
        let adopt = Change::Adopt { from: written.id, to: record.id };
        let changes = remove.into_iter().chain([adopt]);
        let changes = changes.chain(enter(cx, key, &name, record)).collect();
        self.change(cx, changes, Waiter { exchange, name, withdraws: false, before });
    }
}

/// What enters an object into the catalogue.
fn enter(cx: &mut Context, key: ObjectKey, name: &Oid, record: Record) -> [Change; 2] {
    let mut row = Row::default();
    if cx.config.secret == OPEN_KEY {
        row.uri = named::uri(name);
    }
    let records = vec![record.id];
    row.put(Rc::new(record));
    let put = Change::Put { key, row: row.encode(), records };
    cx.rows.learn(key, Rc::new(row));
    [put, Change::Keep { key }]
}

/// The most bytes of a file that a name can certify here for certain.
fn named_bytes_max(cx: &Context) -> u64 {
    Root::bytes_max(cx.config.profile, cx.sealer.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use content::{ManifestBuilder, Profile};

    #[test]
    fn a_manifest_that_no_root_can_certify_is_seen_with_its_first_segment_too_many() {
        let mut put = Put::new(ExchangeId(1), 0);
        let segment = ManifestBuilder::new(Profile::DEFAULT).close();
        assert!((0..Root::SEGMENTS_MAX).all(|_| put.listed(&segment)));
        assert!(!put.listed(&segment));
        assert_eq!(put.root(), None);
    }
}
