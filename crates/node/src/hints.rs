//! Hints: announces to the peer towards the gateway which objects can be had through this node, and
//! receives such announcements from peers behind it. They name objects shortly (`named::hint`).
//! Also tells the next hop which routers have copies of which objects (`copies`).

use crate::context::Context;
use crate::mesh::Mesh;
use std::net::IpAddr;
use wire::{ChunkId, Date, Hint, Instant, NodeId, Oid};

/// Whether a fresh object with this short name is stored here, as far as memory knows.
pub fn has(cx: &Context, name: &Hint) -> bool {
    let stock = cx.mesh.as_ref().map(|mesh| &mesh.stock);
    let holds = |unit: &ChunkId| cx.chunks.holds(unit);
    stock.is_some_and(|it| cx.store_works() && it.has(name, cx.date(), holds))
}

/// A peer announces objects.
pub fn hold(cx: &mut Context, peer: NodeId, names: Vec<Hint>) {
    let Some(mesh) = &mut cx.mesh else { return };
    for name in names {
        mesh.holders.hold(peer, name);
    }
}

/// A peer withdraws announcements.
pub fn let_go(cx: &mut Context, peer: NodeId, names: &[Hint]) {
    let Some(mesh) = &mut cx.mesh else { return };
    for name in names {
        mesh.holders.let_go(peer, name);
    }
}

/// An object is completely stored here: it is announced.
pub fn tell_of(cx: &mut Context, name: &Oid) {
    cx.published.set_whole(name, true);
    leads_elsewhere(cx);
}

/// The objects that can be had through this node may have changed.
pub fn leads_elsewhere(cx: &mut Context) {
    if let Some(mesh) = &mut cx.mesh {
        mesh.holders.changed = true;
    }
}

/// Sends what has changed, if anything.
pub fn tell(cx: &mut Context) {
    let Some(mesh) = &mut cx.mesh else { return };
    if !mesh.holders.changed {
        return;
    }
    let towards = towards(cx.now, mesh);
    let leads = cx.published.names().next().is_some() || mesh.holders.len() > 0;
    if leads && towards.is_none() {
        seek(cx.now, mesh);
    }
    let published: Vec<Hint> = cx.published.names().map(|name| mesh.hint(&name)).collect();
    for (peer, message) in mesh.holders.tell(towards, published.into_iter()) {
        mesh.peers.send(cx.now, peer, &message);
    }
}

/// Tells the next hop of copies, if it is time. Returns the number of messages. `holds`: whether a unit is stored.
pub fn tell_copies(
    mesh: &mut Mesh,
    (now, date): (Instant, Date),
    holds: impl Fn(&ChunkId) -> bool,
) -> usize {
    if mesh.copies.tell_at.is_none_or(|at| now < at) {
        return 0;
    }
    let next_hop = mesh.routes.route().and_then(|route| mesh.peers.at(route.next_hop));
    if next_hop.is_none() && mesh.routes.route().is_some() {
        // It will be connected again.
        mesh.copies.tell_later(now);
        return 0;
    }
    let sweeps = mesh.stock.may_sweep(now);
    if sweeps {
        let lost = mesh.stock.sweep(date, holds);
        lost.into_iter().for_each(|name| mesh.copies.lost(name));
    }
    let messages = mesh.copies.tell(next_hop, mesh.stock.names());
    if !sweeps {
        mesh.copies.tell_soon(now);
    }
    for (peer, message) in &messages {
        mesh.peers.send(now, *peer, message);
    }
    messages.len()
}

/// There is no peer to announce to: dials the one that requests would go to. If it does not answer,
/// it is passed over like a peer that failed, and the next one is tried.
fn seek(now: Instant, mesh: &mut Mesh) {
    let may = |address| !mesh.routes.is_passed_over(now, address);
    let chosen = mesh.routes.ways().choose(mesh.per_hop(), may);
    mesh.holders.sought = chosen.filter(|_| mesh.routes.route().is_some());
    if let Some(address) = mesh.holders.sought {
        let socket = mesh.socket(address);
        mesh.peers.dial(now, socket);
    }
}

/// No peer answered at an address for which no request waits. True if it may just be starting;
/// false if another peer can get our hints instead.
pub fn found_nobody(now: Instant, mesh: &mut Mesh, address: IpAddr) -> bool {
    let sought = mesh.holders.sought.take_if(|sought| *sought == address).is_some();
    let other = |it| it != address && !mesh.routes.is_passed_over(now, it);
    let has_other = mesh.routes.ways().choose(mesh.per_hop(), other).is_some();
    // An address that was only to be met is dialled once more, and then another.
    mesh.holders.changed |= !sought || has_other;
    !(sought && has_other)
}

/// The peer that a request towards the gateway would be sent to.
fn towards(now: Instant, mesh: &Mesh) -> Option<NodeId> {
    mesh.routes.route()?;
    let is_there =
        |address| mesh.peers.at(address).is_some() && !mesh.routes.is_passed_over(now, address);
    mesh.peers.at(mesh.routes.ways().choose(mesh.per_hop(), is_there)?)
}
