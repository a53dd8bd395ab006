//! A request that nothing stored answers: which exchanges wait for it, and what becomes of its
//! response.

use crate::context::Context;
use crate::http::{self, Asked, NotStored, Record, content_length};
use crate::input::{ExchangeId, FetchError};
use crate::mesh::Mesh;
use crate::request::Ask;
use ::http::{HeaderMap, Method, StatusCode, header};
use bytes::Bytes;
use classes::{Keep, Kind};
use std::collections::VecDeque;
use std::rc::Rc;
use wire::{Date, Instant};

wire::reasons! {
    /// Why a request is passed on, in the words of RFC 9211 §2.2.
    pub enum Forward {
        /// The cache is configured not to answer the request, or cannot.
        Bypass = "bypass",
        /// The semantics of the request's method require it.
        Method = "method",
        /// Nothing is stored for its URI.
        UriMiss = "uri-miss",
        /// What is stored for its URI varies by other fields.
        VaryMiss = "vary-miss",
        /// A directive of the request requires it.
        Request = "request",
        /// What is stored is stale.
        Stale = "stale",
        /// The request is for a range, and the range is not stored.
        Partial = "partial",
    }
}

/// One request that this node sends for others, until its response has ended.
#[derive(Debug)]
pub struct Miss {
    /// The request that began it.
    pub ask: Rc<Ask>,
    /// The stale record that may be served if the origin fails.
    pub old: Option<Rc<Record>>,
    /// Whether it is asked for because a companion has changed.
    pub is_companion: bool,
    /// Whether the request asks the origin to confirm that record.
    pub confirms: bool,
    /// The reason why the response may not be stored, if it is known from the start.
    pub unstorable: Option<NotStored>,
    /// `Cache-Status` of the caches upstream.
    pub status_line: String,
    /// Why the request is forwarded, in the terms of RFC 9211 §2.2.
    pub why: Forward,
    /// The exchange that the request was made from. A response that may not be shared goes only to
    /// it.
    pub starter: Option<ExchangeId>,
    /// Exchanges that wait for the head.
    pub waiters: Vec<ExchangeId>,
    /// Waiting exchanges that joined, and when.
    pub joined: Vec<(Instant, ExchangeId)>,
    /// When the request was sent.
    pub requested: Date,
    /// Content bytes of a response that is not stored that a peer may send before it gets more
    /// credit.
    pub granted: u64,
    pub stage: Stage,
}

/// The state of a response.
#[derive(Debug)]
pub enum Stage {
    /// No head has arrived.
    Asking,
    /// Passed on as it arrives, not stored.
    Passing(Pass),
    /// The response is an object: waiting exchanges read it, others may join.
    Object,
}

/// A response that is passed on as it arrives, and the reason why it is not stored.
#[derive(Debug)]
pub struct Pass {
    pub client: ExchangeId,
    pub reason: NotStored,
    /// Content bytes granted to the upstream so far; `received` counts those that have arrived.
    pub granted: u64,
    pub received: u64,
    /// Content for which the client has no credit yet.
    pub held: VecDeque<Bytes>,
    /// How the response ended, if the client has not taken all of it yet.
    pub over: Option<Result<(), FetchError>>,
}

impl Pass {
    /// Nothing has arrived; `granted` bytes may.
    pub fn new(client: ExchangeId, reason: NotStored, granted: u64) -> Self {
        Self { client, reason, granted, received: 0, held: VecDeque::new(), over: None }
    }
}

impl Miss {
    /// A request without a response yet.
    pub fn new(ask: Rc<Ask>, requested: Date, why: Forward, waiters: Vec<ExchangeId>) -> Self {
        Self {
            ask,
            old: None,
            is_companion: false,
            confirms: false,
            unstorable: None,
            status_line: String::new(),
            why,
            starter: waiters.first().copied(),
            waiters,
            joined: Vec::new(),
            requested,
            granted: 0,
            stage: Stage::Asking,
        }
    }

    /// The response, if it is passed on.
    pub fn pass(&mut self) -> Option<&mut Pass> {
        match &mut self.stage {
            Stage::Passing(pass) => Some(pass),
            _ => None,
        }
    }

    /// Whether a response with this head may be stored; if not, the reason in one word.
    pub fn judge(
        &self,
        cx: &Context,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), NotStored> {
        if self.ask.method == Method::HEAD {
            return Err(NotStored::Head);
        }
        if let Some(reason) = self.unstorable {
            return Err(reason);
        }
        // Such a request went to the origin past the gateways, whose word alone counts here: a router on the way may
        // have changed the answer.
        let believes = |mesh: &Mesh| mesh.believes(&mesh.peers.own_key());
        if self.ask.goes_alone() && !cx.mesh.as_ref().is_none_or(believes) {
            return Err(NotStored::Authorization);
        }
        // Anything at all could be kept for the file by saying that it is coded.
        let is_coded = status == StatusCode::OK && headers.contains_key(header::CONTENT_ENCODING);
        if self.ask.expected.is_some() && is_coded {
            return Err(NotStored::Coded);
        }
        let verdict = &self.ask.verdict;
        if verdict.keep == Keep::Never {
            return Err(NotStored::Class);
        }
        let asked = Asked { method: &self.ask.method, headers: &self.ask.headers, verdict };
        http::judge(&asked, status, headers, cx.date())?;
        if content_length(headers).is_some_and(|bytes| bytes > self.ask.bytes_max(&cx.config)) {
            return Err(NotStored::BodySize);
        }
        if headers.contains_key(header::SET_COOKIE) && self.is_of_peer(cx) {
            // The cookie is for that peer's client. A record has no cookies, so the response is
            // passed on unchanged.
            return Err(NotStored::Cookie);
        }
        if cx.store_works() { Ok(()) } else { Err(NotStored::Store) }
    }

    /// Whether the request was begun for a peer, which asks for a client of its own or for others
    /// behind it.
    fn is_of_peer(&self, cx: &Context) -> bool {
        let starter = self.starter.and_then(|starter| cx.exchanges.get(&starter));
        starter.is_some_and(|starter| starter.peer().is_some())
    }

    /// The stale record to serve in place of an error, where that is permitted (RFC 5861 §4).
    pub fn stands_in(&self, cx: &Context, status: StatusCode) -> Option<Rc<Record>> {
        let old = self.old.as_ref()?;
        // Too many requests say nothing of the content; only a class permits its last version then.
        let is_class = matches!(self.ask.verdict.kind, Kind::Changing { .. });
        let fails = matches!(status.as_u16(), 500 | 502 | 503 | 504);
        let may = fails || (is_class && status == StatusCode::TOO_MANY_REQUESTS);
        if !may {
            return None;
        }
        let now = cx.date();
        let permitted = self.waiters.iter().all(|waiter| {
            cx.exchanges.get(waiter).is_none_or(|exchange| {
                let ask = &exchange.ask;
                http::stale_permitted(old, &ask.headers, &ask.verdict, now, true)
            })
        });
        permitted.then(|| Rc::clone(old))
    }
}
