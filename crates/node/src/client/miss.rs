//! A request that nothing stored will do for: who waits for it, and what its head was judged to be.

use crate::context::Context;
use crate::http::{self, Asked, Record, content_length};
use crate::input::{ExchangeId, FetchError};
use crate::request::Ask;
use ::http::{HeaderMap, Method, StatusCode, header};
use bytes::Bytes;
use std::collections::VecDeque;
use std::rc::Rc;
use wire::{Date, Instant};

/// One request of ours on behalf of others, until its response has ended.
#[derive(Debug)]
pub struct Miss {
    /// The request that began it.
    pub ask: Rc<Ask>,
    /// The stale record that may stand in for the origin.
    pub old: Option<Rc<Record>>,
    /// Whether it asks the origin to confirm that record.
    pub confirms: bool,
    /// Why the response may not be stored, where that is known from the start.
    pub unstorable: Option<&'static str>,
    /// `Cache-Status` of the caches before us.
    pub status_line: String,
    /// Why we ask, in the words of RFC 9211 §2.2.
    pub why: &'static str,
    /// Whose request it was made of; a response that may not be shared is for nobody else.
    pub starter: Option<ExchangeId>,
    /// Who waits for the head.
    pub waiters: Vec<ExchangeId>,
    /// Those of them that joined, and when.
    pub joined: Vec<(Instant, ExchangeId)>,
    /// When it was asked.
    pub requested: Date,
    /// Content bytes that a peer may send of a response that is not stored, before it is granted more.
    pub granted: u64,
    pub stage: Stage,
}

/// How far a response is.
#[derive(Debug)]
pub enum Stage {
    /// No head yet.
    Asking,
    /// Given on as it comes, unstored.
    Passing(Pass),
    /// It is an object: its waiters read it, and others may join.
    Object,
}

/// A response that is given on as it comes; not stored for this reason.
#[derive(Debug)]
pub struct Pass {
    pub client: ExchangeId,
    pub reason: &'static str,
    /// Content bytes granted to the origin so far, and received.
    pub granted: u64,
    pub received: u64,
    /// Content that its client cannot take yet.
    pub held: VecDeque<Bytes>,
    /// How it ended, if that was before its client had all.
    pub over: Option<Result<(), FetchError>>,
}

impl Pass {
    /// Nothing of it has come; so much may, in bytes.
    pub fn new(client: ExchangeId, reason: &'static str, granted: u64) -> Self {
        Self { client, reason, granted, received: 0, held: VecDeque::new(), over: None }
    }
}

impl Miss {
    /// One that has no head yet.
    pub fn new(ask: Rc<Ask>, requested: Date, why: &'static str, waiters: Vec<ExchangeId>) -> Self {
        Self {
            ask,
            old: None,
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

    /// What is given on of it, if it is.
    pub fn pass(&mut self) -> Option<&mut Pass> {
        match &mut self.stage {
            Stage::Passing(pass) => Some(pass),
            _ => None,
        }
    }

    /// Whether a response with this head may be stored; why not, in one word.
    pub fn judge(
        &self,
        cx: &Context,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), &'static str> {
        if self.ask.method == Method::HEAD {
            return Err("head");
        }
        if let Some(reason) = self.unstorable {
            return Err(reason);
        }
        let asked = Asked { method: &self.ask.method, headers: &self.ask.headers };
        http::judge(&asked, status, headers, cx.date()).map_err(|reason| reason.as_str())?;
        if content_length(headers).is_some_and(|bytes| bytes > cx.config.object_bytes_max) {
            return Err("body-size");
        }
        if headers.contains_key(header::SET_COOKIE) && self.is_of_peer(cx) {
            // The cookie is for that peer's client, and a record has none: so it gets the response as it is.
            return Err("cookie");
        }
        if cx.store_works() { Ok(()) } else { Err("store") }
    }

    /// Whether it was begun for a peer, which asks for a client of its own or of others behind it.
    fn is_of_peer(&self, cx: &Context) -> bool {
        let starter = self.starter.and_then(|starter| cx.exchanges.get(&starter));
        starter.is_some_and(|starter| starter.peer().is_some())
    }

    /// What is used instead of a server error, where a stale response may be (RFC 5861 §4).
    pub fn stands_in(&self, cx: &Context, status: StatusCode) -> Option<Rc<Record>> {
        let old = self.old.as_ref()?;
        if !matches!(status.as_u16(), 500 | 502 | 503 | 504) {
            return None;
        }
        let now = cx.date();
        let permitted = self.waiters.iter().all(|waiter| {
            cx.exchanges
                .get(waiter)
                .is_none_or(|exchange| http::stale_permitted(old, &exchange.ask.headers, now, true))
        });
        permitted.then(|| Rc::clone(old))
    }
}
