//! AUTO: hints, as PH-HINTS; and where they cannot help, because there is no way to a gateway, a search as PH-BCP's.

use super::bcp::Bcp;
use super::ph_hints::PhHints;
use super::{Answer, Counts, Here, Query, Said, Select};
use crate::input::{FetchId, Locating, MeshConfig, SearchConfig, SearchTimeout};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::Instant;

/// Without a way to the gateway nothing is gained by not waiting: three broadcasts and their pauses fit in several times.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The scheme.
pub struct Auto {
    hints: PhHints,
    /// Searches; `None` without a mesh key: then anybody who hears them could guess the names in them.
    search: Option<Bcp>,
}

impl Auto {
    pub fn new(config: &MeshConfig, seed: &[u8; 32]) -> Self {
        let search =
            SearchConfig { locating: Locating::Ours, timeout: SearchTimeout::Fixed(TIMEOUT) };
        let bcp = || Bcp::new(&MeshConfig { search, ..config.clone() }, seed);
        Self { hints: PhHints::default(), search: config.key.is_some().then(bcp) }
    }

    /// The scheme for a request.
    fn of(&self, query: &Query<'_>) -> &dyn Select {
        match &self.search {
            Some(search) if query.routes.route().is_none() => search,
            _ => &self.hints,
        }
    }
}

impl Select for Auto {
    fn choose(&self, query: &Query<'_>) -> Answer {
        self.of(query).choose(query)
    }

    fn begin(&mut self, here: &Here<'_>, query: &Query<'_>) {
        self.search.iter_mut().for_each(|search| search.begin(here, query));
    }

    fn asked(&mut self, here: &Here<'_>, query: &Query<'_>, answer: Answer) {
        match &mut self.search {
            Some(search) if query.routes.route().is_none() => search.asked(here, query, answer),
            _ => self.hints.asked(here, query, answer),
        }
    }

    fn in_vain(&mut self, now: Instant, id: FetchId, at: IpAddr, denied: bool) {
        // A route may have come or gone since the router was chosen: neither may choose it again.
        self.hints.in_vain(now, id, at, denied);
        self.search.iter_mut().for_each(|search| search.in_vain(now, id, at, denied));
    }

    fn helped(&mut self, now: Instant, id: FetchId, at: IpAddr) {
        self.hints.helped(now, id, at);
        self.search.iter_mut().for_each(|search| search.helped(now, id, at));
    }

    fn end(&mut self, now: Instant, id: FetchId) {
        self.hints.end(now, id);
        self.search.iter_mut().for_each(|search| search.end(now, id));
    }

    fn handle_datagram(&mut self, here: &Here<'_>, from: SocketAddr, bytes: &[u8]) {
        self.search.iter_mut().for_each(|search| search.handle_datagram(here, from, bytes));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.search.iter_mut().for_each(|search| search.handle_timeout(now));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.search.as_ref()?.poll_timeout()
    }

    fn poll(&mut self) -> Option<Said> {
        self.search.as_mut()?.poll()
    }

    fn roams(&self) -> bool {
        self.hints.roams()
    }

    fn searches_without_way(&self) -> bool {
        self.search.is_some()
    }

    fn counts(&self) -> Counts {
        let searched = self.search.as_ref().map(|it| it.counts()).unwrap_or_default();
        let hinted = self.hints.counts();
        Counts { located: searched.located + hinted.located, in_vain: hinted.in_vain, ..searched }
    }
}
