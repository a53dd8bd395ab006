//! Ends of peers that name other routers, or that say that a request was not understood: who is asked then.

use crate::access::{is_local, leads_beyond_link};
use crate::context::Context;
use crate::input::FetchId;
use crate::mesh::Mesh;
use crate::pursuits::Pursuit;
use std::net::IpAddr;
use wire::NodeId;
use wire::peer::{Outcome, Router};

/// Notes what an end says of other nodes. In any case the gateway comes next, in place of the scheme's choice.
pub(super) fn heed(cx: &mut Context, id: FetchId, outcome: &Outcome) {
    let pursuit = cx.pursuits.get(&id);
    // A router off the way is to answer itself: who it names is not believed for it.
    let Some(pursuit) = pursuit.filter(|pursuit| pursuit.towards.is_none()) else { return };
    let is_first = pursuit.referred.is_none();
    let routers = match outcome {
        Outcome::Elsewhere(routers) => &routers[..],
        Outcome::NotUnderstood => &[],
        _ => return,
    };
    let known = |router: &Router| Some((router.id, dialled_at(cx, router)?));
    let referred: Vec<_> = routers.iter().filter_map(known).collect();
    let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
    if let Outcome::Elsewhere(routers) = outcome
        && pursuit.roams
        && is_first
        && !routers.is_empty()
    {
        // The node that has named others has answered, and may be asked again if they do not help.
        pursuit.tried.pop();
        pursuit.elsewhere.clone_from(routers);
        pursuit.referred.get_or_insert(referred);
        return;
    }
    pursuit.to_gateway = true;
    // Only once: otherwise two nodes could send a request back and forth.
    if matches!(outcome, Outcome::Elsewhere(_)) {
        pursuit.referred.get_or_insert(referred);
    }
}

/// The address at which a router that a peer named can be asked. A peer must not make this node dial anywhere: the
/// router is connected, or its address is one of the mesh.
fn dialled_at(cx: &Context, router: &Router) -> Option<IpAddr> {
    let mesh = cx.mesh.as_ref().filter(|mesh| mesh.peers.own_id() != router.id)?;
    let connected = mesh.peers.address(router.id);
    connected.or(router.address.filter(|address| {
        (is_local(*address) && leads_beyond_link(*address)) || cx.config.access.is_direct(*address)
    }))
}

impl Pursuit {
    /// The first router that a peer named and that may be asked.
    pub(super) fn referred_to(&self, mesh: &Mesh, may: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        let referred = self.referred.iter().flatten();
        let mut may_ask = referred.filter(|(id, address)| {
            let other = mesh.peers.at(*address).is_some_and(|peer| peer != *id);
            !other && !self.quest.ask.peer_hops.visited.contains(id) && may(*address)
        });
        may_ask.next().map(|(_, address)| *address)
    }

    /// The peer as the only one that may answer, if it was named by another.
    pub(super) fn only(&self, peer: NodeId) -> Option<NodeId> {
        self.referred.iter().flatten().any(|(id, _)| *id == peer).then_some(peer)
    }
}
