//! Many machines, one medium and some wires, in virtual time.
//!
//! *What this is:* [`World`], the loop of the simulator: what is due next happens, at its time, and
//! then all that follows from it at the same time. *Who calls it:* the experiments beside it
//! (`flows`, `fetches`) and whoever builds a world of routers and clients. *What it never does:* read
//! a clock, draw by chance (the medium and the programs have seeds of their own), or allocate for a
//! packet once its queues have grown. *Where to start:* [`Program`], what runs on a machine; then
//! [`World::new`], [`World::attach`], [`World::run`].
//!
//! Each machine has one TCP/IP stack ([`Host`]). The first machines are the medium's stations, in its
//! order; others hang on one of them by a wire: a client on its router, the origin on the gateway.
//! Packets go hop by hop along shortest paths, which stay as they are unless links change (`motion.rs`);
//! see `packets.rs`.

use std::collections::VecDeque;
use std::time::Duration;

use radio::{Due, Links, Medium};
use wire::Instant;

use crate::net::{Host, Interface, Packet};
use crate::pipe::Pipe;
use motion::Motion;

mod address;
mod arrivals;
pub mod contention;
mod counters;
mod experiment;
pub mod fetches;
pub mod flows;
mod motion;
mod outcome;
mod packets;
mod program;
mod routes;
#[cfg(test)]
mod tests;
mod times;
mod watch;

pub use address::{MACHINES_MAX, address, machine};
pub use arrivals::Arrivals;
pub use counters::{Counters, Drops};
pub use experiment::{Fetching, HOPS_MAX, Setup, flows_of, run, world};
pub use outcome::{Fetches, Outcome, Stat, over_seeds};
pub use program::Program;
pub use routes::Routes;
pub use times::Times;
pub use watch::Tap;
use watch::Watch;

/// A station's interface on the mesh; its wires are numbered from the next.
pub const AIR: Interface = Interface(0);

/// Both directions of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Rate each way.
    pub bits_per_second: u64,
    /// Delay one way.
    pub delay: Duration,
    /// Packets that may wait at an end while another is being sent.
    pub packets_max: usize,
}

impl Wire {
    /// Of a client to its router: 1 Gbit/s without delay, like the cable of an office.
    pub const LAN: Self =
        Self { bits_per_second: 1_000_000_000, delay: Duration::ZERO, packets_max: 1000 };
}

/// All machines and what joins them. `P` is what runs on them.
#[derive(Debug)]
pub struct World<P> {
    now: Instant,
    started: bool,
    medium: Medium<Packet>,
    stations: usize,
    routes: Routes,
    machines: Vec<Machine<P>>,
    /// Two for each wire: from the station, and to it.
    ends: Vec<End>,
    /// Of machines first, then of wires' ends, then of what changes links.
    due: Due,
    motion: Option<Box<Motion>>,
    /// Packets that have just reached a machine.
    arrived: VecDeque<(usize, Interface, Packet)>,
    /// Machines one of whose own packets has just left their queue.
    relieved: Vec<usize>,
    /// Packets that a station has just heard and that are for others; none unless somebody listens.
    overheard: VecDeque<(usize, Packet)>,
    listens: bool,
    counters: Counters,
    watch: Option<Watch>,
}

/// A machine.
#[derive(Debug)]
struct Machine<P> {
    host: Host,
    program: P,
    /// `None`: it is a station.
    wired: Option<Wired>,
    /// How many wires hang on it.
    wires: u16,
}

/// What a machine that is no station hangs on.
#[derive(Clone, Copy, Debug)]
struct Wired {
    /// The machine at the other end.
    station: usize,
    /// The place of the wire's end there among the ends; this machine's is the next.
    end: usize,
}

/// One direction of a wire.
#[derive(Debug)]
struct End {
    pipe: Pipe<Packet>,
    /// Bytes of the packets that it has brought there.
    bytes: u64,
    /// Where it leads.
    to: usize,
    interface: Interface,
}

impl<P: Program> World<P> {
    /// A world of stations, each with its host and its program; `seed` is the medium's.
    ///
    /// # Panics
    ///
    /// If there are not as many machines as stations among the links.
    pub fn new(
        radio: radio::Config,
        links: Links,
        routes: Routes,
        seed: u64,
        machines: Vec<(Host, P)>,
    ) -> Self {
        assert_eq!(links.stations(), machines.len(), "each station is a machine");
        let station = |(host, program)| Machine { host, program, wired: None, wires: 0 };
        Self {
            now: Instant::ZERO,
            started: false,
            stations: machines.len(),
            medium: Medium::new(radio, links, seed),
            routes,
            machines: machines.into_iter().map(station).collect(),
            ends: Vec::new(),
            due: Due::new(0),
            motion: None,
            arrived: VecDeque::new(),
            relieved: Vec::new(),
            overheard: VecDeque::new(),
            listens: false,
            counters: Counters::default(),
            watch: None,
        }
    }

    /// Adds a machine on a wire to a station, before the world has begun to move; returns its place.
    ///
    /// The station gets an interface for it: its first wire is interface 1, its second 2, and so on.
    /// On the new machine the wire is interface 1. What is for the machine's address goes over the
    /// wire, and so does all that the machine sends.
    ///
    /// # Panics
    ///
    /// If there is no such station, or the world has moved.
    pub fn attach(&mut self, station: usize, wire: Wire, host: Host, program: P) -> usize {
        assert!(
            !self.started && station < self.stations,
            "machines hang on stations from the start"
        );
        let machine = self.machines.len();
        let wires = &mut self.machines[station].wires;
        *wires += 1;
        let wired = Wired { station, end: self.ends.len() };
        for (to, interface) in [(machine, 1), (station, *wires)] {
            let interface = Interface(interface);
            let pipe = Pipe::new(wire.bits_per_second, wire.delay, wire.packets_max);
            self.ends.push(End { pipe, bytes: 0, to, interface });
        }
        self.machines.push(Machine { host, program, wired: Some(wired), wires: 1 });
        machine
    }

    /// Shows all frames from now on to a tap.
    pub fn watch(&mut self, tap: Box<dyn Tap>) {
        self.watch = Some(Watch::new(tap, self.medium.config()));
    }

    /// Gives stations' programs what they hear on the air that is for others.
    pub fn listen(&mut self) {
        self.listens = true;
    }

    /// Lets happen all that is due until `until`, which is now from then on. False if nothing will
    /// ever happen again.
    pub fn run(&mut self, until: Instant) -> bool {
        self.start();
        while self.next().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
        self.next().is_some()
    }

    /// Lets happen what is due next, and returns when that was; `None` if nothing ever is.
    pub fn step(&mut self) -> Option<Instant> {
        self.start();
        let at = self.next()?;
        self.now = at;
        self.counters.events += 1;
        // The medium lets begin what is to begin at an instant last of all.
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

    /// When something is due next.
    fn next(&self) -> Option<Instant> {
        let due = self.due.next().map(|(at, _)| at);
        due.into_iter().chain(self.medium.poll_timeout()).min()
    }

    /// Acts on a machine from outside: for what no program of its own does.
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

    /// The time that it is.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// What runs on a machine.
    pub fn program(&self, machine: usize) -> &P {
        &self.machines[machine].program
    }

    /// What runs on each machine, in their order.
    pub fn programs(&self) -> impl Iterator<Item = &P> {
        self.machines.iter().map(|machine| &machine.program)
    }

    /// Ways between stations, as they are now.
    pub fn routes(&mut self) -> &mut Routes {
        &mut self.routes
    }

    /// The air, for its counters.
    pub fn medium(&self) -> &Medium<Packet> {
        &self.medium
    }

    /// Bytes of packets that a wired machine's wire has brought to its station, and to itself.
    pub fn carried(&self, machine: usize) -> [u64; 2] {
        let carried = self.machines[machine]
            .wired
            .map(|Wired { end, .. }| [self.ends[end + 1].bytes, self.ends[end].bytes]);
        carried.unwrap_or_default()
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Packets that ended at a relay, as they had passed as many hops as a packet may.
    pub fn expired(&self) -> u64 {
        self.machines.iter().map(|machine| machine.host.expired()).sum()
    }

    fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let moving = usize::from(self.motion.is_some());
        self.due = Due::new(self.machines.len() + self.ends.len() + moving);
        self.plan_motion();
        for machine in 0..self.machines.len() {
            let Machine { host, program, .. } = &mut self.machines[machine];
            program.start(self.now, host);
            self.drain(machine);
            self.settle();
        }
    }

    /// A machine's timers.
    fn wake(&mut self, machine: usize) {
        let now = self.now;
        let Machine { host, program, .. } = &mut self.machines[machine];
        if host.poll_timeout().is_some_and(|at| at <= now) {
            host.handle_timeout(now);
        }
        if program.poll_timeout().is_some_and(|at| at <= now) {
            program.handle_timeout(now, host);
        }
        self.drain(machine);
    }
}
