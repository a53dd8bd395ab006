//! Publishing: a file comes in like an origin's body, is cut, named and written like one, and is
//! answered for once all of it is durable.

use super::Node;
use crate::cutting::Cutting;
use crate::exchange::{Ask, Asker, Trail};
use crate::fetch::{self, Fetch};
use crate::http::{Audience, Record, Row};
use crate::input::{Entrance, ExchangeId, FetchId, PutError, Ticket};
use crate::named;
use crate::output::{ClientOutput, Dial, OriginOutput, Output, StoreOutput};
use crate::published::{LIST, OBJECTS_MAX, Object, Put, Waiter};
use crate::storing::{Inflow, Storing};
use ::http::{HeaderMap, Method, StatusCode};
use std::net::Ipv4Addr;
use std::rc::Rc;
use store::Change;
use wire::{ObjectKey, Oid};

/// What is published here and is to be kept takes one part in so many of the store, at most: what is
/// only cached needs room, too.
const SHARE: u64 = 2;

/// Something that this node publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedInfo {
    /// Its name.
    pub name: Oid,
    /// Its length.
    pub bytes: u64,
    /// When it was put.
    pub since: wire::Date,
    /// Whether all of it is here, so that others can have it.
    pub whole: bool,
    /// Whether it was sealed under another mesh key than the present one, or under none: nobody can be given
    /// it.
    pub foreign: bool,
}

impl Node {
    /// All objects that this node publishes, by name.
    ///
    /// # Errors
    /// [`PutError::Unlisted`] if the list of them cannot be read.
    pub fn published(&self) -> Result<Vec<PublishedInfo>, PutError> {
        if self.published.unread {
            return Err(PutError::Unlisted);
        }
        let info = |(name, object): (&Oid, &Object)| {
            let Object { bytes, since, whole, foreign, .. } = *object;
            PublishedInfo { name: *name, bytes, since, whole, foreign }
        };
        Ok(self.published.objects.iter().map(info).collect())
    }

    /// The most bytes that can be published here.
    pub fn published_bytes_max(&self) -> u64 {
        self.cx.chunks.index().budget_bytes() / SHARE
    }

    /// The most bytes of a file that a name can certify here for certain.
    fn named_bytes_max(&self) -> u64 {
        content::Root::bytes_max(self.cx.config.profile, self.cx.sealer.is_some())
    }

    /// The manifest of a file has another segment: ends the transfer if no name can certify so many.
    pub(super) fn put_listed(&mut self, id: FetchId, segment: &content::Segment) {
        let too_long = PutError::TooLong(self.named_bytes_max());
        let Some(put) = self.published.puts.get_mut(&id) else { return };
        if !put.listed(segment) {
            put.error = too_long;
            self.cx.turns.end(id);
        }
    }

    /// Somebody wants to publish a file of this length.
    pub(super) fn put(&mut self, exchange: ExchangeId, bytes: u64) {
        if self.published.unread {
            let output = ClientOutput::Published(exchange, Err(PutError::Unlisted));
            return self.cx.out.push_back(Output::Client(output));
        }
        if !self.published.loaded {
            return self.published.early.push((exchange, bytes));
        }
        if let Err(error) = self.may_put(bytes) {
            let output = ClientOutput::Published(exchange, Err(error));
            return self.cx.out.push_back(Output::Client(output));
        }
        let id = self.cx.tickets.fetch();
        let inflow =
            Inflow::Cut(Box::new(Cutting::new(self.cx.config.profile, self.cx.sealer.clone())));
        let (received, right) = (self.cx.date(), self.cx.clock_right());
        let record = self.cx.dice.record_id();
        let came = (received, right);
        let mut storing = Storing::new(record, StatusCode::OK, HeaderMap::new(), came, inflow);
        storing.announced = Some(bytes);
        storing.voucher = Some(named::VOUCHER);
        let fetch = Fetch {
            state: fetch::State::Storing(Box::new(storing)),
            ..Fetch::new(Rc::new(nobodys()), received, "put", Vec::new())
        };
        self.fetches.insert(id, fetch);
        self.published.puts.insert(id, Put::new(exchange, bytes));
        self.cx.chunks.keep_for(id);
        self.cx.out.push_back(Output::Origin(OriginOutput::TakeIn(exchange, id)));
        self.cx.turns.dirty(id);
    }

    fn may_put(&self, bytes: u64) -> Result<(), PutError> {
        let (published, bytes_max) = (&self.published, self.published_bytes_max());
        if bytes > self.named_bytes_max() {
            return Err(PutError::TooLong(self.named_bytes_max()));
        }
        if bytes > self.cx.config.object_bytes_max {
            return Err(PutError::TooLarge(self.cx.config.object_bytes_max));
        }
        if published.bytes().saturating_add(bytes) > bytes_max {
            return Err(PutError::Full(bytes_max));
        }
        if published.objects.len() + published.puts.len() >= OBJECTS_MAX {
            return Err(PutError::TooMany(OBJECTS_MAX));
        }
        if self.cx.store_works() { Ok(()) } else { Err(PutError::Store) }
    }

    /// Whoever wanted to publish, or to take something back, has left: nobody is to be told.
    pub(super) fn put_left(&mut self, exchange: ExchangeId) {
        let of = |(id, put): (&FetchId, &Put)| (put.exchange == exchange).then_some(*id);
        self.published.early.retain(|(early, _)| *early != exchange);
        if let Some(id) = self.published.puts.iter().find_map(of) {
            self.cx.turns.end(id);
        }
    }

    /// A transfer is over. If it was of a file, that has failed.
    pub(super) fn put_ends(&mut self, id: FetchId) {
        self.cx.chunks.keep_for_nobody(id);
        if let Some(put) = self.published.puts.remove(&id) {
            let output = ClientOutput::Published(put.exchange, Err(put.error));
            self.cx.out.push_back(Output::Client(output));
            self.unmark();
        }
    }

    /// The disk has all of a file: it gets its name, and is entered under it.
    pub(super) fn put_written(&mut self, id: FetchId) {
        let Some(put) = self.published.puts.remove(&id) else { return };
        let Some(storing) = self.fetches.get_mut(&id).and_then(Fetch::storing) else { return };
        let (record, whole) = (storing.record, storing.whole.take());
        self.remove_fetch(id);
        let exchange = put.exchange;
        let Some((written, root)) = whole.zip(put.root()) else {
            let drop = Change::DropSegments { record };
            self.cx
                .out
                .push_back(Output::Store(StoreOutput::Change(self.cx.tickets.draw(), vec![drop])));
            let error = PutError::TooLong(self.named_bytes_max());
            self.cx.out.push_back(Output::Client(ClientOutput::Published(exchange, Err(error))));
            return self.unmark();
        };
        let (name, text) = (root.name(), root.encode());
        let record = Record {
            id: named::record_id(&name),
            headers: named::headers(&name, &text),
            ..Record::clone(&written)
        };
        let key = named::key(&name, &self.cx.config.secret);
        // What was put before is put again: it may have lost something. Without units to be sealed, perhaps
        // under another mesh key.
        let before = self.published.objects.get(&name).copied();
        let (same, other) = (before.filter(|it| !it.foreign), before.filter(|it| it.foreign));
        let (bytes, since) = (root.length, self.cx.date());
        let new = Object { bytes, since, key, foreign: false, whole: false };
        self.published.objects.insert(name, same.unwrap_or(new));
        let mut changes: Vec<_> =
            other.map(|it| Change::Remove { key: it.key }).into_iter().collect();
        changes.push(Change::Adopt { from: written.id, to: record.id });
        let waiter = Waiter { exchange, name, withdraws: false, before };
        self.enter_published(changes, (key, record), waiter);
    }

    /// Enters an object into the catalogue: after these changes its row, and the list.
    fn enter_published(
        &mut self,
        mut changes: Vec<Change>,
        (key, record): (ObjectKey, Record),
        waiter: Waiter,
    ) {
        let mut row = Row::default();
        if self.cx.config.secret == crate::http::OPEN_KEY {
            row.uri = named::uri(&waiter.name);
        }
        let records = vec![record.id];
        row.put(Rc::new(record));
        let put = Change::Put { key, row: row.encode(), records };
        self.cx.rows.learn(key, Rc::new(row));
        changes.extend([put, Change::Keep { key }]);
        changes.extend(self.list());
        self.change_published(changes, waiter);
    }

    /// The list of what is published, as it is now.
    fn list(&self) -> [Change; 2] {
        let put = Change::Put { key: LIST, row: self.published.encode(), records: Vec::new() };
        [put, Change::Keep { key: LIST }]
    }

    fn change_published(&mut self, changes: Vec<Change>, waiter: Waiter) {
        let ticket = self.cx.tickets.draw();
        self.published.changes.insert(ticket, waiter);
        self.cx.out.push_back(Output::Store(StoreOutput::Change(ticket, changes)));
        self.cx.dirty();
    }

    /// The catalogue has entered an object, or taken it out, or could not; false if that was not asked.
    pub(super) fn published_changed(&mut self, ticket: Ticket, done: bool) -> bool {
        let Some(waiter) = self.published.changes.remove(&ticket) else { return false };
        match (done, waiter.withdraws) {
            (true, true) => self.sync_for(vec![waiter]),
            (true, false) => {
                self.published.unwalked.push(waiter);
                self.published.to_walk.push_back(waiter.name);
                self.walk_on();
            }
            (false, withdraws) => {
                match waiter.before {
                    Some(before) => self.published.objects.insert(waiter.name, before),
                    None => self.published.objects.remove(&waiter.name),
                };
                if !withdraws {
                    self.cx.rows.unlearn(&named::key(&waiter.name, &self.cx.config.secret));
                }
                self.leads_elsewhere();
                self.answer_put(waiter, Err(PutError::Store));
                self.unmark();
            }
        }
        true
    }

    /// Makes all that was written durable, for somebody.
    pub(super) fn sync_for(&mut self, waiters: Vec<Waiter>) {
        self.published.syncs.push_back(waiters);
        self.cx.syncing = true;
        self.cx.segments.write(&mut self.cx.tickets, &mut self.cx.out);
        self.cx.out.push_back(Output::Store(StoreOutput::Sync));
    }

    /// What was written before the oldest sync is durable, or could not be made so.
    pub(super) fn published_synced(&mut self, done: bool) {
        for waiter in self.published.syncs.pop_front().unwrap_or_default() {
            let result = if done { Ok(waiter.name) } else { Err(PutError::Store) };
            if done && !waiter.withdraws {
                self.tell_of(&waiter.name);
            }
            self.answer_put(waiter, result);
        }
    }

    /// An object is here for certain: others may know.
    pub(super) fn tell_of(&mut self, name: &Oid) {
        if let Some(object) = self.published.objects.get_mut(name) {
            object.whole = true;
        }
        self.leads_elsewhere();
    }

    pub(super) fn answer_put(&mut self, waiter: Waiter, result: Result<Oid, PutError>) {
        self.cx.out.push_back(Output::Client(ClientOutput::Published(waiter.exchange, result)));
    }

    /// An object is not to be published here any more.
    pub(super) fn withdraw(&mut self, exchange: ExchangeId, name: Oid) {
        let before = self.published.objects.remove(&name);
        let waiter = Waiter { exchange, name, withdraws: true, before };
        let Some(Object { key, .. }) = before else {
            let unread = self.published.unread;
            let error = if unread { PutError::Unlisted } else { PutError::Unknown };
            return self.answer_put(waiter, Err(error));
        };
        self.leads_elsewhere();
        self.answer_unwalked(&name, PutError::Unknown);
        self.cx.rows.unlearn(&key);
        let mut changes = vec![Change::Remove { key }];
        changes.extend(self.list());
        self.change_published(changes, waiter);
        self.published.walk.take_if(|walk| walk.name == name);
        self.unmark();
    }
}

/// What a transfer is made of that nobody has asked for.
fn nobodys() -> Ask {
    let target = named::target(&Oid([0; 32])).with_path("/");
    Ask {
        asker: Asker::Client,
        trail: Trail::default(),
        method: Method::PUT,
        key: target.key(&[0; 32], Audience::ThisMachine),
        dial: Dial::Name(target.host().to_owned(), target.port()),
        target,
        named: None,
        headers: HeaderMap::new(),
        client: Ipv4Addr::LOCALHOST.into(),
        audience: Audience::ThisMachine,
        may_turn_home: false,
        entrance: Entrance::Explicit,
        has_body: true,
        upgrade: false,
        alone: true,
        cookies: HeaderMap::new(),
        verified: false,
    }
}
