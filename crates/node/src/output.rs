//! What a node asks its driver to do.

use crate::access::Caller;
use crate::input::{ExchangeId, FetchId, LinkId, PutError, Ticket};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use std::net::{IpAddr, SocketAddr};
use store::{Change, Entry, Location, SegmentId, Unit};
use wire::{ObjectKey, Oid, RecordId};

/// Whom to dial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dial {
    /// The addresses of a name, or a literal address, with a port; each subject to
    /// [`crate::Access::may_dial`].
    Name(String, u16),
    /// The address that the client meant to dial.
    Address(SocketAddr),
}

/// A request to an origin.
#[derive(Debug)]
pub struct Fetch {
    /// Whom to ask.
    pub dial: Dial,
    /// The client or peer it is for.
    pub client: IpAddr,
    /// What kind of client that is: [`crate::Access::may_dial`] wants to know.
    pub caller: Caller,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The header fields, `Host` among them.
    pub headers: HeaderMap,
    /// Whose content goes with it, and whose connection is joined to the origin's on a 101; `None`
    /// if neither can happen.
    pub exchange: Option<ExchangeId>,
}

/// The head of a response to a client.
#[derive(Debug)]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// The header fields.
    pub headers: HeaderMap,
    /// Bytes of content that follow; `None` if that is not known, and zero if none may follow.
    pub length: Option<u64>,
}

/// Something to do for a client: one who asks, or who publishes on this machine.
#[derive(Debug)]
pub enum ClientOutput {
    /// Answer it.
    Respond(ExchangeId, Box<Head>),
    /// Give it content, within the credit it gave.
    Data(ExchangeId, Bytes),
    /// The response is complete.
    Finish(ExchangeId),
    /// The response cannot be completed: break the connection, so that the client knows.
    Abort(ExchangeId),
    /// Dial for its `CONNECT`, answer it, and join the two connections.
    Tunnel(ExchangeId, Dial, IpAddr, Caller),
    /// Send this request, then join the client's connection with the origin's, byte for byte: what comes back
    /// is nothing that we can read. The exchange is over.
    Relay(ExchangeId, Box<Fetch>),
    /// A file is published, and durable, under this name; or it was taken back.
    Published(ExchangeId, Result<Oid, PutError>),
}

/// Something to do at an origin.
#[derive(Debug)]
pub enum OriginOutput {
    /// Ask it → [`crate::OriginInput::Head`], `Body`, `End`.
    Fetch(FetchId, Box<Fetch>),
    /// Take in the file that somebody publishes, as if it were an origin's content →
    /// [`crate::OriginInput::Body`], `End`.
    TakeIn(ExchangeId, FetchId),
    /// Accept so many more bytes of its content.
    Grant(FetchId, u64),
    /// Break off a request to it; nothing more of it is wanted.
    Cancel(FetchId),
}

/// Something to do with a connection to a peer.
#[derive(Debug)]
pub enum LinkOutput {
    /// Dial a peer's port → [`crate::LinkInput::Connected`] or `Closed`.
    Connect(LinkId, SocketAddr),
    /// Write bytes, within the room that [`crate::LinkInput::Room`] gave.
    Write(LinkId, Bytes),
    /// Accept so many more bytes; begins at nothing.
    Receive(LinkId, u64),
    /// Before the next read, let so many bytes gather: fewer are of no use yet, and TCP acknowledges what was
    /// read together with one packet. Not for long, though: the rest may not come.
    ReadThreshold(LinkId, u64),
    /// From now on units pass by this link, one way, and nothing is said in answer: full packets matter more than the
    /// last few bytes soon, and few acknowledgements more than early ones.
    BulkData(LinkId),
    /// Send what was written, then close it.
    Hangup(LinkId),
}

/// Something to do with the store: the log of units, and the catalogue.
#[derive(Debug)]
pub enum StoreOutput {
    /// Look up a row → [`crate::StoreInput::Row`].
    Lookup(ObjectKey),
    /// Read a segment of a manifest → [`crate::StoreInput::Segment`].
    ReadSegment(RecordId, u32),
    /// Change the catalogue → [`crate::StoreInput::Changed`].
    Change(Ticket, Vec<Change>),
    /// Read adjacent units, the first at this place, of these lengths → [`crate::StoreInput::Units`].
    Read(Ticket, Location, Vec<u32>),
    /// Write units side by side → [`crate::StoreInput::Appended`].
    Append(Ticket, Vec<Unit>),
    /// Make all that was written durable: first the log, then the catalogue →
    /// [`crate::StoreInput::Synced`].
    Sync,
    /// List a segment of the log → [`crate::StoreInput::Entries`].
    List(SegmentId),
    /// Write these units anew, then remove the segment → [`crate::StoreInput::Rewritten`].
    Rewrite(SegmentId, Vec<Entry>),
}

/// Something to do, by the port where it is done. What comes of it comes back as an [`crate::Input`],
/// where one is named.
#[derive(Debug)]
pub enum Output {
    /// For a client.
    Client(ClientOutput),
    /// At an origin.
    Origin(OriginOutput),
    /// With a connection to a peer.
    Link(LinkOutput),
    /// With the store.
    Store(StoreOutput),
    /// Look up a name for a client → [`crate::Input::Name`].
    Name(String, IpAddr),
    /// Send this to an address in one UDP datagram, which may be lost.
    Datagram(SocketAddr, Bytes),
    /// Tell whoever runs this node, in a line.
    Notice(String),
}
