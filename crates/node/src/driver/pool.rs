//! Idle connections to origins: which requests may use one, how many are kept, for how long, and when a
//! change of route makes them useless.

use crate::http::binds;
use crate::input::Binding;
use crate::routes::Exit;
use crate::{Caller, Dial, Fetch};
use http::{HeaderMap, Method};
use std::collections::VecDeque;
use std::time::Duration;
use wire::Instant;

/// An idle connection is kept this long …
const IDLE_MAX: Duration = Duration::from_secs(15);
/// … to one origin at most this many …
const IDLE_EACH_MAX: usize = 4;
/// … and in all.
const IDLE_ALL_MAX: usize = 128;

/// One that is bound to a client's connection waits for that client this long: longer than the client's may be idle …
const BOUND_MAX: Duration = Duration::from_secs(120);
/// … for one client's connection at most this many …
const BOUND_EACH_MAX: usize = 4;
/// … and in all.
const BOUND_ALL_MAX: usize = 128;

/// The destination of a connection, whether it speaks TLS, the kind of client it was made for, and its route out of the mesh.
/// Another kind of client may not use the connection: its destination may be forbidden to that client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    dial: Dial,
    tls: bool,
    caller: Caller,
    way: u64,
    /// The client's connection that it serves alone.
    binding: Option<Binding>,
    /// No other client's request may follow what has crossed it.
    is_private: bool,
}

impl Made {
    /// A request is sent on the connection. One that authenticates the connection itself lets its origin take whatever
    /// follows for its client's (RFC 4559 §5). And an origin that does not know that a method may have content reads
    /// the content as the next request (RFC 9110 §9.3.1).
    pub fn asks(&mut self, fetch: &Fetch, has_content: bool) {
        let is_odd =
            has_content && ![Method::POST, Method::PUT, Method::PATCH].contains(&fetch.method);
        self.binding = fetch.binding;
        self.is_private |= fetch.binding.is_some() || is_odd || binds(&fetch.headers);
    }

    /// A response with this header has come by it. After a challenge of that kind the origin may expect its answer here.
    pub fn answers(&mut self, headers: &HeaderMap) {
        self.is_private |= binds(headers);
    }

    fn is_as(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.tls, it.caller, it.way, it.binding);
        of(self) == of(other) && self.dial == other.dial
    }
}

/// Idle connections and their destinations. The driver closes the connections that [`follow`](Self::follow),
/// [`expire`](Self::expire) and [`put`](Self::put) return.
#[derive(Debug)]
pub struct OriginPool<C> {
    /// The longest idle is first.
    idle: VecDeque<Idle<C>>,
    /// Those that each serve one client's connection; in the same order.
    bound: VecDeque<Idle<C>>,
    /// How many are idle at most.
    room: usize,
    led: Exit,
    /// The number of the present route out of the mesh.
    way: u64,
}

#[derive(Debug)]
struct Idle<C> {
    made: Made,
    until: Instant,
    connection: C,
}

impl<C> Default for OriginPool<C> {
    fn default() -> Self {
        Self::with_room(IDLE_ALL_MAX)
    }
}

impl<C> OriginPool<C> {
    /// A pool in which at most this many connections are idle.
    pub fn with_room(room: usize) -> Self {
        let (idle, bound) = (VecDeque::new(), VecDeque::new());
        Self { idle, bound, room, led: Exit::Nowhere, way: 0 }
    }

    /// Describes a connection that is made now for a request.
    pub fn made(&self, fetch: &Fetch) -> Made {
        Made {
            dial: fetch.dial.clone(),
            tls: fetch.tls,
            caller: fetch.caller,
            way: self.way,
            binding: fetch.binding,
            is_private: false,
        }
    }

    /// The route to the gateway has changed to `routes`. If it leaves the mesh elsewhere than before, all
    /// connections are dead without notice: the NAT at the new exit has no state for them.
    pub fn follow(&mut self, routes: &Exit) -> Vec<C> {
        if *routes == Exit::Nowhere {
            return Vec::new();
        }
        let moved = self.led.leads_elsewhere_than(routes);
        self.led.clone_from(routes);
        if !moved {
            return Vec::new();
        }
        self.way += 1;
        self.idle.drain(..).chain(self.bound.drain(..)).map(|idle| idle.connection).collect()
    }

    /// A client's connection has ended: returns those that were bound to it.
    pub fn release(&mut self, binding: Binding) -> Vec<C> {
        let all = std::mem::take(&mut self.bound);
        let (gone, kept): (VecDeque<_>, _) =
            all.into_iter().partition(|bound| bound.made.binding == Some(binding));
        self.bound = kept;
        gone.into_iter().map(|bound| bound.connection).collect()
    }

    /// The connections that were idle for too long.
    pub fn expire(&mut self, now: Instant) -> Vec<C> {
        let late = |of: &mut VecDeque<Idle<C>>| {
            let count = of.iter().take_while(|idle| idle.until <= now).count();
            of.drain(..count).map(|idle| idle.connection).collect::<Vec<_>>()
        };
        let mut all = late(&mut self.idle);
        all.extend(late(&mut self.bound));
        all
    }

    /// When the next connection will have been idle for too long.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let first = |of: &VecDeque<Idle<C>>| of.front().map(|idle| idle.until);
        first(&self.idle).into_iter().chain(first(&self.bound)).min()
    }

    /// Keeps only the connections for which `holds` is true.
    pub fn retain(&mut self, mut holds: impl FnMut(&C) -> bool) {
        self.idle.retain(|idle| holds(&idle.connection));
        self.bound.retain(|bound| holds(&bound.connection));
    }

    /// Whether `holds` is true for a connection.
    pub fn any(&self, holds: impl Fn(&C) -> bool) -> bool {
        self.idle.iter().chain(&self.bound).any(|idle| holds(&idle.connection))
    }

    /// The most recently used connection. `None` if the request is not repeatable: the origin may be
    /// closing the connection, and then the request must be sent again. Of a client whose connection is bound it is any
    /// request, since its origin may know it by that connection alone.
    pub fn take(&mut self, fetch: &Fetch, has_content: bool) -> Option<C> {
        if fetch.binding.is_some() {
            let made = self.made(fetch);
            let place = self.bound.iter().rposition(|bound| bound.made.is_as(&made))?;
            return self.bound.remove(place).map(|bound| bound.connection);
        }
        if has_content || !fetch.method.is_idempotent() {
            return None;
        }
        let made = self.made(fetch);
        let place = self.idle.iter().rposition(|idle| idle.made.is_as(&made))?;
        self.idle.remove(place).map(|idle| idle.connection)
    }

    /// Keeps a connection; returns it if there is no room, if nobody may use it any more, or if the route out of the mesh
    /// has changed since.
    pub fn put(&mut self, now: Instant, made: Made, connection: C) -> Option<C> {
        if made.binding.is_some() {
            let each = self.bound.iter().filter(|it| it.made.binding == made.binding).count();
            let is_full = each >= BOUND_EACH_MAX || self.bound.len() >= BOUND_ALL_MAX;
            if made.way != self.way || is_full {
                return Some(connection);
            }
            self.bound.push_back(Idle { made, until: now + BOUND_MAX, connection });
            return None;
        }
        let each = self.idle.iter().filter(|idle| idle.made.is_as(&made)).count();
        let is_full = each >= IDLE_EACH_MAX || self.idle.len() >= self.room;
        if made.way != self.way || made.is_private || is_full {
            return Some(connection);
        }
        self.idle.push_back(Idle { made, until: now + IDLE_MAX, connection });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{Interface, RouteSource, Uplink};
    use http::{HeaderMap, Method};

    fn gateway(interface: &str) -> Exit {
        let interface = Some(Interface { name: interface.into(), index: 1 });
        Exit::Gateway(Uplink { address: None, interface, source: RouteSource::Kernel })
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn get(host: &str) -> Fetch {
        Fetch {
            dial: Dial::Name(host.into(), 80),
            tls: false,
            client: [127, 0, 0, 1].into(),
            caller: Caller::ThisMachine,
            method: Method::GET,
            path: "/".into(),
            headers: HeaderMap::new(),
            exchange: None,
            binding: None,
        }
    }

    #[test]
    fn what_was_made_by_another_way_out_is_dead() {
        let mut pool = OriginPool::default();
        assert_eq!(pool.follow(&gateway("wan0")), [0; 0]);
        let before = pool.made(&get("a"));
        assert_eq!(pool.put(at(0), before.clone(), 1), None);
        assert_eq!(pool.put(at(0), pool.made(&get("b")), 2), None);
        assert_eq!(pool.follow(&Exit::Nowhere), [0; 0], "it may come back as it was");
        assert_eq!(pool.follow(&gateway("wan0")), [0; 0]);
        assert_eq!(pool.follow(&gateway("wan1")), [1, 2]);
        assert_eq!(pool.take(&get("a"), false), None);
        assert_eq!(pool.put(at(1), before, 3), Some(3), "it was under way meanwhile");
        assert_eq!(pool.put(at(1), pool.made(&get("a")), 4), None);
        assert_eq!(pool.take(&get("a"), false), Some(4));
    }

    #[test]
    fn only_who_may_go_there_and_may_ask_twice_uses_one_again() {
        let mut pool = OriginPool::default();
        assert_eq!(pool.put(at(0), pool.made(&get("a")), 1), None);
        let post = Fetch { method: Method::POST, ..get("a") };
        let peers = Fetch { caller: Caller::Peer, ..get("a") };
        let elsewhere = Fetch { dial: Dial::Name("a".into(), 8080), ..get("a") };
        let tls = Fetch { tls: true, ..get("a") };
        for other in [&post, &peers, &elsewhere, &tls, &get("b")] {
            assert_eq!(pool.take(other, false), None, "{other:?}");
        }
        assert_eq!(pool.take(&get("a"), true), None, "its content cannot be sent again");
        assert_eq!(pool.take(&Fetch { method: Method::PUT, ..get("a") }, false), Some(1));
    }

    #[test]
    fn the_one_that_was_used_last_is_used_next_and_none_waits_for_long() {
        let mut pool = OriginPool::default();
        for (second, connection) in [(0, 1), (1, 2), (2, 3)] {
            assert_eq!(pool.put(at(second), pool.made(&get("a")), connection), None);
        }
        assert_eq!(pool.take(&get("a"), false), Some(3));
        assert_eq!(pool.poll_timeout(), Some(at(15)));
        assert_eq!(pool.expire(at(15)), [1]);
        pool.retain(|connection| *connection != 2);
        assert!(!pool.any(|_| true) && pool.poll_timeout().is_none());
    }

    #[test]
    fn only_so_many_wait() {
        let mut pool = OriginPool::default();
        let kept = (0..200).filter(|host| {
            let made = pool.made(&get(&host.to_string()));
            (0..5).filter(|_| pool.put(at(0), made.clone(), 0).is_none()).count() == 4
        });
        assert_eq!(kept.count(), IDLE_ALL_MAX / IDLE_EACH_MAX);
    }

    #[test]
    fn a_129th_idle_connection_is_not_kept() {
        let mut pool = OriginPool::default();
        let refused = (0..130).filter_map(|host| {
            let made = pool.made(&get(&host.to_string()));
            pool.put(at(0), made, host)
        });
        assert_eq!(refused.collect::<Vec<_>>(), [128, 129]);
    }

    fn with(name: &'static str, value: &'static str) -> HeaderMap {
        [(http::HeaderName::from_static(name), http::HeaderValue::from_static(value))]
            .into_iter()
            .collect()
    }

    #[test]
    fn a_connection_that_was_authenticated_serves_nobody_else() {
        let mut pool = OriginPool::default();
        let plain = get("a");
        let asking = Fetch { headers: with("authorization", "NTLM x"), ..get("a") };
        let mut made = pool.made(&asking);
        made.asks(&asking, false);
        assert_eq!(pool.put(at(0), made, 1), Some(1), "the request authenticated it");
        let mut made = pool.made(&plain);
        made.asks(&plain, false);
        made.answers(&with("www-authenticate", "Negotiate"));
        // Later messages without such fields do not change it.
        made.asks(&plain, false);
        made.answers(&HeaderMap::new());
        assert_eq!(pool.put(at(0), made, 2), Some(2), "the origin expects an answer by it");
        let mut made = pool.made(&plain);
        made.asks(&Fetch { headers: with("authorization", "Basic x"), ..get("a") }, false);
        assert_eq!(pool.put(at(0), made, 3), None, "what authenticates messages changes nothing");
    }

    #[test]
    fn content_of_a_method_that_has_none_makes_a_connection_useless() {
        let mut pool = OriginPool::default();
        for (method, is_kept) in
            [(Method::GET, false), (Method::DELETE, false), (Method::POST, true)]
        {
            let fetch = Fetch { method, ..get("a") };
            let mut made = pool.made(&fetch);
            made.asks(&fetch, true);
            assert_eq!(pool.put(at(0), made, 1).is_none(), is_kept, "{}", fetch.method);
        }
    }

    #[test]
    fn a_bound_connection_waits_for_its_client_alone_until_that_leaves() {
        let mut pool = OriginPool::default();
        let of = |number| Fetch { binding: Some(Binding(number)), ..get("a") };
        for number in [1, 2] {
            let mut made = pool.made(&of(number));
            made.asks(&of(number), false);
            assert_eq!(pool.put(at(0), made, number), None);
        }
        assert_eq!(pool.take(&get("a"), false), None);
        assert_eq!(pool.take(&of(3), false), None);
        assert_eq!(pool.take(&Fetch { dial: Dial::Name("b".into(), 80), ..of(1) }, false), None);
        assert_eq!(pool.expire(at(60)), [0; 0], "it waits longer than one for anybody");
        // Content cannot be sent again, but another connection would not do.
        assert_eq!(pool.take(&Fetch { method: Method::POST, ..of(1) }, true), Some(1));
        let made = pool.made(&of(1));
        assert_eq!(pool.put(at(1), made, 1), None);
        assert_eq!(pool.release(Binding(1)), [1]);
        assert_eq!(pool.take(&of(1), false), None);
        assert!(pool.any(|it| *it == 2));
        assert_eq!(pool.poll_timeout(), Some(at(120)));
        assert_eq!(pool.expire(at(120)), [2], "its client may have left while it was in use");
        let all = (0..200).flat_map(|number| vec![number; 5]);
        let kept = all.filter(|number| {
            let made = pool.made(&of(*number));
            pool.put(at(200), made, *number).is_none()
        });
        assert_eq!(kept.count(), BOUND_ALL_MAX);
        assert_eq!(pool.release(Binding(7)), [7; BOUND_EACH_MAX]);
    }
}
