//! Keeps what is published: at each start and after each change, the manifests of published objects
//! are walked, and their units marked so that they are not evicted. During the walk nothing is
//! evicted.

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

/// The walk through an object's manifest.
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
    /// The next segment of the manifest; the root certifies it.
    Segment { record: RecordId, root: Root, next: u32 },
}

impl Publish {
    /// Units may be marked that no object needs any more. Since objects may share units, all marks
    /// are removed and set again, once no file is being put.
    pub(super) fn unmark(&mut self, cx: &mut Context) {
        self.overmarked = true;
        self.walk_on(cx);
    }

    /// Begins the walk of the next object, unless one is under way.
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

    /// The next object to be walked, and its row's key.
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
                // The object was withdrawn before all of it was marked.
                None => self.answer_unwalked(cx, &name, PutError::Unknown),
            }
        }
    }

    /// A row was read from the catalogue; it may be that of the walked object.
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

    /// A segment was read, perhaps for the walk; `None` if it is gone.
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
        // The segment was read for a request.
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

    /// A record was removed, perhaps that of a published object.
    pub fn handle_forgotten(&self, cx: &mut Context, record: RecordId) {
        if let Some(name) = cx.published.of_record(record) {
            spoil(cx, &name);
        }
    }

    /// A walk has ended. `whole`: all units of the object are stored.
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

    /// Answers the requests that wait for an object's walk with an error.
    pub(super) fn answer_unwalked(&mut self, cx: &mut Context, name: &Oid, error: PutError) {
        for waiter in self.take_unwalked(name) {
            answer(cx, waiter.exchange, Err(error));
        }
    }
}

/// Part of a published object is lost: this node no longer announces it until it is put again.
fn spoil(cx: &mut Context, name: &Oid) {
    if cx.published.set_whole(name, false) {
        hints::leads_elsewhere(cx);
        cx.events.emit(|| Event::PublishedLost { object: *name });
        cx.notice(format!("the published object {name} is not whole here any more: put it again"));
    }
}
