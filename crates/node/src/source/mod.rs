//! Whom to ask for what is not here, and whom next: the next hop, the gateway, who leads to a published object, the
//! origin.
//!
//! *What this is:* the machine that owns what is asked of others: by what request, whom, who was tried, since when
//! nothing has come, how a body goes on that its origin broke off. *Values in:* a request of ours begins
//! ([`Source::begin`]), its head was judged ([`Pursuit::seeks`]), what peers and connections say of it, units wanted,
//! bytes granted. *Values out:* [`Value`]. *What it never does:* look into an object or at who waits for it.
//! *Where to start:* `choose.rs`; `patience.rs` for silence, `resume.rs` for broken bodies.
//! *Sources:* MeshCache §3, §4.2.1, §4.3.1; docs/protocol.md (No loops, Resume).

mod ask;
mod choose;
mod end;
mod patience;
mod resume;
pub mod select;
mod tell;

pub use ask::bare_request;
pub use choose::FIELDS_MAX;
pub use resume::{Doubt, Rest};

use crate::context::Context;
use crate::hasher::Map;
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::request::Ask;
use ::http::HeaderMap;
use resume::Resumed;
use select::Select;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use wire::peer::{Request, Resume};
use wire::{Instant, NodeId, RecordId};

/// Bytes of a response that is not stored may come before the asker has said more.
pub const CREDIT: u32 = 16 * 1024;
/// While something is asked of peers, the engine looks this often whether it comes on.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);

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
    fn is_object(self) -> bool {
        matches!(self, Self::Object | Self::Holes)
    }
}

/// What the machine says.
#[derive(Debug)]
pub enum Value {
    /// What was asked has ended so: before a head, or in mid-body.
    Ended(FetchId, Result<(), FetchError>),
    /// A peer says that all of an object has come.
    AllCame(FetchId),
    /// Who gave an object is gone, or of no use: what it listed in part, or did not have, says nothing of the next.
    Lost(FetchId),
    /// No peer can fill the holes of a record.
    CannotFill(FetchId),
    /// Nothing of an object has come for a while, though more is to be listed.
    Stalled(FetchId),
}

/// Whom something is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
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
    /// For whom and what it is asked.
    ask: Rc<Ask>,
    /// The fields it is asked with.
    headers: HeaderMap,
    /// The stale record that it may confirm.
    have: Option<RecordId>,
    /// Whose content or upgrade goes with it.
    content: Option<ExchangeId>,
    goal: Goal,
    via: Via,
    /// It goes straight to the gateway.
    to_gateway: bool,
    /// No unit is to come unasked.
    sparing: bool,
    /// Peers that were asked, and did not help.
    tried: Vec<IpAddr>,
    /// The peer that was asked before, and may still answer.
    former: Option<(NodeId, Request)>,
    /// Who was asked for an object last has begun to answer.
    answered: bool,
    /// Since when it has had no way to go on.
    stranded: Option<Instant>,
    /// When it last came on: asked, answered, or received something.
    moved: Instant,
    /// Bytes that a peer may send more and was not told of yet.
    owed: u64,
    /// Its origin was asked beside a peer that gave no sign of life; once is enough.
    beside: bool,
    /// How it goes on, if what its origin was asked first has broken off.
    resumed: Option<Resumed>,
}

/// See the module.
pub struct Source {
    /// The scheme.
    select: Box<dyn Select>,
    pursuits: Map<FetchId, Pursuit>,
    /// Our requests to peers.
    asks: Map<(NodeId, Request), FetchId>,
    /// Who waits for a peer that is being dialled.
    dialling: Map<SocketAddr, Vec<FetchId>>,
    /// Transfers by the requests for the rest of their bodies.
    lines: Map<FetchId, FetchId>,
    /// When to look whether what peers were asked for comes on.
    pub look_at: Option<Instant>,
    requests: u32,
    values: VecDeque<Value>,
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

impl Source {
    /// Nothing is asked yet; whom, this scheme says.
    pub fn new(select: Box<dyn Select>) -> Self {
        Self {
            select,
            pursuits: Map::default(),
            asks: Map::default(),
            dialling: Map::default(),
            lines: Map::default(),
            look_at: None,
            requests: 0,
            values: VecDeque::new(),
        }
    }

    /// When it wants to be woken.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.look_at.into_iter().chain(self.select.poll_timeout()).min()
    }

    /// Gives out one value.
    pub fn poll(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    /// Something is to be asked of somebody; it is when the transfer has its turn.
    pub fn begin(&mut self, cx: &mut Context, id: FetchId, quest: Quest) {
        let Quest { ask, headers, have, content, goal } = quest;
        let trail = &ask.trail;
        let pursuit = Pursuit {
            to_gateway: trail.to_gateway,
            sparing: trail.sparing,
            headers,
            have,
            content,
            goal,
            via: Via::Next,
            tried: Vec::new(),
            former: None,
            answered: false,
            stranded: None,
            moved: cx.now,
            owed: 0,
            beside: false,
            resumed: None,
            ask,
        };
        self.pursuits.insert(id, pursuit);
        cx.turns.dirty(id);
    }

    /// Asks whoever is the right one now, if nobody is asked yet. Of an object more is asked from there on, up to so
    /// far.
    pub fn advance(&mut self, cx: &mut Context, id: FetchId, from: Option<(Resume, u64)>) {
        if self.pursuits.get(&id).is_some_and(|pursuit| pursuit.via == Via::Next) {
            self.reach(cx, id, from);
        }
    }

    /// Somebody is to be asked, when the transfer has its turn.
    pub fn ask_next(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(pursuit) = self.pursuits.get_mut(&id) {
            pursuit.via = Via::Next;
            cx.turns.dirty(id);
        }
    }

    /// Something of it has come.
    pub fn came(&mut self, id: FetchId, now: Instant) {
        if let Some(pursuit) = self.pursuits.get_mut(&id) {
            pursuit.moved = now;
        }
    }

    /// All of it has come.
    pub fn done(&mut self, id: FetchId) {
        if let Some(pursuit) = self.pursuits.get_mut(&id).filter(|it| it.via != Via::Origin) {
            pursuit.via = Via::Done;
        }
    }

    /// What is known of one that is asked of others; nothing of what is published, which comes by itself.
    pub fn get(&self, id: FetchId) -> Option<&Pursuit> {
        self.pursuits.get(&id)
    }

    /// The same, to note what was seen of it.
    pub fn get_mut(&mut self, id: FetchId) -> Option<&mut Pursuit> {
        self.pursuits.get_mut(&id)
    }

    /// Whom it is asked.
    fn via(&self, id: FetchId) -> Option<Via> {
        self.pursuits.get(&id).map(|pursuit| pursuit.via)
    }

    /// Whether the origin is asked.
    pub fn is_at_origin(&self, id: FetchId) -> bool {
        self.via(id) == Some(Via::Origin)
    }

    /// What a peer was asked for by a request, if it is still that.
    pub fn asked(&self, peer: NodeId, request: Request) -> Option<FetchId> {
        self.asks.get(&(peer, request)).copied()
    }

    /// Of which this holds, in order.
    fn those(&self, which: impl Fn(&Pursuit) -> bool) -> Vec<FetchId> {
        let of = |(id, pursuit): (&FetchId, &Pursuit)| which(pursuit).then_some(*id);
        let mut those: Vec<FetchId> = self.pursuits.iter().filter_map(of).collect();
        those.sort_unstable();
        those
    }

    /// What a peer gives; what it had on its way to us was lost with a connection.
    pub fn given_by(&self, peer: NodeId) -> Vec<FetchId> {
        self.those(|pursuit| pursuit.giver() == Some(peer))
    }
}

impl Pursuit {
    /// A head was judged: this is sought from now on.
    pub fn seeks(&mut self, goal: Goal) {
        self.goal = goal;
    }

    /// What came shows that the way is good.
    pub fn found_way(&mut self) {
        self.stranded = None;
    }

    /// A peer that was turned to knows the transfer.
    pub fn is_answering(&mut self) {
        self.answered = true;
    }

    /// The peer that is asked, if one is.
    pub fn peer(&self) -> Option<NodeId> {
        self.request().map(|(peer, _)| peer)
    }

    fn giver(&self) -> Option<NodeId> {
        self.giving().map(|(peer, _)| peer)
    }

    /// The peer that gives what is wanted, and by which request: as long as another that was asked too
    /// has not answered, the one that was asked before.
    pub fn giving(&self) -> Option<(NodeId, Request)> {
        self.former.or(self.request())
    }

    /// Whether who was asked for an object last has begun to answer.
    pub fn is_answered(&self) -> bool {
        self.answered
    }

    /// Whether no unit is to come unasked.
    pub fn is_sparing(&self) -> bool {
        self.sparing
    }

    fn request(&self) -> Option<(NodeId, Request)> {
        match self.via {
            Via::Peer(peer, request) => Some((peer, request)),
            _ => None,
        }
    }

    /// Of two who were asked, either may be the one that is listened to.
    fn asked(&self) -> impl Iterator<Item = (NodeId, Request)> {
        self.former.into_iter().chain(self.request())
    }
}
