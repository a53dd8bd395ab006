//! Hints: telling whoever leads towards the gateway what this node leads to, and hearing it from those
//! behind.

use crate::context::Context;
use crate::mesh::Mesh;
use std::net::IpAddr;
use wire::{Instant, NodeId, Oid};

/// A peer says that it leads to objects.
pub fn hold(cx: &mut Context, peer: NodeId, names: Vec<Oid>) {
    let Some(mesh) = &mut cx.mesh else { return };
    for name in names {
        mesh.holders.hold(peer, name);
    }
}

/// A peer takes that back.
pub fn let_go(cx: &mut Context, peer: NodeId, names: &[Oid]) {
    let Some(mesh) = &mut cx.mesh else { return };
    for name in names {
        mesh.holders.let_go(peer, name);
    }
}

/// An object is here for certain: others may know.
pub fn tell_of(cx: &mut Context, name: &Oid) {
    cx.published.set_whole(name, true);
    leads_elsewhere(cx);
}

/// What this node leads to may be more or less than before.
pub fn leads_elsewhere(cx: &mut Context) {
    if let Some(mesh) = &mut cx.mesh {
        mesh.holders.changed = true;
    }
}

/// Tells what has changed, if something has.
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
    for (peer, message) in mesh.holders.tell(towards, cx.published.names()) {
        mesh.peers.send(cx.now, peer, &message);
    }
}

/// Nobody is there to be told: looks for whoever would be asked. If nobody answers there, it is passed
/// over like one who was asked in vain, and the next one is looked for.
fn seek(now: Instant, mesh: &mut Mesh) {
    let may = |address| !mesh.routes.is_passed_over(now, address);
    let chosen = mesh.routes.ways().choose(mesh.per_hop(), may);
    mesh.holders.sought = chosen.filter(|_| mesh.routes.route().is_some());
    if let Some(address) = mesh.holders.sought {
        let socket = mesh.socket(address);
        mesh.peers.dial(now, socket);
    }
}

/// Nobody answers at an address that nobody waits for. True if it may just be starting; false if there
/// is another one who can be told instead.
pub fn found_nobody(now: Instant, mesh: &mut Mesh, address: IpAddr) -> bool {
    let sought = mesh.holders.sought.take_if(|sought| *sought == address).is_some();
    let other = |it| it != address && !mesh.routes.is_passed_over(now, it);
    let has_other = mesh.routes.ways().choose(mesh.per_hop(), other).is_some();
    // Whoever was only to be met is looked for once more, and then another.
    mesh.holders.changed |= !sought || has_other;
    !(sought && has_other)
}

/// The peer that a request would be sent to on its way to the gateway.
fn towards(now: Instant, mesh: &Mesh) -> Option<NodeId> {
    mesh.routes.route()?;
    let is_there =
        |address| mesh.peers.at(address).is_some() && !mesh.routes.is_passed_over(now, address);
    mesh.peers.at(mesh.routes.ways().choose(mesh.per_hop(), is_there)?)
}
