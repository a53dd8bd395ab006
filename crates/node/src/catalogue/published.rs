//! The objects that are published here.
//!
//! *What this is:* a list, which the catalogue stores in one row. *Who writes it:* only the machine
//! `publish`. *Who reads it:* the machines that hold records or send hints to peers. *What it never
//! does:* hold more of an object than a few numbers.

use crate::named;
use std::collections::BTreeMap;
use wire::{Date, ObjectKey, Oid, RecordId};

/// The most objects that one node publishes.
pub const OBJECTS_MAX: usize = 1024;
/// The list's key in the catalogue: no URI has this key.
pub const LIST: ObjectKey = ObjectKey(*b"hearsay: what is published here.");

/// The first byte of the list. Other rows begin with a 1.
const VERSION: u8 = b'Q';
/// The length of an entry: the object's name, its row's key, its length, and the time at which it was
/// put. The row's key shows under which mesh key it was put.
const ENTRY: usize = Oid::LEN + 32 + 16;

/// The list; see the module.
#[derive(Debug, Default)]
pub struct Published {
    pub objects: BTreeMap<Oid, Object>,
}

/// An object that is published here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// The object's length, in bytes.
    pub bytes: u64,
    /// When the object was put.
    pub since: Date,
    /// The key of the object's row.
    pub key: ObjectKey,
    /// The object was sealed under another mesh key than the present one, or under none: it cannot be served.
    pub foreign: bool,
    /// The object's record and all its units are stored: it may be announced to peers.
    pub whole: bool,
}

/// An object that this node publishes, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedInfo {
    /// The object's name.
    pub name: Oid,
    /// The key of its row.
    pub key: ObjectKey,
    /// The object's length, in bytes.
    pub bytes: u64,
    /// When the object was put.
    pub since: Date,
    /// Whether the record and all units are stored, so that the object can be served.
    pub whole: bool,
    /// Whether the object was sealed under another mesh key than the present one, or under none: it
    /// then cannot be served.
    pub foreign: bool,
}

impl Published {
    /// Whether an object is published here under the present mesh key.
    pub fn has(&self, name: &Oid) -> bool {
        self.objects.get(name).is_some_and(|object| !object.foreign)
    }

    /// The object to which a record belongs, if it is published here.
    pub fn of_record(&self, record: RecordId) -> Option<Oid> {
        self.objects.keys().find(|name| named::record_id(name) == record).copied()
    }

    /// The length of all objects together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.objects.values().map(|object| object.bytes).fold(0, u64::saturating_add)
    }

    /// All objects, by name.
    pub fn infos(&self) -> Vec<PublishedInfo> {
        let info = |(name, object): (&Oid, &Object)| {
            let Object { bytes, since, key, whole, foreign } = *object;
            PublishedInfo { name: *name, key, bytes, since, whole, foreign }
        };
        self.objects.iter().map(info).collect()
    }

    /// Sets whether all of an object is stored; false if it is not published here.
    pub fn set_whole(&mut self, name: &Oid, whole: bool) -> bool {
        let object = self.objects.get_mut(name);
        object.map(|object| object.whole = whole).is_some()
    }

    /// The names of objects that may be announced to peers.
    pub fn names(&self) -> impl Iterator<Item = Oid> {
        let may = |(_, object): &(&Oid, &Object)| object.whole && !object.foreign;
        self.objects.iter().filter(may).map(|(name, _)| *name)
    }

    /// How many objects were sealed under another mesh key than the present one.
    pub fn foreign(&self) -> usize {
        self.objects.values().filter(|object| object.foreign).count()
    }

    /// The list as the catalogue stores it.
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

    /// Reads a list that [`encode`](Self::encode) wrote; `None` if the bytes are malformed. `secret` is
    /// the present mesh key.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_reads_back_and_is_no_row() {
        let secret = [7; 32];
        let read = |bytes: &[u8]| Published::decode(bytes, &secret);
        let mut published = Published::default();
        assert_eq!(read(&published.encode()), Some(BTreeMap::new()));
        for number in 0..3 {
            let (name, since) = (Oid([number; 32]), Date::from_unix(1000 + u64::from(number)));
            // The last object was put under another mesh key.
            let (key, foreign) = (named::key(&name, &[7 + number / 2; 32]), number == 2);
            let object = Object { bytes: 7 << number, since, key, foreign, whole: false };
            published.objects.insert(name, object);
        }
        let bytes = published.encode();
        assert_eq!(read(&bytes), Some(published.objects));
        assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        assert_eq!(crate::Row::decode(&bytes), None);
        // The former format, without keys, has another first byte: five of its entries are as long as
        // three now.
        assert_eq!(read(&[&b"P"[..], &[7; 5 * 48]].concat()), None);
        assert_eq!(read(&crate::Row::default().encode()), None);
    }

    #[test]
    fn a_full_list_reads_back_and_a_longer_one_does_not() {
        let secret = [7; 32];
        let listed = |count: u32| {
            let names =
                (0..count).map(|number| Oid(*blake3::hash(&number.to_le_bytes()).as_bytes()));
            let object = |name| {
                let (key, since) = (named::key(&name, &secret), Date::from_unix(1000));
                (name, Object { bytes: 7, since, key, foreign: false, whole: false })
            };
            Published { objects: names.map(object).collect() }
        };
        let read = |list: &Published| Published::decode(&list.encode(), &secret);
        assert_eq!(read(&listed(1024)), Some(listed(1024).objects));
        assert_eq!(read(&listed(1025)), None);
    }
}
