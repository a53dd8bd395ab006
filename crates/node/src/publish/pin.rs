//! Keeping what is published: at each start, and after each change, the manifests of published objects
//! are walked through, and their units marked so that they outlast what is only cached. Meanwhile
//! nothing is reclaimed.

use super::list::List;
use super::{Publish, Waiter, answer};
use crate::catalogue;
use crate::context::Context;
use crate::events::Event;
use crate::hints;
use crate::http::Row;
use crate::input::PutError;
use crate::named;
use crate::output::{Output, StoreOutput};
use content::Root;
use wire::{ObjectKey, Oid, RecordId};

/// Where the marking of an object's units is.
#[derive(Debug)]
pub struct Walk {
    pub name: Oid,
    key: ObjectKey,
    step: Step,
}

/// What a walk waits for.
#[derive(Debug)]
enum Step {
    /// The object's row.
    Row,
    /// The next segment of its manifest, of those that the root certifies.
    Segment { record: RecordId, root: Root, next: u32 },
}

impl Publish {
    /// Units are marked that no object needs any more. All marks are taken off, and those of what is
    /// published set again, because objects may share units: once no file is on its way.
    pub(super) fn unmark(&mut self, cx: &mut Context) {
        self.overmarked = true;
        self.walk_on(cx);
    }

    /// Goes on with the next object, if none is being walked through.
    pub(super) fn walk_on(&mut self, cx: &mut Context) {
        if self.walk.is_some() || !matches!(self.list, List::Loaded) {
            return;
        }
        let next = self.next_to_walk(cx);
        cx.chunks.reclaim_nothing(next.is_some());
        let Some((name, key)) = next else { return cx.chunks.reclaim(&mut cx.out) };
        self.walk = Some(Walk { name, key, step: Step::Row });
        cx.out.push_back(Output::Store(StoreOutput::Lookup(key)));
    }

    /// The next object to be walked through, and where its row rests.
    fn next_to_walk(&mut self, cx: &mut Context) -> Option<(Oid, ObjectKey)> {
        loop {
            let Some(name) = self.to_walk.pop_front() else {
                if !self.overmarked || self.is_busy() {
                    return None;
                }
                self.overmarked = false;
                cx.chunks.keep_nothing();
                self.to_walk = cx.published.objects.keys().copied().collect();
                continue;
            };
            match cx.published.objects.get(&name) {
                Some(object) => return Some((name, object.key)),
                // It was taken back before it was all here.
                None => self.answer_unwalked(cx, &name, PutError::Unknown),
            }
        }
    }

    /// The catalogue has a row, perhaps that of the object that is being walked through, or none.
    pub fn handle_row(&mut self, cx: &mut Context, key: ObjectKey, bytes: Option<&[u8]>) {
        let Some(walk) = self.walk.as_mut().filter(|walk| walk.key == key) else { return };
        if let Step::Segment { .. } = walk.step {
            return;
        }
        let row = bytes.and_then(Row::decode).unwrap_or_default();
        let id = named::record_id(&walk.name);
        let record = row.records.iter().find(|record| record.id == id);
        match record.and_then(|record| named::root_in(&walk.name, &record.headers)) {
            Some(root) => {
                walk.step = Step::Segment { record: id, root, next: 0 };
                self.ask_segment(cx);
            }
            None => self.walked(cx, false),
        }
    }

    fn ask_segment(&mut self, cx: &mut Context) {
        let Some(Walk { step: Step::Segment { record, root, next }, .. }) = &self.walk else {
            return;
        };
        if (*next as usize) < root.segments.len() {
            cx.out.push_back(Output::Store(StoreOutput::ReadSegment(*record, *next)));
        } else {
            self.walked(cx, true);
        }
    }

    /// A segment of a manifest was read, perhaps for the walk, or is gone.
    pub fn handle_segment(
        &mut self,
        cx: &mut Context,
        (record, number): (RecordId, u32),
        bytes: Option<&[u8]>,
    ) {
        let Some(Walk { step: Step::Segment { record: of, root, next }, .. }) = &mut self.walk
        else {
            return;
        };
        if (*of, *next) != (record, number) {
            return;
        }
        let Some(segment) = bytes.and_then(|bytes| catalogue::certifies_kept(root, bytes)) else {
            return self.walked(cx, false);
        };
        *next += 1;
        let mut lacks = false;
        for entry in &segment.entries {
            lacks |= !cx.chunks.keep(&entry.id);
        }
        if lacks { self.walked(cx, false) } else { self.ask_segment(cx) }
    }

    /// A record is gone, perhaps of a published object.
    pub fn handle_forgotten(&self, cx: &mut Context, record: RecordId) {
        if let Some(name) = cx.published.of_record(record) {
            spoil(cx, &name);
        }
    }

    /// An object has been walked through, or something of it is not here.
    fn walked(&mut self, cx: &mut Context, whole: bool) {
        let Some(Walk { name, .. }) = self.walk.take() else { return };
        if !whole {
            self.answer_unwalked(cx, &name, PutError::Store);
            spoil(cx, &name);
        } else {
            match self.take_unwalked(&name) {
                waiters if waiters.is_empty() => hints::tell_of(cx, &name),
                waiters => self.sync_for(cx, waiters),
            }
        }
        self.walk_on(cx);
    }

    fn take_unwalked(&mut self, name: &Oid) -> Vec<Waiter> {
        self.unwalked.extract_if(.., |waiter| waiter.name == *name).collect()
    }

    /// Whoever waits for an object to be walked through waits in vain.
    pub(super) fn answer_unwalked(&mut self, cx: &mut Context, name: &Oid, error: PutError) {
        for waiter in self.take_unwalked(name) {
            answer(cx, waiter.exchange, Err(error));
        }
    }
}

/// Something of a published object is gone: nobody is sent here for it until it is put again.
fn spoil(cx: &mut Context, name: &Oid) {
    if cx.published.set_whole(name, false) {
        hints::leads_elsewhere(cx);
        cx.events.emit(|| Event::PublishedLost { object: *name });
        cx.notice(format!("the published object {name} is not whole here any more: put it again"));
    }
}
