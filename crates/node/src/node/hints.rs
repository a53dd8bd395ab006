//! Hints: telling whoever leads towards the gateway what this node leads to, and hearing it from those
//! behind.

use super::Node;
use crate::mesh::Mesh;
use std::net::IpAddr;
use wire::{Instant, NodeId, Oid};

impl Node {
    /// A peer says that it leads to objects.
    pub(super) fn peer_holds(&mut self, peer: NodeId, names: Vec<Oid>) {
        let Some(mesh) = &mut self.cx.mesh else { return };
        for name in names {
            mesh.holders.hold(peer, name);
        }
    }

    /// A peer takes that back.
    pub(super) fn peer_lets_go(&mut self, peer: NodeId, names: &[Oid]) {
        let Some(mesh) = &mut self.cx.mesh else { return };
        for name in names {
            mesh.holders.let_go(peer, name);
        }
    }

    /// What this node leads to may be more or less than before.
    pub(super) fn leads_elsewhere(&mut self) {
        if let Some(mesh) = &mut self.cx.mesh {
            mesh.holders.changed = true;
        }
    }

    /// Tells what has changed, if something has.
    pub(super) fn tell_hints(&mut self) {
        let Some(mesh) = &mut self.cx.mesh else { return };
        if !mesh.holders.changed {
            return;
        }
        let towards = towards(self.cx.now, mesh);
        let leads = self.published.names().next().is_some() || mesh.holders.len() > 0;
        if leads && towards.is_none() {
            seek(self.cx.now, mesh);
        }
        for (peer, message) in mesh.holders.tell(towards, self.published.names()) {
            mesh.peers.send(self.cx.now, peer, &message);
        }
    }
}

/// Nobody is there to be told: looks for whoever would be asked. If nobody answers there, it is passed
/// over like one who was asked in vain, and the next one is looked for.
fn seek(now: Instant, mesh: &mut Mesh) {
    let may = |address| !mesh.routes.is_passed_over(now, address);
    mesh.holders.sought = match mesh.routes.ways().choose(mesh.per_hop(), may) {
        Some(address) if mesh.routes.route().is_some() => {
            let socket = mesh.socket(address);
            mesh.peers.dial(now, socket);
            Some(address)
        }
        _ => None,
    };
}

/// Nobody answers at an address that nobody waits for. True if it may just be starting; false if there
/// is another one who can be told instead.
pub(super) fn found_nobody(now: Instant, mesh: &mut Mesh, address: IpAddr) -> bool {
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
