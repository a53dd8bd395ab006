//! Where copies of objects are, as routers tell each other: hints (hint caches, Tewari et al. 1999; breadcrumbs,
//! Rosensweig and Kurose 2009).
//!
//! Each router tells its next hop what it stores and evicts, and how far other routers are from it; each hop passes it on,
//! so the gateway knows all. Routers that forwarded a request know already who stores the answer, and are told nothing.
//! *Where to start:* [`Copies::nearer`], which says who has an object, and is no farther from an asker than the way that
//! its request would take. `upward.rs` has what the next hop is still to be told.

mod upward;

use crate::hasher::Map;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use upward::Upward;
use wire::peer::{self, Message, Reach, Router};
use wire::{Hint, Instant, NodeId};

/// The most copies that are known; the one that was told longest ago makes room. Each takes about 300 bytes.
const COPIES_MAX: usize = 8192;
/// The most routers; further ones are not heard.
const ROUTERS_MAX: usize = 512;
/// Of these, those behind one peer.
const ROUTERS_OF_PEER_MAX: usize = 256;
/// What has changed is told after this long at most.
const TOLD_WITHIN: Duration = Duration::from_secs(10);
/// A new router, or a new next hop, is told of sooner: without it hints help nobody.
const NEW_WITHIN: Duration = Duration::from_secs(1);

/// The service; see the module.
#[derive(Debug, Default)]
pub struct Copies {
    routers: BTreeMap<IpAddr, Known>,
    by_name: Map<Hint, SmallVec<[IpAddr; 2]>>,
    /// Copies in the order in which they were told.
    order: BTreeMap<u64, (IpAddr, Hint)>,
    next: u64,
    upward: Upward,
    /// What this router last told of itself.
    own: Option<Reach>,
    /// When the next hop is to be told what has changed.
    pub tell_at: Option<Instant>,
}

/// What is known of a router.
#[derive(Debug)]
struct Known {
    reach: Reach,
    /// The peer that told it.
    by: NodeId,
    copies: Map<Hint, u64>,
}

impl Copies {
    /// A peer tells how far routers are from one. One that another peer told of before has moved.
    pub fn handle_reach(&mut self, now: Instant, by: NodeId, reach: Reach) {
        let is_own = self.own.as_ref().is_some_and(|own| own.address == reach.address);
        let of_peer = self.routers.values().filter(|known| known.by == by).count();
        let is_full = self.routers.len() >= ROUTERS_MAX || of_peer >= ROUTERS_OF_PEER_MAX;
        // A router has one address. If it gets another, its peer is to have lost it before.
        let has_other = self.of(reach.id).is_some_and(|of| of.address != reach.address);
        if is_own || has_other || is_full && !self.routers.contains_key(&reach.address) {
            return;
        }
        self.upward.reaches.insert(reach.address);
        self.tell_soon(now);
        match self.routers.get_mut(&reach.address) {
            Some(known) => (known.reach, known.by) = (reach, by),
            None => {
                let known = Known { by, copies: Map::default(), reach: reach.clone() };
                self.routers.insert(reach.address, known);
                self.met(now);
            }
        }
    }

    /// A peer tells what a router has stored and evicted. It must have told of the router before.
    pub fn handle_copies(&mut self, now: Instant, by: NodeId, told: peer::Copies) {
        if self.routers.get(&told.router).is_none_or(|known| known.by != by) {
            return;
        }
        for name in told.stored {
            self.stored(now, told.router, name);
        }
        for name in told.evicted {
            self.remove(told.router, &name);
            self.upward.evicted(told.router, name);
        }
        self.tell_soon(now);
    }

    /// An answer is given to a request that these nodes have visited: each will store the object. `is_known`: the next
    /// hop has forwarded the same answer, and knows.
    pub fn given(&mut self, now: Instant, visited: &[NodeId], name: Hint, is_known: bool) {
        let is_one = |known: &Known| visited.contains(&known.reach.id);
        let routers = self.routers.iter().filter(|(_, known)| is_one(known));
        for router in routers.map(|(router, _)| *router).collect::<Vec<_>>() {
            match is_known {
                true => self.insert(router, name),
                false => self.stored(now, router, name),
            }
        }
    }

    /// This router has an object that did not come along the way.
    pub fn kept(&mut self, now: Instant, name: Hint) {
        if let Some(own) = &self.own {
            self.upward.stored(own.address, name);
            self.tell_soon(now);
        }
    }

    /// This router has evicted an object.
    pub fn lost(&mut self, name: Hint) {
        if let Some(own) = &self.own {
            self.upward.evicted(own.address, name);
        }
    }

    fn stored(&mut self, now: Instant, router: IpAddr, name: Hint) {
        self.insert(router, name);
        self.upward.stored(router, name);
        self.tell_soon(now);
    }

    fn insert(&mut self, router: IpAddr, name: Hint) {
        let Some(known) = self.routers.get_mut(&router) else { return };
        let place = self.next;
        self.next += 1;
        match known.copies.insert(name, place) {
            Some(before) => _ = self.order.remove(&before),
            None => self.by_name.entry(name).or_default().push(router),
        }
        self.order.insert(place, (router, name));
        if self.order.len() > COPIES_MAX
            && let Some((_, (router, name))) = self.order.pop_first()
        {
            self.remove(router, &name);
        }
    }

    /// A router does not have an object, as it has told, or as it turned out when it was asked.
    pub fn remove(&mut self, router: IpAddr, name: &Hint) {
        let known = self.routers.get_mut(&router);
        if let Some(place) = known.and_then(|known| known.copies.remove(name)) {
            self.order.remove(&place);
            if let Some(routers) = self.by_name.get_mut(name) {
                routers.retain(|it| *it != router);
                if routers.is_empty() {
                    self.by_name.remove(name);
                }
            }
        }
    }

    /// A peer has disconnected: what it told is forgotten.
    pub fn gone(&mut self, peer: NodeId) {
        let of_it = self.routers.iter().filter(|(_, known)| known.by == peer);
        for router in of_it.map(|(router, _)| *router).collect::<Vec<_>>() {
            let names: Vec<_> = self.routers[&router].copies.keys().copied().collect();
            for name in names {
                self.remove(router, &name);
                self.upward.evicted(router, name);
            }
            self.routers.remove(&router);
        }
        self.upward.peer_is_gone(peer);
    }

    /// The routers that have an object, as far as is known here.
    pub fn holders(&self, name: &Hint) -> &[IpAddr] {
        self.by_name.get(name).map_or(&[], |routers| routers)
    }

    /// The routers that have an object and are no farther from the node that asks than `next`, the next to which its
    /// request would go; `None` is the gateway. The nearest come first. None of them is one that the request has
    /// `visited`, of which the first is the asker.
    pub fn nearer(&self, visited: &[NodeId], name: &Hint, next: Option<IpAddr>) -> Vec<Router> {
        let Some(asker) = visited.first().and_then(|id| self.of(*id)) else { return Vec::new() };
        let cost = |router| asker.paths.iter().find(|path| path.router == router).map(|it| it.cost);
        let most = next.and_then(cost).unwrap_or(asker.gateway);
        let mut routers: Vec<Router> = self
            .holders(name)
            .iter()
            .filter_map(|address| {
                let id = self.routers.get(address)?.reach.id;
                let cost = cost(*address).filter(|cost| *cost <= most)?;
                let router = Router { id, address: Some(*address), cost: Some(cost) };
                (!visited.contains(&id)).then_some(router)
            })
            .collect();
        routers.sort_unstable_by_key(|it| (it.cost, it.address));
        routers.truncate(Router::COUNT_MAX);
        routers
    }

    /// How far other routers are from one, by its id.
    fn of(&self, id: NodeId) -> Option<&Reach> {
        self.routers.values().map(|known| &known.reach).find(|reach| reach.id == id)
    }

    /// How far other routers are from this one. `None`: it is not known, or this router is the gateway.
    pub fn set_own(&mut self, now: Instant, own: Option<Reach>) {
        if self.own != own {
            self.upward.reaches.extend(own.as_ref().map(|own| own.address));
            let is_new = self.own.is_none();
            self.own = own;
            self.tell_soon(now);
            if is_new {
                self.met(now);
            }
        }
    }

    /// The next hop cannot be told now.
    pub fn tell_later(&mut self, now: Instant) {
        self.tell_at = Some(now + TOLD_WITHIN);
    }

    /// A peer, or a router behind one, was met: what waits is told soon.
    pub fn met(&mut self, now: Instant) {
        let at = now + NEW_WITHIN;
        self.tell_at = Some(self.tell_at.map_or(at, |sooner| sooner.min(at)));
    }

    /// The next hop is told with the request that is sent to it now.
    pub fn tell_now(&mut self, now: Instant) {
        self.tell_at = self.tell_at.map(|_| now);
    }

    /// The next hop is told before long.
    pub fn tell_soon(&mut self, now: Instant) {
        self.tell_at.get_or_insert(now + TOLD_WITHIN);
    }

    /// The messages that bring the next hop up to date; `own` are the objects stored here. A new next hop is told
    /// everything.
    pub fn tell(
        &mut self,
        next_hop: Option<NodeId>,
        own: impl Iterator<Item = Hint>,
    ) -> Vec<(NodeId, Message)> {
        self.tell_at = None;
        let Some(peer) = next_hop else {
            self.upward.forget();
            return Vec::new();
        };
        if self.upward.is_new(peer) {
            if let Some(of) = &self.own {
                self.upward.reaches.insert(of.address);
                own.for_each(|name| self.upward.stored(of.address, name));
            }
            for (router, known) in self.routers.iter().filter(|(_, known)| known.by != peer) {
                self.upward.reaches.insert(*router);
                known.copies.keys().for_each(|name| self.upward.stored(*router, *name));
            }
        }
        let reach = |router: &IpAddr| {
            let own = self.own.as_ref().filter(|own| own.address == *router);
            own.or(self.routers.get(router).filter(|it| it.by != peer).map(|it| &it.reach)).cloned()
        };
        let messages = self.upward.take(reach);
        messages.into_iter().map(|message| (peer, message)).collect()
    }

    /// The number of copies that are known.
    pub fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests;
