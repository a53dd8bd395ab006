//! The events that a node handles.

use crate::access::{Access, Forbidden, Prefix};
use crate::crossed::Crossed;
use crate::routes::RouteTable;
use bytes::Bytes;
use classes::{HostPattern, Reach};
use http::{HeaderMap, Method, StatusCode, Uri, Version};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use store::{Entry, Location, SegmentId};
use wire::capture::Segment;
use wire::{ChunkId, Date, Digest, ObjectKey, Oid, PublicKey, RecordId, Selection};

/// One request of a client, until its response has ended. Numbered by the driver; never reused.
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

/// One request of this node to an origin, until its response has ended. Numbered by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FetchId(pub u64);

/// One operation of the disk, answered once. Numbered by the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A connection with a peer. The engine dialled those with even numbers, the driver accepted those
/// with odd ones. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

impl LinkId {
    /// The next dialled connection after this many.
    pub const fn dialled(others: u64) -> Self {
        Self(2 * others + 2)
    }

    /// The next accepted connection after this many.
    pub const fn accepted(others: u64) -> Self {
        Self(2 * others + 1)
    }

    /// Whether the engine dialled it.
    pub const fn is_dialled(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

/// An event of a connection with a peer. None follows `Closed` or [`crate::LinkOutput::Hangup`].
#[derive(Debug)]
pub enum LinkInput {
    /// A node at this address has connected to our port for peers.
    Accepted(LinkId, SocketAddr),
    /// The dialled peer has answered.
    Connected(LinkId),
    /// Bytes have arrived, within the credit of [`crate::LinkOutput::Receive`].
    Received(LinkId, Bytes),
    /// This many more bytes can be written; initially none.
    Room(LinkId, u64),
    /// The connection has ended, or could not be made.
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

/// The mesh settings of a node, fixed at its start.
#[derive(Clone, Debug)]
pub struct MeshConfig {
    /// The scheme that selects peers.
    pub selection: Selection,
    /// How the schemes search that do.
    pub search: SearchConfig,
    /// The squares of the map in which routers are, for the schemes that hash names (MeshCache §4.2.3).
    pub squares: Squares,
    /// The seed of its Ed25519 key, which is its identity.
    pub identity: [u8; 32],
    /// The secret that all nodes of the mesh share, if there is one.
    pub key: Option<[u8; 32]>,
    /// Keys whose signatures on records are trusted. If empty, every peer that is asked is trusted.
    pub gateways: Vec<PublicKey>,
    /// The port for peers, the same on all nodes.
    pub port: u16,
    /// Whether it overhears its neighbours ([`Input::Overheard`]), and how.
    pub overhear: Option<Listening>,
}

/// In which square of the map each router is, by its address in the mesh. Routers without a place are in none.
pub type Squares = Arc<BTreeMap<IpAddr, [u32; 2]>>;

/// How the schemes search that ask by broadcast (MeshCache §4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchConfig {
    /// How the request gets to the router that was found.
    pub locating: Locating,
    /// How long answers are awaited.
    pub timeout: SearchTimeout,
}

/// How the request for an object gets to the router that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locating {
    /// It says where it goes.
    Ours,
    /// The routers on the way are told before (*setup*), and remember it, so that no later request for this object
    /// needs a search (§7.3).
    Paper {
        /// How long they remember it; the paper names no value.
        refresh: Duration,
    },
}

/// The search timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchTimeout {
    /// Always the same.
    Fixed(Duration),
    /// The one that would have been best for the latest searches.
    Adaptive,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self { locating: Locating::Ours, timeout: SearchTimeout::Fixed(SearchTimeout::PAPER) }
    }
}

impl Locating {
    /// How long routers remember where an object is, if nothing else is said: long enough for a page, and shorter
    /// than most pages stay fresh.
    pub const REFRESH: Duration = Duration::from_secs(300);
}

impl SearchTimeout {
    /// The longest that answers are awaited. A search must end well before the node gives it up.
    pub const MAX: Duration = Duration::from_secs(1);

    /// The paper's best (MeshCache §6.2.2, figure 8).
    pub const PAPER: Duration = Duration::from_millis(25);

    /// The word for [`Self::Adaptive`].
    pub const ADAPTIVE: &str = "adaptive";

    /// Always this many milliseconds; `None` for 0, and for more than [`Self::MAX`].
    pub fn fixed(ms: u64) -> Option<Self> {
        let fixed = Duration::from_millis(ms);
        (!fixed.is_zero() && fixed <= Self::MAX).then_some(Self::Fixed(fixed))
    }
}

/// The text is no search timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no search timeout")]
pub struct ParseSearchTimeoutError;

/// As configurations have it: milliseconds, like `25ms`, or a word.
impl fmt::Display for SearchTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(fixed) => write!(f, "{}ms", fixed.as_millis()),
            Self::Adaptive => f.write_str(Self::ADAPTIVE),
        }
    }
}

impl FromStr for SearchTimeout {
    type Err = ParseSearchTimeoutError;

    fn from_str(text: &str) -> Result<Self, ParseSearchTimeoutError> {
        if text == Self::ADAPTIVE {
            return Ok(Self::Adaptive);
        }
        let number = text.strip_suffix("ms").and_then(|number| number.trim_end().parse().ok());
        number.and_then(Self::fixed).ok_or(ParseSearchTimeoutError)
    }
}

/// Settings for overhearing.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    /// Memory for incomplete chunks in bytes; at least [`crate::overhear::Overhear::BUDGET_MIN`] is
    /// used.
    pub memory_bytes: usize,
    /// Which parts of the engine are on.
    pub options: Options,
}

impl Listening {
    /// The settings of routers, with this many bytes of memory.
    pub fn new(memory_bytes: usize) -> Self {
        Self { memory_bytes, options: Options::default() }
    }
}

/// Parts of overhearing. [`Options::default`], with all of them, is for routers. Experiments turn
/// parts off to measure what each is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Parts of a chunk heard on several connections are joined (Ditto §4.3). Otherwise each
    /// connection has to supply the whole chunk; the last four of a chunk are kept.
    pub joins_streams: bool,
    /// A chunk whose head was missed is identified by its neighbours. Otherwise, or if streams are
    /// not joined, bytes count only after a head heard on their connection (Ditto §6.3).
    pub guesses_heads: bool,
    /// Partly heard chunks are used. Otherwise the node learns only of whole ones.
    pub repairs: bool,
    /// A wanted chunk that is overheard first is cancelled at the peer that sends it. Otherwise it
    /// is received from there, and what was overheard is wasted (Ditto §8 lists this as future
    /// work).
    pub cancels: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { joins_streams: true, guesses_heads: true, repairs: true, cancels: true }
    }
}

impl Options {
    /// Whether bytes after a missed head can be identified by their place.
    pub(crate) fn goes_by_places(self) -> bool {
        self.joins_streams && self.guesses_heads
    }
}

/// The settings of a node, fixed at its start.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its name in `Via` and `Cache-Status`: a token.
    pub name: String,
    /// The key for names of objects and, through [`content::Sealer`], for their units.
    /// [`crate::OPEN_KEY`] if there is no mesh key: then units are stored and sent in clear.
    pub secret: [u8; 32],
    /// The seed of all its randomness.
    pub seed: [u8; 32],
    /// Memory budget in bytes: recently used units, rows, manifests, units to be written.
    pub memory_bytes: u64,
    /// How it cuts what it fetches from origins; the same on all nodes of a mesh.
    pub profile: &'static content::Profile,
    /// Objects larger than this, in bytes, are not stored.
    pub object_bytes_max: u64,
    /// Objects larger than this, in bytes, are not stored if no content class says how long they are kept.
    pub undecided_bytes_max: u64,
    /// Clients that may use it besides local ones.
    pub allow: Vec<Prefix>,
    /// What it may dial, and for whom. Origins in `direct` are asked without the mesh.
    pub access: Access,
    /// The build date of the program: a clock before it is wrong.
    pub built: Date,
    /// The mesh, if it is in one.
    pub mesh: Option<MeshConfig>,
    /// What the paths of package archives promise, and where a mirror's requests may go.
    pub reach: Reach,
}

/// Settings that may change while a node runs. All others of [`Config`] are fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// As [`Config::allow`].
    pub allow: Vec<Prefix>,
    /// As [`MeshConfig::gateways`]; without effect if there is no mesh.
    pub gateways: Vec<PublicKey>,
    /// As [`Config::access`].
    pub access: Access,
    /// As the hosts of [`Config::reach`].
    pub mirror: Arc<[HostPattern]>,
}

/// How a request reached this proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// The client uses it as its proxy.
    Explicit,
    /// The client uses it as a mirror of archives. The driver has made its request one for the archive's URI.
    Mirror,
    /// The client dialled this address and was intercepted.
    Intercepted(SocketAddr),
}

/// The driver's number of a client's connection on which the client authenticated the connection itself. Origins know the
/// client by the connections that serve it, so they serve nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Binding(pub u64);

/// The head of a client's request, screened and parsed.
#[derive(Debug)]
pub struct Request {
    /// Its method.
    pub method: Method,
    /// Its target: absolute from clients of the explicit proxy, a path from intercepted ones, an
    /// authority with `CONNECT`.
    pub uri: Uri,
    /// Its version, for `Via`.
    pub version: Version,
    /// Its header fields, unchanged.
    pub headers: HeaderMap,
    /// Whether content follows.
    pub has_body: bool,
    /// The client's address.
    pub client: IpAddr,
    /// Whether the client is on this machine. Responses fetched for it may come from inside the
    /// site, and are stored apart.
    pub at_home: bool,
    /// Whether the client is behind the uplink. Then a private address does not make it local.
    pub behind_uplink: bool,
    /// How the request reached this proxy.
    pub entrance: Entrance,
    /// The digest that the content must have, from the mirror's URL.
    pub expected: Option<Digest>,
    /// Its connection, if the client authenticates by that ([`crate::binds`]) with this request or an earlier one.
    pub binding: Option<Binding>,
}

/// An overheard TCP segment between other nodes, as in [`wire::capture::Segment`].
#[derive(Clone, Debug)]
pub struct Overheard {
    /// Its sender.
    pub from: SocketAddr,
    /// Its receiver.
    pub to: SocketAddr,
    /// Sequence number of the payload's first byte; with `syn`, one less.
    pub seq: u32,
    /// The sender opens the connection.
    pub syn: bool,
    /// The sender's stream ends after this payload.
    pub fin: bool,
    /// The connection is reset.
    pub rst: bool,
    /// Bytes of the stream.
    pub payload: Bytes,
}

impl Overheard {
    /// The same as a segment for the engine that listens.
    pub fn as_heard(&self) -> Segment<'_> {
        let Self { from, to, seq, syn, fin, rst, .. } = *self;
        Segment { from, to, seq, ack: None, syn, fin, rst, payload: &self.payload, missing: 0 }
    }
}

/// Why an origin gave no response, or no complete one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// The host has no address.
    Unresolved,
    /// The access rules forbid to dial it ([`crate::Access`]).
    Forbidden(Forbidden),
    /// It refused the connection.
    Refused,
    /// Its network is unreachable.
    Unreachable,
    /// It did not answer, or paused, for too long.
    TimedOut,
    /// Its response is not valid HTTP.
    Malformed,
    /// It closed the connection before the response was complete.
    Truncated,
    /// The request's content broke off or is not valid HTTP.
    Unsent,
    /// Neither the gateway nor another node that could ask it can be reached.
    NoRoute,
    /// It is a published object, which has no origin, and no peer in reach has it.
    NoHolder,
    /// A router that was asked has named others for the one whose client asks.
    Elsewhere,
    /// The node that would dial has no list of trusted CAs, so it cannot speak TLS to origins.
    NoTls,
    /// Its certificate does not prove that it is the host that was dialled.
    Untrusted,
    /// It speaks no TLS, or none that this node accepts.
    NotTls,
    /// It sent a mirror's request where this node may not go, too often elsewhere, or for a token that nobody gets.
    Astray,
    /// The node that would dial has no room for more connections with servers, and has not dialled.
    NoRoom,
}

/// Why a file was not published or an object not withdrawn. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutError {
    /// It is larger than any object may be: this is the limit.
    TooLarge(u64),
    /// Its manifest may be longer than a name can certify: up to this size it certainly is not.
    TooLong(u64),
    /// Published objects would exceed their part of the store: this is the limit.
    Full(u64),
    /// This many objects are published already: the limit.
    TooMany(usize),
    /// The store did not take all of it.
    Store,
    /// It ended before its announced length, or continued after it.
    Broken,
    /// No object of this name is published here.
    Unknown,
    /// The list of published objects cannot be read, and must not be overwritten.
    Unlisted,
}

/// What the lookup of a host's name has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    /// Its addresses; empty if it has none.
    Addresses(Vec<IpAddr>),
    /// The resolver does not answer, or says that it cannot.
    Unanswered,
    /// The resolver was not asked: too many lookups of this client, or of all, wait for it.
    NotAsked,
}

/// An event of a client: one that sends requests, or one on this machine that publishes.
#[derive(Debug)]
pub enum ClientInput {
    /// A request.
    Request(ExchangeId, Box<Request>),
    /// It can take this many more bytes of content.
    Credit(ExchangeId, u64),
    /// It has left; nothing more is to be sent to it.
    Gone(ExchangeId),
    /// Publish a file of this many bytes → [`crate::OriginOutput::TakeIn`], or at once
    /// [`crate::ClientOutput::Published`]. [`ClientInput::Gone`] cancels it.
    Put(ExchangeId, u64),
    /// Withdraw a published object → [`crate::ClientOutput::Published`].
    Withdraw(ExchangeId, Oid),
}

/// An event of a request to an origin.
#[derive(Debug)]
pub enum OriginInput {
    /// An interim response, before the head: 1xx except 100 (Continue) and 101 (RFC 9110 §15.2).
    Interim(FetchId, StatusCode, HeaderMap),
    /// The head of the response, after any interim responses.
    Head(FetchId, StatusCode, HeaderMap),
    /// Content of the response.
    Body(FetchId, Bytes),
    /// The far end tells how the next content crosses the uplink, before it is given.
    Crossed(FetchId, Crossed),
    /// Nothing has come for so long that the origin may be out of reach. An answer may still come.
    Silent(FetchId),
    /// The response has ended; with an error, perhaps before it began.
    End(FetchId, Result<(), FetchError>),
}

/// A result of the store.
#[derive(Debug)]
pub enum StoreInput {
    /// The catalogue's row under a key, if there is one.
    Row(ObjectKey, Option<Vec<u8>>),
    /// The catalogue cannot be read, so it is unknown whether it has a row under this key.
    RowUnread(ObjectKey),
    /// A segment of a manifest, if the catalogue has it.
    Segment(RecordId, u32, Option<Vec<u8>>),
    /// The catalogue has made changes; false if it failed to.
    Changed(Ticket, bool),
    /// All writes before [`crate::StoreOutput::Sync`] are durable; false if that failed.
    Synced(bool),
    /// Units that were read, in order; `None` if they cannot be read.
    Units(Ticket, Option<Vec<(ChunkId, Bytes)>>),
    /// Where units were written, in order; `None` if they could not be.
    Appended(Ticket, Option<Vec<Location>>),
    /// The contents of a segment of the log; `None` if it cannot be read.
    Entries(SegmentId, Option<Vec<Entry>>),
    /// A segment of the log is removed, and these of its units were rewritten elsewhere; `None` if
    /// that failed and the segment is still there.
    Rewritten(SegmentId, Option<Vec<(ChunkId, u32, Location)>>),
}

/// One event, by its port. Bytes are reference-counted slices.
#[derive(Debug)]
pub enum Input {
    /// The date was learnt, or the clock set.
    Clock(Date),
    /// The time of [`crate::Node::poll_timeout`] has come.
    Tick,
    /// These settings hold from now on; requests under way continue.
    Settings(Settings),
    /// The routes to the gateway, complete, after each change.
    Routes(RouteTable),
    /// Overheard TCP segments, in order. The driver omits those from or to one of this machine's
    /// addresses: they arrive by their own connection.
    Overheard(Vec<Overheard>),
    /// A client's event.
    Client(ClientInput),
    /// An event of a request to an origin.
    Origin(OriginInput),
    /// An event of a connection with a peer.
    Link(LinkInput),
    /// A result of the store.
    Store(StoreInput),
    /// Whether the origin of an [`crate::Output::Probe`] was reached.
    Probed(bool),
    /// Which interfaces lead out of the site has changed.
    OutwardChanged,
    /// A host's name was looked up. After [`Looked::Unanswered`] the addresses may follow.
    Name(String, Looked),
    /// What is stored under these keys is removed, except what is published here; what of it is under way is not stored.
    /// The driver gives few at once.
    Purge(Vec<ObjectKey>),
    /// A UDP datagram has arrived; its source address may be forged.
    Datagram(SocketAddr, Bytes),
}
