//! How a peer is told that its request has failed here, and which routers it may ask instead.

use crate::access::leads_beyond_link;
use crate::context::Context;
use crate::input::{ExchangeId, FetchError};
use crate::mesh::Mesh;
use wire::NodeId;
use wire::peer::{Outcome, Router};

/// The outcome that tells a peer of this failure of its request.
pub fn outcome(cx: &Context, id: ExchangeId, error: Option<FetchError>) -> Outcome {
    match error {
        Some(FetchError::NoHolder) => not_held(cx, id),
        Some(FetchError::Unresolved) => Outcome::Unresolved,
        Some(FetchError::Forbidden(_)) => Outcome::Forbidden,
        Some(FetchError::Unreachable) => Outcome::Unreachable,
        Some(FetchError::Astray) => Outcome::Malformed,
        // Another node may have a list of CAs.
        Some(FetchError::NoTls) => Outcome::NotUnderstood,
        Some(FetchError::TimedOut) => Outcome::TimedOut,
        Some(FetchError::Malformed) => Outcome::Malformed,
        Some(FetchError::NoRoute) => Outcome::Busy,
        Some(FetchError::Untrusted) => Outcome::Untrusted,
        Some(FetchError::NotTls) => Outcome::NotTls,
        // A peer's request has no content.
        Some(FetchError::Truncated | FetchError::Unsent) | None => Outcome::Truncated,
    }
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
