//! Idle connections to origins: which requests may use one, how many are kept, for how long, and when a
//! change of route makes them useless.

use crate::routes::Exit;
use crate::{Caller, Dial, Fetch};
use std::collections::VecDeque;
use std::time::Duration;
use wire::Instant;

/// An idle connection is kept this long …
const IDLE_MAX: Duration = Duration::from_secs(15);
/// … to one origin at most this many …
const IDLE_EACH_MAX: usize = 4;
/// … and in all.
const IDLE_ALL_MAX: usize = 128;

/// The destination of a connection, whether it speaks TLS, the kind of client it was made for, and its route out of the mesh.
/// Another kind of client may not use the connection: its destination may be forbidden to that client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    dial: Dial,
    tls: bool,
    caller: Caller,
    way: u64,
}

/// Idle connections and their destinations. The driver closes the connections that [`follow`](Self::follow),
/// [`expire`](Self::expire) and [`put`](Self::put) return.
#[derive(Debug)]
pub struct OriginPool<C> {
    /// The longest idle is first.
    idle: VecDeque<Idle<C>>,
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
        Self { idle: VecDeque::new(), led: Exit::Nowhere, way: 0 }
    }
}

impl<C> OriginPool<C> {
    /// Describes a connection that is made now for a request.
    pub fn made(&self, fetch: &Fetch) -> Made {
        Made { dial: fetch.dial.clone(), tls: fetch.tls, caller: fetch.caller, way: self.way }
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
        self.idle.drain(..).map(|idle| idle.connection).collect()
    }

    /// The connections that were idle for too long.
    pub fn expire(&mut self, now: Instant) -> Vec<C> {
        let count = self.idle.iter().take_while(|idle| idle.until <= now).count();
        self.idle.drain(..count).map(|idle| idle.connection).collect()
    }

    /// When the next connection will have been idle for too long.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.idle.front().map(|idle| idle.until)
    }

    /// Keeps only the connections for which `holds` is true.
    pub fn retain(&mut self, mut holds: impl FnMut(&C) -> bool) {
        self.idle.retain(|idle| holds(&idle.connection));
    }

    /// Whether `holds` is true for a connection.
    pub fn any(&self, holds: impl Fn(&C) -> bool) -> bool {
        self.idle.iter().any(|idle| holds(&idle.connection))
    }

    /// The most recently used connection. `None` if the request is not repeatable: the origin may be
    /// closing the connection, and then the request must be sent again.
    pub fn take(&mut self, fetch: &Fetch, has_content: bool) -> Option<C> {
        if has_content || !fetch.method.is_idempotent() {
            return None;
        }
        let made = self.made(fetch);
        let place = self.idle.iter().rposition(|idle| idle.made == made)?;
        self.idle.remove(place).map(|idle| idle.connection)
    }

    /// Keeps a connection; returns it if there is no room, or if the route out of the mesh has changed since.
    pub fn put(&mut self, now: Instant, made: Made, connection: C) -> Option<C> {
        let each = self.idle.iter().filter(|idle| idle.made == made).count();
        if made.way != self.way || each >= IDLE_EACH_MAX || self.idle.len() >= IDLE_ALL_MAX {
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
}
