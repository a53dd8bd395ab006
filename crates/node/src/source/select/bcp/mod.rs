//! BCP and PH-BCP: asks all routers near by, by broadcast, and then the nearest that has the object (MeshCache §4.2.2,
//! §4.3.2, §7.3).
//!
//! *What happens:* a router whose client misses broadcasts a *locate*, which each router passes on once, as far as the
//! gateway is and two hops farther. Those that have the object answer with *found*. When the search timeout ends, the
//! nearest of them is asked, if it is no farther than the gateway; else the gateway. *Where to start:* [`Bcp`], the
//! scheme; `searches.rs` has this router's own searches, `flood.rs` passes on those of others.

mod flood;
mod heard;
mod mappings;
mod seal;
mod searches;
mod timeout;

use super::doubts::Doubts;
use super::{Answer, Counts, Here, Query, Said, Select, on_the_way};
use crate::access::is_local;
use crate::chance::Chance;
use crate::input::{FetchId, Locating, MeshConfig};
use crate::stock::name_of;
use bytes::Bytes;
use flood::Flood;
use mappings::Mappings;
use seal::Seal;
use searches::{Searches, Way};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use timeout::Clock;
use wire::Instant;
use wire::peer::{Call, Found, Locate, Setup};

/// A locate goes this many hops beyond the gateway's distance (§4.2.2).
const HOPS_BEYOND: u32 = 2;
/// The gateway's distance, where it is unknown.
const HOPS_UNKNOWN: u32 = 6;

/// The scheme; see the module.
pub struct Bcp {
    per_hop: bool,
    port: u16,
    seal: Seal,
    chance: Chance,
    flood: Flood,
    searches: Searches,
    /// Where objects are said to be, if requests follow [`Locating::Paper`].
    mappings: Option<Mappings>,
    doubts: Doubts,
    clock: Clock,
    said: VecDeque<Said>,
    counts: Counts,
}

impl Bcp {
    pub fn new(config: &MeshConfig, seed: &[u8; 32]) -> Self {
        Self {
            per_hop: config.selection.is_per_hop(),
            port: config.port,
            seal: Seal::new(config.key.as_ref()),
            chance: Chance::new(blake3::derive_key("hearsay 2026-11 chance of searches", seed)),
            flood: Flood::new(config.key.is_some()),
            searches: Searches::default(),
            mappings: match config.search.locating {
                Locating::Ours => None,
                Locating::Paper { refresh } => Some(Mappings::new(refresh)),
            },
            doubts: Doubts::default(),
            clock: Clock::new(config.search.timeout),
            said: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// The best router that was found for a request, and the neighbour that leads there.
    fn located(&self, query: &Query<'_>) -> Option<Answer> {
        let best = self.searches.best(query, &self.doubts)?;
        let path = query.routes.path_to(best.at).filter(|_| self.per_hop);
        let by = path.map(|path| path.next_hop).filter(|by| (query.may)(*by)).unwrap_or(best.at);
        Some(match self.mappings {
            None => Answer::Holder { at: best.at, by },
            Some(_) => Answer::Found(by),
        })
    }

    /// Where the mapping table sends a request. Only the paper's scheme has one.
    fn mapped(&self, query: &Query<'_>) -> Option<Answer> {
        let at = self.mappings.as_ref()?.get(query.now, &name_of(&query.key))?;
        if query.routes.own_address() == Some(at) {
            return None;
        }
        let path = query.routes.path_to(at).filter(|_| self.per_hop);
        let by = path.map_or(at, |path| path.next_hop);
        (query.may)(by).then_some(Answer::Found(by))
    }

    /// Whether a search makes sense: this router has an address to answer to, and the gateway is elsewhere.
    fn may_search(&self, query: &Query<'_>) -> bool {
        query.routes.own_address().is_some() && !query.routes.is_gateway()
    }

    fn send(&mut self, to: IpAddr, call: Call) {
        let bytes = self.seal.seal(&call, self.chance.draw());
        self.said.push_back(Said::Datagram((to, self.port).into(), Bytes::from(bytes)));
    }

    fn broadcast(&mut self, locate: Locate) {
        let bytes = self.seal.seal(&Call::Locate(locate), self.chance.draw());
        self.said.push_back(Said::Broadcast(Bytes::from(bytes)));
    }

    /// Another router searches: answers if the object is here, and passes the locate on.
    fn handle_locate(&mut self, here: &Here<'_>, locate: Locate) {
        if here.routes.own_address() == Some(locate.origin) || !self.flood.is_new(here.now, &locate)
        {
            return;
        }
        // Nobody outside is sent anything: without a mesh key, the origin may be forged.
        let is_inside = is_local(locate.origin) || here.routes.path_to(locate.origin).is_some();
        let own = here.routes.own_address().filter(|_| is_inside);
        if let Some(holder) = own.filter(|_| (here.holds)(&locate.name)) {
            self.counts.answered += 1;
            let found = Found { search: locate.search, holder, hops: locate.hops };
            self.send(locate.origin, Call::Found(found));
        }
        if locate.ttl > 1 {
            let on = Locate { ttl: locate.ttl - 1, hops: locate.hops.saturating_add(1), ..locate };
            let passed = self.flood.pass_on(here.now, on, &mut self.chance);
            self.counts.spared += u64::from(!passed);
        }
    }

    /// The path of a request towards a holder is being set up (§7.3, step 15).
    fn handle_setup(&mut self, here: &Here<'_>, setup: Setup) {
        let Some(mappings) = &mut self.mappings else { return };
        if here.routes.own_address() == Some(setup.holder) {
            return;
        }
        mappings.put(here.now, setup.name, setup.holder);
        self.set_up(here, setup);
    }

    /// Tells the next hop towards a holder, unless that is the holder.
    fn set_up(&mut self, here: &Here<'_>, setup: Setup) {
        let next_hop = here.routes.path_to(setup.holder).map(|path| path.next_hop);
        if let Some(next_hop) = next_hop.filter(|it| self.per_hop && *it != setup.holder) {
            self.send(next_hop, Call::Setup(setup));
        }
    }
}

impl Select for Bcp {
    fn choose(&self, query: &Query<'_>) -> Answer {
        if let Some(mapped) = self.mapped(query) {
            return mapped;
        }
        // A peer that asks has searched itself. Without a way there is nothing to lose.
        if query.per_hop.is_none()
            && (!self.doubts.is_cautious()
                || query.routes.route().is_none()
                || self.searches.way(query.id) != Way::Unknown)
        {
            match self.searches.way(query.id) {
                Way::Open => return Answer::Later,
                Way::Unknown if self.searches.has_room() && self.may_search(query) => {
                    return Answer::Later;
                }
                Way::Known => {
                    if let Some(answer) = self.located(query) {
                        return answer;
                    }
                }
                Way::Unknown => {}
            }
        }
        on_the_way(query, self.per_hop)
    }

    fn begin(&mut self, here: &Here<'_>, query: &Query<'_>) {
        let routes = here.routes;
        let Some(origin) = routes.own_address() else { return };
        self.counts.searches += 1;
        let name = name_of(&query.key);
        let search = self.searches.begin(here, query.id, name, self.clock.timeout());
        let ttl =
            u8::try_from(routes.hops().unwrap_or(HOPS_UNKNOWN) + HOPS_BEYOND).unwrap_or(u8::MAX);
        self.broadcast(Locate { origin, search, name, ttl, hops: 1 });
    }

    fn asked(&mut self, here: &Here<'_>, query: &Query<'_>, answer: Answer) {
        if query.per_hop.is_none() && self.searches.way(query.id) == Way::Unknown {
            self.doubts.went_along(query.id);
        }
        let Some(asked) = self.searches.asked(here, query, answer, &self.doubts) else { return };
        self.counts.located += 1;
        if let Some(mappings) = &mut self.mappings {
            let setup = Setup { search: asked.search, name: asked.name, holder: asked.holder };
            mappings.put(here.now, setup.name, setup.holder);
            self.set_up(here, setup);
        }
    }

    fn in_vain(&mut self, now: Instant, id: FetchId, at: IpAddr, denied: bool) {
        self.counts.in_vain += 1;
        self.searches.drop_holder(id, at);
        self.doubts.failed(now, at, denied);
    }

    fn helped(&mut self, now: Instant, _id: FetchId, at: IpAddr) {
        self.doubts.helped(now, at);
    }

    fn end(&mut self, now: Instant, id: FetchId) {
        let past = self.searches.end(now, id);
        past.into_iter().for_each(|past| self.clock.learn(past));
    }

    fn handle_datagram(&mut self, here: &Here<'_>, _from: SocketAddr, bytes: &[u8]) {
        match self.seal.open(bytes) {
            Some(Call::Locate(locate)) => self.handle_locate(here, locate),
            Some(Call::Found(found)) => self.searches.found(here, &found),
            Some(Call::Setup(setup)) => self.handle_setup(here, setup),
            None => self.counts.refused += 1,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(locate) = self.flood.due(now) {
            self.counts.passed_on += 1;
            self.broadcast(locate);
        }
        let over = self.searches.close(now);
        self.said.extend(over.into_iter().map(Said::Known));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.flood.next().into_iter().chain(self.searches.next()).min()
    }

    fn poll(&mut self) -> Option<Said> {
        self.said.pop_front()
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests;
