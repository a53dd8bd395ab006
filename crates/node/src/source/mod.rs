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
mod rest;
mod resume;
pub mod select;
mod tell;

use crate::context::Context;
use crate::hasher::Map;
use crate::input::{FetchError, FetchId};
use crate::pursuits::{Goal, Pursuit, Quest, Upstream};
use crate::timer::{self, Timer};
use crate::transfers::incoming::Incoming;
use select::Select;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use wire::peer::Request;
use wire::{Instant, NodeId};

/// While something is asked of peers, the engine looks this often whether it comes on.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);

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
    /// So many more bytes may come than before.
    Granted(FetchId, u64),
    /// A body has broken off, and will be gone on with: what its origin was granted does not come.
    BrokenOff(FetchId),
    /// A body has broken off for good.
    Broken(FetchId),
    /// Nothing of an object has come for a while, though more is to be listed.
    Stalled(FetchId),
}

/// See the module.
pub struct Source {
    /// The scheme.
    select: Box<dyn Select>,
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

impl Source {
    /// Nothing is asked yet; whom, this scheme says.
    pub fn new(select: Box<dyn Select>) -> Self {
        Self {
            select,
            asks: Map::default(),
            dialling: Map::default(),
            lines: Map::default(),
            look_at: None,
            requests: 0,
            values: VecDeque::new(),
        }
    }

    /// When it wants to be woken, and why.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        timer::earliest([
            (Timer::Progress, self.look_at),
            (Timer::Selection, self.select.poll_timeout()),
        ])
    }

    /// Gives out one value.
    pub fn poll(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    /// Something is to be asked of somebody; it is when the transfer has its turn.
    pub fn begin(&mut self, cx: &mut Context, id: FetchId, quest: Quest) {
        let pursuit = Pursuit {
            to_gateway: quest.ask.trail.to_gateway,
            sparing: quest.ask.trail.sparing,
            via: Upstream::Next,
            tried: Vec::new(),
            previous: None,
            answered: false,
            lost_route_at: None,
            moved: cx.now,
            owed: 0,
            origin_raced: false,
            resumed: None,
            quest,
        };
        let is_for_origin = matches!(pursuit.quest.goal, Goal::Pass | Goal::Range);
        cx.pursuits.insert(id, pursuit);
        match is_for_origin {
            true => self.dial_origin(cx, id),
            false => cx.turns.dirty(id),
        }
    }

    /// Asks the next hop, the gateway or the origin, if none is asked yet; of an object, for what is still to be listed.
    pub fn advance(&mut self, cx: &mut Context, id: FetchId) {
        if cx.pursuits.get(&id).is_some_and(|pursuit| pursuit.via == Upstream::Next) {
            let from = cx.transfers.get(&id).and_then(Incoming::goes_on_from);
            self.reach(cx, id, from);
        }
    }

    /// Somebody is to be asked, when the transfer has its turn.
    pub fn ask_next(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(pursuit) = cx.pursuits.get_mut(&id) {
            pursuit.via = Upstream::Next;
            cx.turns.dirty(id);
        }
    }

    /// All of it has come.
    pub fn done(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(pursuit) = cx.pursuits.get_mut(&id).filter(|it| it.via != Upstream::Origin) {
            pursuit.via = Upstream::Done;
        }
    }

    /// What a peer was asked for by a request, if it is still that.
    pub fn asked(&self, peer: NodeId, request: Request) -> Option<FetchId> {
        self.asks.get(&(peer, request)).copied()
    }
}
