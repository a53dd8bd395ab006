//! Requests to peers and origins. Every machine may read this table; only `source` writes it.

pub mod detour;

use crate::crossed::{ByFarEnd, Crossed};
use crate::hasher::Map;
use crate::input::{ExchangeId, FetchId};
use crate::request::Ask;
use ::http::{HeaderMap, HeaderValue, header};
use detour::Detour;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use wire::peer::{Request, Router};
use wire::{Instant, NodeId, RecordId};

/// The pursuits by number; see the module.
#[derive(Debug, Default)]
pub struct Pursuits(Map<FetchId, Pursuit>);

impl Deref for Pursuits {
    type Target = Map<FetchId, Pursuit>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Pursuits {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Pursuits {
    /// The upstream of a request.
    pub fn via(&self, id: FetchId) -> Option<Upstream> {
        self.0.get(&id).map(|pursuit| pursuit.via)
    }

    /// Whether the origin is asked.
    pub fn is_at_origin(&self, id: FetchId) -> bool {
        self.via(id) == Some(Upstream::Origin)
    }

    /// How these bytes crossed the uplink, which a client was given from a body of an origin.
    pub fn crossed(&mut self, id: Option<FetchId>, bytes: u64) -> Crossed {
        let pursuit = id.filter(|_| bytes > 0).and_then(|id| self.0.get_mut(&id));
        pursuit.map(|pursuit| pursuit.far.served(bytes)).unwrap_or_default()
    }

    /// The requests for which `which` is true, in order.
    pub fn those(&self, which: impl Fn(&Pursuit) -> bool) -> Vec<FetchId> {
        let of = |(id, pursuit): (&FetchId, &Pursuit)| which(pursuit).then_some(*id);
        let mut those: Vec<FetchId> = self.0.iter().filter_map(of).collect();
        those.sort_unstable();
        those
    }

    /// What has arrived shows that the route works.
    pub fn found_route(&mut self, id: FetchId) {
        if let Some(pursuit) = self.0.get_mut(&id) {
            pursuit.lost_route_at = None;
        }
    }

    /// The peer asked last has begun to answer.
    pub fn is_answering(&mut self, id: FetchId) {
        if let Some(pursuit) = self.0.get_mut(&id) {
            pursuit.answered = true;
        }
    }

    /// A head was judged: this is the goal from now on.
    pub fn seeks(&mut self, id: FetchId, goal: Goal) {
        if let Some(pursuit) = self.0.get_mut(&id) {
            pursuit.quest.goal = goal;
        }
    }

    /// Something of the response has arrived.
    pub fn came(&mut self, id: FetchId, now: Instant) {
        if let Some(pursuit) = self.0.get_mut(&id) {
            pursuit.moved = now;
        }
    }
}

/// The peer or origin that a request is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// The origin.
    Origin,
    /// A peer that is being dialled.
    Dialling(SocketAddr),
    /// A peer; this is our request's number.
    Peer(NodeId, Request),
    /// None any more: the whole response has arrived.
    Done,
    /// None at present: no route is known.
    Nobody,
    /// None yet: one is chosen before this input ends.
    Next,
    /// None yet: the scheme has been looking for a peer since then.
    Selecting(Instant),
}

/// One request of this node, to an origin or to peers, until its response has ended.
#[derive(Debug)]
pub struct Pursuit {
    /// What is requested.
    pub quest: Quest,
    pub via: Upstream,
    /// It goes straight to the gateway.
    pub to_gateway: bool,
    /// The peer is asked not to send units without a want.
    pub sparing: bool,
    /// Peers that were asked and did not help.
    pub tried: Vec<IpAddr>,
    /// Routers that a peer named in place of an answer; `None` while none did. Another such end is not followed.
    pub referred: Option<Vec<(NodeId, IpAddr)>>,
    /// The nodes that are asked may name others that have the object.
    pub roams: bool,
    /// What they have named, for the node that asks.
    pub elsewhere: Vec<Router>,
    /// The router off the way that is asked now, by its address: it is said to have the object.
    pub towards: Option<IpAddr>,
    /// It has said that it cannot answer.
    pub is_denied: bool,
    /// The peer that was asked before, and may still answer.
    pub previous: Option<(NodeId, Request)>,
    /// The peer asked last has begun to answer.
    pub answered: bool,
    /// Since when it has had no route.
    pub lost_route_at: Option<Instant>,
    /// When it last made progress: it was sent, answered, or received something.
    pub moved: Instant,
    /// Credit granted to the peer but not yet announced to it, in bytes.
    pub owed: u64,
    /// The origin was asked beside a mute peer. This is done only once.
    pub origin_raced: bool,
    /// The request for the rest, if the origin broke the body off.
    pub resumed: Option<Resumed>,
    /// How far it got, if its origin sent it elsewhere.
    pub detour: Detour,
    /// How its body crossed the uplink.
    pub far: ByFarEnd,
}

impl Pursuit {
    /// The peer that is asked, if one is.
    pub fn peer(&self) -> Option<NodeId> {
        self.request().map(|(peer, _)| peer)
    }

    pub fn supplier(&self) -> Option<NodeId> {
        self.giving().map(|(peer, _)| peer)
    }

    /// The peer that supplies what is wanted, and our request to it. While a second peer has not
    /// answered, that is the first one.
    pub fn giving(&self) -> Option<(NodeId, Request)> {
        self.previous.or(self.request())
    }

    /// Whether the peer asked last for an object has begun to answer.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Whether only the rest of an object was asked for, of which a part is here.
    pub fn is_for_rest(&self) -> bool {
        let is_ranged = |headers: &HeaderMap| headers.contains_key(header::RANGE);
        self.quest.goal == Goal::Head
            && is_ranged(&self.quest.headers)
            && !is_ranged(&self.quest.ask.headers)
    }

    /// The rest of an object comes, up to this offset.
    pub fn goes_on_to(&mut self, id: FetchId, end: u64, now: Instant) {
        let fetch = self.detour.fetch.or(Some(id));
        self.resumed = Some(Resumed { fetch, answered: true, end: Some(end), asked: now });
    }

    /// Whether no head has arrived.
    pub fn awaits_head(&self) -> bool {
        match self.quest.goal {
            Goal::Head => true,
            Goal::Pass => !self.answered,
            Goal::Object | Goal::Holes | Goal::Range => false,
        }
    }

    /// Whether the peer is asked not to send units without a want.
    pub fn is_sparing(&self) -> bool {
        self.sparing
    }

    pub fn request(&self) -> Option<(NodeId, Request)> {
        match self.via {
            Upstream::Peer(peer, request) => Some((peer, request)),
            _ => None,
        }
    }

    /// All peers whose answer may be accepted: at most two.
    pub fn asked(&self) -> impl Iterator<Item = (NodeId, Request)> {
        self.previous.into_iter().chain(self.request())
    }
}

/// The state of a response, as far as it decides which upstream is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// No head has arrived.
    Head,
    /// A response that is passed on as it arrives: another upstream cannot continue it.
    Pass,
    /// An object: any upstream can continue it with the same record. Two versions must not be
    /// spliced.
    Object,
    /// The holes of a stored record, from peers. If there are none, its readers turn to the origin.
    Holes,
    /// A hole of a stored object, from the origin alone.
    Range,
}

impl Goal {
    pub fn is_object(self) -> bool {
        matches!(self, Self::Object | Self::Holes)
    }
}

/// A request for the rest of a body.
#[derive(Debug)]
pub struct Resumed {
    /// Its number for the driver; `None` while there is no request.
    pub fetch: Option<FetchId>,
    /// Its head has arrived.
    pub answered: bool,
    /// The end of the body, if it is known.
    pub end: Option<u64>,
    /// When it was last sent, answered or broken off.
    pub asked: Instant,
}

/// The missing part of a body.
#[derive(Debug)]
pub struct Rest {
    /// Its first byte.
    pub from: u64,
    /// The validator that guarantees the same version.
    pub validator: HeaderValue,
}

/// What to do with a body whose connection may be dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Nothing.
    None,
    /// Resume it, if possible.
    Resume,
    /// Give it up.
    Broken,
}

/// A request to be sent.
#[derive(Debug)]
pub struct Quest {
    pub ask: Rc<Ask>,
    /// Its header fields.
    pub headers: HeaderMap,
    /// The stale record that the response may confirm.
    pub have: Option<RecordId>,
    /// The exchange whose content or upgrade belongs to it.
    pub content: Option<ExchangeId>,
    pub goal: Goal,
}
