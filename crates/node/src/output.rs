//! The operations that a node asks its driver for.

use crate::access::Caller;
use crate::input::{Binding, ExchangeId, FetchId, LinkId, PutError, Ticket};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use std::net::{IpAddr, SocketAddr};
use store::{Change, Entry, Location, SegmentId, Unit};
use wire::{ObjectKey, Oid, RecordId};

/// The server to dial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dial {
    /// A host name or literal address with a port; each address is subject to
    /// [`crate::Access::may_dial`].
    Name(String, u16),
    /// The address that the client dialled.
    Address(SocketAddr),
}

/// A request to an origin.
#[derive(Debug)]
pub struct Fetch {
    /// The server to dial.
    pub dial: Dial,
    /// Speak TLS to it, and first verify that it is the host that `dial` names.
    pub tls: bool,
    /// The client or peer that it is for.
    pub client: IpAddr,
    /// The kind of that client, for [`crate::Access::may_dial`].
    pub caller: Caller,
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The header fields, `Host` among them.
    pub headers: HeaderMap,
    /// The exchange whose content belongs to it, and whose connection is joined to the origin's
    /// after a 101; `None` if neither can happen.
    pub exchange: Option<ExchangeId>,
    /// The client's connection whose requests have connections of their own.
    pub binding: Option<Binding>,
}

/// The head of a response to a client.
#[derive(Debug)]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// The header fields.
    pub headers: HeaderMap,
    /// The bytes of content that follow; `None` if unknown, zero if there is none.
    pub length: Option<u64>,
}

/// An operation for a client: one that sent a request, or one on this machine that publishes.
#[derive(Debug)]
pub enum ClientOutput {
    /// Send an interim response (RFC 9110 §15.2), if there is room for it before the head.
    Interim(ExchangeId, StatusCode, HeaderMap),
    /// Send the response's head.
    Respond(ExchangeId, Box<Head>),
    /// Send content, within the client's credit.
    Data(ExchangeId, Bytes),
    /// The response is complete.
    Finish(ExchangeId),
    /// The response cannot be completed: break the connection, so that the client notices.
    Abort(ExchangeId),
    /// Dial for its `CONNECT`, answer it, and join the two connections.
    Tunnel(ExchangeId, Dial, IpAddr, Caller),
    /// Send this request, then join the client's connection with the origin's: the response is not
    /// one that this proxy can read. The exchange has ended.
    Relay(ExchangeId, Box<Fetch>),
    /// A file is published under this name and durable; or an object was withdrawn.
    Published(ExchangeId, Result<Oid, PutError>),
}

/// An operation on a request to an origin.
#[derive(Debug)]
pub enum OriginOutput {
    /// Send a request → perhaps [`crate::OriginInput::Interim`], `Silent`, then `Head`, `Body`, `End`.
    Fetch(FetchId, Box<Fetch>),
    /// Take in a client's file for publishing, like an origin's content →
    /// [`crate::OriginInput::Body`], `End`.
    TakeIn(ExchangeId, FetchId),
    /// Accept this many more bytes of its content.
    Grant(FetchId, u64),
    /// Cancel the request; no more of it is wanted.
    Cancel(FetchId),
}

/// An operation on a connection with a peer.
#[derive(Debug)]
pub enum LinkOutput {
    /// Dial a peer → [`crate::LinkInput::Connected`] or `Closed`.
    Connect(LinkId, SocketAddr),
    /// Write bytes, within the room of [`crate::LinkInput::Room`].
    Write(LinkId, Bytes),
    /// Accept this many more bytes; initially none.
    Receive(LinkId, u64),
    /// Let this many bytes gather before the next read: fewer are of no use yet, and TCP
    /// acknowledges what is read together in one packet. Read after a short time in any case,
    /// because the rest may not come.
    ReadThreshold(LinkId, u64),
    /// From now on this connection carries only units, in one direction and without replies. Full
    /// packets matter more than low delay, and few acknowledgements more than early ones.
    BulkData(LinkId),
    /// Send what was written, then close.
    Hangup(LinkId),
}

/// An operation of the store: the log of units, and the catalogue.
#[derive(Debug)]
pub enum StoreOutput {
    /// Look up a row → [`crate::StoreInput::Row`].
    Lookup(ObjectKey),
    /// Read a segment of a manifest → [`crate::StoreInput::Segment`].
    ReadSegment(RecordId, u32),
    /// Change the catalogue → [`crate::StoreInput::Changed`].
    Change(Ticket, Vec<Change>),
    /// Read adjacent units of these lengths, the first at this place →
    /// [`crate::StoreInput::Units`].
    Read(Ticket, Location, Vec<u32>),
    /// Write units next to each other → [`crate::StoreInput::Appended`].
    Append(Ticket, Vec<Unit>),
    /// Make all writes durable, first the log, then the catalogue → [`crate::StoreInput::Synced`].
    Sync,
    /// List a segment of the log → [`crate::StoreInput::Entries`].
    List(SegmentId),
    /// Write these units again, then remove the segment → [`crate::StoreInput::Rewritten`].
    Rewrite(SegmentId, Vec<Entry>),
}

/// One operation, by its port. Its result returns as an [`crate::Input`], where one is named.
#[derive(Debug)]
pub enum Output {
    /// For a client.
    Client(ClientOutput),
    /// On a request to an origin.
    Origin(OriginOutput),
    /// On a connection with a peer.
    Link(LinkOutput),
    /// With the store.
    Store(StoreOutput),
    /// Look up a host name for a client → [`crate::Input::Name`].
    Name(String, IpAddr),
    /// Dial an origin, as for this client or peer, and close at once → [`crate::Input::Probed`].
    Probe(Dial, IpAddr, Caller),
    /// Send one UDP datagram to an address; it may be lost.
    Datagram(SocketAddr, Bytes),
    /// Send one UDP datagram to all neighbours' port for peers, by each interface of the mesh.
    Broadcast(Bytes),
    /// Show this line to the operator.
    Notice(String),
}
