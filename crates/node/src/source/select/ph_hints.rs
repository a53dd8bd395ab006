//! PH-HINTS: the nearest router that is said to have an object, if none is farther than the gateway; else the next hop,
//! which may name one (`copies`).

use super::doubts::Doubts;
use super::{Answer, Counts, Here, Query, Select, on_the_way};
use crate::input::FetchId;
use crate::stock::name_of;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::Instant;

/// When this many routers have not helped, a request goes along the way.
const IN_VAIN_MAX: usize = 4;

/// The scheme.
#[derive(Default)]
pub struct PhHints {
    /// Routers that were asked for a request, and whether they failed.
    asked: BTreeMap<FetchId, Asked>,
    doubts: Doubts,
    counts: Counts,
}

#[derive(Default)]
struct Asked {
    now: Option<IpAddr>,
    in_vain: Vec<IpAddr>,
}

impl Select for PhHints {
    fn choose(&self, query: &Query<'_>) -> Answer {
        let holders = query.copies.holders(&name_of(&query.key));
        let named = query.referred.iter().chain(holders);
        // A peer that asks has looked itself.
        let best = named.filter(|_| query.per_hop.is_none()).filter_map(|at| {
            let doubts = self.doubts.of(query.now, *at).filter(|_| self.may(query, *at))?;
            Some((doubts, query.routes.cost_within_gateway(*at)?, *at))
        });
        match best.min() {
            Some((_, _, at)) => {
                let path = query.routes.path_to(at).map(|path| path.next_hop);
                let by = path.filter(|by| (query.may)(*by)).unwrap_or(at);
                Answer::Holder { at, by }
            }
            None => on_the_way(query, true),
        }
    }

    fn asked(&mut self, _here: &Here<'_>, query: &Query<'_>, answer: Answer) {
        if let Answer::Holder { at, .. } = answer {
            let asked = self.asked.entry(query.id).or_default();
            self.counts.located += u64::from(asked.now.replace(at) != Some(at));
        }
    }

    fn in_vain(&mut self, now: Instant, id: FetchId, at: IpAddr) {
        self.counts.in_vain += 1;
        self.doubts.failed(now, at);
        let asked = self.asked.entry(id).or_default();
        asked.in_vain.push(at);
        asked.now = None;
    }

    fn end(&mut self, _now: Instant, id: FetchId) {
        let helped = self.asked.remove(&id).and_then(|asked| asked.now);
        helped.into_iter().for_each(|at| self.doubts.helped(at));
    }

    fn roams(&self) -> bool {
        true
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

impl PhHints {
    fn may(&self, query: &Query<'_>, at: IpAddr) -> bool {
        let failed = self
            .asked
            .get(&query.id)
            .is_some_and(|asked| asked.in_vain.contains(&at) || asked.in_vain.len() >= IN_VAIN_MAX);
        !failed && query.routes.gateway() != Some(at) && (query.may)(at)
    }
}
