//! Addresses of hosts: used to check that an intercepted client dialled the host in its `Host`
//! field, and whether an origin is inside the site.

use crate::hasher::{Cache, Map, cache};
use crate::http::Target;
use crate::input::ExchangeId;
use crate::output::Output;
use quick_cache::UnitWeighter;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use wire::Instant;

/// The resolver gives no lifetimes; answers are used for this long.
const FRESH: Duration = Duration::from_secs(60);
/// At most this many hosts are remembered.
const HOSTS_MAX: usize = 1024;

type Answer = (Instant, Rc<[IpAddr]>);

/// Addresses by host.
pub struct DnsCache {
    cache: Cache<String, Answer, UnitWeighter>,
    waiting: Map<String, Vec<ExchangeId>>,
}

impl DnsCache {
    pub fn new() -> Self {
        Self { cache: cache(HOSTS_MAX, HOSTS_MAX as u64, UnitWeighter), waiting: Map::default() }
    }

    /// A host's addresses, if they are known.
    pub fn get(&self, host: &str, now: Instant) -> Option<Rc<[IpAddr]>> {
        let (at, addresses) = self.cache.get(host)?;
        (now - *at < FRESH).then(|| Rc::clone(addresses))
    }

    /// A target's addresses, if they are known: its literal address, or its host's.
    pub fn of(&self, target: &Target, now: Instant) -> Option<Rc<[IpAddr]>> {
        match target.address() {
            Some(address) => Some([address.to_canonical()].into()),
            None => self.get(target.host(), now),
        }
    }

    /// Looks up a host for a client's exchange, which waits.
    pub fn resolve(
        &mut self,
        host: &str,
        client: IpAddr,
        waiter: ExchangeId,
        out: &mut VecDeque<Output>,
    ) {
        let waiters = self.waiting.entry(host.to_owned()).or_default();
        if waiters.is_empty() {
            out.push_back(Output::Name(host.to_owned(), client));
        }
        waiters.push(waiter);
    }

    /// The resolver has answered: returns the exchanges that waited. `None`: the host was not
    /// looked up for this client, which says nothing about it for others.
    pub fn handle_resolved(
        &mut self,
        now: Instant,
        host: String,
        addresses: Option<Vec<IpAddr>>,
    ) -> Vec<ExchangeId> {
        let waiters = self.waiting.remove(&host).unwrap_or_default();
        if let Some(addresses) = addresses {
            let addresses = addresses.into_iter().map(|address| address.to_canonical()).collect();
            self.cache.insert(host, (now, addresses));
        }
        waiters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_not_looked_up_is_asked_for_again() {
        let (mut names, mut out) = (DnsCache::new(), VecDeque::new());
        let (now, client) = (Instant::from_nanos(0), IpAddr::from([10, 0, 0, 1]));
        names.resolve("a.test", client, ExchangeId(1), &mut out);
        assert_eq!(names.handle_resolved(now, "a.test".into(), None), [ExchangeId(1)]);
        assert!(names.get("a.test", now).is_none(), "it is believed to have no address");
        names.resolve("a.test", client, ExchangeId(2), &mut out);
        assert_eq!(out.len(), 2);
        assert_eq!(names.handle_resolved(now, "a.test".into(), Some(vec![])), [ExchangeId(2)]);
        assert!(names.get("a.test", now).is_some_and(|addresses| addresses.is_empty()));
    }

    #[test]
    fn an_answer_is_used_for_a_minute() {
        let mut names = DnsCache::new();
        let address = IpAddr::from([192, 0, 2, 1]);
        names.handle_resolved(Instant::from_nanos(5), "a.test".into(), Some(vec![address]));
        let get = |nanos| names.get("a.test", Instant::from_nanos(nanos));
        assert_eq!(get(5 + 59_999_999_999).as_deref(), Some(&[address][..]));
        assert_eq!(get(5 + 60_000_000_000), None);
    }
}
