//! What happens when an upstream answers, ends or disconnects: which answer is accepted, and who is
//! asked next.

use super::{Source, Value, elsewhere};
use crate::access::Forbidden;
use crate::context::Context;
use crate::events::{Event, NextSource, Stale};
use crate::input::{FetchError, FetchId};
use crate::output::{OriginOutput, Output};
use crate::pursuits::{Goal, Pursuit, Upstream};
use crate::request::Asker;
use wire::NodeId;
use wire::peer::{Message, Outcome, Request};

impl Source {
    /// Ends all requests of a transfer.
    pub fn end(&mut self, cx: &mut Context, id: FetchId) {
        let Some(pursuit) = cx.pursuits.remove(&id) else { return };
        self.select.end(cx.now, id);
        self.poll_select(cx);
        if let Some(fetch) = pursuit.fetch(id) {
            self.range_requests.remove(&fetch);
            self.detours.end(fetch);
        }
        for asked in pursuit.asked() {
            self.withdraw(cx, asked);
        }
    }

    /// Like [`end`](Self::end), and also cancels the request to the origin.
    pub fn cancel(&mut self, cx: &mut Context, id: FetchId) {
        let pursuit = cx.pursuits.get(&id).filter(|pursuit| pursuit.via == Upstream::Origin);
        if let Some(fetch) = pursuit.and_then(|pursuit| pursuit.fetch(id)) {
            cx.out.push_back(Output::Origin(OriginOutput::Cancel(fetch)));
        }
        self.end(cx, id);
    }

    /// Cancels one request to a peer.
    pub(super) fn withdraw(&mut self, cx: &mut Context, (peer, request): (NodeId, Request)) {
        self.asks.remove(&(peer, request));
        cx.say(peer, Message::Cancel(request));
    }

    /// The upstream is lost or useless: another is asked.
    pub fn lose_upstream(&mut self, cx: &mut Context, id: FetchId) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        let asked = pursuit.request();
        pursuit.via = Upstream::Nobody;
        cx.events.emit(|| Event::NextSource { fetch: id, why: NextSource::Lost });
        asked.into_iter().for_each(|asked| self.withdraw(cx, asked));
        if self.fall_back(cx, id) {
            return;
        }
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        let awaits_head = pursuit.awaits_head();
        match pursuit.quest.goal {
            Goal::Object | Goal::Holes => {
                pursuit.answered = false;
                pursuit.lost_route_at.get_or_insert(cx.now);
                cx.report.resumes += 1;
                self.values.push_back(Value::Lost(id));
            }
            Goal::Head => self.ask_next(cx, id),
            Goal::Pass if awaits_head => self.ask_next(cx, id),
            // A response that is only passed on cannot be resumed.
            Goal::Pass | Goal::Range => self.ends(id, Err(FetchError::Truncated)),
        }
    }

    /// What a peer says cannot be used here, though the peer may be honest: another is asked.
    pub fn disregard(&mut self, cx: &mut Context, id: FetchId) {
        if matches!(cx.pursuits.via(id), Some(Upstream::Peer(..))) {
            self.lose_upstream(cx, id);
        }
    }

    /// The second upstream cannot help with a transfer: the peer asked before continues it.
    pub(super) fn fall_back(&mut self, cx: &mut Context, id: FetchId) -> bool {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return false };
        let of_use = match pursuit.quest.goal {
            Goal::Object | Goal::Holes => true,
            Goal::Head => pursuit.via == Upstream::Origin,
            Goal::Pass | Goal::Range => false,
        };
        let Some((peer, request)) = pursuit.previous.take_if(|_| of_use) else { return false };
        if let Some(asked) = pursuit.request() {
            self.asks.remove(&asked);
        }
        pursuit.via = Upstream::Peer(peer, request);
        // The one that was asked before is on the way.
        if let Some((at, denied)) = pursuit.leave_holder() {
            self.select.in_vain(cx.now, id, at, denied);
        }
        true
    }

    /// The origin, asked beside a peer, did not answer. True if that peer may still do so.
    pub fn falls_back_from_race(&mut self, cx: &mut Context, id: FetchId) -> bool {
        cx.pursuits.get(&id).is_some_and(|pursuit| pursuit.origin_raced) && self.fall_back(cx, id)
    }

    /// Stops listening to all but the upstream asked last.
    pub fn forget_previous(&mut self, cx: &mut Context, id: FetchId) {
        let previous = cx.pursuits.get_mut(&id).and_then(|pursuit| pursuit.previous.take());
        previous.into_iter().for_each(|previous| self.withdraw(cx, previous));
    }

    /// An upstream has given an acceptable answer: the requests to the others are cancelled.
    pub fn accept(&mut self, cx: &mut Context, id: FetchId, asked: (NodeId, Request)) {
        self.listen_to(cx, id, asked);
        let asks = |it: &&Pursuit| it.quest.goal == Goal::Head && it.holder(cx).is_some();
        if let Some(pursuit) = cx.pursuits.get(&id).filter(asks) {
            self.answer_time.took(cx.now - pursuit.moved);
        }
        cx.pursuits.came(id, cx.now);
    }

    fn listen_to(&mut self, cx: &mut Context, id: FetchId, asked: (NodeId, Request)) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        let Some(previous) = pursuit.previous.take() else { return };
        if let Some(fetch) = pursuit.fetch(id).filter(|_| pursuit.via == Upstream::Origin) {
            cx.out.push_back(Output::Origin(OriginOutput::Cancel(fetch)));
        }
        let stays = previous == asked;
        let other = if stays { pursuit.request() } else { Some(previous) };
        pursuit.via = Upstream::Peer(asked.0, asked.1);
        match stays {
            true => pursuit.towards = None,
            false => cx.in_flight.drop_parts(id),
        }
        other.into_iter().for_each(|other| self.withdraw(cx, other));
    }

    /// A peer has disconnected: what it was asked for is requested elsewhere.
    pub fn peer_is_gone(&mut self, cx: &mut Context, peer: NodeId) {
        for id in cx
            .pursuits
            .those(|pursuit| pursuit.previous.is_some_and(|(previous, _)| previous == peer))
        {
            self.forget_previous(cx, id);
        }
        for id in cx.pursuits.those(|pursuit| pursuit.peer() == Some(peer)) {
            self.lose_upstream(cx, id);
        }
    }

    /// A peer has ended a response.
    pub fn peer_ends(&mut self, cx: &mut Context, asked: (NodeId, Request), outcome: Outcome) {
        let Some(id) = self.asked(asked.0, asked.1) else {
            return cx.events.stale(Stale::PeerAnswer);
        };
        self.does_not_lead(cx, id, asked.0, &outcome);
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        if pursuit.previous == Some(asked) {
            pursuit.previous = None;
            self.asks.remove(&asked);
            return;
        }
        if self.fall_back(cx, id) {
            return;
        }
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        match pursuit.quest.goal {
            // Units of the object may still be wanted.
            Goal::Object | Goal::Holes if outcome == Outcome::Complete => {
                return self.values.push_back(Value::AllCame(id));
            }
            Goal::Pass if outcome == Outcome::Complete => {
                pursuit.via = Upstream::Done;
                self.asks.remove(&asked);
                return self.ends(id, Ok(()));
            }
            _ => {}
        }
        pursuit.via = Upstream::Nobody;
        let (goal, for_peer) = (pursuit.quest.goal, pursuit.quest.ask.asker != Asker::Client);
        let awaits_head = pursuit.awaits_head();
        let off_the_way = pursuit.towards.is_some();
        pursuit.is_denied = off_the_way;
        self.asks.remove(&asked);
        elsewhere::heed(cx, id, &outcome);
        // The node whose client asks goes there; those on the way only say so.
        if for_peer && goal == Goal::Head && cx.pursuits.get(&id).is_some_and(Pursuit::is_sent_on) {
            return self.ends(id, Err(FetchError::Elsewhere));
        }
        let another = match goal {
            Goal::Object | Goal::Holes => off_the_way || outcome != Outcome::UnknownRecord,
            Goal::Head | Goal::Pass | Goal::Range => awaits_head && self.may_ask_another(cx, id),
        };
        if another {
            // Another peer may know the record.
            return self.lose_upstream(cx, id);
        }
        match error(&outcome, for_peer) {
            Some(error) => self.ends(id, Err(error)),
            None if awaits_head => self.ask_next(cx, id),
            // The gateway no longer has the record, or the response was only passed on and cannot
            // be resumed.
            None => self.ends(id, Err(FetchError::Truncated)),
        }
    }

    /// From now on a transfer is requested only from the gateway. Without a gateway, a request
    /// without a head goes to the origin, and a body that has begun breaks off.
    pub fn turn_to_gateway(&mut self, cx: &mut Context, id: FetchId, asked: (NodeId, Request)) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        if pursuit.previous == Some(asked) {
            // Another peer was asked meanwhile; its answer is accepted.
            return self.forget_previous(cx, id);
        }
        pursuit.to_gateway = true;
        let begun = pursuit.quest.goal.is_object();
        if begun && pursuit.previous.is_none() && !self.may_ask_another(cx, id) {
            // The same peer would be asked again and again.
            return self.ends(id, Err(FetchError::Truncated));
        }
        self.lose_upstream(cx, id);
    }

    /// A peer has ended a request for a named object. If it gave nothing of the object, other peers
    /// are preferred next time.
    fn does_not_lead(&mut self, cx: &mut Context, id: FetchId, peer: NodeId, outcome: &Outcome) {
        let pursuit = cx.pursuits.get(&id);
        let Some((pursuit, name)) = pursuit.and_then(|it| Some((it, it.quest.ask.named?))) else {
            return;
        };
        let in_vain = pursuit.quest.goal == Goal::Head || *outcome == Outcome::NotCached;
        let Some(mesh) = &mut cx.mesh else { return };
        if *outcome == Outcome::NotCached {
            let hint = mesh.hint(&name);
            mesh.holders.let_go(peer, &hint);
        }
        if in_vain {
            mesh.holders.failed(peer);
        }
    }

    /// A peer has sent a verified unit: its announcement of a named object was true.
    pub fn delivered(&mut self, cx: &mut Context, id: FetchId, peer: NodeId) {
        let is_named = cx.pursuits.get(&id).is_some_and(|it| it.quest.ask.named.is_some());
        if let Some(mesh) = cx.mesh.as_mut().filter(|_| is_named) {
            mesh.holders.proved(peer);
        }
    }
}

/// What a peer's outcome says about the origin; `None` if nothing. An origin that the peer may not
/// dial for this node may still be dialled for its own client.
fn error(outcome: &Outcome, for_peer: bool) -> Option<FetchError> {
    match outcome {
        Outcome::Unresolved => Some(FetchError::Unresolved),
        Outcome::Unreachable => Some(FetchError::Unreachable),
        Outcome::TimedOut => Some(FetchError::TimedOut),
        Outcome::Malformed => Some(FetchError::Malformed),
        Outcome::Truncated => Some(FetchError::Truncated),
        Outcome::Untrusted => Some(FetchError::Untrusted),
        Outcome::NotTls => Some(FetchError::NotTls),
        Outcome::Forbidden if for_peer => Some(FetchError::Forbidden(Forbidden::Inward)),
        Outcome::Complete
        | Outcome::Forbidden
        | Outcome::Loop
        | Outcome::Busy
        | Outcome::UnknownRecord
        | Outcome::NotCached
        | Outcome::NotUnderstood
        | Outcome::Elsewhere(_) => None,
    }
}

impl Pursuit {
    /// Whether the origin was asked only after peers had failed: then it is the mesh that gave no
    /// answer.
    pub fn is_helpless(&self) -> bool {
        self.via == Upstream::Origin && !self.tried.is_empty()
    }

    /// Whether other routers were named in place of an answer.
    fn is_sent_on(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// Whether the request is for a named object.
    pub(super) fn is_named(&self) -> bool {
        self.quest.ask.named.is_some()
    }

    /// Whether no origin can answer: the request is for a named object, or for what a router has stored.
    pub(super) fn is_for_peers(&self) -> bool {
        self.is_named() || self.quest.ask.peer_hops.towards.is_some()
    }
}
