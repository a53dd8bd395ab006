//! Which interlay node leads to a destination, as traffic and claims tell (WINE, section 2.3).
//!
//! The paper assumes symmetric paths. So packets to a host go through the interlay node that packets from it passed
//! last. What is learned holds only for packets that leave through the neighbour from which it came: a node off the
//! way cannot put itself on it.

use std::net::IpAddr;
use std::time::Duration;

use wire::Instant;

use crate::table::{Key, Table};

/// How many old rows are tried before a new destination is refused: those that have packets waiting stay.
const TRIES: usize = 8;

/// The destinations of packets.
#[derive(Debug)]
pub(super) struct Destinations {
    rows: Table<IpAddr, Destination>,
    timeout: Duration,
    pub(super) evicted: u64,
}

#[derive(Debug, Default)]
struct Destination {
    learned: Option<Learned>,
    /// The neighbour that the last packet was sent to, and when.
    route: Option<(IpAddr, Instant)>,
    /// How many packets wait in the queue of an interlay node, and which: until they have left, later ones follow
    /// them, so that they cannot overtake.
    waiting: u32,
    queue: Option<Key>,
}

#[derive(Debug)]
struct Learned {
    neighbour: Key,
    /// The neighbour at the MAC from which it was learned.
    via: IpAddr,
    at: Instant,
}

impl Destinations {
    /// None yet. What was learned holds for this time.
    pub(super) fn new(rows_max: usize, timeout: Duration, seed: u64) -> Self {
        Self { rows: Table::new(rows_max, seed), timeout, evicted: 0 }
    }

    /// A packet goes there through this neighbour at the MAC: its row, and the interlay node that it goes to, if one is
    /// known.
    pub(super) fn route(
        &mut self,
        now: Instant,
        ip: IpAddr,
        next: IpAddr,
    ) -> (Option<Key>, Option<Key>) {
        let Some(key) = self.row(ip) else { return (None, None) };
        let timeout = self.timeout;
        let Some(row) = self.rows.get_mut(key) else { return (None, None) };
        row.route = Some((next, now));
        if row.waiting > 0 {
            return (Some(key), row.queue);
        }
        let learned = row.learned.as_ref();
        let learned = learned.filter(|it| it.via == next && now.since(it.at) < timeout);
        (Some(key), learned.map(|it| it.neighbour))
    }

    /// A packet from there has come over `via`, and had passed `neighbour` last. `false`: packets to there go
    /// elsewhere.
    pub(super) fn learn(&mut self, now: Instant, ip: IpAddr, neighbour: Key, via: IpAddr) -> bool {
        let Some(key) = self.row(ip) else { return false };
        let timeout = self.timeout;
        let Some(row) = self.rows.get_mut(key) else { return false };
        if row.route.is_some_and(|(next, at)| next != via && now.since(at) < timeout) {
            return false;
        }
        row.learned = Some(Learned { neighbour, via, at: now });
        true
    }

    /// Whether a claim may be believed: packets go there now, through the neighbour from which the claim came, and no
    /// other interlay node is known there.
    pub(super) fn may_claim(
        &self,
        now: Instant,
        ip: IpAddr,
        via: IpAddr,
        neighbour: Option<Key>,
    ) -> bool {
        let Some(row) = self.rows.find(&ip).and_then(|key| self.rows.get(key)) else {
            return false;
        };
        let is_fresh = |at: Instant| now.since(at) < self.timeout;
        let is_way = row.route.is_some_and(|(next, at)| next == via && is_fresh(at));
        let other = row.learned.as_ref().filter(|it| is_fresh(it.at) && it.via == via);
        is_way && other.is_none_or(|it| Some(it.neighbour) == neighbour)
    }

    /// A packet there waits in an interlay node's queue.
    pub(super) fn waits(&mut self, destination: Key, queue: Key) {
        if let Some(row) = self.rows.get_mut(destination) {
            row.waiting += 1;
            row.queue = Some(queue);
        }
    }

    /// It no longer does.
    pub(super) fn leaves(&mut self, destination: Key) {
        if let Some(row) = self.rows.get_mut(destination) {
            row.waiting = row.waiting.saturating_sub(1);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row of a destination, perhaps in the place of an old one.
    fn row(&mut self, ip: IpAddr) -> Option<Key> {
        if let Some(key) = self.rows.find(&ip) {
            self.rows.touch(key);
            return Some(key);
        }
        for _ in 0..TRIES {
            let Some(oldest) = self.rows.oldest().filter(|_| self.rows.is_full()) else { break };
            if self.rows.get(oldest).is_some_and(|row| row.waiting > 0) {
                self.rows.touch(oldest);
            } else {
                self.rows.remove(oldest);
                self.evicted += 1;
            }
        }
        (!self.rows.is_full()).then(|| self.rows.insert(ip, Destination::default()))
    }
}
