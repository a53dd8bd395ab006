//! Machines, one medium and wires, in virtual time.
//!
//! *What this is:* [`World`], the loop of the simulator. Each step performs what is due next, and everything
//! that follows from it at the same moment. *Who calls it:* the experiments beside it (`flows`, `fetches`),
//! and code that builds a world of routers and clients. *What it never does:* read a clock, draw random
//! numbers (the medium and the programs have seeds of their own), or allocate for a packet once its queues
//! have grown. *Where to start:* [`Program`], which runs on a machine; then [`World::new`],
//! [`World::attach`], [`World::run`].
//!
//! Each machine has one TCP/IP stack ([`Host`]). The first machines are the medium's stations, in its order.
//! Each further machine is connected by a wire to an earlier one, its parent: a client to its router, the origin
//! to the gateway or to the far end of its uplink. So each station is the root of a tree of wires. Packets go hop by hop along shortest paths, which change only with the links (`motion.rs`); see
//! `packets.rs`.

use std::collections::VecDeque;
use std::time::Duration;

use radio::{Links, Medium};
use wire::{Instant, TimerQueue};

use crate::losses::AboveMac;
use crate::net::{Host, Interface, Packet};
use crate::pipe::Pipe;
use link_planes::LinkPlanes;
use motion::Motion;

mod address;
mod arrivals;
pub mod contention;
mod counters;
mod draws;
mod experiment;
pub mod fetches;
mod flow_outcome;
pub mod flows;
mod link_planes;
mod motion;
mod outcome;
mod packets;
mod program;
mod routes;
#[cfg(test)]
mod tests;
mod times;
mod watch;

pub use address::{MACHINES_MAX, address, machine, outside};
pub use arrivals::Arrivals;
pub use counters::{Counters, Drops};
pub use experiment::{Fetching, HOPS_MAX, Setup, flows_of, run, world};
pub use flow_outcome::{FlowOutcome, Sending, Spread, Typing};
pub use outcome::{Fetches, Outcome, Stat, over_seeds};
pub use program::Program;
pub use routes::Routes;
pub use times::Times;
pub use watch::Tap;
use watch::Watch;

/// A station's interface on the mesh; its wires have the next numbers. A wired machine has no such interface:
/// the wire to its parent is its first, and wires to others have the next numbers.
pub const AIR: Interface = Interface(0);

/// A wire that is the same in both directions and loses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Rate in each direction.
    pub bits_per_second: u64,
    /// One-way delay.
    pub delay: Duration,
    /// Length of the queue at each end, in packets, without the one being sent.
    pub packets_max: usize,
}

impl Wire {
    /// The wire of a client to its router: 1 Gbit/s without delay, like an Ethernet cable.
    pub const LAN: Self =
        Self { bits_per_second: 1_000_000_000, delay: Duration::ZERO, packets_max: 1000 };
}

/// All machines and what connects them. `P` is the type of their programs.
#[derive(Debug)]
pub struct World<P> {
    now: Instant,
    started: bool,
    medium: Medium<Packet>,
    stations: usize,
    routes: Routes,
    machines: Vec<Machine<P>>,
    /// Two for each wire: the one from the parent, then the one to it.
    ends: Vec<End>,
    /// Due times of machines, then of wires' ends, then of link changes.
    due: TimerQueue,
    motion: Option<Box<Motion>>,
    /// Packets that have just arrived at a machine.
    arrived: VecDeque<Arrival>,
    /// Machines with a packet of their own that has just left the queue.
    relieved: Vec<usize>,
    /// Packets for other stations that a station has just received; always empty unless programs or link planes
    /// listen.
    overheard: VecDeque<Overheard>,
    listens: bool,
    planes: LinkPlanes,
    above_mac: AboveMac,
    counters: Counters,
    watch: Option<Watch>,
}

/// A machine.
#[derive(Debug)]
struct Machine<P> {
    host: Host,
    program: P,
    /// The wire to the machine's parent; `None` for a station.
    wired: Option<Wired>,
    /// Number of wires at the machine.
    wires: u16,
}

/// A packet that has just arrived at a machine.
#[derive(Debug)]
struct Arrival {
    machine: usize,
    interface: Interface,
    packet: Packet,
}

/// A packet for another station that a station has received.
#[derive(Debug)]
struct Overheard {
    machine: usize,
    /// The station that sent it.
    from: usize,
    packet: Packet,
}

/// The wire of a machine that is not a station.
#[derive(Clone, Copy, Debug)]
struct Wired {
    /// The machine at the other end, a station or one that was attached earlier.
    parent: usize,
    /// Index of the parent's end of the wire. This machine's end has the next index.
    end: usize,
}

/// One direction of a wire.
#[derive(Debug)]
struct End {
    pipe: Pipe<Packet>,
    /// Bytes of the packets that it has delivered.
    bytes: u64,
    /// The machine that it leads to.
    to: usize,
    interface: Interface,
}

impl<P: Program> World<P> {
    /// A world of stations, each with a host and a program; `seed` is the medium's.
    ///
    /// # Panics
    ///
    /// If the number of machines differs from that of stations in `links`.
    pub fn new(
        radio: radio::Config,
        links: Links,
        routes: Routes,
        seed: u64,
        machines: Vec<(Host, P)>,
    ) -> Self {
        assert_eq!(links.stations(), machines.len(), "each station is a machine");
        let links_stations = links.stations();
        let station = |(host, program)| Machine { host, program, wired: None, wires: 0 };
        Self {
            now: Instant::ZERO,
            started: false,
            stations: machines.len(),
            medium: Medium::new(radio, links, seed),
            routes,
            machines: machines.into_iter().map(station).collect(),
            ends: Vec::new(),
            due: TimerQueue::new(0),
            motion: None,
            arrived: VecDeque::new(),
            relieved: Vec::new(),
            overheard: VecDeque::new(),
            listens: false,
            planes: LinkPlanes::new(links_stations),
            above_mac: AboveMac::default(),
            counters: Counters::default(),
            watch: None,
        }
    }

    /// Adds a machine on a wire to its parent, before the world's first step; returns its index.
    ///
    /// The parent gets an interface for the wire: a station's first wire is interface 1, its second 2, and so
    /// on. On the new machine the wire is interface 1. Packets to the machine's address, and all packets that it
    /// sends, go over the wire.
    ///
    /// # Panics
    ///
    /// If there is no such parent, or the world has already made a step.
    pub fn attach(&mut self, parent: usize, wire: Wire, host: Host, program: P) -> usize {
        let pipe = || Pipe::new(wire.bits_per_second, wire.delay, wire.packets_max);
        self.attach_by(parent, [pipe(), pipe()], host, program)
    }

    /// As [`Self::attach`], by a wire of these two directions: from the parent, and to it.
    ///
    /// # Panics
    ///
    /// If there is no such parent, or the world has already made a step.
    pub fn attach_by(
        &mut self,
        parent: usize,
        wire: [Pipe<Packet>; 2],
        host: Host,
        program: P,
    ) -> usize {
        assert!(
            !self.started && parent < self.machines.len(),
            "machines hang on earlier ones from the start"
        );
        let machine = self.machines.len();
        let wires = &mut self.machines[parent].wires;
        *wires += 1;
        let wired = Wired { parent, end: self.ends.len() };
        for (pipe, (to, interface)) in wire.into_iter().zip([(machine, 1), (parent, *wires)]) {
            let interface = Interface(interface);
            self.ends.push(End { pipe, bytes: 0, to, interface });
        }
        self.machines.push(Machine { host, program, wired: Some(wired), wires: 1 });
        machine
    }

    /// From now on, shows all frames to a tap.
    pub fn watch(&mut self, tap: Box<dyn Tap>) {
        self.watch = Some(Watch::new(tap, self.medium.config()));
    }

    /// From now on, gives stations' programs the packets for others that they receive.
    pub fn listen(&mut self) {
        self.listens = true;
    }

    /// From now on, stations lose the packets that `losses` says.
    pub fn lose_above_mac(&mut self, losses: AboveMac) {
        self.above_mac = losses;
    }

    /// Performs everything that is due until `until`, and sets the time to it. Returns false if nothing will
    /// ever be due again.
    pub fn run(&mut self, until: Instant) -> bool {
        self.start();
        while self.next().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
        self.next().is_some()
    }

    /// Performs what is due next, and returns its time; `None` if nothing is due.
    pub fn step(&mut self) -> Option<Instant> {
        self.start();
        let at = self.next()?;
        self.now = at;
        self.counters.events += 1;
        // At one instant the medium comes last: transmissions that begin now see everything else first.
        match self.due.next().filter(|(due, _)| *due == at) {
            Some((_, place)) if place < self.machines.len() => self.wake(place),
            Some((_, place)) if place < self.machines.len() + self.ends.len() => {
                self.arrive_by_wire(place - self.machines.len());
            }
            Some(_) => self.move_on(),
            None => {
                self.medium.handle_timeout(at);
                self.drain_medium();
            }
        }
        self.settle();
        Some(at)
    }

    /// When the next thing is due.
    fn next(&self) -> Option<Instant> {
        let due = self.due.next().map(|(at, _)| at);
        due.into_iter().chain(self.medium.poll_timeout()).min()
    }

    /// Acts on a machine from outside its program.
    pub fn act<T>(
        &mut self,
        machine: usize,
        act: impl FnOnce(Instant, &mut Host, &mut P) -> T,
    ) -> T {
        self.start();
        let Machine { host, program, .. } = &mut self.machines[machine];
        let result = act(self.now, host, program);
        self.drain(machine);
        self.settle();
        result
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// A machine's program.
    pub fn program(&self, machine: usize) -> &P {
        &self.machines[machine].program
    }

    /// A machine's TCP/IP stack, for its getters.
    pub fn host(&self, machine: usize) -> &Host {
        &self.machines[machine].host
    }

    /// All machines' programs, in order.
    pub fn programs(&self) -> impl Iterator<Item = &P> {
        self.machines.iter().map(|machine| &machine.program)
    }

    /// The same, to change them before the world begins: later, what a program does then would go unnoticed.
    pub fn programs_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.machines.iter_mut().map(|machine| &mut machine.program)
    }

    /// The current routes between stations.
    pub fn routes(&mut self) -> &mut Routes {
        &mut self.routes
    }

    /// The medium, for its counters.
    pub fn medium(&self) -> &Medium<Packet> {
        &self.medium
    }

    /// Bytes that a wired machine's wire has delivered to its parent, and to the machine.
    pub fn carried(&self, machine: usize) -> [u64; 2] {
        let carried = self.machines[machine]
            .wired
            .map(|Wired { end, .. }| [self.ends[end + 1].bytes, self.ends[end].bytes]);
        carried.unwrap_or_default()
    }

    /// Packets that a wired machine's wire has lost on the way to its parent, and to the machine.
    pub fn lost(&self, machine: usize) -> [u64; 2] {
        let lost = self.machines[machine]
            .wired
            .map(|Wired { end, .. }| [end + 1, end].map(|it| self.ends[it].pipe.lost()));
        lost.unwrap_or_default()
    }

    /// The world's counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of packets dropped at a relay because their time to live was used up.
    pub fn expired(&self) -> u64 {
        self.machines.iter().map(|machine| machine.host.expired()).sum()
    }

    fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let moving = usize::from(self.motion.is_some());
        self.due = TimerQueue::new(self.machines.len() + self.ends.len() + moving);
        self.plan_motion();
        for machine in 0..self.machines.len() {
            let Machine { host, program, .. } = &mut self.machines[machine];
            program.start(self.now, host);
            self.drain(machine);
            self.settle();
        }
    }

    /// Handles a machine's timers.
    fn wake(&mut self, machine: usize) {
        let now = self.now;
        let Machine { host, program, .. } = &mut self.machines[machine];
        if host.poll_timeout().is_some_and(|at| at <= now) {
            host.handle_timeout(now);
        }
        if program.poll_timeout().is_some_and(|at| at <= now) {
            program.handle_timeout(now, host);
        }
        self.wake_link_plane(machine);
        self.drain(machine);
    }

    /// Notes when a machine, which is quiescent, is due next.
    fn set_timer(&mut self, machine: usize) {
        let Machine { host, program, .. } = &self.machines[machine];
        let timers = [host.poll_timeout(), program.poll_timeout(), self.planes.due(machine)];
        self.due.set(machine, timers.into_iter().flatten().min());
    }
}
