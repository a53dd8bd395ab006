//! Neighbouring interlay nodes: how they are found, probed and forgotten (WINE, sections 2.2 and 2.3).
//!
//! The paper finds a neighbour by the header of packets that come from it. Where traffic goes one way only, the router
//! upstream gets no such packet. So probes name a destination whose packets came with the upstream router's header. It
//! believes that only of destinations that it sends packets to, through the neighbour from which the probe came.

use std::hash::BuildHasher;
use std::net::IpAddr;

use wire::Instant;

use super::neighbour::Neighbour;
use super::{Key, Output, Pace, Seed, Timer};
use crate::{Header, Interlay, Message, Packet, Probe};

impl<P: Packet> Pace<P> {
    /// A packet of traffic has come that passed interlay node `node` last.
    pub(super) fn learn(&mut self, now: Instant, header: &Header, node: IpAddr, from: IpAddr) {
        let Some(key) = self.meet(now, node) else { return };
        if let Some(neighbour) = self.neighbours.get_mut(key) {
            neighbour.recent.note(now, header.to.ip());
        }
        let source = header.from.ip();
        if source != self.me && !self.destinations.learn(now, source, key, from) {
            self.counters.claims_refused += 1;
        }
    }

    /// Interlay node `node` says that packets to a destination come through it.
    pub(super) fn claim(&mut self, now: Instant, node: IpAddr, to: IpAddr, from: IpAddr) {
        let known = self.neighbours.find(&node);
        if !self.destinations.may_claim(now, to, from, known) {
            self.counters.claims_refused += 1;
            return;
        }
        let Some(key) = self.meet(now, node) else { return };
        let config = &self.config;
        let neighbour = self.neighbours.get_mut(key);
        if neighbour.is_some_and(|it| it.claim(now, config, to))
            && self.destinations.learn(now, to, key, from)
        {
            self.counters.claims_taken += 1;
        } else {
            self.counters.claims_refused += 1;
        }
    }

    /// What a header says of packets under way, in both directions.
    pub(super) fn heed(&mut self, now: Instant, header: &Header, interlay: Interlay) {
        let Some(follow) = self.config.follow else { return };
        let Interlay { node, number, left } = interlay;
        let Some(key) = self.neighbours.find(&node) else { return };
        let is_waiting = self.queues.get(key.slot()).is_some_and(|queue| !queue.is_empty());
        let Some(neighbour) = self.neighbours.get_mut(key) else { return };
        if let Some(left) = left {
            neighbour.follow(now, &follow, left, is_waiting);
        }
        if let Some(number) = number
            && header.to.ip() == self.me
        {
            self.has_left(now, node, number);
        }
    }

    /// Answers a probe, with no more bytes than it had.
    pub(super) fn answer(&mut self, header: &Header, probe: &Probe) {
        let bytes = probe.bytes.min(u16::try_from(header.bytes).unwrap_or(u16::MAX));
        let Probe { number, .. } = *probe;
        let echo = Probe { from: self.me, number, towards: None, hops: header.hops(), bytes };
        self.outputs.push_back(Output::Originate { to: probe.from, message: Message::Echo(echo) });
    }

    /// An answer has come: the rate follows from our own time of sending.
    pub(super) fn measure(&mut self, now: Instant, header: &Header, echo: &Probe) {
        let config = &self.config;
        let key = self.neighbours.find(&echo.from).filter(|_| header.from.ip() == echo.from);
        let neighbour = key.and_then(|key| self.neighbours.get_mut(key));
        if neighbour.is_some_and(|it| it.answered(now, config, echo.number, header.hops())) {
            self.counters.probes_answered += 1;
        } else {
            self.counters.probes_late += 1;
        }
    }

    /// A probe is due.
    pub(super) fn send_probe(&mut self, now: Instant, key: Key) {
        self.probes = self.probes.wrapping_add(1);
        // Strangers cannot guess the number, so that they cannot answer.
        let number = Seed(self.config.seed).hash_one(self.probes) as u32;
        let Some(to) = self.neighbours.name(key) else { return };
        let Some(neighbour) = self.neighbours.get_mut(key) else { return };
        if !neighbour.probe(&self.config, number) {
            self.counters.neighbours_silent += 1;
            self.set(Timer::Probe, key, Some(now + self.config.silence));
            return self.flush(key);
        }
        let towards = neighbour.recent.name(now, self.config.activity_timeout);
        let bytes = self.config.probe_bytes;
        let probe = Probe { from: self.me, number, towards, hops: 0, bytes };
        self.counters.probes_sent += 1;
        self.outputs.push_back(Output::Originate { to, message: Message::Probe(probe) });
        self.set(Timer::Probe, key, Some(now + self.config.probe_interval));
    }

    /// The MAC has been given a probe.
    pub(super) fn probe_left(&mut self, now: Instant, to: IpAddr, number: u32) {
        let key = self.neighbours.find(&to);
        if let Some(neighbour) = key.and_then(|key| self.neighbours.get_mut(key)) {
            neighbour.probe_left(now, number);
        }
    }

    /// Forgets a neighbour whose traffic has ceased.
    pub(super) fn look_after(&mut self, now: Instant, key: Key) {
        let Some(neighbour) = self.neighbours.get(key) else { return };
        let until = neighbour.active_at + self.config.activity_timeout;
        if now < until {
            return self.set(Timer::Idle, key, Some(until));
        }
        self.counters.neighbours_ended += 1;
        self.forget(key);
    }

    /// The row of an interlay node with traffic, old or new; `None`: it is new, and all rows are those of nodes that
    /// answer probes.
    fn meet(&mut self, now: Instant, node: IpAddr) -> Option<Key> {
        if let Some(key) = self.neighbours.find(&node) {
            self.neighbours.touch(key);
            if let Some(neighbour) = self.neighbours.get_mut(key) {
                neighbour.active_at = now;
            }
            return Some(key);
        }
        if self.neighbours.is_full() && !self.evict() {
            self.counters.neighbours_refused += 1;
            return None;
        }
        let key = self.neighbours.insert(node, Neighbour::new(now));
        self.counters.neighbours_found += 1;
        self.set(Timer::Idle, key, Some(now + self.config.activity_timeout));
        match self.timer(Timer::Probe, key) {
            None => self.send_probe(now, key),
            // The slot's timer is that of its last neighbour, which may have been silent.
            Some(at) => {
                let soon = at.min(now + self.config.probe_interval);
                self.set(Timer::Probe, key, Some(soon));
            }
        }
        Some(key)
    }

    /// Forgets the oldest neighbour that has answered no probe. Names that nobody answers to can be invented; they
    /// must not drive out those that pace.
    fn evict(&mut self) -> bool {
        let unpaced = self.neighbours.by_age().find(|(_, it)| !it.is_paced());
        let Some(key) = unpaced.map(|(key, _)| key) else { return false };
        self.counters.neighbours_evicted += 1;
        self.forget(key);
        true
    }

    fn forget(&mut self, key: Key) {
        self.flush(key);
        self.set(Timer::Idle, key, None);
        self.neighbours.remove(key);
    }
}
