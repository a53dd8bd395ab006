//! Timeouts of requests to peers, and what is asked next after one.

use super::{LOOK_EVERY, Source, Value};
use crate::context::Context;
use crate::events::{Event, NextSource};
use crate::input::{FetchError, FetchId};
use crate::pursuits::{Goal, Pursuit, Upstream};
use crate::request::Asker;
use std::net::IpAddr;
use std::time::Duration;
use wire::{Instant, NodeId};

/// After this long without data from a peer, another one is asked too, if there is one; the first
/// to answer wins (decision 0014). Long enough for three losses in a row of one packet, with TCP's
/// pauses between them.
const HOP_TIMEOUT: Duration = Duration::from_secs(5);
/// If no other peer can be asked, units are awaited this long from a peer that sends nothing at
/// all: a little less than the minute after which clients give up.
const SUPPLIER_TIMEOUT: Duration = Duration::from_secs(55);
/// A head may take this long, because the origin may be slow.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// A transfer that has lost its route waits this long for another.
const NO_ROUTE_TIMEOUT: Duration = Duration::from_secs(20);
/// For a peer's request the wait is shorter: that peer may have another route, and waits itself.
const RELAY_NO_ROUTE_TIMEOUT: Duration = Duration::from_secs(3);
/// A scheme has this long to choose a peer; then none is asked.
const SELECT_TIMEOUT: Duration = Duration::from_secs(2);
/// To connect with a router off the way may take this many times as long as an answer: TCP's handshake and ours.
const DIAL: u32 = 4;
/// So may the next part of an object take: TCP may have to send a segment again.
const PART: u32 = 4;
/// A transfer without progress for this long, with an incomplete manifest, repeats its wants and
/// credit.
const STALL_TIMEOUT: Duration = Duration::from_secs(2);

impl Source {
    /// Transfers that are at peers, or waiting for one, in order.
    pub fn at_peers(&self, cx: &Context) -> Vec<FetchId> {
        cx.pursuits.those(|pursuit| !matches!(pursuit.via, Upstream::Origin | Upstream::Done))
    }

    /// Checks progress then at the latest.
    pub fn look_by(&mut self, at: Instant) {
        self.look_at = Some(self.look_at.map_or(at, |sooner| sooner.min(at)));
    }

    /// Checks a transfer's progress. `open`: the object's manifest is incomplete, and no unit is in
    /// flight. `owes`: nothing of the manifest has come.
    pub fn look_after(&mut self, cx: &mut Context, id: FetchId, open: bool, owes: bool) {
        let Some(pursuit) = cx.pursuits.get(&id) else { return };
        let silent = pursuit.silent_for(cx);
        let overdue_at = pursuit.overdue_at(cx, self.answer_time.timeout());
        let is_overdue = overdue_at.is_some_and(|at| at <= cx.now);
        overdue_at.filter(|_| !is_overdue).into_iter().for_each(|at| self.look_by(at));
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        // A peer may have another route and waits itself. But a route found just now gets its full
        // time.
        let is_relay_without_route =
            pursuit.via == Upstream::Nobody && pursuit.quest.ask.asker != Asker::Client;
        let in_flight = cx.in_flight.has(id);
        let timeout =
            if is_relay_without_route { RELAY_NO_ROUTE_TIMEOUT } else { NO_ROUTE_TIMEOUT };
        let lost_route_at = pursuit.lost_route_at.is_some_and(|since| cx.now - since > timeout);
        // Units may still arrive although no route is known: then the transfer lives.
        if lost_route_at && silent > timeout {
            return self.ends(id, Err(FetchError::NoRoute));
        }
        match pursuit.via {
            // What is only passed on cannot go on elsewhere.
            Upstream::Nobody if pursuit.quest.goal == Goal::Pass && pursuit.answered => {}
            Upstream::Nobody => {
                // Routes may have changed: those that failed are tried again.
                pursuit.tried.clear();
                self.ask_next(cx, id);
            }
            Upstream::Peer(..) | Upstream::Dialling(_)
                if is_overdue && (!pursuit.answered || owes || in_flight) =>
            {
                self.answer_time.was_overdue();
                self.lose_upstream(cx, id);
            }
            Upstream::Peer(..) => self.look_after_asked(cx, id, silent, open),
            Upstream::Selecting(since) if cx.now - since > SELECT_TIMEOUT => {
                self.ask_origin(cx, id)
            }
            Upstream::Dialling(_)
            | Upstream::Origin
            | Upstream::Done
            | Upstream::Next
            | Upstream::Selecting(_) => {}
        }
    }

    /// Checks a peer that has our request. How long it may take depends on what is awaited.
    fn look_after_asked(&mut self, cx: &mut Context, id: FetchId, silent: Duration, open: bool) {
        let in_flight = cx.in_flight.has(id);
        let Some(pursuit) = cx.pursuits.get(&id) else { return };
        let waited = cx.now - pursuit.moved;
        let timeout = HOP_TIMEOUT * self.asked_beside(cx, id, pursuit);
        let supplier = pursuit.supplier();
        let awaits = match pursuit.quest.goal {
            Goal::Head => true,
            Goal::Object | Goal::Holes => in_flight || !pursuit.answered,
            // It is not raced: if the peer cannot answer, another is asked in its place.
            Goal::Pass if !pursuit.answered => {
                let since = pursuit.moved;
                if is_mute(cx, supplier, since) || waited > HEAD_TIMEOUT {
                    self.lose_upstream(cx, id);
                }
                return;
            }
            Goal::Pass | Goal::Range => return,
        };
        let is_asking = pursuit.quest.goal == Goal::Head;
        let (first, since) = (pursuit.previous.is_none(), pursuit.moved);
        let may_race = pursuit.may_race_origin(cx);
        let mute = is_mute(cx, supplier.filter(|_| awaits || open), since);
        // A mute peer, which answers not even a ping, is not waited for: another peer, or else the
        // origin, is asked at once (decision 0018).
        if mute && first && self.may_ask_another(cx, id) {
            self.ask_another(cx, id, NextSource::Mute);
        } else if mute && first && may_race {
            // With no other peer left, the origin may answer sooner than the mute one.
            cx.pursuits.entry(id).and_modify(|pursuit| pursuit.origin_raced = true);
            self.ask_another(cx, id, NextSource::Mute);
        } else if awaits
            && (silent > timeout || waited > HEAD_TIMEOUT)
            && self.may_ask_another(cx, id)
        {
            self.ask_another(cx, id, NextSource::Silent);
        } else if (open || is_asking) && waited > HEAD_TIMEOUT {
            self.lose_upstream(cx, id);
        } else if in_flight && silent > SUPPLIER_TIMEOUT {
            self.ends(id, Err(FetchError::NoRoute));
        } else if let Some((mesh, peer)) = cx.mesh.as_mut().zip(supplier).filter(|_| in_flight) {
            // The data connection may be stuck: it is dialled again (decision 0014).
            mesh.peers.hurry(cx.now, peer);
        } else if open && waited > STALL_TIMEOUT {
            self.values.push_back(Value::Stalled(id));
        }
    }

    /// The next hop is slow, perhaps because the origin is or the air is full: another is asked
    /// too, and the first to answer wins. Until then units are requested from the previous one.
    fn ask_another(&mut self, cx: &mut Context, id: FetchId, why: NextSource) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        cx.events.emit(|| Event::NextSource { fetch: id, why });
        if let (true, Some(peer), Some(mesh)) =
            (pursuit.is_named(), pursuit.peer(), cx.mesh.as_mut())
        {
            // Other peers are preferred next time.
            mesh.holders.failed(peer);
        }
        match (pursuit.previous, pursuit.request()) {
            // At most two are asked at once: the one that has not helped yet is dropped.
            (Some(_), Some(asked)) => self.withdraw(cx, asked),
            (_, asked) => pursuit.previous = asked,
        }
        self.ask_next(cx, id);
    }
}

impl Pursuit {
    /// The router off the way that is to answer from its store, to this node's own client.
    pub fn holder(&self, cx: &Context) -> Option<IpAddr> {
        // One that an object is hashed to asks on.
        let hashes = cx.mesh.as_ref().is_some_and(|mesh| mesh.config.selection.hashes());
        self.towards.filter(|_| !hashes && self.quest.ask.asker == Asker::Client)
    }

    /// The router off the way is not asked any more. Which one failed this node's client, and whether it has said so: of
    /// a peer's request it is not known whether it was meant to be answered.
    pub(super) fn leave_holder(&mut self) -> Option<(IpAddr, bool)> {
        let (at, denied) = (self.towards.take()?, std::mem::take(&mut self.is_denied));
        (self.quest.ask.asker == Asker::Client).then_some((at, denied))
    }

    /// When its progress is to be checked.
    pub(super) fn look_at(&self, cx: &Context, timeout: Duration) -> Instant {
        let at = cx.now + LOOK_EVERY;
        self.overdue_at(cx, timeout).map_or(at, |overdue| overdue.min(at))
    }

    /// When the answer of a router off the way, or the next part of it, is overdue.
    fn overdue_at(&self, cx: &Context, timeout: Duration) -> Option<Instant> {
        self.holder(cx)?;
        match self.via {
            Upstream::Peer(..) if self.quest.goal == Goal::Head => Some(self.moved + timeout),
            Upstream::Peer(..) => Some(self.moved + timeout * PART),
            Upstream::Dialling(_) => Some(self.moved + timeout * DIAL),
            _ => None,
        }
    }

    /// How long a transfer's supplier has sent nothing, for it or any other transfer. A peer that
    /// sends to others is slow, not dead (decision 0014).
    fn silent_for(&self, cx: &Context) -> Duration {
        let gave = cx.mesh.as_ref().zip(self.supplier());
        let gave = gave.and_then(|(mesh, peer)| mesh.peers.gave(peer));
        cx.now - gave.map_or(self.moved, |gave| self.moved.max(gave))
    }
}

/// Whether a peer that has owed something since then answers not even pings. A peer that has been
/// silent for a while is pinged.
fn is_mute(cx: &mut Context, supplier: Option<NodeId>, since: Instant) -> bool {
    let Some((mesh, supplier)) = cx.mesh.as_mut().zip(supplier) else { return false };
    mesh.peers.doubt(cx.now, supplier, since);
    mesh.peers.is_mute(cx.now, supplier)
}
