//! What can happen to a node.

use crate::access::{Access, Forbidden, Prefix};
use crate::routes::RouteTable;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri, Version};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use store::{Entry, Location, SegmentId};
use wire::capture::Segment;
use wire::{ChunkId, Date, ObjectKey, Oid, PublicKey, RecordId, Selection};

/// One request of one client, until its response has ended. Numbered by the driver, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub u64);

impl ExchangeId {
    /// Set in the numbers of peers' requests, which the engine gives.
    const OF_PEER: u64 = 1 << 63;

    /// The peers' request of this number.
    pub(crate) const fn from_peer(number: u64) -> Self {
        Self(Self::OF_PEER | number)
    }

    /// The number among the requests of peers, if it is one of theirs.
    pub(crate) const fn of_peer(self) -> Option<u64> {
        if self.0 & Self::OF_PEER == 0 { None } else { Some(self.0 & !Self::OF_PEER) }
    }
}

/// One request of ours to an origin, until its response has ended. Numbered by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FetchId(pub u64);

/// One thing asked of the disk, answered once. Numbered by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A connection with a peer. Even numbers are those that the engine dialled, odd ones those that the
/// driver accepted; none is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

impl LinkId {
    /// What is dialled after this many others.
    pub const fn dialled(others: u64) -> Self {
        Self(2 * others + 2)
    }

    /// What is accepted after this many others.
    pub const fn accepted(others: u64) -> Self {
        Self(2 * others + 1)
    }

    /// Whether it was the engine that dialled.
    pub const fn is_dialled(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

/// Something that happened to a connection with a peer. After `Closed`, or after
/// [`crate::LinkOutput::Hangup`], nothing more is said of it.
#[derive(Debug)]
pub enum LinkInput {
    /// Somebody connected from there to our port for peers.
    Accepted(LinkId, SocketAddr),
    /// What was dialled answered.
    Connected(LinkId),
    /// Bytes came, within what [`crate::LinkOutput::Receive`] granted.
    Received(LinkId, Bytes),
    /// So many more bytes can be written; begins at nothing.
    Room(LinkId, u64),
    /// It has ended, or never came to be.
    Closed(LinkId),
}

impl LinkInput {
    /// The connection that it is about.
    pub const fn link(&self) -> LinkId {
        match self {
            Self::Accepted(link, _)
            | Self::Connected(link)
            | Self::Received(link, _)
            | Self::Room(link, _)
            | Self::Closed(link) => *link,
        }
    }
}

/// What a node is told of its mesh at birth.
#[derive(Clone, Debug)]
pub struct MeshConfig {
    /// How it selects whom to ask.
    pub selection: Selection,
    /// The seed of its Ed25519 key: its identity.
    pub identity: [u8; 32],
    /// The secret that all nodes of the mesh share, if there is one.
    pub key: Option<[u8; 32]>,
    /// Whose signatures on records are believed; none: that of whom was asked.
    pub gateways: Vec<PublicKey>,
    /// The port for peers, the same on all nodes.
    pub port: u16,
    /// Listens to what neighbours send each other ([`Input::Overheard`]).
    pub overhear: Option<Listening>,
}

/// How a node listens.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    /// Memory for what is not complete, in bytes: at least [`crate::overhear::Overhear::BUDGET_MIN`] is taken.
    pub memory_bytes: usize,
    /// What is done with it.
    pub options: Options,
}

impl Listening {
    /// As routers do, with so many bytes of memory.
    pub fn new(memory_bytes: usize) -> Self {
        Self { memory_bytes, options: Options::default() }
    }
}

/// How to listen. [`Options::default`] is for routers; the others show, in experiments, what each of its
/// parts is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What is heard of a chunk on several connections is joined (Ditto, §4.3). Without this each
    /// connection has to bring all of the chunk itself; of one chunk the last four are kept.
    pub joins_streams: bool,
    /// Where the head of a chunk was missed, its neighbours tell which it is. Without this, or if
    /// streams are not joined, a connection's bytes are of use only behind a head that was heard there
    /// (Ditto, §6.3).
    pub guesses_heads: bool,
    /// What was heard of a chunk in part is told and given out. Without this the node knows of whole ones only.
    pub repairs: bool,
    /// What was on its way and is heard first is taken back from the peer that sends it. Without this it comes
    /// from there, and what was heard of it meanwhile is of no use (Ditto, §8, has it among what is to be done).
    pub cancels: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { joins_streams: true, guesses_heads: true, repairs: true, cancels: true }
    }
}

impl Options {
    /// Whether what lies behind a missed head can be told by its place.
    pub(crate) fn goes_by_places(self) -> bool {
        self.joins_streams && self.guesses_heads
    }
}

/// What a node is told at birth.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its name in `Via` and `Cache-Status`: a token.
    pub name: String,
    /// Keys the names of objects and, by way of [`content::Sealer`], their units; [`crate::OPEN_KEY`] where
    /// there is no mesh key: then units rest and travel in clear.
    pub secret: [u8; 32],
    /// All its chance comes from here.
    pub seed: [u8; 32],
    /// Budget in bytes for what it keeps in memory: hot units, rows, manifests, units to be written.
    pub memory_bytes: u64,
    /// How it cuts what it fetches from origins; the same on all nodes of a mesh.
    pub profile: &'static content::Profile,
    /// Objects larger than this, in bytes, are not stored.
    pub object_bytes_max: u64,
    /// Clients that may use it besides local ones.
    pub allow: Vec<Prefix>,
    /// What it may dial for whom. Origins that `direct` covers are asked without the mesh.
    pub access: Access,
    /// When the program was built: a clock before this is wrong.
    pub built: Date,
    /// The mesh, if it is in one.
    pub mesh: Option<MeshConfig>,
}

/// What may change while a node runs. All else of [`Config`] holds until it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// As [`Config::allow`].
    pub allow: Vec<Prefix>,
    /// As [`MeshConfig::gateways`]; of no effect without a mesh.
    pub gateways: Vec<PublicKey>,
    /// As [`Config::access`].
    pub access: Access,
}

/// How a request reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// The client knows that we are a proxy.
    Explicit,
    /// The client meant to dial this address.
    Intercepted(SocketAddr),
}

/// The head of a client's request, parsed and screened.
#[derive(Debug)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Its target: absolute from clients of a proxy, a path from intercepted ones, an authority
    /// for `CONNECT`.
    pub uri: Uri,
    /// Its version, for `Via`.
    pub version: Version,
    /// Its header fields, as they came.
    pub headers: HeaderMap,
    /// Whether content follows.
    pub has_body: bool,
    /// Where the client is.
    pub client: IpAddr,
    /// Whether that is this very machine: what is fetched for it may come from within, and is kept
    /// apart.
    pub at_home: bool,
    /// Whether the client is behind the uplink: then a private address does not make it a local one.
    pub behind_uplink: bool,
    /// How it reached us.
    pub entrance: Entrance,
}

/// A TCP segment between others that was heard, as [`wire::capture::Segment`] shows it.
#[derive(Clone, Debug)]
pub struct Overheard {
    /// Who sent it.
    pub from: SocketAddr,
    /// Whom it is for.
    pub to: SocketAddr,
    /// Number of the payload's first byte; with `syn`, one less.
    pub seq: u32,
    /// The sender begins.
    pub syn: bool,
    /// The sender has no more to say behind this payload.
    pub fin: bool,
    /// The connection is gone.
    pub rst: bool,
    /// Bytes of the stream.
    pub payload: Bytes,
}

impl Overheard {
    /// As whoever listens takes it.
    pub fn as_heard(&self) -> Segment<'_> {
        let Self { from, to, seq, syn, fin, rst, .. } = *self;
        Segment { from, to, seq, ack: None, syn, fin, rst, payload: &self.payload, missing: 0 }
    }
}

/// Why an origin did not answer, or did not end its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// Its name has no address.
    Unresolved,
    /// The rules forbid to dial it ([`crate::Access`]).
    Forbidden(Forbidden),
    /// It refuses connections, or the network is unreachable.
    Unreachable,
    /// It did not answer, or paused, for too long.
    TimedOut,
    /// It answered with something other than sound HTTP.
    Malformed,
    /// It ended the connection before the response was complete.
    Truncated,
    /// It could not be sent the request's content: that broke off, or is no sound HTTP.
    Unsent,
    /// Nobody who could have asked it is reachable.
    NoRoute,
    /// There is no origin: it is a published object, and nobody in reach has it.
    NoHolder,
}

/// Why something was not published, or not taken back. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutError {
    /// It is larger than any object may be: at most this.
    TooLarge(u64),
    /// Its manifest may be longer than a name can certify: of at most so many bytes it certainly is not.
    TooLong(u64),
    /// All that is published here would be more than the store spares for it: at most this.
    Full(u64),
    /// So many objects are published already.
    TooMany(usize),
    /// The store did not take it, or not all of it.
    Store,
    /// It ended before its announced length, or went on behind it.
    Broken,
    /// Nothing of this name is published here.
    Unknown,
    /// The list of what is published here cannot be read, and is not to be overwritten.
    Unlisted,
}

/// Something that a client did: one who asks, or who publishes on this machine.
#[derive(Debug)]
pub enum ClientInput {
    /// It asks.
    Request(ExchangeId, Box<Request>),
    /// It can take so many more bytes of content.
    Credit(ExchangeId, u64),
    /// It has left; nothing more is to be said to it.
    Gone(ExchangeId),
    /// Somebody on this machine wants to publish a file of so many bytes →
    /// [`crate::OriginOutput::TakeIn`], or [`crate::ClientOutput::Published`] at once.
    /// [`ClientInput::Gone`] breaks it off.
    Put(ExchangeId, u64),
    /// Somebody on this machine takes back what was published → [`crate::ClientOutput::Published`].
    Withdraw(ExchangeId, Oid),
}

/// Something that came from an origin.
#[derive(Debug)]
pub enum OriginInput {
    /// The head of its response, after any interim ones.
    Head(FetchId, StatusCode, HeaderMap),
    /// Content of its response.
    Body(FetchId, Bytes),
    /// Its response has ended; with an error, it may not even have begun.
    End(FetchId, Result<(), FetchError>),
}

/// Something that the store answers.
#[derive(Debug)]
pub enum StoreInput {
    /// The row that the catalogue has under a key, if any.
    Row(ObjectKey, Option<Vec<u8>>),
    /// Whether the catalogue has a row under a key cannot be told: it cannot be read.
    RowUnread(ObjectKey),
    /// A segment of a manifest, if the catalogue has it.
    Segment(RecordId, u32, Option<Vec<u8>>),
    /// The catalogue took changes, or could not.
    Changed(Ticket, bool),
    /// All that was written before [`crate::StoreOutput::Sync`] is durable, or could not be made so.
    Synced(bool),
    /// Units that were asked for by place, in order; `None` if they cannot be read.
    Units(Ticket, Option<Vec<(ChunkId, Bytes)>>),
    /// Where units now lie, in order; `None` if they could not be written.
    Appended(Ticket, Option<Vec<Location>>),
    /// What a segment of the log holds; `None` if it cannot be read.
    Entries(SegmentId, Option<Vec<Entry>>),
    /// A segment of the log is gone, and what was to be kept of it lies elsewhere; `None` if
    /// that failed and the segment is still there.
    Rewritten(SegmentId, Option<Vec<(ChunkId, u32, Location)>>),
}

/// One thing that happened, by the port where it did. Bytes are reference-counted slices.
#[derive(Debug)]
pub enum Input {
    /// The date was learnt, or the clock set.
    Clock(Date),
    /// [`crate::Node::poll_timeout`] has come.
    Tick,
    /// These settings hold from now on; what is under way goes on.
    Settings(Settings),
    /// The way to the gateway, whole, whenever it changes.
    Routes(RouteTable),
    /// Segments were heard, in this order. The driver leaves out those that come from one of this
    /// machine's addresses or go to one: what is for us comes by its own connection.
    Overheard(Vec<Overheard>),
    /// A client did something.
    Client(ClientInput),
    /// Something came from an origin.
    Origin(OriginInput),
    /// Something happened to a connection with a peer.
    Link(LinkInput),
    /// The store answers.
    Store(StoreInput),
    /// A name's addresses; empty if it has none, or if asking failed. `None`: it was not looked up.
    Name(String, Option<Vec<IpAddr>>),
    /// A UDP datagram came; the address that it claims to come from may be forged.
    Datagram(SocketAddr, Bytes),
}
