//! A packet's way: into an interlay node's queue, at its time into the active queue, and to the MAC.

use std::net::IpAddr;

use wire::Instant;

use super::queue::{Queue, Waiting};
use super::thin::{Place, Step};
use super::{Output, Pace, Timer};
use crate::table::Key;
use crate::{Frame, Header, Interlay, Kind, Message, Packet};

/// A packet that must not wait behind others.
#[derive(Debug)]
pub(super) struct Urgent<P> {
    packet: P,
    next: IpAddr,
    /// To whom, and which number, if it is a probe of this router.
    probe: Option<(IpAddr, u32)>,
}

impl<P: Packet> Pace<P> {
    pub(super) fn urgent(&mut self, header: &Header, packet: P, next: IpAddr) {
        if self.control.len() >= self.config.active_packets_max {
            self.counters.dropped_active += 1;
            return self.outputs.push_back(Output::Dropped { packet, next });
        }
        let probe = match header.kind {
            Kind::Message(Message::Probe(probe)) if probe.from == self.me => {
                Some((header.to.ip(), probe.number))
            }
            _ => None,
        };
        self.control.push_back(Urgent { packet, next, probe });
    }

    /// A packet of traffic is to go. An ACK may wait before.
    pub(super) fn offer(&mut self, now: Instant, packet: P, next: IpAddr) {
        for (packet, next) in self.holding.offer(now, (packet, next)).into_iter().flatten() {
            self.data(now, &packet.header(), packet, next);
        }
    }

    /// A packet for the next hop itself is to go. Behind that hop there is nothing that it could disturb.
    pub(super) fn direct(&mut self, now: Instant, header: &Header, packet: P, next: IpAddr) {
        let (neighbour, destination, flow) = (None, None, None);
        let bytes = header.bytes;
        self.admit(Waiting { packet, next, bytes, since: now, neighbour, destination, flow });
    }

    pub(super) fn data(&mut self, now: Instant, header: &Header, packet: P, next: IpAddr) {
        let (destination, neighbour) = self.destinations.route(now, header.to.ip(), next);
        let step = if self.config.thin_acks { self.flows.step(header) } else { Step::Append(None) };
        let flow = match step {
            Step::Append(flow) => flow,
            Step::Replace(place) => return self.replace(now, place, header, packet, next),
        };
        let is_paced = |key: &Key| self.neighbours.get(*key).is_some_and(|it| it.is_paced());
        let neighbour = neighbour.filter(is_paced);
        let bytes = header.bytes;
        let waiting = Waiting { packet, next, bytes, since: now, neighbour, destination, flow };
        let place = match neighbour {
            Some(key) => self.hold(key, waiting),
            None => self.admit(waiting),
        };
        if let (Some(place), Some(flow), Some(tcp)) = (place, flow, header.tcp()) {
            self.flows.waits(flow, place, tcp);
        }
        // The place is told to the flow first: a release moves it.
        if let Some(key) = neighbour {
            self.release(now, key);
        }
    }

    /// Gives the MAC what it can take: control first.
    pub(super) fn pump(&mut self, now: Instant) {
        while self.in_mac < self.config.mac_frames_max {
            let (packet, next, neighbour) = if let Some(urgent) = self.control.pop_front() {
                if let Some((to, number)) = urgent.probe {
                    self.probe_left(now, to, number);
                }
                let header = urgent.packet.header();
                (urgent.packet, urgent.next, self.neighbours.find(&header.to.ip()))
            } else if let Some((at, waiting)) = self.active.pop() {
                if let Some(flow) = waiting.flow {
                    self.flows.moved(flow, Place { queue: None, at }, None);
                }
                if let Some(key) = waiting.neighbour {
                    self.sent(now, key);
                }
                (waiting.packet, waiting.next, waiting.neighbour)
            } else {
                return;
            };
            self.in_mac += 1;
            self.mac_at = now;
            let frame = Frame { interlay: Some(self.label(now, &packet, neighbour)), packet };
            self.outputs.push_back(Output::Transmit { frame, next });
        }
    }

    /// The header of a packet that leaves for an interlay node.
    fn label(&mut self, now: Instant, packet: &P, to: Option<Key>) -> Interlay {
        let mut label = Interlay::from(self.me);
        if self.config.follow.is_some() {
            if let Some(Interlay { node, number: Some(number), .. }) = packet.interlay() {
                self.has_left(now, node, number);
            }
            if let Some(neighbour) = to.and_then(|key| self.neighbours.get_mut(key)) {
                let is_data = !matches!(packet.header().kind, Kind::Message(_) | Kind::Control);
                label.number = is_data.then(|| neighbour.window.next());
                label.left = neighbour.window.tell(now);
            }
        }
        label
    }

    /// A packet of an interlay node is no longer here. It is told so by the traffic that goes back, or else by a message.
    pub(super) fn has_left(&mut self, now: Instant, node: IpAddr, number: u8) {
        let Some(follow) = &self.config.follow else { return };
        let key = self.neighbours.find(&node);
        let Some(neighbour) = key.and_then(|key| self.neighbours.get_mut(key)) else { return };
        if now.since(neighbour.window.has_left(number)) >= follow.tell_after {
            neighbour.window.tell(now);
            self.outputs.push_back(Output::Originate { to: node, message: Message::Left });
        }
    }

    /// Lets the next quantum go into the active queue, if the path is free. The active queue never has more than one
    /// quantum for a neighbour (section 2.2).
    pub(super) fn release(&mut self, now: Instant, key: Key) {
        let Some(queue) = self.queues.get_mut(key.slot()) else { return };
        let Some(neighbour) = self.neighbours.get_mut(key) else { return };
        if neighbour.in_active > 0 || queue.is_empty() {
            return;
        }
        if now < neighbour.free_at {
            let at = neighbour.free_at;
            return self.set(Timer::Release, key, Some(at));
        }
        let mut quantum = 0_u32;
        while let Some(bytes) = queue.first_bytes() {
            if quantum > 0 && quantum.saturating_add(bytes) > self.config.quantum_bytes {
                break;
            }
            let Some((at, waiting)) = queue.pop() else { break };
            quantum = quantum.saturating_add(bytes.max(1));
            neighbour.in_active += 1;
            if now > waiting.since {
                self.counters.held += 1;
                let wait = now.since(waiting.since);
                self.counters.held_max = self.counters.held_max.max(wait);
            }
            if let Some(destination) = waiting.destination {
                self.destinations.leaves(destination);
            }
            let flow = waiting.flow;
            let to = Place { queue: None, at: self.active.push(waiting) };
            if let Some(flow) = flow {
                self.flows.moved(flow, Place { queue: Some(key.slot()), at }, Some(to));
            }
        }
        neighbour.quantum_bytes = quantum;
    }

    /// Moves all that waits for a neighbour into the active queue, because it is no longer paced.
    pub(super) fn flush(&mut self, key: Key) {
        self.set(Timer::Release, key, None);
        let Some(queue) = self.queues.get_mut(key.slot()) else { return };
        while let Some((at, waiting)) = queue.pop() {
            if let Some(destination) = waiting.destination {
                self.destinations.leaves(destination);
            }
            let flow = waiting.flow;
            let waiting = Waiting { neighbour: None, ..waiting };
            let to = Place { queue: None, at: self.active.push(waiting) };
            if let Some(flow) = flow {
                self.flows.moved(flow, Place { queue: Some(key.slot()), at }, Some(to));
            }
        }
    }

    /// Adds a packet to a neighbour's queue, if there is room.
    fn hold(&mut self, key: Key, waiting: Waiting<P>) -> Option<Place> {
        while self.queues.len() <= key.slot() {
            self.queues.push(Queue::new());
        }
        let queue = &mut self.queues[key.slot()];
        if queue.len() >= self.config.queue_packets_max {
            self.counters.dropped += 1;
            let Waiting { packet, next, .. } = waiting;
            self.outputs.push_back(Output::Dropped { packet, next });
            return None;
        }
        if let Some(destination) = waiting.destination {
            self.destinations.waits(destination, key);
        }
        Some(Place { queue: Some(key.slot()), at: queue.push(waiting) })
    }

    /// Adds a packet that is not paced to the active queue, if there is room.
    fn admit(&mut self, waiting: Waiting<P>) -> Option<Place> {
        if self.active.len() >= self.config.active_packets_max {
            self.counters.dropped_active += 1;
            let Waiting { packet, next, .. } = waiting;
            self.outputs.push_back(Output::Dropped { packet, next });
            return None;
        }
        Some(Place { queue: None, at: self.active.push(waiting) })
    }

    /// A newer ACK takes an older one's place.
    fn replace(&mut self, now: Instant, place: Place, header: &Header, packet: P, next: IpAddr) {
        let queue = match place.queue {
            None => Some(&mut self.active),
            Some(slot) => self.queues.get_mut(slot),
        };
        if let Some(waiting) = queue.and_then(|queue| queue.at(place.at)) {
            (waiting.packet, waiting.next) = (packet, next);
            (waiting.bytes, waiting.since) = (header.bytes, now);
            self.counters.acks_thinned += 1;
        }
    }

    /// The MAC has been given a packet for a neighbour. With the last of a quantum the path's time begins.
    fn sent(&mut self, now: Instant, key: Key) {
        let Some(neighbour) = self.neighbours.get_mut(key) else { return };
        self.counters.paced += 1;
        neighbour.in_active = neighbour.in_active.saturating_sub(1);
        if neighbour.in_active == 0 {
            neighbour.free_at = now + neighbour.gap(&self.config, neighbour.quantum_bytes);
            self.release(now, key);
        }
    }
}
