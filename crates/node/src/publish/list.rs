//! The list of published objects: read from the catalogue, and changed there before any request is
//! answered.

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

/// The state of the list.
#[derive(Debug, Default)]
pub enum List {
    /// Not requested from the catalogue yet.
    #[default]
    Unasked,
    /// Requested. These exchanges wait to publish files of these lengths in bytes.
    Asked(Vec<(ExchangeId, u64)>),
    /// The catalogue may have a list, but it cannot be read. The time of the next attempt, unless
    /// one is under way.
    Unread(Option<Instant>),
    /// Known: from now on only this node changes it.
    Loaded,
}

impl Publish {
    /// All objects published here, by name.
    pub fn list(&self, cx: &Context) -> Result<Vec<PublishedInfo>, PutError> {
        if self.is_unread() { Err(PutError::Unlisted) } else { Ok(cx.published.infos()) }
    }

    /// Whether the catalogue may have a list that cannot be read.
    pub fn is_unread(&self) -> bool {
        matches!(self.list, List::Unread(_))
    }

    /// The time of the next attempt to read the list.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if let List::Unread(again_at) = self.list { again_at } else { None }
    }

    /// Reads the list again, if that is due.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        if let List::Unread(again_at) = &mut self.list
            && again_at.take_if(|at| *at <= cx.now).is_some()
        {
            cx.out.push_back(Output::Store(StoreOutput::Lookup(LIST)));
        }
    }

    /// Requests the list, once.
    pub fn load(&mut self, cx: &mut Context) {
        if let List::Unasked = self.list {
            self.list = List::Asked(Vec::new());
            // Until the list is known, any unit may belong to a published object.
            cx.chunks.reclaim_nothing(true);
            cx.out.push_back(Output::Store(StoreOutput::Lookup(LIST)));
        }
    }

    /// The catalogue's answer: the list, or none.
    pub fn handle_list(&mut self, cx: &mut Context, bytes: Option<&[u8]>) {
        // No list means that nothing is published; one that cannot be decoded does not.
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

    /// The list cannot be read. Until it can, nothing is published, because a new list would
    /// replace it; and no unit is evicted, because it may belong to a published object.
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

    /// Withdraws a published object.
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

    /// Makes these changes in the catalogue together with the list as it is now.
    pub(super) fn change(&mut self, cx: &mut Context, mut changes: Vec<Change>, waiter: Waiter) {
        let put = Change::Put { key: LIST, row: cx.published.encode(), records: Vec::new() };
        changes.extend([put, Change::Keep { key: LIST }]);
        let ticket = cx.ids.draw();
        self.changes.insert(ticket, waiter);
        cx.out.push_back(Output::Store(StoreOutput::Change(ticket, changes)));
        cx.dirty();
    }

    /// The catalogue has made a change, or failed to; false if the change was not for publishing.
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

    /// Restores the state before a change that failed.
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

    /// Starts a sync; the waiters are answered when it has made all writes durable.
    pub(super) fn sync_for(&mut self, cx: &mut Context, waiters: Vec<Waiter>) {
        let sync = cx.sync();
        self.undurable.extend(waiters.into_iter().map(|waiter| (sync, waiter)));
    }

    /// All that was written before a sync is durable, or could not be made so.
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

/// Objects published under another mesh key stay, in case the key in the configuration is a
/// mistake. No client can get them, so the operator is told.
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
