//! Keeping what is published: at each start, and after each change, the manifests of published objects
//! are walked through, and their units marked so that they outlast what is only cached. Meanwhile
//! nothing is reclaimed.

use super::Node;
use super::named::certifies_kept;
use crate::context::STORE_RETRY;
use crate::http::Row;
use crate::input::PutError;
use crate::named;
use crate::output::{ClientOutput, Output, StoreOutput};
use crate::published::{LIST, Object, Published, Waiter, Walk};
use std::collections::BTreeMap;
use store::CATALOGUE_FILE;
use wire::{ObjectKey, Oid, RecordId};

impl Node {
    /// Asks for the list of what is published, once.
    pub(super) fn load_published(&mut self) {
        if !std::mem::replace(&mut self.published.asked, true) {
            // What is to be kept is not known yet.
            self.cx.chunks.reclaim_nothing(true);
            self.cx.out.push_back(Output::Store(StoreOutput::Lookup(LIST)));
        }
    }

    /// The catalogue has the list, or none; false if the row is another.
    pub(super) fn published_row(&mut self, key: ObjectKey, bytes: Option<&[u8]>) -> bool {
        if key == LIST {
            // No list is an empty one; one that means nothing is not.
            let decode = |bytes| Published::decode(bytes, &self.cx.config.secret);
            match bytes.map_or(Some(BTreeMap::new()), decode) {
                Some(objects) => self.list_read(objects),
                None => self.list_unread(),
            }
            return true;
        }
        let Some(walk) = self.published.walk.as_mut().filter(|walk| walk.key == key) else {
            return false;
        };
        if walk.record.is_none() {
            let row = bytes.and_then(Row::decode).unwrap_or_default();
            let id = named::record_id(&walk.name);
            let record = row.records.iter().find(|record| record.id == id);
            let root = record.and_then(|record| named::root_in(&walk.name, &record.headers));
            walk.record = root.map(|root| (id, root));
            walk.lacks = walk.record.is_none();
            self.walk_segment();
        }
        false
    }

    fn list_read(&mut self, objects: BTreeMap<Oid, Object>) {
        if std::mem::replace(&mut self.published.loaded, true) {
            return;
        }
        self.published.unread = false;
        self.published.objects = objects;
        self.say_foreign();
        self.published.to_walk = self.published.objects.keys().copied().collect();
        for (exchange, length) in std::mem::take(&mut self.published.early) {
            self.put(exchange, length);
        }
        self.walk_on();
    }

    /// What was put under another mesh key stays, lest a mistake in the configuration costs it; but nobody
    /// can be given it, and that is said.
    fn say_foreign(&mut self) {
        let foreign = self.published.foreign();
        if foreign > 0 {
            let line = format!(
                "{foreign} of the published objects were sealed under another mesh key, or under none, and nobody \
                 can be given them: bring that key back, or take them back (`hearsay put --list`, \
                 `--remove OID`), and put the files again, under other names"
            );
            self.cx.out.push_back(Output::Notice(line));
        }
    }

    /// The list of what is published is not to be had. Until it is, nothing is put, which would take its
    /// place, and nothing is reclaimed, which may be promised.
    pub(super) fn list_unread(&mut self) {
        if self.published.loaded {
            return;
        }
        self.published.read_again_at = Some(self.cx.now + STORE_RETRY);
        if std::mem::replace(&mut self.published.unread, true) {
            return;
        }
        for (exchange, _) in std::mem::take(&mut self.published.early) {
            let output = ClientOutput::Published(exchange, Err(PutError::Unlisted));
            self.cx.out.push_back(Output::Client(output));
        }
        let line = format!(
            "the list of what is published here cannot be read, in the store's file \
             `{CATALOGUE_FILE}`: nothing can be published or leave the store until it can. It is tried \
             again every {} s; if it stays so, stop hearsay, move that file away, and put again what \
             is to be published",
            STORE_RETRY.as_secs()
        );
        self.cx.out.push_back(Output::Notice(line));
    }

    /// Units are marked that no object needs any more. All marks are taken off, and those of what is
    /// published set again, because objects may share units: once no file is on its way.
    pub(super) fn unmark(&mut self) {
        self.published.overmarked = true;
        self.walk_on();
    }

    /// Goes on with the next object, if none is being walked through.
    pub(super) fn walk_on(&mut self) {
        if self.published.walk.is_some() || !self.published.loaded {
            return;
        }
        let next = loop {
            let next = self.published.to_walk.pop_front();
            let object = next.map(|name| (name, self.published.objects.get(&name)));
            match object {
                // It was taken back before it was all here.
                Some((name, None)) => self.answer_unwalked(&name, PutError::Unknown),
                None if self.published.overmarked && !self.published.is_busy() => {
                    self.published.overmarked = false;
                    self.cx.chunks.keep_nothing();
                    self.published.to_walk = self.published.objects.keys().copied().collect();
                }
                Some((name, Some(object))) => break Some((name, object.key)),
                None => break None,
            }
        };
        self.cx.chunks.reclaim_nothing(next.is_some());
        let Some((name, key)) = next else { return self.cx.chunks.reclaim(&mut self.cx.out) };
        self.published.walk = Some(Walk { name, key, record: None, next: 0, lacks: false });
        self.cx.out.push_back(Output::Store(StoreOutput::Lookup(key)));
    }

    fn walk_segment(&mut self) {
        let Some(walk) = &self.published.walk else { return };
        match &walk.record {
            Some((record, root)) if (walk.next as usize) < root.segments.len() && !walk.lacks => {
                self.cx.out.push_back(Output::Store(StoreOutput::ReadSegment(*record, walk.next)));
            }
            _ => self.walked(),
        }
    }

    /// A segment of a manifest was read, perhaps for the walk.
    pub(super) fn walk_read(&mut self, record: RecordId, number: u32, bytes: Option<&[u8]>) {
        let Some(walk) = &mut self.published.walk else { return };
        let Some((_, root)) = walk.record.as_ref().filter(|(it, _)| *it == record) else { return };
        if walk.next != number {
            return;
        }
        match bytes.and_then(|bytes| certifies_kept(root, bytes)) {
            Some(segment) => {
                for entry in &segment.entries {
                    walk.lacks |= !self.cx.chunks.keep(&entry.id);
                }
            }
            None => walk.lacks = true,
        }
        walk.next += 1;
        self.walk_segment();
    }

    fn walked(&mut self) {
        let Some(Walk { name, lacks, .. }) = self.published.walk.take() else { return };
        if lacks {
            self.answer_unwalked(&name, PutError::Store);
            self.spoilt(&name);
        } else {
            match self.take_unwalked(&name) {
                waiters if waiters.is_empty() => self.tell_of(&name),
                waiters => self.sync_for(waiters),
            }
        }
        self.walk_on();
    }

    fn take_unwalked(&mut self, name: &Oid) -> Vec<Waiter> {
        self.published.unwalked.extract_if(.., |waiter| waiter.name == *name).collect()
    }

    /// Whoever waits for an object to be walked through waits in vain.
    pub(super) fn answer_unwalked(&mut self, name: &Oid, error: PutError) {
        for waiter in self.take_unwalked(name) {
            self.answer_put(waiter, Err(error));
        }
    }

    /// Something of a published object is gone: nobody is sent here for it until it is put again.
    pub(super) fn spoilt(&mut self, name: &Oid) {
        let Some(object) = self.published.objects.get_mut(name) else { return };
        object.whole = false;
        self.leads_elsewhere();
        let line = format!("the published object {name} is not whole here any more: put it again");
        self.cx.out.push_back(Output::Notice(line));
    }
}
