//! Chooses where a missing object is requested, and where next: the next hop, the gateway, a peer
//! that announced a named object, or the origin.
//!
//! *What it owns:* each request upstream: its number, the peer or origin asked, the peers tried,
//! the time of the last answer, and how a body continues that its origin broke off. *Values in:* a
//! request begins ([`Source::begin`]), its head was judged ([`Pursuit::seeks`]), messages of peers
//! and events of connections, units wanted, bytes granted. *Values out:* [`Value`]. *What it never
//! does:* look into an object, or at the exchanges that wait for it. *Where to start:* `choose.rs`;
//! `patience.rs` for timeouts, `resume.rs` for broken bodies. *Sources:* MeshCache §3, §4.2.1,
//! §4.3.1; docs/protocol.md ("Messages").

mod announce;
mod answer_time;
mod ask;
mod choose;
pub mod detour;
mod elsewhere;
mod end;
mod patience;
mod rest;
mod resume;
pub mod select;
mod token;

use crate::context::Context;
use crate::crossed::ByFarEnd;
use crate::hasher::Map;
use crate::input::{FetchError, FetchId};
use crate::pursuits::detour::Detour;
use crate::pursuits::{Goal, Pursuit, Quest, Upstream};
use crate::request::Asker;
use crate::timer::{self, Timer};
use crate::transfers::incoming::Incoming;
use answer_time::AnswerTime;
use detour::Detours;
use select::Select;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use wire::peer::Request;
use wire::{Instant, NodeId};

/// While peers have requests of ours, their progress is checked this often.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What this machine tells the others.
#[derive(Debug)]
pub enum Value {
    /// A request has ended with this result, before its head or within its body.
    Ended(FetchId, Result<(), FetchError>),
    /// A peer says that it has sent all of an object.
    AllCame(FetchId),
    /// An object's supplier is lost. Its loose bytes, and what it lacked, say nothing about the
    /// next supplier.
    Lost(FetchId),
    /// No peer can fill the holes of a record.
    CannotFill(FetchId),
    /// This many more bytes have been granted to the upstream.
    Granted(FetchId, u64),
    /// A body has broken off and will be resumed: the bytes still granted will not come.
    BrokenOff(FetchId),
    /// A body has broken off and cannot be resumed.
    Broken(FetchId),
    /// Nothing of an object has arrived for a while, though its manifest is incomplete.
    Stalled(FetchId),
}

/// The machine; see the module.
pub struct Source {
    /// The selection scheme.
    pub select: Box<dyn Select>,
    /// Our requests to peers.
    asks: Map<(NodeId, Request), FetchId>,
    /// Requests that wait for a peer to be dialled.
    dialling: Map<SocketAddr, Vec<FetchId>>,
    /// Transfers by the number of the range request for the rest of their body.
    range_requests: Map<FetchId, FetchId>,
    /// Requests that origins send elsewhere.
    pub detours: Detours,
    /// How long routers off the way take to answer.
    answer_time: AnswerTime,
    /// When to check the progress of requests to peers.
    pub look_at: Option<Instant>,
    requests: u32,
    values: VecDeque<Value>,
}

impl Source {
    /// No requests yet; `select` is the scheme.
    pub fn new(select: Box<dyn Select>) -> Self {
        Self {
            select,
            asks: Map::default(),
            dialling: Map::default(),
            range_requests: Map::default(),
            detours: Detours::default(),
            answer_time: AnswerTime::default(),
            look_at: None,
            requests: 0,
            values: VecDeque::new(),
        }
    }

    /// The next time at which this machine has something to do, and which timer that is.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        timer::earliest([
            (Timer::Progress, self.look_at),
            (Timer::Selection, self.select.poll_timeout()),
        ])
    }

    /// Takes the next value.
    pub fn poll(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    /// Begins a request. A peer is chosen at the transfer's next turn.
    pub fn begin(&mut self, cx: &mut Context, id: FetchId, quest: Quest) {
        let pursuit = Pursuit {
            to_gateway: quest.ask.peer_hops.to_gateway,
            sparing: quest.ask.peer_hops.sparing,
            via: Upstream::Next,
            tried: Vec::new(),
            referred: None,
            roams: quest.ask.peer_hops.elsewhere
                || quest.ask.asker == Asker::Client && self.select.roams(),
            elsewhere: Vec::new(),
            towards: None,
            is_denied: false,
            previous: None,
            answered: false,
            lost_route_at: None,
            moved: cx.now,
            owed: 0,
            origin_raced: false,
            resumed: None,
            detour: Detour::default(),
            far: ByFarEnd::default(),
            quest,
        };
        let is_for_origin = match pursuit.quest.goal {
            Goal::Pass => !pursuit.quest.ask.passes_by_peers(),
            Goal::Range => true,
            Goal::Head => pursuit.quest.ask.goes_alone(),
            Goal::Object | Goal::Holes => false,
        };
        cx.pursuits.insert(id, pursuit);
        match is_for_origin {
            true => self.dial_origin(cx, id),
            false => cx.turns.dirty(id),
        }
    }

    /// Sends a request to the next hop, the gateway or the origin, if none has it; of an object,
    /// for what is not listed yet.
    pub fn advance(&mut self, cx: &mut Context, id: FetchId) {
        if cx.pursuits.get(&id).is_some_and(|pursuit| pursuit.via == Upstream::Next) {
            let from = cx.transfers.get(&id).and_then(Incoming::goes_on_from);
            self.reach(cx, id, from);
        }
    }

    /// Chooses another upstream at the transfer's next turn.
    pub fn ask_next(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(pursuit) = cx.pursuits.get_mut(&id) {
            pursuit.via = Upstream::Next;
            cx.turns.dirty(id);
        }
    }

    /// All of a response has arrived.
    pub fn done(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(pursuit) = cx.pursuits.get_mut(&id).filter(|it| it.via != Upstream::Origin) {
            pursuit.via = Upstream::Done;
        }
    }

    /// The transfer that a request to a peer belongs to, if it still does.
    pub fn asked(&self, peer: NodeId, request: Request) -> Option<FetchId> {
        self.asks.get(&(peer, request)).copied()
    }
}
