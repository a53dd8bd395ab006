//! What is published here, and what is on its way to being published.
//!
//! *What this is:* the list of published objects, which rests in one row of the catalogue; files that are
//! being put; and the walk through their manifests, by which their units are kept. *Who calls it:*
//! `node/put.rs` takes files in, `node/keeping.rs` walks. *What it never does:* hold an object's bytes,
//! or more of its manifest than one digest for each segment.
//!
//! *What survives a crash:* what was answered for. The list, the row and the manifest of an object are
//! changed together; units are written before, and are marked to be kept anew at each start.

use crate::hasher::Map;
use crate::input::{ExchangeId, FetchId, PutError, Ticket};
use crate::named;
use content::{Root, Segment};
use std::collections::{BTreeMap, VecDeque};
use wire::{Date, Instant, ObjectKey, Oid, RecordId};

/// Objects that one node publishes, at most.
pub const OBJECTS_MAX: usize = 1024;
/// Where the list rests in the catalogue: no URI has this key.
pub const LIST: ObjectKey = ObjectKey(*b"hearsay: what is published here.");

/// Rows of the catalogue begin with a one.
const VERSION: u8 = b'Q';
/// An entry of the list: a name, where its row rests, its length, when it was put. The key tells under which
/// mesh key it was put.
const ENTRY: usize = Oid::LEN + 32 + 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Published {
    /// The catalogue was asked for the list; it has answered.
    pub asked: bool,
    pub loaded: bool,
    /// The list is there, for all that is known, and cannot be read.
    pub unread: bool,
    /// When it is to be tried again.
    pub read_again_at: Option<Instant>,
    /// Who wanted to publish before it had.
    pub early: Vec<(ExchangeId, u64)>,
    pub objects: BTreeMap<Oid, Object>,
    /// Files that are being put.
    pub puts: Map<FetchId, Put>,
    /// Changes that the catalogue was asked for.
    pub changes: Map<Ticket, Waiter>,
    /// Objects whose units are to be marked.
    pub to_walk: VecDeque<Oid>,
    pub walk: Option<Walk>,
    /// Who waits for an object to be walked through.
    pub unwalked: Vec<Waiter>,
    /// Units are marked that no object needs any more.
    pub overmarked: bool,
    /// For each sync that was asked for, who waits for it.
    pub syncs: VecDeque<Vec<Waiter>>,
}

/// An object that is published here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its length.
    pub bytes: u64,
    /// When it was put.
    pub since: Date,
    /// Where its row rests.
    pub key: ObjectKey,
    /// It was sealed under another mesh key than the present one, or under none: nobody can be given it.
    pub foreign: bool,
    /// Its record and all its units are here: others may be told of it.
    pub whole: bool,
}

/// Somebody who waits until something is done about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    pub exchange: ExchangeId,
    pub name: Oid,
    /// It is taken back; else published.
    pub withdraws: bool,
    /// The object as it was published before, which is what the catalogue has if it fails.
    pub before: Option<Object>,
}

/// A file while it comes.
#[derive(Debug)]
pub struct Put {
    pub exchange: ExchangeId,
    /// Its length, as was announced.
    pub bytes: u64,
    /// Of all that has come.
    pub hasher: blake3::Hasher,
    /// Of each segment of its manifest so far.
    pub segments: Vec<[u8; 32]>,
    /// What will be said if it ends now.
    pub error: PutError,
}

/// Where the marking of an object's units is.
#[derive(Debug)]
pub struct Walk {
    pub name: Oid,
    pub key: ObjectKey,
    /// The record and what certifies its segments, once the row is known.
    pub record: Option<(RecordId, Root)>,
    /// The next segment.
    pub next: u32,
    /// Something of it is not here.
    pub lacks: bool,
}

impl Published {
    /// Notes bytes of a file.
    pub fn came(&mut self, id: FetchId, bytes: &[u8]) {
        if let Some(put) = self.puts.get_mut(&id) {
            put.hasher.update(bytes);
        }
    }

    /// Bytes that are published, or will be when what is under way has come.
    pub fn bytes(&self) -> u64 {
        let objects = self.objects.values().map(|object| object.bytes);
        objects.chain(self.puts.values().map(|put| put.bytes)).fold(0, u64::saturating_add)
    }

    /// Whether files are on their way to being published: their units are marked, and no object has them yet.
    pub fn is_busy(&self) -> bool {
        let is_entered = self.changes.values().all(|waiter| waiter.withdraws);
        !self.puts.is_empty() || !is_entered || !self.unwalked.is_empty()
    }

    /// The names of objects that others may be told of.
    pub fn names(&self) -> impl Iterator<Item = Oid> {
        let may = |(_, object): &(&Oid, &Object)| object.whole && !object.foreign;
        self.objects.iter().filter(may).map(|(name, _)| *name)
    }

    /// How many objects were sealed under another mesh key.
    pub fn foreign(&self) -> usize {
        self.objects.values().filter(|object| object.foreign).count()
    }

    /// The list as the catalogue keeps it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1 + self.objects.len() * ENTRY);
        out.push(VERSION);
        for (name, object) in &self.objects {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(object.key.as_bytes());
            out.extend_from_slice(&object.bytes.to_be_bytes());
            out.extend_from_slice(&object.since.as_unix().to_be_bytes());
        }
        out
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` for anything else. `secret` is what keys objects now.
    pub fn decode(bytes: &[u8], secret: &[u8; 32]) -> Option<BTreeMap<Oid, Object>> {
        let (version, entries) = bytes.split_first()?;
        let (entries, []) = entries.as_chunks::<ENTRY>() else { return None };
        if *version != VERSION || entries.len() > OBJECTS_MAX {
            return None;
        }
        entries.iter().map(|entry| object(entry, secret)).collect()
    }
}

fn object(entry: &[u8; ENTRY], secret: &[u8; 32]) -> Option<(Oid, Object)> {
    let (name, rest) = entry.split_first_chunk()?;
    let (key, numbers) = rest.split_first_chunk()?;
    let (bytes, since) = numbers.split_first_chunk()?;
    let (name, key) = (Oid(*name), ObjectKey(*key));
    let since = Date::from_unix(u64::from_be_bytes(since.try_into().ok()?));
    let foreign = key != named::key(&name, secret);
    let bytes = u64::from_be_bytes(*bytes);
    Some((name, Object { bytes, since, key, foreign, whole: false }))
}

impl Put {
    pub fn new(exchange: ExchangeId, bytes: u64) -> Self {
        let hasher = blake3::Hasher::new();
        Self { exchange, bytes, hasher, segments: Vec::new(), error: PutError::Broken }
    }

    /// Notes the next segment of its manifest; false if there are more than a root can have.
    pub fn listed(&mut self, segment: &Segment) -> bool {
        self.segments.push(Segment::digest(&segment.encode()));
        self.segments.len() <= Root::SEGMENTS_MAX
    }

    /// What certifies the file, now that all of it has come; `None` if it is too long for that.
    pub fn root(self) -> Option<Root> {
        let content = *self.hasher.finalize().as_bytes();
        let fits = self.segments.len() <= Root::SEGMENTS_MAX;
        fits.then_some(Root { length: self.bytes, content, segments: self.segments })
    }
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

    #[test]
    fn the_list_reads_back_and_is_no_row() {
        let secret = [7; 32];
        let read = |bytes: &[u8]| Published::decode(bytes, &secret);
        let mut published = Published::default();
        assert_eq!(read(&published.encode()), Some(BTreeMap::new()));
        for number in 0..3 {
            let (name, since) = (Oid([number; 32]), Date::from_unix(1000 + u64::from(number)));
            // The last was put under another key.
            let (key, foreign) = (named::key(&name, &[7 + number / 2; 32]), number == 2);
            let object = Object { bytes: 7 << number, since, key, foreign, whole: false };
            published.objects.insert(name, object);
        }
        let bytes = published.encode();
        assert_eq!(read(&bytes), Some(published.objects));
        assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        assert_eq!(crate::Row::decode(&bytes), None);
        // Five entries of a name and two numbers, as lists were before they had keys, are as long as three.
        assert_eq!(read(&[&b"P"[..], &[7; 5 * 48]].concat()), None);
        assert_eq!(read(&crate::Row::default().encode()), None);
    }
}
