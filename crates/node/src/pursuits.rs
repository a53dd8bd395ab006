//! What is asked of others: a table that `source` alone writes, and that all may read.

use crate::hasher::Map;
use crate::input::{ExchangeId, FetchId};
use crate::request::Ask;
use ::http::{HeaderMap, HeaderValue};
use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use wire::peer::Request;
use wire::{Instant, NodeId, RecordId};

/// See the module.
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
    /// Whom it is asked.
    pub fn via(&self, id: FetchId) -> Option<Upstream> {
        self.0.get(&id).map(|pursuit| pursuit.via)
    }

    /// Whether the origin is asked.
    pub fn is_at_origin(&self, id: FetchId) -> bool {
        self.via(id) == Some(Upstream::Origin)
    }

    /// Of which this holds, in order.
    pub fn those(&self, which: impl Fn(&Pursuit) -> bool) -> Vec<FetchId> {
        let of = |(id, pursuit): (&FetchId, &Pursuit)| which(pursuit).then_some(*id);
        let mut those: Vec<FetchId> = self.0.iter().filter_map(of).collect();
        those.sort_unstable();
        those
    }

    /// What came shows that the way is good.
    pub fn found_way(&mut self, id: FetchId) {
        if let Some(pursuit) = self.0.get_mut(&id) {
            pursuit.lost_route_at = None;
        }
    }

    /// A peer that was turned to knows the transfer.
    pub fn is_answering(&mut self, id: FetchId) {
        if let Some(pursuit) = self.0.get_mut(&id) {
            pursuit.answered = true;
        }
    }

    /// A head was judged: this is sought from now on.
    pub fn seeks(&mut self, id: FetchId, goal: Goal) {
        if let Some(pursuit) = self.0.get_mut(&id) {
            pursuit.quest.goal = goal;
        }
    }

    /// Something of it has come.
    pub fn came(&mut self, id: FetchId, now: Instant) {
        if let Some(pursuit) = self.0.get_mut(&id) {
            pursuit.moved = now;
        }
    }
}

/// Whom something is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// The origin.
    Origin,
    /// A peer that is being dialled.
    Dialling(SocketAddr),
    /// A peer, by this request.
    Peer(NodeId, Request),
    /// Nobody any more: all of it has come.
    Done,
    /// Nobody at present.
    Nobody,
    /// Nobody yet: it is to be asked of somebody before this input is done with.
    Next,
    /// Nobody yet: the scheme finds out whom, since then.
    Sought(Instant),
}

/// One request of ours, to an origin or to peers, until its response has ended.
#[derive(Debug)]
pub struct Pursuit {
    /// What is asked.
    pub quest: Quest,
    pub via: Upstream,
    /// It goes straight to the gateway.
    pub to_gateway: bool,
    /// No unit is to come unasked.
    pub sparing: bool,
    /// Peers that were asked, and did not help.
    pub tried: Vec<IpAddr>,
    /// The peer that was asked before, and may still answer.
    pub previous: Option<(NodeId, Request)>,
    /// Who was asked for an object last has begun to answer.
    pub answered: bool,
    /// Since when it has had no way to go on.
    pub lost_route_at: Option<Instant>,
    /// When it last came on: asked, answered, or received something.
    pub moved: Instant,
    /// Bytes that a peer may send more and was not told of yet.
    pub owed: u64,
    /// Its origin was asked beside a peer that gave no sign of life; once is enough.
    pub origin_raced: bool,
    /// How it goes on, if what its origin was asked first has broken off.
    pub resumed: Option<Resumed>,
}

impl Pursuit {
    /// The peer that is asked, if one is.
    pub fn peer(&self) -> Option<NodeId> {
        self.request().map(|(peer, _)| peer)
    }

    pub fn supplier(&self) -> Option<NodeId> {
        self.giving().map(|(peer, _)| peer)
    }

    /// The peer that gives what is wanted, and by which request: as long as another that was asked too
    /// has not answered, the one that was asked before.
    pub fn giving(&self) -> Option<(NodeId, Request)> {
        self.previous.or(self.request())
    }

    /// Whether who was asked for an object last has begun to answer.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Whether no unit is to come unasked.
    pub fn is_sparing(&self) -> bool {
        self.sparing
    }

    pub fn request(&self) -> Option<(NodeId, Request)> {
        match self.via {
            Upstream::Peer(peer, request) => Some((peer, request)),
            _ => None,
        }
    }

    /// Of two who were asked, either may be the one that is listened to.
    pub fn asked(&self) -> impl Iterator<Item = (NodeId, Request)> {
        self.previous.into_iter().chain(self.request())
    }
}

/// What a transfer has of its response, as far as that decides whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// No head yet.
    Head,
    /// A response that is given on as it comes: it cannot be taken up by another way.
    Pass,
    /// An object: the same record, by any way. Two versions are never spliced.
    Object,
    /// The holes of a record that was closed, from peers: without any the readers turn to the origin.
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
    /// Its number, for the driver; none while there is no request.
    pub line: Option<FetchId>,
    /// Its head has come.
    pub answered: bool,
    /// Where the body ends, if that is known.
    pub end: Option<u64>,
    /// When it was asked or answered, or broke off.
    pub asked: Instant,
}

/// What is missing of a body.
#[derive(Debug)]
pub struct Rest {
    /// Where it begins, in bytes.
    pub from: u64,
    /// What makes sure that it is of the same version.
    pub validator: Option<HeaderValue>,
}

/// What is to be done with a body that may have been cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Nothing.
    None,
    /// It is to be gone on with, if it can be.
    Resume,
    /// It has broken off.
    Broken,
}

/// What is to be asked of others.
#[derive(Debug)]
pub struct Quest {
    pub ask: Rc<Ask>,
    /// The fields it is asked with.
    pub headers: HeaderMap,
    /// The stale record that it may confirm.
    pub have: Option<RecordId>,
    /// Whose content or upgrade goes with it.
    pub content: Option<ExchangeId>,
    pub goal: Goal,
}
