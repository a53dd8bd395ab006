//! How the world moves a packet: out of a host, over the air or a wire, hop by hop, into a host.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use radio::{Destination, Input, Outcome, Output, Station};

use super::{AIR, End, Machine, Program, Wired, World, machine};
use crate::net::{Body, Packet};

impl<P: Program> World<P> {
    /// Delivers packets that have arrived, and those that arrive at once because of them.
    pub(super) fn settle(&mut self) {
        loop {
            while let Some((machine, interface, packet)) = self.arrived.pop_front() {
                self.counters.events += 1;
                let host = &mut self.machines[machine].host;
                if let Some(packet) = host.handle_packet(self.now, interface, packet) {
                    self.forward(machine, packet);
                } else {
                    self.drain(machine);
                }
            }
            // Overheard packets come after all packets that are for a machine.
            let machine = if let Some((machine, packet)) = self.overheard.pop_front() {
                let Machine { host, program, .. } = &mut self.machines[machine];
                program.overhear(self.now, host, &packet);
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
        let Machine { host, program, .. } = &self.machines[machine];
        // Only now is the machine quiescent, so its timers are final.
        let due = host.poll_timeout().into_iter().chain(program.poll_timeout()).min();
        self.due.set(machine, due);
    }

    /// Forwards a packet in transit. This is the place to intercept, delay, insert or drop packets below IP.
    fn forward(&mut self, machine: usize, packet: Packet) {
        self.send(machine, packet);
    }

    /// Sends a packet of machine `from`.
    fn send(&mut self, from: usize, packet: Packet) {
        if packet.to.ip().is_broadcast() {
            return self.broadcast(from, packet);
        }
        let to = machine(*packet.to.ip()).filter(|it| *it < self.machines.len());
        let Some(to) = to else {
            self.counters.drops.no_route += 1;
            return;
        };
        if from == to {
            return self.arrived.push_back((to, AIR, packet));
        }
        // Down the tree if `from` is on the way from `to` to its station, else up, else over the air.
        let mut station = to;
        while let Some(Wired { parent, end }) = self.machines[station].wired {
            if parent == from {
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
        self.transmit(from, Destination::Station(Station(next as u16)), packet);
    }

    fn transmit(&mut self, from: usize, to: Destination, packet: Packet) {
        self.machines[from].host.enter_queue(&packet);
        let (from, bytes) = (Station(from as u16), packet.bytes());
        self.medium.handle_input(self.now, Input::Send { from, to, bytes, payload: packet });
        self.drain_medium();
    }

    /// Takes the packets that a wire has delivered.
    pub(super) fn arrive_by_wire(&mut self, end: usize) {
        let End { pipe, bytes, to, interface } = &mut self.ends[end];
        while let Some((_, packet)) = pipe.receive(self.now) {
            *bytes += u64::from(packet.bytes());
            self.arrived.push_back((*to, *interface, packet));
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
                        let at = Destination::Station(heard.by);
                        let machine = usize::from(heard.by.0);
                        if frame.to == at && self.above_mac.loses(machine) {
                            self.counters.drops.above_mac += 1;
                            continue;
                        }
                        if frame.to == at || frame.to == Destination::Broadcast {
                            self.arrived.push_back((machine, AIR, payload.clone()));
                        } else if self.listens {
                            self.overheard.push_back((machine, payload.clone()));
                        }
                    }
                }
                Output::HeardControl { frame, by } => {
                    if let Some(watch) = &mut self.watch {
                        watch.control(&frame, by);
                    }
                }
                Output::Done { from, payload, outcome, tries, .. } => {
                    // A packet that found the queue full was never on the air.
                    let is_datagram = tries > 0 && matches!(payload.body, Body::Udp(_));
                    self.counters.packets_sent += u64::from(tries > 0);
                    self.counters.datagrams_sent += u64::from(is_datagram);
                    let sender = usize::from(from.0);
                    // The connection may have held back small segments behind this packet.
                    if self.machines[sender].host.leave_queue(&payload) {
                        self.relieved.push(sender);
                    }
                    let drops = &mut self.counters.drops;
                    match outcome {
                        Outcome::Acked | Outcome::Broadcast => {}
                        Outcome::GivenUp => drops.retries += 1,
                        Outcome::QueueFull if entered(&self.machines, &payload) == from => {
                            drops.queue_source += 1;
                        }
                        Outcome::QueueFull => drops.queue_relays += 1,
                    }
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
