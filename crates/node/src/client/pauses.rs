//! Origins that are not waited for: they want to be asked no more for a while (`Retry-After`, RFC 9110 §10.2.3), or could not
//! be reached a moment ago.

use crate::access::translated;
use crate::context::Context;
use crate::http::{self, NotStored, Record, Target};
use crate::input::{ExchangeId, FetchError};
use crate::outside::Outside;
use crate::request::Ask;
use ::http::{HeaderMap, StatusCode, header};
use classes::Kind;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::{Date, Instant};

/// Origins that are known; the one that was last heard of first makes room.
const PAUSES_MAX: usize = 64;
/// No pause that an origin asks for is longer, whatever it says.
const PAUSE_MAX: Duration = Duration::from_secs(3600);
/// An origin that could not be reached is tried this often, while clients get what is stale.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// Why each origin is not waited for.
#[derive(Debug, Default)]
pub struct Pauses(BTreeMap<String, Pause>);

#[derive(Clone, Copy, Debug)]
struct Pause {
    /// When its reason was learned.
    since: Instant,
    why: Why,
}

#[derive(Clone, Copy, Debug)]
enum Why {
    /// It wants to be left alone until then.
    Asked { until: Instant },
    /// It could not be reached. When it may be tried again.
    Failed { probe_at: Instant },
}

/// Why a stale record is served without waiting for its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excuse {
    /// The origin wants to be left alone.
    RetryAfter,
    /// The origin could not be reached. True: it is to be tried once more beside.
    Unreachable(bool),
}

impl Excuse {
    /// For `Cache-Status`.
    pub fn status(self) -> String {
        let detail = match self {
            Self::RetryAfter => "retry-after",
            Self::Unreachable(_) => "unreachable",
        };
        format!("hit; detail={detail}")
    }
}

impl Pauses {
    /// An origin has answered: with 429 or 503 it may name a pause. `date` is none if our clock is wrong.
    pub fn learn(
        &mut self,
        target: &Target,
        status: StatusCode,
        headers: &HeaderMap,
        (now, date): (Instant, Option<Date>),
    ) {
        let asks =
            matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        match asks.then(|| pause(headers, date)).flatten() {
            Some(pause) => {
                let until = now + pause.min(PAUSE_MAX);
                self.put(target, Pause { since: now, why: Why::Asked { until } });
            }
            None if self.0.is_empty() => {}
            // It is reached again.
            None => {
                let origin = origin(target);
                if matches!(self.0.get(&origin), Some(Pause { why: Why::Failed { .. }, .. })) {
                    self.0.remove(&origin);
                }
            }
        }
    }

    /// No answer came from an origin.
    pub fn fail(&mut self, target: &Target, error: Option<FetchError>, now: Instant) {
        let is_out_of_reach = matches!(
            error,
            Some(
                FetchError::Unresolved
                    | FetchError::Refused
                    | FetchError::Unreachable
                    | FetchError::TimedOut
                    | FetchError::NoRoute
            )
        );
        if is_out_of_reach {
            let why = Why::Failed { probe_at: now + PROBE_EVERY };
            self.put(target, Pause { since: now, why });
        }
    }

    /// Whether an intercepted client dialled the host that it names. If that cannot be known since the resolver is silent, but
    /// the address was the host's before, it may have what is stored, and the origin counts as one that could not be reached.
    /// Else the reason why its request is only passed on, to the address. `addresses` are the host's, if they are known.
    pub fn verify(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        dialled: SocketAddr,
        addresses: Option<&[IpAddr]>,
    ) -> Option<NotStored> {
        let exchange = cx.exchanges.get_mut(&id)?;
        let target = &exchange.ask.target;
        // Otherwise a client could dial a server of its own and have its answer stored under another host's name.
        if target.port() != dialled.port() {
            return Some(NotStored::HostMismatch);
        }
        match addresses {
            Some(addresses) if cx.dns.verify(target, dialled.ip(), addresses, cx.now) => {
                exchange.ask.verified = true;
            }
            Some(_) => return Some(NotStored::HostMismatch),
            None if cx.dns.verified.has(target.host(), translated(dialled.ip())) => {
                if self.of(target, &cx.outside).is_none() {
                    self.fail(target, Some(FetchError::Unresolved), cx.now);
                }
            }
            None => return Some(NotStored::HostUnknown),
        }
        None
    }

    /// The pause of an origin, if there is one that still holds: what failed before the uplink came back says nothing.
    fn of(&mut self, target: &Target, outside: &Outside) -> Option<&mut Pause> {
        self.0.get_mut(&origin(target)).filter(|it| match it.why {
            Why::Asked { .. } => true,
            Why::Failed { .. } => !outside.is_back_since(it.since),
        })
    }

    /// Why a stale record may be served without waiting for its origin, if its class permits that.
    pub fn excuse(&mut self, cx: &Context, ask: &Ask, record: &Record) -> Option<Excuse> {
        let is_down = cx.outside.is_down();
        // Other responses may be stale only as long as their origin surely cannot be reached (RFC 9111 §4.2.4).
        let is_class = matches!(ask.verdict.kind, Kind::Changing { .. });
        if !is_down && (self.0.is_empty() || !is_class) {
            return None;
        }
        let permitted =
            |reached| http::stale_permitted(record, &ask.headers, &ask.verdict, cx.date(), reached);
        let Some(pause) = self.of(&ask.target, &cx.outside) else {
            // Nobody has asked it since the uplink went down: somebody does, beside, and it is paused if that fails.
            return (is_down && permitted(false)).then_some(Excuse::Unreachable(true));
        };
        match &mut pause.why {
            Why::Asked { until } => {
                (*until > cx.now && permitted(true)).then_some(Excuse::RetryAfter)
            }
            Why::Failed { probe_at } => permitted(false).then(|| {
                let probes = *probe_at <= cx.now;
                if probes {
                    *probe_at = cx.now + PROBE_EVERY;
                }
                Excuse::Unreachable(probes)
            }),
        }
    }

    fn put(&mut self, target: &Target, pause: Pause) {
        let origin = origin(target);
        if self.0.len() >= PAUSES_MAX && !self.0.contains_key(&origin) {
            let first = self.0.iter().min_by_key(|(_, it)| it.since).map(|(it, _)| it.clone());
            first.into_iter().for_each(|it| _ = self.0.remove(&it));
        }
        self.0.insert(origin, pause);
    }
}

fn origin(target: &Target) -> String {
    let scheme = if target.is_tls() { "https" } else { "http" };
    format!("{scheme}://{}", target.authority())
}

fn pause(headers: &HeaderMap, date: Option<Date>) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = http::parse_date(text)?;
    Some(Duration::from_secs(until.since(date?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::HeaderValue;

    fn target(url: &str) -> Target {
        Target::read(&url.parse().expect("a URI")).expect("a target")
    }

    fn headers(text: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(text))])
    }

    const ASKED: &str = "https://r.test/v2/a";

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn pause_of(pauses: &Pauses, url: &str) -> Option<Instant> {
        match pauses.0.get(&origin(&target(url)))?.why {
            Why::Asked { until } => Some(until),
            Why::Failed { .. } => None,
        }
    }

    fn until(status: u16, text: &'static str, date: Option<u64>) -> u64 {
        let mut pauses = Pauses::default();
        let status = StatusCode::from_u16(status).unwrap();
        let now = (at(10), date.map(Date::from_unix));
        pauses.learn(&target(ASKED), status, &headers(text), now);
        pause_of(&pauses, "https://r.test/v2/b")
            .map_or(10, |until| until.as_nanos() / 1_000_000_000)
    }

    #[test]
    fn an_origin_is_left_alone_for_as_long_as_it_says_and_an_hour_at_most() {
        assert_eq!(until(429, "30", None), 40);
        assert_eq!(until(503, "30", None), 40);
        assert_eq!(until(200, "30", None), 10);
        assert_eq!(until(429, "99999", None), 3610);
        assert_eq!(until(429, "soon", None), 10);
        let date = "Thu, 01 Jan 1970 00:16:50 GMT";
        assert_eq!(until(429, date, Some(1000)), 20);
        assert_eq!(until(429, date, Some(2000)), 10, "it is over");
        assert_eq!(until(429, date, None), 10, "with a wrong clock a date says nothing");
    }

    #[test]
    fn a_pause_is_of_one_origin_and_pauses_are_bounded() {
        let mut pauses = Pauses::default();
        let learn = |pauses: &mut Pauses, url: &str, now| {
            let status = StatusCode::TOO_MANY_REQUESTS;
            pauses.learn(&target(url), status, &headers("50"), (at(now), None));
        };
        learn(&mut pauses, ASKED, 0);
        for other in ["http://r.test/v2/a", "https://r.test:444/v2/a", "https://s.test/v2/a"] {
            assert_eq!(pause_of(&pauses, other), None, "{other}");
        }
        (0..64).for_each(|n| learn(&mut pauses, &format!("https://{n}.test/"), n + 1));
        assert_eq!(pauses.0.len(), PAUSES_MAX);
        assert_eq!(pause_of(&pauses, ASKED), None, "it was the first");
        assert_eq!(pause_of(&pauses, "https://63.test/"), Some(at(114)));
    }

    #[test]
    fn an_origin_out_of_reach_is_known_until_it_answers() {
        let mut pauses = Pauses::default();
        let fails = |pauses: &Pauses| !pauses.0.is_empty();
        for error in [FetchError::Malformed, FetchError::Untrusted, FetchError::Truncated] {
            pauses.fail(&target(ASKED), Some(error), at(0));
            assert!(!fails(&pauses), "{error:?}: it was reached");
        }
        pauses.fail(&target(ASKED), Some(FetchError::Unresolved), at(0));
        let answer = |pauses: &mut Pauses, url| {
            pauses.learn(&target(url), StatusCode::NOT_FOUND, &HeaderMap::new(), (at(9), None));
        };
        answer(&mut pauses, "https://s.test/");
        assert!(fails(&pauses));
        answer(&mut pauses, ASKED);
        assert!(!fails(&pauses));
    }
}
