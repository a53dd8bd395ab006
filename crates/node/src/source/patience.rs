//! Looking whether what was asked of peers comes on, and asking somebody else where it does not.

use super::{LOOK_EVERY, Source, Value};
use crate::context::Context;
use crate::events::{Event, NextSource};
use crate::input::{FetchError, FetchId};
use crate::pursuits::{Goal, Pursuit, Upstream};
use crate::request::Asker;
use std::time::Duration;
use wire::{Instant, NodeId};

/// A peer that gives nothing for so long is not given up: another is asked too, where there is one, and
/// who answers first is listened to. Three losses of the same packet in a row, with the pauses that TCP
/// makes in between, fit in.
const HOP_TIMEOUT: Duration = Duration::from_secs(5);
/// If nobody else can be asked, units are waited for so long, of a peer that gives nothing at all: a little
/// less than a client's minute.
const SUPPLIER_TIMEOUT: Duration = Duration::from_secs(55);
/// A head may take so long: the origin may be slow.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// A transfer whose way broke waits so long for another one.
const STRANDED_MAX: Duration = Duration::from_secs(20);
/// On behalf of a peer not so long: the peer may have a way of its own, and waits itself.
const RELAY_STRANDED_MAX: Duration = Duration::from_secs(3);
/// A scheme has so long to find out whom to ask; then nobody is.
const SOUGHT_MAX: Duration = Duration::from_secs(2);
/// A transfer of which nothing has come for so long, though more is to be listed, is looked at anew.
const ANEW: Duration = Duration::from_secs(2);

impl Source {
    /// What is asked of peers, or to be asked, in order.
    pub fn at_peers(&self, cx: &Context) -> Vec<FetchId> {
        cx.pursuits.those(|pursuit| !matches!(pursuit.via, Upstream::Origin | Upstream::Done))
    }

    /// Something is to be looked at again.
    pub fn look_again(&mut self, now: Instant) {
        self.look_at.get_or_insert(now + LOOK_EVERY);
    }

    /// Looks whether one comes on. `open`: an object's manifest is not whole, and nothing of it is on its way.
    pub fn look_after(&mut self, cx: &mut Context, id: FetchId, open: bool) {
        let Some(silent) = cx.pursuits.get(&id).map(|it| it.silent_for(cx)) else { return };
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        // A peer may have a way of its own, and waits itself; but one that was just found has its time.
        let is_at_a_loss =
            pursuit.via == Upstream::Nobody && pursuit.quest.ask.asker != Asker::Client;
        let patience = if is_at_a_loss { RELAY_STRANDED_MAX } else { STRANDED_MAX };
        let lost_route_at = pursuit.lost_route_at.is_some_and(|since| cx.now - since > patience);
        if lost_route_at && silent > patience {
            return self.ends(id, Err(FetchError::NoRoute));
        }
        match pursuit.via {
            Upstream::Nobody if pursuit.quest.goal == Goal::Pass => {}
            Upstream::Nobody => {
                pursuit.tried.clear();
                self.ask_next(cx, id);
            }
            Upstream::Peer(..) => self.look_after_asked(cx, id, silent, open),
            Upstream::Sought(since) if cx.now - since > SOUGHT_MAX => self.ask_origin(cx, id),
            Upstream::Dialling(_)
            | Upstream::Origin
            | Upstream::Done
            | Upstream::Next
            | Upstream::Sought(_) => {}
        }
    }

    /// A peer that was asked has its time; what that is depends on what is waited for.
    fn look_after_asked(&mut self, cx: &mut Context, id: FetchId, silent: Duration, open: bool) {
        let flying = cx.in_flight.has(id);
        let Some(pursuit) = cx.pursuits.get(&id) else { return };
        let waited = cx.now - pursuit.moved;
        let patience = HOP_TIMEOUT * self.asked_beside(cx, id, pursuit);
        let supplier = pursuit.supplier();
        let awaits = match pursuit.quest.goal {
            Goal::Head => true,
            Goal::Object | Goal::Holes => flying || !pursuit.answered,
            Goal::Pass | Goal::Range => return,
        };
        let is_asking = pursuit.quest.goal == Goal::Head;
        let (first, since) = (pursuit.previous.is_none(), pursuit.moved);
        let may_race = pursuit.may_race_origin(cx);
        let mute = is_mute(cx, supplier.filter(|_| awaits || open), since);
        if mute && first && self.may_ask_another(cx, id) {
            self.ask_another(cx, id, NextSource::Mute);
        } else if mute && first && may_race {
            cx.pursuits.entry(id).and_modify(|pursuit| pursuit.origin_raced = true);
            self.ask_another(cx, id, NextSource::Mute);
        } else if awaits
            && (silent > patience || waited > HEAD_TIMEOUT)
            && self.may_ask_another(cx, id)
        {
            self.ask_another(cx, id, NextSource::Silent);
        } else if (open || is_asking) && waited > HEAD_TIMEOUT {
            self.lose_way(cx, id);
        } else if flying && silent > SUPPLIER_TIMEOUT {
            self.ends(id, Err(FetchError::NoRoute));
        } else if let Some((mesh, peer)) = cx.mesh.as_mut().zip(supplier).filter(|_| flying) {
            mesh.peers.hurry(cx.now, peer);
        } else if open && waited > ANEW {
            self.values.push_back(Value::Stalled(id));
        }
    }

    /// The next hop takes its time, perhaps because the origin does, or the air is full: another is asked
    /// too, and who answers first is listened to. Until then units are wanted of the previous.
    fn ask_another(&mut self, cx: &mut Context, id: FetchId, why: NextSource) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        cx.events.emit(|| Event::NextSource { fetch: id, why });
        if let (true, Some(peer), Some(mesh)) =
            (pursuit.is_named(), pursuit.peer(), cx.mesh.as_mut())
        {
            // Others come before it next time.
            mesh.holders.failed(peer);
        }
        match (pursuit.previous, pursuit.request()) {
            // Of three, the one that has not helped yet is let go.
            (Some(_), Some(asked)) => self.withdraw(cx, asked),
            (_, asked) => pursuit.previous = asked,
        }
        self.ask_next(cx, id);
    }
}

impl Pursuit {
    /// For how long the giver of a transfer has given nothing, for it or for any other: a peer that
    /// gives to others is slow, not dead.
    fn silent_for(&self, cx: &Context) -> Duration {
        let gave = cx.mesh.as_ref().zip(self.supplier());
        let gave = gave.and_then(|(mesh, peer)| mesh.peers.gave(peer));
        cx.now - gave.map_or(self.moved, |gave| self.moved.max(gave))
    }
}

/// Whether a peer that something has been waited for since then seems to be gone: it does not even answer
/// pings. If it has said nothing for a while, it is asked.
fn is_mute(cx: &mut Context, supplier: Option<NodeId>, since: Instant) -> bool {
    let Some((mesh, supplier)) = cx.mesh.as_mut().zip(supplier) else { return false };
    mesh.peers.doubt(cx.now, supplier, since);
    mesh.peers.is_mute(cx.now, supplier)
}
