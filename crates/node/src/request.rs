//! What is asked: a client's request, or a peer's for one, understood. The word that machines share.

use crate::access::{Access, Caller, Forbidden};
use crate::http::{Audience, CONDITIONS, CacheControl, Target, take_cookies};
use crate::input::{Config, Entrance, FetchError};
use crate::output::{self, Dial};
use http::{HeaderMap, HeaderValue, Method, header};
use std::net::IpAddr;
use wire::peer::{Request, Resume};
use wire::{NodeId, ObjectKey, Oid, RecordId};

/// A peer is told of the manifest so far ahead of the units that it asks for, in bytes of the object.
pub const MANIFEST_CREDIT: u64 = 512 * 1024;
/// Bytes of a response that is not stored may come before the asker has said more.
pub const CREDIT: u32 = 16 * 1024;
/// However little memory there is, so many bytes may be on their way.
pub const AHEAD_MIN: u64 = 16 * 1024;
/// So many bytes of units follow the first segment unasked, so that small objects take one round trip
/// (protocol: Pull).
pub const UNASKED_BYTES: u64 = 16 * 1024;

/// More of header fields than that, in bytes, are for the origin itself: peers keep what they are asked.
pub const FIELDS_MAX: usize = 16 * 1024;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A client, of whom the driver knows.
    Client,
    /// A peer, by this request of its.
    Peer(NodeId, Request),
}

/// How far a request has come through the mesh.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    /// Nodes it has visited.
    pub visited: Vec<NodeId>,
    /// How many more nodes may pass it on.
    pub hops: u8,
    /// Whether a peer wants each hop to look, keep and forward.
    pub per_hop: bool,
    /// It goes straight to the gateway: waiting for others on the way did not work out.
    pub to_gateway: bool,
    /// The transfer that it takes up again.
    pub resume: Option<Resume>,
    /// The stale record that a peer has.
    pub have: Option<RecordId>,
    /// How far a peer welcomes the manifest at first.
    pub manifest_credit: u64,
    /// Content bytes of a response that is not stored that a peer can take at first.
    pub credit: i64,
    /// Content bytes that a peer was given of a response that is not stored.
    pub given: u64,
    /// What the request of a peer takes of memory by what it says, in bytes.
    pub size: u64,
    /// No unit is to come unasked: whoever asks may have overheard many.
    pub sparing: bool,
    /// `Cache-Status` of the caches that were asked whether a stored response still holds.
    pub upstream: String,
}

/// What a client asks, or a peer for one, understood.
#[derive(Clone, Debug)]
pub struct Ask {
    pub asker: Asker,
    pub trail: Trail,
    pub method: Method,
    pub target: Target,
    pub key: ObjectKey,
    /// The name by which a published object is asked for, if one is.
    pub named: Option<Oid>,
    /// End-to-end fields, with our `Via` but without `Host`.
    pub headers: HeaderMap,
    pub client: IpAddr,
    /// For whom the answer is kept; [`Audience::ThisMachine`] asks with the exemption of a client on this machine.
    pub audience: Audience,
    /// A client on this machine asks as others may; if that is of no use it asks with its exemption.
    pub may_turn_home: bool,
    pub entrance: Entrance,
    pub dial: Dial,
    pub has_body: bool,
    pub upgrade: bool,
    /// Fetches for itself from now on: joining others did not work out, or is not wished.
    pub alone: bool,
    /// What the origin sets at this client, in answer to its own request; nobody else gets it.
    pub cookies: HeaderMap,
    /// The host is known to be the one that was dialled: it may speak for its URIs.
    pub verified: bool,
}

impl Ask {
    /// For whom its origin is dialled.
    pub fn caller(&self) -> Caller {
        match (self.asker, self.entrance) {
            (Asker::Peer(..), _) => Caller::Peer,
            (Asker::Client, _) if self.audience == Audience::ThisMachine => Caller::ThisMachine,
            (Asker::Client, Entrance::Explicit) => Caller::Explicit,
            (Asker::Client, Entrance::Intercepted(_)) => Caller::Intercepted,
        }
    }

    /// Why a stored response is of no use to it, nor its response to others; known from the
    /// request alone (protocol: What cannot be cached).
    pub fn bypass(&self) -> Option<&'static str> {
        if self.upgrade {
            Some("upgrade")
        } else if !matches!(self.method, Method::GET | Method::HEAD) {
            Some("method")
        } else if self.has_body {
            Some("body")
        } else if self.headers.contains_key(header::AUTHORIZATION) {
            Some("authorization")
        } else if CacheControl::of_request(&self.headers).no_store {
            Some("no-store")
        } else if self.headers.contains_key(header::IF_MATCH)
            || self.headers.contains_key(header::IF_UNMODIFIED_SINCE)
        {
            Some("precondition")
        } else {
            None
        }
    }

    /// The same for nobody in particular: the whole of the current version, from wherever.
    pub fn in_background(mut self) -> Self {
        self.method = Method::GET;
        for name in CONDITIONS {
            self.headers.remove(name);
        }
        for name in [header::RANGE, header::CACHE_CONTROL, header::PRAGMA] {
            self.headers.remove(name);
        }
        self
    }

    /// Puts the cookies that it was answered with into a response, and leaves none of what is stored.
    pub fn set_cookies(&self, headers: &mut HeaderMap) {
        // Records of former versions have some, and so may what such peers have signed.
        take_cookies(headers);
        headers.extend(self.cookies.clone());
    }

    /// Whether it asks for the whole of the current version, as others do.
    pub fn is_plain(&self) -> bool {
        self.trail.resume.is_none()
            && self.method == Method::GET
            && !self.headers.contains_key(header::RANGE)
            && !CONDITIONS.iter().any(|name| self.headers.contains_key(name))
    }

    /// Whether it will have nothing but what the origin says from now on.
    pub fn is_insistent(&self) -> bool {
        let control = CacheControl::of_request(&self.headers);
        control.no_cache || control.max_age == Some(0)
    }

    /// What forbids a client's request whatever the routes and the addresses of its host are: then it is not even
    /// given what is stored. A peer is given that, and is refused only what this node would have to dial.
    pub fn forbidden(&self, access: &Access) -> Option<Forbidden> {
        if self.named.is_some() {
            // It has no origin.
            return None;
        }
        let (caller, port) = (self.caller(), self.target.port());
        match self.target.address() {
            // An intercepted client has dialled, whatever it says.
            Some(address) if caller != Caller::Intercepted => {
                access.check(caller, (address, port).into()).err()
            }
            _ => access.check_port(caller, port).err(),
        }
    }

    /// What an explicit client reads where no other client may go is for the site alone.
    pub fn keep_in_site(&mut self, addresses: Option<&[IpAddr]>, config: &Config) {
        if self.caller() != Caller::Explicit || self.named.is_some() {
            return;
        }
        let within = |address: &IpAddr| config.access.is_of_site(*address);
        if addresses.is_some_and(|addresses| addresses.iter().any(within)) {
            self.audience = Audience::Site;
            self.key = self.target.key(&config.secret, self.audience);
        }
    }

    /// What a client on this machine asked for was not dialled as for others: it asks with its exemption, if
    /// it did not. After any other error an origin was dialled, and the exemption changes nothing.
    pub fn turn_home(&mut self, error: Option<FetchError>, config: &Config) -> bool {
        let helps = matches!(error, Some(FetchError::Forbidden(_) | FetchError::Unresolved));
        if !helps || !std::mem::take(&mut self.may_turn_home) {
            return false;
        }
        self.audience = Audience::ThisMachine;
        self.key = self.target.key(&config.secret, self.audience);
        true
    }

    /// What is asked of others for a named object: what comes is kept, and a part of it comes out of the store the
    /// next time.
    pub fn make_whole(&mut self) {
        for part in [header::RANGE, header::IF_RANGE, header::IF_NONE_MATCH] {
            self.headers.remove(part);
        }
    }

    /// What is asked of others for a named object that only its head is wanted of: who holds it tells
    /// that first, and is to send nothing else meanwhile. A peer is never asked for less.
    pub fn head_alone(self) -> Self {
        let mut ask = self.in_background();
        ask.trail.sparing = true;
        ask
    }

    /// An answer that we cannot read, be it only because its head is larger than what we take, may well be one
    /// for a client that does not know of us: without us it would have got it. So it asks anew, past us.
    pub fn past_us(&self) -> Option<output::Fetch> {
        let Entrance::Intercepted(dialled) = self.entrance else { return None };
        // Content has been sent and is not kept.
        if self.has_body || self.upgrade || !self.method.is_safe() {
            return None;
        }
        let mut headers = self.headers.clone();
        // What comes next on the connection would pass us, too.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        Some(output::Fetch { dial: Dial::Address(dialled), ..self.bare_request(headers) })
    }

    /// The request of an origin, with these fields and without content.
    pub fn bare_request(&self, mut headers: HeaderMap) -> output::Fetch {
        let host = HeaderValue::try_from(self.target.authority());
        headers.insert(header::HOST, host.expect("it was read as one"));
        output::Fetch {
            dial: self.dial.clone(),
            client: self.client,
            caller: self.caller(),
            method: self.method.clone(),
            path: self.target.path().to_owned(),
            headers,
            exchange: None,
        }
    }
}
