//! What the engine did, for people who watch it: typed events in a bounded queue.
//!
//! *What this is:* [`Event`], a line for each transition and for each input that came too late; [`Events`], the queue.
//! It is off until a driver calls [`Events::watch`], and costs a branch for each event then.
//! *Who calls it:* all of the node, through its context; a driver takes events after the outputs of an input
//! ([`Node::events`](crate::Node::events)). *What it never does:* decide. No engine reads an event, so watching
//! changes no output. *Rejected alternatives:* decision 0030.

use crate::input::{ExchangeId, FetchId};
use crate::timer::Timer;
use crate::{Forward, Misbehaviour, NotStored};
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::fmt::Display;
use std::net::SocketAddr;
use wire::counters::{Reason, Tally};
use wire::{ChunkId, NodeId, Oid, RecordId};

mod reasons;

pub use reasons::{FetchEnd, LinkEnd, PutEnd, Stale};

/// The most events that wait for the driver. One input makes a few; one that ends a connection with hundreds of
/// requests makes some for each.
pub const EVENTS_MAX: usize = 4096;

/// Something that the engine did, or did not do because it was too late.
///
/// As JSON, an object whose member `event` names the variant. Requests of clients are `c1`, `c2` …, those of peers
/// `p1`, `p2` …; names of content and peers are hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A client asks, or a peer.
    Request {
        /// Its number.
        exchange: ExchangeId,
        /// The peer, if it is not a client's.
        #[serde(serialize_with = "perhaps_shown", skip_serializing_if = "Option::is_none")]
        peer: Option<NodeId>,
        /// What it asks for.
        url: String,
    },
    /// The store answers it.
    Hit {
        /// The request.
        exchange: ExchangeId,
        /// The stored response.
        #[serde(serialize_with = "shown")]
        record: RecordId,
    },
    /// Nothing stored answers it: a fetch is begun for it.
    Miss {
        /// The request.
        exchange: ExchangeId,
        /// Our request to others.
        fetch: FetchId,
        /// Why, in the words of RFC 9211, section 2.2.
        #[serde(serialize_with = "name")]
        why: Forward,
    },
    /// It waits for a fetch that another request has begun.
    Join {
        /// The request.
        exchange: ExchangeId,
        /// That fetch.
        fetch: FetchId,
    },
    /// It is forwarded, and its response is not to be stored.
    Pass {
        /// The request.
        exchange: ExchangeId,
        /// Our request to others.
        fetch: FetchId,
        /// Why it is not stored, as in `detail` of `Cache-Status`.
        #[serde(serialize_with = "name")]
        why: NotStored,
    },
    /// A request ends: nothing more is sent for it.
    RequestEnds {
        /// The request.
        exchange: ExchangeId,
        /// How.
        how: RequestEnd,
    },
    /// The head of a response has been judged.
    Head {
        /// Our request.
        fetch: FetchId,
        /// The status code.
        status: u16,
        /// How the response is judged.
        verdict: Judgement,
    },
    /// A transfer begins, or is in another state.
    Transfer {
        /// Our request.
        fetch: FetchId,
        /// Its record.
        #[serde(serialize_with = "shown")]
        record: RecordId,
        /// How its content comes from now on.
        state: TransferState,
    },
    /// A transfer is over.
    TransferEnds {
        /// Our request.
        fetch: FetchId,
        /// Bytes of content that came.
        bytes: u64,
        /// Whether all of it came, and the store took it.
        stored: bool,
    },
    /// A fetch has a source, which is asked.
    Source {
        /// Our request.
        fetch: FetchId,
        /// The source.
        #[serde(flatten)]
        of: SourceKind,
    },
    /// The source of a fetch does not deliver: another is asked as well, or instead.
    NextSource {
        /// Our request.
        fetch: FetchId,
        /// Why.
        why: NextSource,
    },
    /// The rest of a body is asked for after it broke off.
    Resume {
        /// Our request.
        fetch: FetchId,
        /// The first byte of the rest.
        from: u64,
    },
    /// No source is left for a fetch.
    GiveUp {
        /// Our request.
        fetch: FetchId,
        /// Why.
        #[serde(serialize_with = "name")]
        why: FetchEnd,
    },
    /// A peer is connected.
    LinkUp {
        /// The peer.
        #[serde(serialize_with = "shown")]
        peer: NodeId,
        /// Its address, if we dialled.
        #[serde(skip_serializing_if = "Option::is_none")]
        dialled: Option<SocketAddr>,
    },
    /// A peer is not connected any more.
    LinkDown {
        /// The peer.
        #[serde(serialize_with = "shown")]
        peer: NodeId,
        /// Why.
        #[serde(serialize_with = "name")]
        why: LinkEnd,
    },
    /// There is no peer at an address that we dialled.
    LinkFailed {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[serde(serialize_with = "name")]
        why: LinkEnd,
    },
    /// We refused a router that connected to us.
    LinkRefused {
        /// Where it is.
        address: SocketAddr,
        /// Why.
        #[serde(serialize_with = "name")]
        why: LinkEnd,
    },
    /// A peer broke the protocol, and is not listened to for a while.
    Expelled {
        /// The peer.
        #[serde(serialize_with = "shown")]
        peer: NodeId,
        /// What it did.
        #[serde(serialize_with = "name")]
        why: Misbehaviour,
    },
    /// A chunk was overheard, and is taken in.
    Overheard {
        /// Its name.
        #[serde(serialize_with = "shown")]
        chunk: ChunkId,
        /// The fetch that it was on its way for; none, if no one had asked for it.
        #[serde(skip_serializing_if = "Option::is_none")]
        fetch: Option<FetchId>,
    },
    /// A file is published, and durable; or an object is not published any more.
    Published {
        /// The object.
        #[serde(serialize_with = "shown")]
        object: Oid,
        /// Whether it is published now.
        published: bool,
    },
    /// A file is not published, or an object not withdrawn.
    NotPublished {
        /// The request for it.
        exchange: ExchangeId,
        /// Why.
        #[serde(serialize_with = "name")]
        why: PutEnd,
    },
    /// A published object has lost a chunk or its record, and is not whole any more.
    PublishedLost {
        /// The object.
        #[serde(serialize_with = "shown")]
        object: Oid,
    },
    /// The store is in another state.
    Store {
        /// That state.
        state: StoreState,
    },
    /// A timer was due.
    Timer {
        /// Which.
        timer: Timer,
    },
    /// An input came for something that is over, or in a state that does not expect it: nothing was done.
    Stale {
        /// What came.
        #[serde(serialize_with = "name")]
        what: Stale,
    },
    /// The queue was full: the events after the previous one are missing here.
    Missing {
        /// How many.
        events: u64,
    },
}

impl Event {
    /// Whether it may come for each chunk or message, and not only for each request or connection.
    pub fn is_frequent(&self) -> bool {
        matches!(self, Self::Timer { .. } | Self::Stale { .. } | Self::Overheard { .. })
    }
}

/// How a request of a client or of a peer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestEnd {
    /// All of the response was sent.
    Complete,
    /// The response cannot be completed.
    Broken,
    /// It got an error of ours instead of a response.
    Refused,
    /// The client or peer left before the end.
    Left,
    /// The driver joins the client's connection with one to the origin: we cannot read what comes.
    Relayed,
}

/// How a response is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// It is an object: a transfer begins, which others may join.
    Object,
    /// It is forwarded to the one who asked.
    Passed,
    /// It confirms a stored response.
    Confirms,
    /// A stale stored response is used instead.
    StandsIn,
}

/// How the content of an object comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferState {
    /// From an origin: it is cut into chunks here.
    Cutting,
    /// From peers, by a manifest that one of them sends.
    Listing,
    /// Chunks that the store has lost come from peers.
    Filling,
    /// All of it is cut: readers wait until the disk has it.
    Closed,
}

/// The source that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum SourceKind {
    /// A peer.
    Peer {
        /// The peer.
        #[serde(serialize_with = "shown")]
        peer: NodeId,
    },
    /// A router that is not connected yet: it is dialled.
    Dialled {
        /// Where.
        address: SocketAddr,
    },
    /// The selection scheme finds out who.
    Selection,
    /// The origin.
    Origin,
    /// No one, until a route or a peer is there.
    None,
}

/// Why another source is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NextSource {
    /// The peer answers nothing, not even pings.
    Mute,
    /// The peer has sent nothing of it for too long.
    Silent,
    /// The peer or the connection with it is gone, or what it sent is of no use.
    Lost,
}

/// Whether the store is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreState {
    /// It failed, and is not used for a while.
    Failed,
    /// It is asked whether it can be written again.
    Tried,
    /// It can: it is used, but nothing counts as stored before it has taken something.
    Doubted,
    /// It took something: it works.
    Works,
}

/// Events that no driver has taken yet, and counts of stale inputs.
#[derive(Debug, Default)]
pub struct Events {
    is_on: bool,
    queue: VecDeque<Event>,
    /// Events since the queue was full.
    missing: u64,
    /// Counted whether or not it is on.
    stale: Tally<Stale>,
}

impl Events {
    /// Keeps events from now on, or none.
    pub fn watch(&mut self, is_on: bool) {
        *self = Self { is_on, stale: std::mem::take(&mut self.stale), ..Self::default() };
    }

    /// Whether events are kept.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Notes an event, if events are kept. It is only made then.
    #[inline]
    pub fn emit(&mut self, event: impl FnOnce() -> Event) {
        if self.is_on {
            self.push(event());
        }
    }

    /// Counts an input that came too late, and notes it.
    #[inline]
    pub fn stale(&mut self, what: Stale) {
        *self.stale.of(what) += 1;
        self.emit(|| Event::Stale { what });
    }

    /// How many inputs came too late, by kind.
    pub fn stale_inputs(&self) -> &Tally<Stale> {
        &self.stale
    }

    /// Gives out the oldest event; `None` if there is none.
    pub fn poll(&mut self) -> Option<Event> {
        let events = self.missing;
        self.queue.pop_front().or_else(|| {
            self.missing = 0;
            (events > 0).then_some(Event::Missing { events })
        })
    }

    /// Keeps the first events: they show the cause.
    #[cold]
    fn push(&mut self, event: Event) {
        if self.queue.len() < EVENTS_MAX {
            self.queue.push_back(event);
        } else {
            self.missing += 1;
        }
    }
}

fn shown<T: Display, S: Serializer>(it: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(it)
}

fn perhaps_shown<T: Display, S: Serializer>(
    it: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match it {
        Some(it) => shown(it, serializer),
        None => serializer.serialize_none(),
    }
}

/// Requests of peers are numbered from 2^63 on, where a JSON number may lose digits: so it is a text.
impl Serialize for ExchangeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.of_peer() {
            Some(number) => serializer.collect_str(&format_args!("p{number}")),
            None => serializer.collect_str(&format_args!("c{}", self.0)),
        }
    }
}

fn name<S: Serializer>(reason: &impl Reason, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(reason.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_or_kept_unless_it_is_on() {
        let mut events = Events::default();
        events.emit(|| unreachable!("it is off"));
        events.stale(Stale::Row);
        assert_eq!((events.poll(), events.stale_inputs().get(Stale::Row)), (None, 1));
        events.watch(true);
        events.stale(Stale::Row);
        assert_eq!(events.poll(), Some(Event::Stale { what: Stale::Row }));
        assert_eq!((events.poll(), events.stale_inputs().get(Stale::Row)), (None, 2));
    }

    #[test]
    fn a_full_queue_keeps_the_first_and_counts_the_rest() {
        let mut events = Events::default();
        events.watch(true);
        for fetch in 0..EVENTS_MAX as u64 + 3 {
            events.emit(|| Event::Resume { fetch: FetchId(fetch), from: 0 });
        }
        let taken: Vec<_> = std::iter::from_fn(|| events.poll()).collect();
        assert_eq!(taken[0], Event::Resume { fetch: FetchId(0), from: 0 });
        assert_eq!(taken.len(), EVENTS_MAX + 1);
        assert_eq!(taken[EVENTS_MAX], Event::Missing { events: 3 });
        assert_eq!(events.poll(), None);
    }

    #[test]
    fn stale_inputs_are_counted_by_kind() {
        let mut events = Events::default();
        for (count, what) in Stale::ALL.into_iter().enumerate() {
            assert_eq!(what as usize, count);
            (0..count).for_each(|_| events.stale(what));
        }
        let counts = Stale::ALL.map(|what| events.stale_inputs().get(what));
        assert_eq!(counts, std::array::from_fn(|count| count as u64));
    }

    #[track_caller]
    fn json(event: Event, text: &str) {
        assert_eq!(serde_json::to_string(&event).expect("no map has keys that are no text"), text);
    }

    #[test]
    fn as_json_an_event_is_an_object_with_its_name() {
        let exchange = ExchangeId(7);
        json(
            Event::Miss { exchange, fetch: FetchId(3), why: Forward::UriMiss },
            r#"{"event":"miss","exchange":"c7","fetch":3,"why":"uri-miss"}"#,
        );
        json(
            Event::RequestEnds { exchange: ExchangeId::from_peer(2), how: RequestEnd::Left },
            r#"{"event":"request_ends","exchange":"p2","how":"left"}"#,
        );
        let of = SourceKind::Dialled { address: ([10, 0, 0, 1], 3131).into() };
        json(
            Event::Source { fetch: FetchId(1), of },
            r#"{"event":"source","fetch":1,"source":"dialled","address":"10.0.0.1:3131"}"#,
        );
        json(
            Event::Overheard { chunk: ChunkId([0xab; 32]), fetch: None },
            &format!(r#"{{"event":"overheard","chunk":"{}"}}"#, "ab".repeat(32)),
        );
        json(
            Event::GiveUp { fetch: FetchId(1), why: FetchEnd::NoRoute },
            r#"{"event":"give_up","fetch":1,"why":"no_route"}"#,
        );
        json(
            Event::NotPublished { exchange, why: PutEnd::TooMany },
            r#"{"event":"not_published","exchange":"c7","why":"too_many"}"#,
        );
        json(Event::Timer { timer: Timer::Sync }, r#"{"event":"timer","timer":"sync"}"#);
    }
}
