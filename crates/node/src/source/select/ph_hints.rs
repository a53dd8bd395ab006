//! PH-HINTS: the nearest router that is said to have an object, if none is farther than the gateway; else the next hop,
//! which may name one (`copies`).

use super::doubts::Doubts;
use super::{Answer, Counts, Here, Query, Select, on_the_way};
use crate::input::FetchId;
use crate::stock::name_of;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::Instant;

/// The scheme.
#[derive(Default)]
pub struct PhHints {
    /// Requests for which a router off the way was asked, and those that are to go along it.
    asked: BTreeMap<FetchId, Asked>,
    doubts: Doubts,
    counts: Counts,
}

enum Asked {
    /// This router is asked.
    Holder(IpAddr),
    /// None, or none any more: the request goes along the way.
    Along,
}

impl Select for PhHints {
    fn choose(&self, query: &Query<'_>) -> Answer {
        let holders = query.copies.holders(&name_of(&query.key));
        let named = query.referred.iter().chain(holders);
        // A peer that asks has looked itself.
        let leaves = query.per_hop.is_none() && self.may_leave(query);
        let best = named
            .filter(|at| leaves && self.may(query, **at))
            .filter_map(|at| Some((query.routes.cost_within_gateway(*at)?, *at)));
        match best.min() {
            Some((_, at)) => {
                let path = query.routes.path_to(at).map(|path| path.next_hop);
                let by = path.filter(|by| (query.may)(*by)).unwrap_or(at);
                Answer::Holder { at, by }
            }
            None => on_the_way(query, true),
        }
    }

    fn asked(&mut self, _here: &Here<'_>, query: &Query<'_>, answer: Answer) {
        match answer {
            Answer::Holder { at, .. } => {
                let before = self.asked.insert(query.id, Asked::Holder(at));
                let is_new = !matches!(before, Some(Asked::Holder(before)) if before == at);
                self.counts.located += u64::from(is_new);
            }
            _ if query.per_hop.is_none() && self.doubts.is_cautious() => {
                self.doubts.went_along(query.id);
                self.asked.insert(query.id, Asked::Along);
            }
            _ => {}
        }
    }

    fn in_vain(&mut self, now: Instant, id: FetchId, at: IpAddr, denied: bool) {
        self.counts.in_vain += 1;
        self.doubts.failed(now, at, denied);
        self.asked.insert(id, Asked::Along);
    }

    fn helped(&mut self, now: Instant, _id: FetchId, at: IpAddr) {
        self.doubts.helped(now, at);
    }

    fn end(&mut self, _now: Instant, id: FetchId) {
        self.asked.remove(&id);
    }

    fn roams(&self) -> bool {
        !self.doubts.is_cautious()
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

impl PhHints {
    /// Whether a request may leave the way.
    fn may_leave(&self, query: &Query<'_>) -> bool {
        match self.asked.get(&query.id) {
            Some(Asked::Holder(_)) => true,
            Some(Asked::Along) => false,
            None => !self.doubts.is_cautious(),
        }
    }

    fn may(&self, query: &Query<'_>, at: IpAddr) -> bool {
        let is_gateway = query.routes.gateway() == Some(at);
        !is_gateway && self.doubts.may_ask(query.now, at) && (query.may)(at)
    }
}
