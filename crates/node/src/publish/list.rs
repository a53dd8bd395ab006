//! The list of what is published here: it is read from the catalogue, and changed there, before anybody is answered.

use super::{Publish, Waiter, answer};
use crate::catalogue::{LIST, Object, Published, PublishedInfo};
use crate::context::{Context, STORE_RETRY};
use crate::events::Event;
use crate::hints;
use crate::input::{ExchangeId, PutError, Ticket};
use crate::named;
use crate::output::{Output, StoreOutput};
use std::collections::BTreeMap;
use store::{CATALOGUE_FILE, Change};
use wire::{Instant, Oid};

/// Whether the list is known.
#[derive(Debug, Default)]
pub enum List {
    /// The catalogue is still to be asked for it.
    #[default]
    Unasked,
    /// It was asked, and has not answered: who wants to publish so many bytes meanwhile waits.
    Asked(Vec<(ExchangeId, u64)>),
    /// It is there, for all that is known, and cannot be read; when it is to be tried again, if it is not being.
    Unread(Option<Instant>),
    /// It is: nothing changes it but what is done here.
    Loaded,
}

impl Publish {
    /// All that is published here, by name.
    pub fn list(&self, cx: &Context) -> Result<Vec<PublishedInfo>, PutError> {
        if self.is_unread() { Err(PutError::Unlisted) } else { Ok(cx.published.infos()) }
    }

    /// Whether the list is there, for all that is known, and cannot be read.
    pub fn is_unread(&self) -> bool {
        matches!(self.list, List::Unread(_))
    }

    /// When the list is to be tried again.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if let List::Unread(again_at) = self.list { again_at } else { None }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        if let List::Unread(again_at) = &mut self.list
            && again_at.take_if(|at| *at <= cx.now).is_some()
        {
            cx.out.push_back(Output::Store(StoreOutput::Lookup(LIST)));
        }
    }

    /// Asks for the list, once.
    pub fn load(&mut self, cx: &mut Context) {
        if let List::Unasked = self.list {
            self.list = List::Asked(Vec::new());
            // What is to be kept is not known yet.
            cx.chunks.reclaim_nothing(true);
            cx.out.push_back(Output::Store(StoreOutput::Lookup(LIST)));
        }
    }

    /// The catalogue has the list, or none.
    pub fn handle_list(&mut self, cx: &mut Context, bytes: Option<&[u8]>) {
        // No list is an empty one; one that means nothing is not.
        let decode = |bytes| Published::decode(bytes, &cx.config.secret);
        match bytes.map_or(Some(BTreeMap::new()), decode) {
            Some(objects) => self.list_read(cx, objects),
            None => self.handle_list_unread(cx),
        }
    }

    fn list_read(&mut self, cx: &mut Context, objects: BTreeMap<Oid, Object>) {
        let early = match std::mem::replace(&mut self.list, List::Loaded) {
            List::Loaded => return,
            List::Asked(early) => early,
            List::Unasked | List::Unread(_) => Vec::new(),
        };
        cx.published.objects = objects;
        say_foreign(cx);
        self.to_walk = cx.published.objects.keys().copied().collect();
        for (exchange, length) in early {
            self.handle_put(cx, exchange, length);
        }
        self.walk_on(cx);
    }

    /// The list is not to be had. Until it is, nothing is put, which would take its place, and nothing is
    /// reclaimed, which may be promised.
    pub fn handle_list_unread(&mut self, cx: &mut Context) {
        let again_at = Some(cx.now + STORE_RETRY);
        let early = match &mut self.list {
            List::Loaded => return,
            List::Unread(at) => return *at = again_at,
            List::Asked(early) => std::mem::take(early),
            List::Unasked => Vec::new(),
        };
        self.list = List::Unread(again_at);
        for (exchange, _) in early {
            answer(cx, exchange, Err(PutError::Unlisted));
        }
        cx.notice(format!(
            "the list of what is published here cannot be read, in the store's file \
             `{CATALOGUE_FILE}`: nothing can be published or leave the store until it can. It is tried \
             again every {} s; if it stays so, stop hearsay, move that file away, and put again what \
             is to be published",
            STORE_RETRY.as_secs()
        ));
    }

    /// An object is not to be published here any more.
    pub fn handle_withdraw(&mut self, cx: &mut Context, exchange: ExchangeId, name: Oid) {
        let Some(object) = cx.published.objects.remove(&name) else {
            let unread = self.is_unread();
            let error = if unread { PutError::Unlisted } else { PutError::Unknown };
            return answer(cx, exchange, Err(error));
        };
        hints::leads_elsewhere(cx);
        self.answer_unwalked(cx, &name, PutError::Unknown);
        cx.rows.unlearn(&object.key);
        let waiter = Waiter { exchange, name, withdraws: true, before: Some(object) };
        self.change(cx, vec![Change::Remove { key: object.key }], waiter);
        self.walk.take_if(|walk| walk.name == name);
        self.unmark(cx);
    }

    /// Has the catalogue make changes, and write the list as it is now.
    pub(super) fn change(&mut self, cx: &mut Context, mut changes: Vec<Change>, waiter: Waiter) {
        let put = Change::Put { key: LIST, row: cx.published.encode(), records: Vec::new() };
        changes.extend([put, Change::Keep { key: LIST }]);
        let ticket = cx.ids.draw();
        self.changes.insert(ticket, waiter);
        cx.out.push_back(Output::Store(StoreOutput::Change(ticket, changes)));
        cx.dirty();
    }

    /// The catalogue has entered an object, or taken it out, or could not; false if that was not asked.
    pub fn handle_changed(&mut self, cx: &mut Context, ticket: Ticket, done: bool) -> bool {
        let Some(waiter) = self.changes.remove(&ticket) else { return false };
        if !done {
            self.undo(cx, waiter);
        } else if waiter.withdraws {
            self.sync_for(cx, vec![waiter]);
        } else {
            self.unwalked.push(waiter);
            self.to_walk.push_back(waiter.name);
            self.walk_on(cx);
        }
        true
    }

    /// All is as it was before somebody wanted it otherwise.
    fn undo(&mut self, cx: &mut Context, waiter: Waiter) {
        match waiter.before {
            Some(before) => cx.published.objects.insert(waiter.name, before),
            None => cx.published.objects.remove(&waiter.name),
        };
        if !waiter.withdraws {
            cx.rows.unlearn(&named::key(&waiter.name, &cx.config.secret));
        }
        hints::leads_elsewhere(cx);
        answer(cx, waiter.exchange, Err(PutError::Store));
        self.unmark(cx);
    }

    /// Makes all that was written durable, for somebody.
    pub(super) fn sync_for(&mut self, cx: &mut Context, waiters: Vec<Waiter>) {
        let sync = cx.sync();
        self.undurable.extend(waiters.into_iter().map(|waiter| (sync, waiter)));
    }

    /// What was written before a sync is durable, or could not be made so.
    pub fn handle_synced(&mut self, cx: &mut Context, sync: u64, done: bool) {
        while self.undurable.front().is_some_and(|(awaited, _)| *awaited <= sync) {
            let Some((_, waiter)) = self.undurable.pop_front() else { return };
            if done && !waiter.withdraws {
                hints::tell_of(cx, &waiter.name);
            }
            let Waiter { exchange, name, withdraws, .. } = waiter;
            if done {
                cx.events.emit(|| Event::Published { object: name, published: !withdraws });
            }
            answer(cx, exchange, if done { Ok(name) } else { Err(PutError::Store) });
        }
    }
}

/// What was put under another mesh key stays, lest a mistake in the configuration costs it; but nobody
/// can be given it, and that is said.
fn say_foreign(cx: &mut Context) {
    let foreign = cx.published.foreign();
    if foreign > 0 {
        cx.notice(format!(
            "{foreign} of the published objects were sealed under another mesh key, or under none, and nobody \
             can be given them: bring that key back, or take them back (`hearsay put --list`, \
             `--remove OID`), and put the files again, under other names"
        ));
    }
}
