//! Putting a file: it is received, cut and written like an origin's body. When all of it is on
//! disk, it gets its name, and is entered in the catalogue.

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

/// Published objects take at most the store's size divided by this: cached objects need room, too.
const SHARE: u64 = 2;

/// A file being put.
#[derive(Debug)]
pub struct Put {
    pub exchange: ExchangeId,
    /// Its announced length.
    pub bytes: u64,
    /// The hash of all bytes so far.
    hasher: blake3::Hasher,
    /// The digest of each segment so far.
    segments: Vec<[u8; 32]>,
    /// The answer if it ends now.
    error: PutError,
}

impl Put {
    fn new(exchange: ExchangeId, bytes: u64) -> Self {
        let hasher = blake3::Hasher::new();
        Self { exchange, bytes, hasher, segments: Vec::new(), error: PutError::Broken }
    }

    /// Adds a segment of the manifest; false if there are more than a root can hold.
    fn listed(&mut self, segment: &Segment) -> bool {
        self.segments.push(Segment::digest(&segment.encode()));
        self.segments.len() <= Root::SEGMENTS_MAX
    }

    /// The root of the complete file; `None` if it is too long for one.
    fn root(self) -> Option<Root> {
        let content = *self.hasher.finalize().as_bytes();
        let fits = self.segments.len() <= Root::SEGMENTS_MAX;
        fits.then_some(Root { length: self.bytes, content, segments: self.segments })
    }
}

impl Publish {
    /// A client wants to publish a file of this length.
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

    /// Bytes of a body have arrived, perhaps of a file.
    pub fn handle_bytes(&mut self, id: FetchId, bytes: &[u8]) {
        if let Some(put) = self.puts.get_mut(&id) {
            put.hasher.update(bytes);
        }
    }

    /// A manifest has another segment. If it belongs to a file and is one too many for a root, the
    /// file is refused.
    pub fn handle_listed(&mut self, cx: &Context, id: FetchId, segment: &Segment) {
        let Some(put) = self.puts.get_mut(&id) else { return };
        if !put.listed(segment) {
            put.error = PutError::TooLong(named_bytes_max(cx));
            self.values.push_back(Value::End(id));
        }
    }

    /// The store did not take all of a transfer.
    pub fn handle_refused(&mut self, id: FetchId) {
        if let Some(put) = self.puts.get_mut(&id) {
            put.error = PutError::Store;
        }
    }

    /// A transfer has ended. If it was a file, publishing has failed.
    pub fn handle_ended(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(put) = self.puts.remove(&id) {
            cx.chunks.keep_for_nobody(id);
            answer(cx, put.exchange, Err(put.error));
            self.unmark(cx);
        }
    }

    /// All of a file is on disk: it gets its name and is entered in the catalogue.
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
        // A file published before may be put again, because part of it was lost. If its old entry
        // is from another mesh key, that entry is replaced.
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

/// The changes that enter an object in the catalogue.
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

/// The length in bytes up to which a file is certain to fit a root.
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
