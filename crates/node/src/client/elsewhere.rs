//! How a peer is told that its request has failed here, and which routers it may ask instead.

use crate::access::leads_beyond_link;
use crate::context::Context;
use crate::exchanges::exchange::State;
use crate::input::{ExchangeId, FetchError};
use crate::mesh::Mesh;
use crate::request::{Ask, PeerHops};
use crate::stock::name_of;
use wire::NodeId;
use wire::peer::{Outcome, Router};

/// The outcome that tells a peer of this failure of its request.
pub fn outcome(cx: &Context, id: ExchangeId, error: Option<FetchError>) -> Outcome {
    match error {
        Some(FetchError::NoHolder) => not_held(cx, id),
        Some(FetchError::Elsewhere) => sent_on(cx, id),
        Some(FetchError::Unresolved) => Outcome::Unresolved,
        Some(FetchError::Forbidden(_)) => Outcome::Forbidden,
        Some(FetchError::Refused | FetchError::Unreachable) => Outcome::Unreachable,
        Some(FetchError::Astray) => Outcome::Malformed,
        // Another node may have a list of CAs.
        Some(FetchError::NoTls) => Outcome::NotUnderstood,
        Some(FetchError::TimedOut) => Outcome::TimedOut,
        Some(FetchError::Malformed) => Outcome::Malformed,
        Some(FetchError::NoRoute | FetchError::NoRoom) => Outcome::Busy,
        Some(FetchError::Untrusted) => Outcome::Untrusted,
        Some(FetchError::NotTls) => Outcome::NotTls,
        // A peer's request has no content.
        Some(FetchError::Truncated | FetchError::Unsent) | None => Outcome::Truncated,
    }
}

/// The routers that the next hop has named.
fn sent_on(cx: &Context, id: ExchangeId) -> Outcome {
    let pursuit = cx.exchanges.get(&id).and_then(|exchange| match exchange.state {
        State::Waiting(fetch) => cx.pursuits.get(&fetch),
        _ => None,
    });
    pursuit.map_or(Outcome::Busy, |it| Outcome::Elsewhere(it.elsewhere.clone()))
}

/// No holder of a named object was asked in time. If that is only because the request may go no further, the peer
/// may ask the holders itself.
fn not_held(cx: &Context, id: ExchangeId) -> Outcome {
    let exchange = cx.mesh.as_ref().zip(cx.exchanges.get(&id));
    let Some((mesh, ask)) = exchange.map(|(mesh, exchange)| (mesh, &exchange.ask)) else {
        return Outcome::NotCached;
    };
    let Some(name) = ask.named.filter(|_| ask.peer_hops.hops == 0) else {
        return Outcome::NotCached;
    };
    match at(mesh, mesh.holders_of(&name), &ask.peer_hops.visited) {
        Outcome::Elsewhere(routers) if routers.is_empty() => Outcome::NotCached,
        elsewhere => elsewhere,
    }
}

/// Routers that have what a peer asks for, and are no farther from the asker than the next hop to which its request would
/// go. `None` if there is none, or if the asker wants an answer from here.
pub fn nearer(cx: &Context, ask: &Ask) -> Option<Outcome> {
    let PeerHops { visited, elsewhere, per_hop, towards, passed, .. } = &ask.peer_hops;
    let may = *elsewhere && *per_hop && towards.is_none() && !*passed && !ask.is_insistent();
    let mesh = cx.mesh.as_ref().filter(|_| may)?;
    let next = mesh.routes.route().map(|route| route.next_hop);
    let next = next.filter(|next| mesh.routes.gateway() != Some(*next));
    let routers = mesh.copies.nearer(visited, &name_of(&ask.key), next);
    (!routers.is_empty()).then_some(Outcome::Elsewhere(routers))
}

/// Names the first of these peers that others can reach, except those that the request has visited. The list is
/// empty if there is none.
pub fn at(mesh: &Mesh, peers: impl IntoIterator<Item = NodeId>, visited: &[NodeId]) -> Outcome {
    let router = |id| {
        let address = mesh.mesh_address(id).filter(|address| leads_beyond_link(*address))?;
        Some(Router { id, address: Some(address), cost: None })
    };
    let peers = peers.into_iter().filter(|id| !visited.contains(id));
    Outcome::Elsewhere(peers.filter_map(router).take(Router::COUNT_MAX).collect())
}
