//! A router: the daemon's engine, driven in virtual time.
//!
//! *What this is:* [`Router`], the program that gives one [`Node`] the events of its machine's sockets and
//! disk, and performs the engine's outputs, as the daemon's loop does. *Who calls it:* the world. *What it
//! never does:* decide anything that the engine decides. *Where to start:* `Router::work`; then `callers.rs`
//! (clients), `fetches.rs` (origins), `links.rs` (peers), `disk.rs`.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::rc::Rc;

use content::Profile;
use node::driver::CLOCK_EVERY;
use node::uplink::PairReport;
use node::{
    Input, Listening, Looked, MeshConfig, Node, OPEN_KEY, Output, Overheard, Report, RouteTable,
    SearchConfig, Squares,
};
use wire::{Date, Instant, Selection, peer};

use crate::hosts::{date, discard};
use crate::net::{Body, Event, Flags, Host, Interface, Packet, SocketId};
use crate::scenario::Http;
use crate::world::{Program, Routes, machine};

pub mod browse;
mod callers;
mod catalogue;
mod disk;
pub mod far;
mod fetches;
mod liar;
mod line;
mod links;
pub mod mesh;
mod outside;
mod pair;
pub mod relay;
pub mod run;
mod streams;
pub mod waits;
pub mod way;

use callers::Callers;
use disk::Disk;
pub use disk::StoreSize;
use fetches::Fetches;
use liar::Liar;
use links::{Links, plain};
use pair::Pair;
pub use pair::{FarPlace, keys};

/// The port for peers.
pub const PEER_PORT: u16 = 3131;
/// The port on which clients' requests are intercepted.
pub const HTTP_PORT: u16 = 80;
/// When the program was built. As in the daemon, a clock before this date is wrong.
const BUILT: Date = Date::from_unix(1_793_491_200);

/// The settings of a router.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name in `Cache-Status`.
    pub name: String,
    /// The seed of its random numbers and of its identity towards peers.
    pub seed: u64,
    /// How it selects the peer to ask; `None` if it has no peers.
    pub selection: Option<Selection>,
    /// How it searches, if it does.
    pub search: SearchConfig,
    /// The squares of the map in which routers are.
    pub squares: Squares,
    /// Its routes at the beginning.
    pub table: RouteTable,
    /// The station with the uplink.
    pub gateway: usize,
    /// Interfaces on which clients are intercepted.
    pub intercepts: Vec<Interface>,
    /// How it listens to frames between neighbours, if it does.
    pub overhear: Option<Listening>,
    /// The size and policy of its store.
    pub store: StoreSize,
    /// The engine's memory budget, in bytes.
    pub memory_bytes: u64,
    /// How content is cut into units.
    pub profile: &'static Profile,
    /// Addresses of origins, by host name.
    pub names: BTreeMap<String, IpAddr>,
    /// The far end of its uplink, if there is one.
    pub far: Option<FarPlace>,
    /// What becomes of the requests that it intercepts.
    pub http: Http,
}

/// An engine and the state of its driver.
pub struct Router {
    node: Node,
    disk: Disk,
    links: Links,
    callers: Callers,
    fetches: Fetches,
    /// The near end of the uplink's pair, if there is a far end.
    pair: Option<Box<Pair>>,
    /// Inputs that wait for the engine, oldest first.
    inputs: VecDeque<Input>,
    has_peers: bool,
    /// Whether it needs the paths to all routers.
    leaves_the_way: bool,
    overhears: bool,
    table: RouteTable,
    gateway: usize,
    intercepts: Vec<Interface>,
    is_intercepting: bool,
    http: Http,
    clock_at: Instant,
    notices: u64,
    /// The address of which it says that everything is there, if it lies.
    lies_for: Option<IpAddr>,
    /// Is given what the engine does, as that of this router.
    events: Option<(usize, EventSink)>,
}

/// Is given each event of each router's engine: the router, when, and what.
pub type EventSink = Rc<dyn Fn(usize, Instant, &node::Event)>;

#[deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]
impl Router {
    /// An engine with an empty store.
    ///
    /// # Errors
    ///
    /// Errors of the store; a store in memory has none.
    pub fn new(settings: Settings) -> Result<Self, store::Error> {
        let (disk, index) = Disk::new(settings.store, settings.seed)?;
        let stream = |purpose: &str| blake3::derive_key(purpose, &settings.seed.to_le_bytes());
        let mesh = settings.selection.map(|selection| MeshConfig {
            selection,
            search: settings.search,
            squares: settings.squares,
            identity: stream("hearsay sim 2026 identity"),
            key: None,
            gateways: Vec::new(),
            port: PEER_PORT,
            overhear: settings.overhear,
        });
        let has_peers = mesh.is_some();
        let config = node::Config {
            name: settings.name,
            secret: OPEN_KEY,
            seed: stream("hearsay sim 2026 chance"),
            memory_bytes: settings.memory_bytes,
            profile: settings.profile,
            // As in the daemon, one object never evicts all others.
            object_bytes_max: settings.store.bytes / 2,
            undecided_bytes_max: u64::MAX,
            allow: Vec::new(),
            access: node::Access::default(),
            built: BUILT,
            mesh,
            reach: classes::Reach::default(),
        };
        Ok(Self {
            node: Node::new(config, index),
            disk,
            links: Links::default(),
            callers: Callers::new(settings.memory_bytes),
            fetches: Fetches::new(settings.names),
            pair: settings.far.map(|far| Box::new(Pair::new(far, settings.seed))),
            inputs: VecDeque::new(),
            has_peers,
            leaves_the_way: settings.selection.is_some_and(Selection::leaves_the_way),
            overhears: settings.overhear.is_some(),
            table: settings.table,
            gateway: settings.gateway,
            intercepts: settings.intercepts,
            is_intercepting: false,
            http: settings.http,
            clock_at: Instant::ZERO,
            notices: 0,
            lies_for: None,
            events: None,
        })
    }

    /// Gives all that the engine does from now on to `events`, as what this router did.
    pub fn watch(&mut self, router: usize, events: EventSink) {
        self.node.events().watch(true);
        self.events = Some((router, events));
    }

    /// As others name it: its engine's identity, at this address.
    pub fn named(&self, at: IpAddr) -> Option<peer::Router> {
        let (id, _) = self.node.identity()?;
        Some(peer::Router { id, address: Some(at), cost: None })
    }

    /// From now on the router at this address lies, as these others do.
    pub fn lie(&mut self, at: IpAddr, liars: Vec<peer::Router>) {
        self.lies_for = Some(at);
        self.node.tamper(Box::new(Liar::new(at, liars)));
    }

    /// The engine's counters.
    pub fn report(&self) -> Report {
        self.node.report()
    }

    /// Whether it listens to frames for others.
    pub fn overhears(&self) -> bool {
        self.overhears
    }

    /// Whether it is connected to a peer at this address.
    pub fn knows(&self, address: IpAddr) -> bool {
        self.node.peers().iter().any(|peer| peer.address == address)
    }

    /// Whether the far end of its uplink answers; also if there is none.
    pub fn has_far_end(&self) -> bool {
        self.pair.as_ref().is_none_or(|pair| pair.is_up())
    }

    /// The counters of the uplink's pair, if there is one.
    pub fn pair(&self) -> Option<PairReport> {
        self.pair.as_ref().map(|pair| pair.report())
    }

    /// How often the engine gave a notice for its operator: that something is wrong.
    pub fn notices(&self) -> u64 {
        self.notices
    }

    /// Gives the engine its inputs and performs its outputs, until there are no more of either.
    fn work(&mut self, now: Instant, host: &mut Host) {
        loop {
            while let Some(input) = self.inputs.pop_front() {
                self.node.handle_input(now, input);
                while let Some(output) = self.node.poll_output() {
                    self.perform(now, host, output);
                }
                while let Some(event) = self.node.events().poll() {
                    self.events.iter().for_each(|(router, give)| give(*router, now, &event));
                }
            }
            if let Some(pair) = &mut self.pair {
                pair.flush(now, host, &mut self.fetches, &mut self.inputs);
            }
            // Everything that the engine wrote for one input goes out together.
            self.links.flush(now, host, &mut self.inputs);
            self.callers.flush(now, host, &mut self.inputs);
            if self.inputs.is_empty() {
                return self.intercept(host);
            }
        }
    }

    /// Begins or ends interception. What goes by the pair passes it by while it takes no more.
    fn intercept(&mut self, host: &mut Host) {
        let may = match self.http {
            Http::Cached => true,
            Http::Bypass => self.pair.as_ref().is_some_and(|pair| pair.takes_tcp()),
        };
        if may != self.is_intercepting {
            self.is_intercepting = may;
            host.intercept(HTTP_PORT, if may { &self.intercepts } else { &[] });
        }
    }

    fn perform(&mut self, now: Instant, host: &mut Host, output: Output) {
        let inputs = &mut self.inputs;
        match output {
            Output::Client(output) => self.callers.perform(now, output),
            Output::Origin(output) => {
                let pair = self.pair.as_deref_mut();
                match pair.and_then(|pair| pair.takes(&output).then_some(pair)) {
                    Some(pair) => pair.perform(now, output),
                    None => self.fetches.perform(now, host, output, inputs),
                }
            }
            Output::Link(output) => self.links.perform(now, host, output, inputs),
            Output::Store(output) => self.disk.perform(now, output, inputs),
            Output::Name(name, _) => {
                let addresses = self.fetches.resolve(&name);
                inputs.push_back(Input::Name(name, Looked::Addresses(addresses)));
            }
            // Uplinks do not fail here.
            Output::Probe(..) => inputs.push_back(Input::Probed(true)),
            Output::Datagram(to, bytes) => {
                if let SocketAddr::V4(to) = to {
                    host.send_datagram(now, PEER_PORT, to, bytes);
                }
            }
            Output::Broadcast(bytes) => {
                let to = SocketAddrV4::new(Ipv4Addr::BROADCAST, PEER_PORT);
                host.send_datagram(now, PEER_PORT, to, bytes);
            }
            Output::Notice(_) => self.notices += 1,
        }
    }

    fn accepted(&mut self, now: Instant, host: &mut Host, id: SocketId, accepted: Accepted) {
        let Accepted { local, remote, intercepted } = accepted;
        if intercepted && self.http == Http::Bypass {
            self.pair.iter_mut().for_each(|it| it.carry(now, host, id, [remote, local]));
        } else if intercepted {
            self.callers.accept(now, host, id, remote, local, &mut self.inputs);
        } else if local.port() == PEER_PORT && self.has_peers {
            self.links.accept(now, host, id, remote, &mut self.inputs);
        } else {
            host.abort(now, id);
        }
    }
}

/// What the driver needs to know of an accepted connection.
struct Accepted {
    local: SocketAddr,
    remote: SocketAddr,
    intercepted: bool,
}

impl Program for Router {
    fn start(&mut self, now: Instant, host: &mut Host) {
        if self.has_peers {
            host.listen(PEER_PORT);
            host.listen_datagrams(PEER_PORT);
        }
        self.clock_at = now + CLOCK_EVERY;
        self.inputs.push_back(Input::Clock(date(now)));
        if self.has_peers {
            self.fetches.follow(now, host, &self.table);
            self.inputs.push_back(Input::Routes(self.table.clone()));
        }
        self.work(now, host);
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        if self.pair.as_mut().is_some_and(|pair| pair.handle_event(now, host, &event)) {
            return self.work(now, host);
        }
        let inputs = &mut self.inputs;
        match event {
            Event::Accepted { id, local, remote, intercepted, .. } => {
                let (local, remote) = (plain(local), plain(remote));
                self.accepted(now, host, id, Accepted { local, remote, intercepted });
            }
            Event::Connected(id) if self.links.has(id) => self.links.connected(id, inputs),
            Event::Connected(id) => self.fetches.connected(now, host, id, inputs),
            Event::Readable(id) if self.links.has(id) => self.links.ready(now, host, id, true),
            Event::Readable(id) if self.callers.has(id) => {
                self.callers.readable(now, host, id, inputs);
            }
            Event::Readable(id) if self.fetches.has(id) => {
                self.fetches.ready(now, host, id, false, inputs);
            }
            // The socket was closed here, but its peer still sends.
            Event::Readable(id) => discard(now, host, id),
            Event::Writable(id) if self.links.has(id) => self.links.ready(now, host, id, false),
            Event::Writable(id) if self.callers.has(id) => self.callers.writable(id),
            Event::Writable(id) if self.fetches.has(id) => {
                self.fetches.ready(now, host, id, false, inputs);
            }
            Event::PeerClosed(id) if self.links.has(id) => self.links.ended(now, host, id),
            Event::PeerClosed(id) if self.callers.has(id) => {
                self.callers.ended(now, host, id, inputs);
            }
            Event::PeerClosed(id) if self.fetches.has(id) => {
                self.fetches.ready(now, host, id, true, inputs);
            }
            Event::PeerClosed(id) => discard(now, host, id),
            Event::Closed { id, .. } if self.links.has(id) => self.links.closed(id, inputs),
            Event::Closed { id, .. } if self.callers.has(id) => self.callers.closed(id, inputs),
            Event::Closed { id, why } => self.fetches.closed(now, host, id, why, inputs),
            Event::Datagram { from, payload, .. } => {
                let found = self.lies_for.and_then(|at| Liar::found(at, &payload, PEER_PORT));
                if let Some((SocketAddr::V4(to), answer)) = found {
                    host.send_datagram(now, PEER_PORT, to, answer);
                }
                inputs.push_back(Input::Datagram(plain(from), payload));
            }
            Event::Writable(_) => {}
        }
        self.work(now, host);
    }

    fn overhear(&mut self, now: Instant, host: &mut Host, packet: &Packet) {
        // Segments addressed to or from this router also arrive on its own connection, so they are not
        // overheard.
        let is_ours = [packet.from, packet.to].iter().any(|it| host.addresses().contains(it.ip()));
        let Some(segment) = overheard(packet).filter(|_| !is_ours) else { return };
        self.inputs.push_back(Input::Overheard(vec![segment]));
        self.work(now, host);
    }

    fn rerouted(&mut self, now: Instant, host: &mut Host, routes: &mut Routes) {
        let Some(station) = host.addresses().first().and_then(|it| machine(*it)) else { return };
        let table = way::table(routes, station, self.gateway, self.leaves_the_way);
        // A router without peers always sends its requests to origins directly.
        if self.has_peers && table != self.table {
            self.table = table.clone();
            self.fetches.follow(now, host, &table);
            self.inputs.push_back(Input::Routes(table));
            self.work(now, host);
        }
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        let inputs = &mut self.inputs;
        if self.clock_at <= now {
            self.clock_at = now + CLOCK_EVERY;
            inputs.push_back(Input::Clock(date(now)));
        }
        if self.node.poll_timeout().is_some_and(|(at, _)| at <= now) {
            inputs.push_back(Input::Tick);
        }
        self.disk.handle_timeout(now, inputs);
        self.links.handle_timeout(now, host, inputs);
        self.fetches.handle_timeout(now, host, inputs);
        self.pair.iter_mut().for_each(|pair| pair.handle_timeout(now));
        self.work(now, host);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let engine = self.node.poll_timeout().map(|(at, _)| at);
        let driver = [
            self.disk.poll_timeout(),
            self.links.poll_timeout(),
            self.fetches.poll_timeout(),
            self.pair.as_ref().and_then(|pair| pair.poll_timeout()),
            Some(self.clock_at),
        ];
        engine.into_iter().chain(driver.into_iter().flatten()).min()
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("report", &self.node.report()).finish_non_exhaustive()
    }
}

/// A segment with payload, as a capture would show it.
fn overheard(packet: &Packet) -> Option<Overheard> {
    let Body::Tcp(segment) = &packet.body else { return None };
    let has = |flag| segment.flags.has(flag);
    let (syn, fin, rst) = (has(Flags::SYN), has(Flags::FIN), has(Flags::RST));
    let (from, to) = (packet.from.into(), packet.to.into());
    let says = !segment.payload.is_empty() || syn || fin || rst;
    let payload = segment.payload.clone();
    says.then_some(Overheard { from, to, seq: segment.seq, syn, fin, rst, payload })
}
