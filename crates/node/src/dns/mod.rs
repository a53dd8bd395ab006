//! Addresses of hosts: used to check that an intercepted client dialled the host in its `Host`
//! field, and whether an origin is inside the site.
//!
//! A resolver that does not answer says nothing: then it is unknown where a host is, and only addresses that were the host's
//! before ([`Verified`]) are taken for it, for what is stored.

mod verified;

use crate::access::translated;
use crate::hasher::{Cache, Map, cache};
use crate::http::Target;
use crate::input::{ExchangeId, Looked};
use crate::output::Output;
use crate::outside::Outside;
use quick_cache::UnitWeighter;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
pub use verified::{KEY as VERIFIED, Verified};
use wire::Instant;

/// The resolver gives no lifetimes; answers are used for this long.
const FRESH: Duration = Duration::from_secs(60);
/// A resolver that does not answer is asked again after this time. That a host has no address is believed as long.
const AGAIN: Duration = Duration::from_secs(5);
/// At most this many hosts are remembered.
const HOSTS_MAX: usize = 1024;

/// What the resolver has said of a host.
#[derive(Clone, Debug)]
enum Answer {
    /// Its addresses, and when it said so.
    Addresses(Instant, Rc<[IpAddr]>),
    /// Nothing, when it was asked last.
    Nothing { at: Instant },
}

/// Addresses by host.
pub struct DnsCache {
    answers: Cache<String, Answer, UnitWeighter>,
    /// The hosts that are being looked up, and the exchanges that wait for it.
    waiting: Map<String, Vec<ExchangeId>>,
    /// Addresses that were dialled and were the hosts'.
    pub verified: Verified,
}

impl DnsCache {
    pub fn new(secret: &[u8; 32]) -> Self {
        Self {
            answers: cache(HOSTS_MAX, HOSTS_MAX as u64, UnitWeighter),
            waiting: Map::default(),
            verified: Verified::new(secret),
        }
    }

    /// A host's addresses, if they are known.
    pub fn addresses(&self, host: &str, now: Instant) -> Option<Rc<[IpAddr]>> {
        let Answer::Addresses(at, addresses) = self.answers.get(host)? else { return None };
        let lifetime = if addresses.is_empty() { AGAIN } else { FRESH };
        (now - *at < lifetime).then(|| Rc::clone(addresses))
    }

    /// A target's addresses, if they are known: its literal address, or its host's.
    pub fn of(&self, target: &Target, now: Instant) -> Option<Rc<[IpAddr]>> {
        match target.address() {
            Some(address) => Some([address.to_canonical()].into()),
            None => self.addresses(target.host(), now),
        }
    }

    /// Whether an intercepted client dialled the host that it names, whose addresses these are. Such an address is remembered.
    pub fn verify(
        &mut self,
        target: &Target,
        dialled: IpAddr,
        addresses: &[IpAddr],
        now: Instant,
    ) -> bool {
        let dialled = translated(dialled);
        let means = addresses.iter().any(|address| translated(*address) == dialled);
        if means && target.address().is_none() {
            self.verified.learn(target.host(), dialled, addresses, now);
        }
        means
    }

    /// Looks up a target's host for a client's exchange, if its addresses are not known. True: the exchange waits. It does not
    /// wait for a resolver that did not answer a moment ago, nor while nothing outside is reached.
    pub fn look_up(
        &mut self,
        target: &Target,
        (client, waiter): (IpAddr, ExchangeId),
        outside: &Outside,
        now: Instant,
        out: &mut VecDeque<Output>,
    ) -> bool {
        if self.of(target, now).is_some() {
            return false;
        }
        let host = target.host();
        let silence = match self.answers.get(host) {
            Some(Answer::Nothing { at }) if !outside.is_back_since(*at) => Some(*at + AGAIN),
            _ => outside.is_down().then_some(now),
        };
        if let Some(again_at) = silence {
            if again_at <= now {
                self.answers.insert(host.to_owned(), Answer::Nothing { at: now });
                self.ask(host, client, out);
            }
            return false;
        }
        self.ask(host, client, out).push(waiter);
        true
    }

    fn ask(
        &mut self,
        host: &str,
        client: IpAddr,
        out: &mut VecDeque<Output>,
    ) -> &mut Vec<ExchangeId> {
        self.waiting.entry(host.to_owned()).or_insert_with(|| {
            out.push_back(Output::Name(host.to_owned(), client));
            Vec::new()
        })
    }

    /// A host was looked up: returns the exchanges that waited.
    pub fn handle_looked(&mut self, now: Instant, host: String, looked: Looked) -> Vec<ExchangeId> {
        let waiters = self.waiting.remove(&host).unwrap_or_default();
        let answer = match looked {
            Looked::Addresses(found) => {
                let found = found.into_iter().map(|address| address.to_canonical()).collect();
                Some(Answer::Addresses(now, found))
            }
            // An answer that came meanwhile says more.
            Looked::Unanswered if self.addresses(&host, now).is_some() => None,
            Looked::Unanswered => Some(Answer::Nothing { at: now }),
            // That says nothing of it for other clients.
            Looked::NotAsked => None,
        };
        answer.into_iter().for_each(|answer| self.answers.insert(host.clone(), answer));
        waiters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::OPEN_KEY;
    use crate::input::FetchError;
    use crate::request::tests::ask;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn target() -> Target {
        Target::read(&"http://a.test/".parse().unwrap()).unwrap()
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A table that is asked for `a.test`, with what it had the resolver asked.
    struct Asked {
        dns: DnsCache,
        outside: Outside,
        out: VecDeque<Output>,
    }

    impl Asked {
        fn new() -> Self {
            let (dns, outside) = (DnsCache::new(&OPEN_KEY), Outside::default());
            Self { dns, outside, out: VecDeque::new() }
        }

        /// Whether an exchange waits for its addresses.
        fn waits(&mut self, id: u64, now: Instant) -> bool {
            let waiter = (CLIENT, ExchangeId(id));
            self.dns.look_up(&target(), waiter, &self.outside, now, &mut self.out)
        }

        fn looked(&mut self, now: Instant, looked: Looked) -> Vec<ExchangeId> {
            self.dns.handle_looked(now, "a.test".into(), looked)
        }
    }

    #[test]
    fn a_name_that_was_not_looked_up_is_asked_for_again() {
        let mut asked = Asked::new();
        assert!(asked.waits(1, at(0)));
        assert!(asked.waits(2, at(0)), "two wait for one lookup");
        assert_eq!(asked.out.len(), 1);
        assert_eq!(asked.looked(at(0), Looked::NotAsked), [ExchangeId(1), ExchangeId(2)]);
        assert!(asked.waits(3, at(0)), "it says nothing of the name");
        assert_eq!(asked.out.len(), 2);
    }

    #[test]
    fn an_answer_is_used_for_a_minute_and_none_for_five_seconds() {
        let mut asked = Asked::new();
        asked.looked(at(5), Looked::Addresses(vec![THERE]));
        let dns = &asked.dns;
        assert_eq!(dns.addresses("a.test", at(60_004)).as_deref(), Some(&[THERE][..]));
        assert_eq!(dns.addresses("a.test", at(60_005)), None);
        asked.looked(at(5), Looked::Addresses(vec![]));
        let dns = &asked.dns;
        assert_eq!(dns.addresses("a.test", at(5_004)).as_deref(), Some(&[][..]));
        assert_eq!(dns.addresses("a.test", at(5_005)), None);
    }

    #[test]
    fn nobody_waits_for_a_resolver_that_is_silent_and_it_is_asked_every_five_seconds() {
        let mut asked = Asked::new();
        assert!(asked.waits(1, at(0)));
        assert_eq!(asked.looked(at(2_000), Looked::Unanswered), [ExchangeId(1)]);
        assert!(!asked.waits(2, at(6_999)));
        assert_eq!(asked.out.len(), 1);
        assert!(!asked.waits(3, at(7_000)));
        assert!(!asked.waits(4, at(7_000)), "it is being asked");
        assert_eq!(asked.out.len(), 2);
        assert_eq!(asked.dns.of(&target(), at(7_000)), None);
        // An answer that comes late counts, and what was said before it does not undo it.
        asked.looked(at(7_001), Looked::Addresses(vec![THERE]));
        asked.looked(at(7_002), Looked::Unanswered);
        assert_eq!(asked.dns.of(&target(), at(7_002)).as_deref(), Some(&[THERE][..]));
    }

    #[test]
    fn while_nothing_outside_is_reached_nobody_waits_and_afterwards_all_do() {
        let mut asked = Asked::new();
        let mut fail = |host: &str| {
            let ask = ask(&format!("http://{host}/"));
            asked.outside.failed(&ask, FetchError::TimedOut, at(0), &mut asked.out);
        };
        fail("b.test");
        fail("c.test");
        asked.out.clear();
        assert!(!asked.waits(1, at(0)));
        assert_eq!(asked.out.len(), 1, "it is looked up beside");
        asked.looked(at(1), Looked::Unanswered);
        assert!(!asked.waits(2, at(2)));
        asked.outside.heard(&ask("http://b.test/"), at(2), &mut asked.out);
        assert!(asked.waits(3, at(3)));
    }

    #[test]
    fn an_address_is_verified_by_an_answer_alone() {
        let mut asked = Asked::new();
        let other = IpAddr::from([192, 0, 2, 9]);
        assert_eq!(asked.dns.of(&target(), at(0)), None);
        asked.looked(at(0), Looked::Addresses(vec![THERE]));
        let addresses = asked.dns.of(&target(), at(0)).expect("they are known");
        assert!(!asked.dns.verify(&target(), other, &addresses, at(0)));
        assert!(!asked.dns.verified.has("a.test", THERE), "nobody has dialled it");
        assert!(asked.dns.verify(&target(), THERE, &addresses, at(0)));
        assert!(asked.dns.verified.has("a.test", THERE));
        assert!(!asked.dns.verified.has("a.test", other));
    }
}
