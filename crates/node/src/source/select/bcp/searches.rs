//! This router's own searches.

use crate::access::{is_local, leads_beyond_link};
use crate::input::FetchId;
use crate::source::select::doubts::Doubts;
use crate::source::select::{Answer, Here, Query};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use wire::peer::{Found, Search};
use wire::{Hint, Instant};

/// The most searches at once; further requests go on the way without one.
const SEARCHES_MAX: usize = 256;
/// When this many routers have not helped, a request is over that has no other way.
const IN_VAIN_MAX: u8 = 4;
/// The most answers to one search.
const HOLDERS_MAX: usize = 32;

/// The searches, by the request that they are for, until it ends.
#[derive(Debug, Default)]
pub struct Searches {
    by_request: BTreeMap<FetchId, Searching>,
    /// The last search of this router.
    last: Option<Search>,
}

#[derive(Debug)]
struct Searching {
    search: Search,
    name: Hint,
    began: Instant,
    /// The cost of the gateway.
    gateway: u32,
    holders: Vec<Holder>,
    /// How many of them were asked in vain.
    in_vain: u8,
    state: State,
}

/// A router that says that it has the object.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    pub at: IpAddr,
    cost: u32,
    /// How long after the search began it answered.
    after: Duration,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Answers are awaited until then.
    Open { until: Instant },
    /// The best answer is taken.
    Over,
    /// A router was asked; `None` if it is one on the way.
    Asked { holder: Option<IpAddr>, cost: u32, at: Instant },
}

/// What is known of the router to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// There was no search.
    Unknown,
    /// The search goes on.
    Open,
    /// The search is over.
    Known,
}

/// A search that led to a router off the way.
#[derive(Clone, Copy, Debug)]
pub struct Located {
    pub search: Search,
    pub name: Hint,
    pub holder: IpAddr,
}

/// A search whose request has ended.
#[derive(Clone, Debug)]
pub struct Past {
    /// When answers came, and what their senders cost.
    pub founds: Vec<(Duration, u32)>,
    /// What the gateway cost.
    pub gateway: u32,
    /// How the object was fetched, if a router was asked.
    pub fetched: Option<Fetched>,
}

/// How an object was fetched.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    pub took: Duration,
    pub cost: u32,
}

impl Past {
    /// What the best router cost that had answered by then.
    pub fn cost_by(&self, timeout: Duration) -> u32 {
        let known = self.founds.iter().filter(|(after, _)| *after <= timeout);
        known.map(|(_, cost)| *cost).min().unwrap_or(u32::MAX).min(self.gateway)
    }
}

impl Searches {
    /// Whether another search may begin.
    pub fn has_room(&self) -> bool {
        self.by_request.len() < SEARCHES_MAX
    }

    /// What is known of the router to ask for a request.
    pub fn way(&self, id: FetchId) -> Way {
        match self.by_request.get(&id).map(|it| it.state) {
            None => Way::Unknown,
            Some(State::Open { .. }) => Way::Open,
            Some(State::Over | State::Asked { .. }) => Way::Known,
        }
    }

    /// Begins a search for a request.
    pub fn begin(&mut self, here: &Here<'_>, id: FetchId, name: Hint, timeout: Duration) -> Search {
        let search = match self.last {
            Some(last) => Search { sequence: last.sequence.wrapping_add(1), ..last },
            // The clock grows from start to start, if it is right.
            None => Search { boot: here.date.as_unix(), sequence: 0 },
        };
        self.last = Some(search);
        let (began, until) = (here.now, here.now + timeout);
        let gateway = here.routes.gateway().and_then(|gateway| here.routes.cost(gateway, None));
        let searching = Searching {
            search,
            name,
            began,
            gateway: gateway.unwrap_or(u32::MAX),
            holders: Vec::new(),
            in_vain: 0,
            state: State::Open { until },
        };
        self.by_request.insert(id, searching);
        search
    }

    /// A router says that it has what is searched. Later answers count too: for what is asked next, and for the
    /// timeout.
    pub fn found(&mut self, here: &Here<'_>, found: &Found) {
        let Some(searching) = self.by_request.values_mut().find(|it| it.search == found.search)
        else {
            return;
        };
        let is_known = searching.holders.iter().any(|it| it.at == found.holder);
        let is_ours = here.routes.own_address() == Some(found.holder);
        // Nobody makes this router dial anywhere: without a mesh key, the answer may be forged.
        let is_inside = is_local(found.holder) && leads_beyond_link(found.holder);
        if !is_inside && here.routes.path_to(found.holder).is_none() {
            return;
        }
        let Some(cost) = here.routes.cost(found.holder, Some(found.hops)) else { return };
        if !is_known && !is_ours && searching.holders.len() < HOLDERS_MAX {
            let after = here.now - searching.began;
            searching.holders.push(Holder { at: found.holder, cost, after });
        }
    }

    /// The cheapest router that was found, may be asked, and is no dearer than the gateway. Of equal ones another than
    /// the gateway.
    pub fn best(&self, query: &Query<'_>, doubts: &Doubts) -> Option<Holder> {
        // A wrong answer costs one question, if there is another way.
        let most = if query.routes.route().is_some() { 1 } else { IN_VAIN_MAX };
        let searching = self.by_request.get(&query.id).filter(|it| it.in_vain < most)?;
        let gateway = query.routes.gateway();
        let may = |it: &&Holder| {
            Some(it.at) != gateway && it.cost <= searching.gateway && (query.may)(it.at)
        };
        let holders = searching.holders.iter().filter(may);
        let trusted = holders.filter(|it| doubts.may_ask(query.now, it.at));
        trusted.min_by_key(|it| (it.cost, it.at)).copied()
    }

    /// A router is asked for a request. Returns how it was found, if it is not one on the way, and was not
    /// named before.
    pub fn asked(
        &mut self,
        here: &Here<'_>,
        query: &Query<'_>,
        answer: Answer,
        doubts: &Doubts,
    ) -> Option<Located> {
        let best = self.best(query, doubts);
        let searching = self.by_request.get_mut(&query.id)?;
        let best = best.filter(|_| query.per_hop.is_none() && answer != Answer::Nobody);
        let best = best.filter(|it| match answer {
            Answer::Holder { at, .. } => at == it.at,
            _ => true,
        });
        let holder = best.map(|it| it.at);
        // It was only dialled before.
        if matches!(searching.state, State::Asked { holder: before, .. } if before == holder) {
            return None;
        }
        let cost = best.map_or(searching.gateway, |it| it.cost);
        searching.state = State::Asked { holder, cost, at: here.now };
        let Searching { search, name, .. } = *searching;
        Some(Located { search, name, holder: holder? })
    }

    /// A router that was found did not help.
    pub fn drop_holder(&mut self, id: FetchId, at: IpAddr) {
        if let Some(searching) = self.by_request.get_mut(&id) {
            searching.holders.retain(|it| it.at != at);
            searching.in_vain = searching.in_vain.saturating_add(1);
        }
    }

    /// The searches whose timeout has ended.
    pub fn close(&mut self, now: Instant) -> Vec<FetchId> {
        let mut over = Vec::new();
        for (id, searching) in &mut self.by_request {
            if matches!(searching.state, State::Open { until } if until <= now) {
                searching.state = State::Over;
                over.push(*id);
            }
        }
        over
    }

    /// When the next timeout ends.
    pub fn next(&self) -> Option<Instant> {
        let until = |it: &Searching| match it.state {
            State::Open { until } => Some(until),
            State::Over | State::Asked { .. } => None,
        };
        self.by_request.values().filter_map(until).min()
    }

    /// A request has ended.
    pub fn end(&mut self, now: Instant, id: FetchId) -> Option<Past> {
        let Searching { gateway, holders, state, .. } = self.by_request.remove(&id)?;
        let fetched = match state {
            State::Asked { cost, at, .. } => Some(Fetched { took: now - at, cost }),
            State::Open { .. } | State::Over => None,
        };
        let founds = holders.into_iter().map(|it| (it.after, it.cost)).collect();
        Some(Past { founds, gateway, fetched })
    }
}
