//! How the world moves a packet: out of a host, over the air or a wire, hop by hop, into a host.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use radio::{Destination, Input, Outcome, Output, Station};

use super::{AIR, Arrival, End, Machine, Overheard, Program, Wired, World, machine};
use crate::net::Packet;

impl<P: Program> World<P> {
    /// Delivers packets that have arrived, and those that arrive at once because of them.
    pub(super) fn settle(&mut self) {
        loop {
            while let Some(Arrival { machine, interface, packet }) = self.arrived.pop_front() {
                self.counters.events += 1;
                let host = &mut self.machines[machine].host;
                if let Some(packet) = host.handle_packet(self.now, interface, packet) {
                    self.send(machine, packet);
                } else {
                    self.drain(machine);
                }
            }
            if self.settle_link_plane() {
                continue;
            }
            // Overheard packets come after all packets that are for a machine.
            let machine =
                if let Some(Overheard { machine, from, packet }) = self.overheard.pop_front() {
                    self.overhear_below(machine, from, &packet);
                    let Machine { host, program, .. } = &mut self.machines[machine];
                    if self.listens {
                        program.overhear(self.now, host, &packet);
                    }
                    machine
                } else if let Some(machine) = self.relieved.pop() {
                    machine
                } else {
                    break;
                };
            self.drain(machine);
        }
    }

    /// Gives a machine's program its host's events, sends its host's packets, and asks both for their next
    /// timeout.
    pub(super) fn drain(&mut self, machine: usize) {
        let now = self.now;
        loop {
            let Machine { host, program, .. } = &mut self.machines[machine];
            while let Some(event) = host.poll_event() {
                program.handle_event(now, host, event);
            }
            let Some(packet) = host.poll_packet() else { break };
            self.send(machine, packet);
        }
        self.set_timer(machine);
    }

    /// Sends a packet of machine `from`, its own or one that it forwards.
    pub(super) fn send(&mut self, from: usize, packet: Packet) {
        if packet.to.ip().is_broadcast() {
            return self.broadcast(from, packet);
        }
        let to = machine(*packet.to.ip()).filter(|it| *it < self.machines.len());
        let Some(to) = to else {
            self.counters.drops.no_route += 1;
            return;
        };
        if from == to {
            return self.arrived.push_back(Arrival { machine: to, interface: AIR, packet });
        }
        // Down the tree if `from` is on the way from `to` to its station, else up, else over the air.
        let mut station = to;
        while let Some(Wired { parent, end }) = self.machines[station].wired {
            if parent == from {
                let packet = self.leave_link_plane(from, packet);
                return self.send_by_wire(end, packet);
            }
            station = parent;
        }
        match self.machines[from].wired {
            Some(Wired { end, .. }) => self.send_by_wire(end + 1, packet),
            None => self.send_by_air(from, station, packet),
        }
    }

    fn send_by_wire(&mut self, end: usize, packet: Packet) {
        let pipe = &mut self.ends[end].pipe;
        if pipe.send(self.now, packet.bytes(), packet).is_err() {
            self.counters.drops.wires += 1;
        }
        self.due.set(self.machines.len() + end, pipe.poll_timeout());
    }

    /// Sends a packet to all that hear a station, or to the other end of a machine's wire.
    fn broadcast(&mut self, from: usize, packet: Packet) {
        match self.machines[from].wired {
            Some(Wired { end, .. }) => self.send_by_wire(end + 1, packet),
            None => self.transmit(from, Destination::Broadcast, packet),
        }
    }

    /// Sends a packet one hop towards a station.
    fn send_by_air(&mut self, from: usize, to: usize, packet: Packet) {
        let Some(next) = self.routes.next_hop(from, to) else {
            self.counters.drops.no_route += 1;
            return;
        };
        if self.planes.has(from) {
            let other = self.routes.other_hop(from, to);
            self.pass_link_plane(from, next, other, packet);
        } else {
            self.transmit(from, Destination::Station(Station(next as u16)), packet);
        }
    }

    /// Gives a packet to a station's MAC.
    pub(super) fn transmit(&mut self, from: usize, to: Destination, packet: Packet) {
        self.machines[from].host.enter_queue(&packet);
        let shim = if packet.interlay.is_some() { link::SHIM_BYTES } else { 0 };
        let (from, bytes) = (Station(from as u16), packet.bytes() + shim);
        self.medium.handle_input(self.now, Input::Send { from, to, bytes, payload: packet });
        self.drain_medium();
    }

    /// Takes the packets that a wire has delivered.
    pub(super) fn arrive_by_wire(&mut self, end: usize) {
        let End { pipe, bytes, to, interface } = &mut self.ends[end];
        while let Some((_, packet)) = pipe.receive(self.now) {
            *bytes += u64::from(packet.bytes());
            self.arrived.push_back(Arrival { machine: *to, interface: *interface, packet });
        }
        self.due.set(self.machines.len() + end, pipe.poll_timeout());
    }

    /// Takes the medium's outputs: received frames, and the fate of sent packets.
    pub(super) fn drain_medium(&mut self) {
        while let Some(output) = self.medium.poll_output() {
            self.counters.events += 1;
            match output {
                Output::Heard { frame, payload, by } => {
                    if let Some(watch) = &mut self.watch {
                        watch.data(&frame, payload, by);
                    }
                    // A retransmission whose acknowledgement was lost is received again, but delivered
                    // once.
                    for heard in by.iter().filter(|it| it.is_new) {
                        let machine = usize::from(heard.by.0);
                        let from = usize::from(frame.from.0);
                        let has_plane = self.planes.has(machine);
                        let is_for_it = frame.to == Destination::Station(heard.by);
                        if is_for_it && self.above_mac.loses(machine) {
                            self.counters.drops.above_mac += 1;
                            continue;
                        }
                        if is_for_it && has_plane {
                            self.planes.received(machine, from, payload.clone());
                        } else if is_for_it || frame.to == Destination::Broadcast {
                            let packet = payload.clone();
                            self.arrived.push_back(Arrival { machine, interface: AIR, packet });
                        } else if self.listens || has_plane {
                            let packet = payload.clone();
                            self.overheard.push_back(Overheard { machine, from, packet });
                        }
                    }
                }
                Output::HeardControl { frame, by } => {
                    if let Some(watch) = &mut self.watch {
                        watch.control(&frame, by);
                    }
                }
                Output::Done { from, to, payload, outcome, tries, .. } => {
                    let sender = usize::from(from.0);
                    self.counters.count(&payload, tries);
                    // The connection may have held back small segments behind this packet.
                    if self.machines[sender].host.leave_queue(&payload) {
                        self.relieved.push(sender);
                    }
                    let is_source = || entered(&self.machines, &payload) == from;
                    match outcome {
                        Outcome::Acked | Outcome::Broadcast => {}
                        Outcome::GivenUp => self.counters.drops.retries += 1,
                        Outcome::QueueFull if is_source() => self.counters.drops.queue_source += 1,
                        Outcome::QueueFull => self.counters.drops.queue_relays += 1,
                    }
                    self.planes.finished(sender, to, payload, outcome, tries);
                }
            }
        }
    }
}

/// The first station on a packet's route.
fn entered<P>(machines: &[Machine<P>], packet: &Packet) -> Station {
    let mut at = machine(*packet.from.ip()).unwrap_or_default();
    while let Some(wired) = machines.get(at).and_then(|it| it.wired) {
        at = wired.parent;
    }
    Station(at as u16)
}
