//! A request of a client or peer, after parsing. All machines share this type.

use crate::access::{Access, Caller, Forbidden};
use crate::http::{Audience, CONDITIONS, CacheControl, NotStored, Target, take_cookies};
use crate::input::{Binding, Config, Entrance, FetchError};
use crate::output::{self, Dial};
use classes::{Keep, Verdict};
use http::{HeaderMap, HeaderValue, Method, header};
use std::net::IpAddr;
use wire::peer::{Request, Resume};
use wire::{Digest, NodeId, ObjectKey, Oid, RecordId};

/// A peer may send the manifest this many bytes of the object ahead of the units requested.
pub const MANIFEST_CREDIT: u64 = 512 * 1024;
/// Bytes of a response that is not stored that may be sent before any credit is granted.
pub const CREDIT: u32 = 16 * 1024;
/// However short memory is, this many bytes may be in flight.
pub const AHEAD_MIN: u64 = 16 * 1024;
/// Units in the first bytes of an object, up to this limit, follow its first segment without a
/// want, so that small objects take one round trip (docs/protocol.md, "Messages").
pub const UNASKED_BYTES: u64 = 16 * 1024;

/// A request with more bytes of header fields than this goes straight to the origin, because peers
/// keep requests in memory.
pub const FIELDS_MAX: usize = 16 * 1024;

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A client; the driver knows it.
    Client,
    /// A peer, and its number for the request.
    Peer(NodeId, Request),
}

/// A request's path through the mesh, and what a peer said with it.
#[derive(Clone, Debug, Default)]
pub struct PeerHops {
    /// Nodes that it has passed.
    pub visited: Vec<NodeId>,
    /// How many more nodes may forward it.
    pub hops: u8,
    /// Whether a peer wants each hop to look up, store and forward.
    pub per_hop: bool,
    /// It goes straight to the gateway, because waiting for another request's response failed.
    pub to_gateway: bool,
    /// The router that is said to have the object: it answers from its store alone.
    pub towards: Option<IpAddr>,
    /// The asker would go to another router that this one names.
    pub elsewhere: bool,
    /// This node has forwarded it.
    pub forwarded: bool,
    /// The transfer that it resumes.
    pub resume: Option<Resume>,
    /// The stale record that a peer has.
    pub have: Option<RecordId>,
    /// The peer's initial credit for the manifest, as an offset.
    pub manifest_credit: u64,
    /// The peer's initial credit for a response that is not stored, in bytes.
    pub credit: i64,
    /// Bytes of such a response sent to the peer so far.
    pub given: u64,
    /// The memory that the peer's request takes by its text, in bytes.
    pub size: u64,
    /// No unit is to be sent without a want: the peer may have overheard many.
    pub sparing: bool,
    /// The peer passes the response on, and gets it as one that is not stored.
    pub passed: bool,
    /// `Cache-Status` of the caches that were asked to confirm a stored response.
    pub upstream: String,
}

/// A request after parsing.
#[derive(Clone, Debug)]
pub struct Ask {
    pub asker: Asker,
    pub peer_hops: PeerHops,
    pub method: Method,
    pub target: Target,
    /// What the content classes say of the target.
    pub verdict: Verdict,
    /// The digest of the content, if the request or the URL names one.
    pub expected: Option<Digest>,
    /// The node that dials follows redirects, and gets a token where anyone may have one: the client speaks to a mirror,
    /// and knows nothing of the places to which archives send.
    pub follow: bool,
    pub key: ObjectKey,
    /// The name, if a published object is requested.
    pub named: Option<Oid>,
    /// End-to-end fields, with our `Via` but without `Host`.
    pub headers: HeaderMap,
    pub client: IpAddr,
    /// The clients that may share the response. [`Audience::ThisMachine`]: the request used the
    /// exemption of a client on this machine.
    pub audience: Audience,
    /// A client on this machine first asks as others may. If that is refused, it asks again with
    /// its exemption.
    pub may_turn_home: bool,
    pub entrance: Entrance,
    pub dial: Dial,
    pub has_body: bool,
    pub upgrade: bool,
    /// Its client understands interim responses, which HTTP/1.0 has not (RFC 9110 §15.2).
    pub takes_interim: bool,
    /// The connection of its client, if that authenticates by it.
    pub binding: Option<Binding>,
    /// It does not join other requests any more: joining failed, or is not wanted.
    pub alone: bool,
    /// Cookies that the origin set in response to this very request; no other client gets them.
    pub cookies: HeaderMap,
    /// The host is known to be the server that was dialled, so it may invalidate its URIs.
    pub verified: bool,
}

impl Ask {
    /// On whose behalf its origin is dialled.
    pub fn caller(&self) -> Caller {
        match (self.asker, self.entrance) {
            (Asker::Peer(..), _) => Caller::Peer,
            (Asker::Client, _) if self.audience == Audience::ThisMachine => Caller::ThisMachine,
            (Asker::Client, Entrance::Explicit | Entrance::Mirror) => Caller::Explicit,
            (Asker::Client, Entrance::Intercepted(_)) => Caller::Intercepted,
        }
    }

    /// Why it can neither be answered from the store nor have its response stored, as far as the
    /// request alone tells.
    pub fn bypass(&self) -> Option<NotStored> {
        if self.upgrade {
            Some(NotStored::Upgrade)
        } else if self.binding.is_some() {
            Some(NotStored::Connection)
        } else if !matches!(self.method, Method::GET | Method::HEAD) {
            Some(NotStored::Method)
        } else if self.has_body {
            Some(NotStored::Body)
        } else if self.headers.contains_key(header::AUTHORIZATION) && !self.goes_alone() {
            Some(NotStored::Authorization)
        } else if CacheControl::heeded(&self.headers, &self.verdict).no_store {
            Some(NotStored::NoStore)
        } else if self.headers.contains_key(header::IF_MATCH)
            || self.headers.contains_key(header::IF_UNMODIFIED_SINCE)
        {
            Some(NotStored::Precondition)
        } else {
            None
        }
    }

    /// Whether it has credentials of its client in clear. Then it goes straight to its origin, so that no message to another
    /// router has them, and shares no other request's answer before it is known whom the answer is for.
    pub fn goes_alone(&self) -> bool {
        self.headers.contains_key(header::AUTHORIZATION)
            && self.asker == Asker::Client
            && self.named.is_none()
            && !self.target.is_tls()
    }

    /// The key under which an object with the expected digest is found, whatever its URI. What only some may have has
    /// none.
    pub fn alias(&self, secret: &[u8; 32]) -> Option<ObjectKey> {
        let shared = |_: &Digest| {
            self.audience == Audience::Everyone && self.named.is_none() && !self.goes_alone()
        };
        let digest = self.expected.filter(shared)?;
        let key = blake3::derive_key("hearsay 2026-11 alias of a digest", secret);
        Some(ObjectKey(*blake3::keyed_hash(&key, digest.to_string().as_bytes()).as_bytes()))
    }

    /// The most bytes that its object may have to be stored.
    pub fn bytes_max(&self, config: &Config) -> u64 {
        match self.verdict.keep {
            Keep::Default => config.object_bytes_max.min(config.undecided_bytes_max),
            Keep::UpTo(bytes) => config.object_bytes_max.min(bytes),
            Keep::Always => config.object_bytes_max,
            Keep::Never => 0,
        }
    }

    /// Whether no peer is asked for the object, and none gets it: it may not leave this site.
    pub fn stays_here(&self) -> bool {
        self.audience != Audience::Everyone
    }

    /// Whether peers may be asked for a response that is only passed on: by `https`, so that only the gateway speaks
    /// TLS to origins, and if it can be asked for again. By `http` it crosses the mesh as the kernel's packets do.
    pub fn passes_by_peers(&self) -> bool {
        let repeats = matches!(self.method, Method::GET | Method::HEAD);
        let is_open = !self.has_body && !self.upgrade && self.binding.is_none();
        self.target.is_tls() && repeats && is_open
    }

    /// The same request on behalf of no client: for the whole current version, without conditions.
    pub fn in_background(mut self) -> Self {
        self.method = Method::GET;
        self.peer_hops.passed = false;
        (self.peer_hops.elsewhere, self.peer_hops.towards) = (false, None);
        for name in CONDITIONS {
            self.headers.remove(name);
        }
        for name in [header::RANGE, header::CACHE_CONTROL, header::PRAGMA] {
            self.headers.remove(name);
        }
        self
    }

    /// Removes cookies from a stored response, and adds those that were set for this request.
    pub fn set_cookies(&self, headers: &mut HeaderMap) {
        // Records written by former versions contain cookies, and so may records signed by such
        // peers.
        take_cookies(headers);
        headers.extend(self.cookies.clone());
    }

    /// Whether it asks for the whole current version, so that it can share a response.
    pub fn is_plain(&self) -> bool {
        self.peer_hops.resume.is_none()
            && self.method == Method::GET
            && !self.headers.contains_key(header::RANGE)
            && !CONDITIONS.iter().any(|name| self.headers.contains_key(name))
    }

    /// Whether it accepts only a response that the origin gives from now on.
    pub fn is_insistent(&self) -> bool {
        CacheControl::heeded(&self.headers, &self.verdict).insists()
    }

    /// Why a client's request is forbidden independently of routes and the host's addresses: then
    /// even a stored response is refused. A peer's request is refused only if this node would have
    /// to dial.
    pub fn forbidden(&self, access: &Access) -> Option<Forbidden> {
        if self.named.is_some() {
            // A named object has no origin.
            return None;
        }
        let (caller, port) = (self.caller(), self.target.port());
        match self.target.address() {
            // An intercepted client was free to dial that address itself.
            Some(address) if caller != Caller::Intercepted => {
                access.check(caller, (address, port).into()).err()
            }
            _ => access.check_port(caller, port).err(),
        }
    }

    /// If only explicit clients may reach the origin, its responses are not shared beyond this
    /// site.
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

    /// After a refusal, a client on this machine asks again with its exemption, once. After any
    /// other error an origin was dialled, and the exemption would change nothing.
    pub fn turn_home(&mut self, error: Option<FetchError>, config: &Config) -> bool {
        let helps = matches!(error, Some(FetchError::Forbidden(_) | FetchError::Unresolved));
        if !helps || !std::mem::take(&mut self.may_turn_home) {
            return false;
        }
        self.audience = Audience::ThisMachine;
        self.key = self.target.key(&config.secret, self.audience);
        true
    }

    /// A named object is always requested whole: it is stored, and the next part comes from the
    /// store.
    pub fn make_whole(&mut self) {
        for part in [header::RANGE, header::IF_RANGE, header::IF_NONE_MATCH] {
            self.headers.remove(part);
        }
    }

    /// A request for the head of a named object. The holder sends the head first; `sparing` keeps
    /// it from sending anything else.
    pub fn head_alone(self) -> Self {
        let mut ask = self.in_background();
        ask.peer_hops.sparing = true;
        ask
    }

    /// A request that bypasses this proxy, for a response that the proxy cannot read, perhaps only
    /// because its head is too large. An intercepted client would have got it without us.
    pub fn past_us(&self) -> Option<output::Fetch> {
        let Entrance::Intercepted(dialled) = self.entrance else { return None };
        // The content was already sent and is not kept.
        if self.has_body || self.upgrade || !self.method.is_safe() {
            return None;
        }
        let mut headers = self.headers.clone();
        // Later requests on this connection would bypass us, too.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        Some(output::Fetch { dial: Dial::Address(dialled), ..self.bare_request(headers) })
    }

    /// The request to an origin, with these fields and without content.
    pub fn bare_request(&self, mut headers: HeaderMap) -> output::Fetch {
        let host = HeaderValue::try_from(self.target.authority());
        headers.insert(header::HOST, host.expect("it was read as one"));
        output::Fetch {
            dial: self.dial.clone(),
            tls: self.target.is_tls(),
            client: self.client,
            caller: self.caller(),
            method: self.method.clone(),
            path: self.target.path().to_owned(),
            headers,
            exchange: None,
            binding: self.binding,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::http::OPEN_KEY;

    /// A client's plain request for a URL, of no class.
    pub(crate) fn ask(url: &str) -> Ask {
        let target = Target::read(&url.parse().expect("a URL")).expect("an origin");
        Ask {
            asker: Asker::Client,
            peer_hops: PeerHops::default(),
            method: Method::GET,
            verdict: Verdict::default(),
            expected: None,
            follow: false,
            key: target.key(&OPEN_KEY, Audience::Everyone),
            named: None,
            headers: HeaderMap::new(),
            client: IpAddr::from([10, 0, 0, 2]),
            audience: Audience::Everyone,
            may_turn_home: false,
            entrance: Entrance::Explicit,
            dial: Dial::Name(target.host().to_owned(), target.port()),
            target,
            has_body: false,
            upgrade: false,
            takes_interim: true,
            binding: None,
            alone: false,
            cookies: HeaderMap::new(),
            verified: true,
        }
    }
}
