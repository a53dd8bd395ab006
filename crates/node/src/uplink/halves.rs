//! The two halves of a pair's end, by the histories or as published, whichever the connection uses.
//!
//! *What it is:* [`Outward`] and [`Inward`], which hand each call on to one of two. *Why not one trait:* half of the
//! calls exist for one of them only.

use super::messages::Message;
use super::receiver::{Broken, Event, Receiver};
use super::schedule::Rate;
use super::sender::{Record, Sender};
use super::tcp::Kind;
use super::wanax::{self, Published};
use super::work::{Done, Job};
use crate::input::FetchError;
use std::collections::BTreeSet;
use wire::Instant;

/// What an end sends.
pub struct Outward {
    pub ours: Sender,
    pub published: wanax::sender::Sender,
    is_published: bool,
}

/// What an end receives.
#[derive(Default)]
pub struct Inward {
    pub ours: Receiver,
    pub published: wanax::receiver::Receiver,
    is_published: bool,
}

/// Calls the half that is in use.
macro_rules! either {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match $self.is_published {
            true => $self.published.$method($($argument),*),
            false => $self.ours.$method($($argument),*),
        }
    };
}

impl Outward {
    /// A half that uses its history until a connection begins.
    pub fn new(ours: Sender) -> Self {
        Self { ours, published: wanax::sender::Sender::default(), is_published: false }
    }

    /// A connection begins: nothing is on its way. The history holds the positions from `floor` to `end` at both ends.
    pub fn begin(&mut self, end: Option<u64>, floor: u64, scheme: Option<Published>) {
        self.ours.begin(end, floor);
        self.is_published = scheme.is_some();
        if let Some(scheme) = scheme {
            self.published.begin(scheme);
        }
    }

    /// The connection has ended.
    pub fn drop_flows(&mut self) {
        self.ours.drop_flows();
        self.published.drop_flows();
    }

    /// How many units the index has.
    pub fn units(&self) -> usize {
        self.ours.units()
    }

    /// The index has at most this many units from now on.
    pub fn limit(&mut self, units_max: usize) {
        self.ours.limit(units_max);
    }

    /// The receiver does not hold older positions any more.
    pub fn raise_floor(&mut self, floor: u64) {
        self.ours.raise_floor(floor);
    }

    /// A flow begins, for this client. `url` is a hash of the URL, or of the server of a TCP flow, or zero.
    pub fn open(&mut self, now: Instant, flow: u64, client: u64, kind: Kind, url: u64) {
        match self.is_published {
            true => self.published.open(now, flow, client, kind),
            false => self.ours.open(now, flow, client, kind, url),
        }
    }

    /// What goes before a flow's content.
    pub fn head(&mut self, now: Instant, flow: u64, head: Message) {
        match self.is_published {
            true => self.published.head(flow, head),
            false => self.ours.head(now, flow, head),
        }
    }

    /// Content of a flow.
    pub fn push(&mut self, now: Instant, flow: u64, bytes: &[u8]) {
        either!(self.push(now, flow, bytes));
    }

    /// A flow's content has ended.
    pub fn finish(&mut self, flow: u64, result: Result<(), FetchError>) {
        either!(self.finish(flow, result));
    }

    /// The receiver does not want this flow.
    pub fn cancel(&mut self, flow: u64) {
        either!(self.cancel(flow));
    }

    /// The receiver has passed on some of a flow.
    pub fn credit(&mut self, flow: u64, bytes: u64) {
        either!(self.credit(flow, bytes));
    }

    /// A flow's source has broken off. What it said last still crosses, unless that is much.
    pub fn abort(&mut self, flow: u64, why: FetchError) {
        match self.is_published {
            true => self.published.abort(flow, why),
            false => self.ours.abort(flow, why),
        }
    }

    /// Adds the flows to `all` that have more room or less since this was called last, or have crossed.
    pub fn take_changed(&mut self, all: &mut BTreeSet<u64>) {
        match self.is_published {
            // An experiment's scheme: it is not made for many flows.
            true => all.extend(self.published.flows()),
            false => self.ours.take_changed(all),
        }
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        either!(self.len())
    }

    /// How many bytes of a flow's content wait here.
    pub fn queued(&self, flow: u64) -> usize {
        either!(self.queued(flow))
    }

    /// How many more bytes of a flow's content may wait here.
    pub fn room(&self, flow: u64) -> u64 {
        either!(self.room(flow))
    }

    /// Bytes of heads and ends whose content lets them wait no longer, about. Published schemes count none.
    pub fn due_bytes(&self) -> usize {
        self.ours.due_bytes()
    }

    /// All bytes that wait.
    pub fn waiting(&self) -> u64 {
        either!(self.waiting())
    }

    /// Whether anything of this flow is still to cross.
    pub fn has(&self, flow: u64) -> bool {
        either!(self.has(flow))
    }

    /// The next jobs, each with the flow that it is for.
    pub fn prepare(&mut self, now: Instant, rate: &Rate) -> Vec<(u64, Job)> {
        match self.is_published {
            true => {
                let jobs = self.published.prepare(now).into_iter();
                jobs.map(|(flow, job)| (flow, Job::Published(job))).collect()
            }
            false => self.ours.prepare(now, rate),
        }
    }

    /// A job was given this number.
    pub fn is_working(&mut self, job: u64, flow: u64) {
        match self.is_published {
            true => self.published.is_listing(job, flow),
            false => self.ours.is_packing(job, flow),
        }
    }

    /// A job was done.
    pub fn done(&mut self, job: u64, done: Done) {
        match done {
            Done::Packed(payload, coding, lasts_from) => {
                self.ours.packed(job, payload, coding);
                self.ours.raise_floor(lasts_from);
            }
            Done::Published(done) => self.published.done(job, done),
            _ => {}
        }
    }

    /// The half for what only a published scheme has.
    ///
    /// # Errors
    /// If the connection uses the history.
    pub fn by_names(&mut self) -> Result<&mut wanax::sender::Sender, Broken> {
        if self.is_published { Ok(&mut self.published) } else { Err(Broken) }
    }

    /// The number of the next payload.
    pub fn payloads(&self) -> u64 {
        either!(self.payloads())
    }

    /// Fills a record with about `room` bytes at most of what is next.
    pub fn fill(&mut self, room: usize, record: &mut Record) {
        either!(self.fill(room, record));
    }

    /// Whether [`fill`](Self::fill) has something to send.
    pub fn is_ready(&self) -> bool {
        either!(self.is_ready())
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        either!(self.poll_timeout())
    }

    /// Handles what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        either!(self.handle_timeout(now));
    }
}

impl Inward {
    /// A connection begins: positions of the history below `end` are held.
    pub fn begin(&mut self, end: u64, scheme: Option<Published>) {
        self.ours.begin(end);
        self.published.drop_flows();
        self.is_published = scheme.is_some();
    }

    /// The connection has ended.
    pub fn drop_flows(&mut self) {
        self.ours.drop_flows();
        self.published.drop_flows();
    }

    /// A flow begins.
    pub fn open(&mut self, flow: u64) {
        either!(self.open(flow));
    }

    /// A TCP flow begins.
    pub fn open_tcp(&mut self, flow: u64) {
        match self.is_published {
            // All flows have the same window.
            true => self.published.open(flow),
            false => self.ours.open_tcp(flow),
        }
    }

    /// This many more bytes of a flow may be passed on.
    pub fn grant(&mut self, flow: u64, bytes: u64) {
        either!(self.grant(flow, bytes));
    }

    /// A flow is not wanted any more.
    pub fn cancel(&mut self, flow: u64) {
        either!(self.cancel(flow));
    }

    /// The same, but the other end is not told: it goes on taking what this one sends.
    pub fn forget(&mut self, flow: u64) {
        either!(self.forget(flow));
    }

    /// Jobs that wait.
    pub fn jobs(&self) -> usize {
        either!(self.jobs())
    }

    /// Whether enough jobs wait: until some are done, nothing more is received.
    pub fn is_busy(&self) -> bool {
        either!(self.is_busy())
    }

    /// The half for what only the history has.
    ///
    /// # Errors
    /// If the connection uses a published scheme.
    pub fn by_history(&mut self) -> Result<&mut Receiver, Broken> {
        if self.is_published { Err(Broken) } else { Ok(&mut self.ours) }
    }

    /// The half for what only a published scheme has.
    ///
    /// # Errors
    /// If the connection uses the history.
    pub fn by_names(&mut self) -> Result<&mut wanax::receiver::Receiver, Broken> {
        if self.is_published { Ok(&mut self.published) } else { Err(Broken) }
    }

    /// The number of the newest payload plus one: parts name theirs by the distance from it.
    pub fn payloads(&self) -> u64 {
        either!(self.payloads())
    }

    /// A part of a payload has come.
    pub fn data(&mut self, payload: u64, bytes: &[u8]) -> Result<(), Broken> {
        either!(self.data(payload, bytes))
    }

    /// A job was done.
    pub fn done(&mut self, job: u64, done: Done) -> Result<(), Broken> {
        match (self.is_published, done) {
            (true, Done::Published(done)) => self.published.done(job, done),
            (false, done) => self.ours.done(job, done),
            (true, _) => Ok(()),
        }
    }

    /// The content of a flow has ended.
    pub fn finish(&mut self, flow: u64, result: Result<(), FetchError>) {
        either!(self.finish(flow, result));
    }

    /// What to do next. What was ready at the end of a connection may come from either.
    pub fn poll(&mut self) -> Option<Event> {
        self.ours.poll().or_else(|| self.published.poll())
    }
}
