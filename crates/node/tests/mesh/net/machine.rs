//! A machine of the mesh: what runs on it, its disk, its clock and its way to the gateway.

use super::ground::{PORT, address};
use super::liar::Liar;
use crate::common::{BEGIN, Options, Shelf};
use bytes::Bytes;
use node::select::{Select, of};
use node::{
    Access, Config, Event, Exit, Input, Interface, LinkOutput, Listening, MeshConfig, Node,
    OPEN_KEY, Output, Report, Route, RouteSource, RouteTable, SearchConfig, Uplink, overhear,
};
use std::time::Duration;
use wire::{Date, Instant, PublicKey, Selection};

/// How a mesh is made.
#[derive(Clone)]
pub struct Plan {
    pub selection: Selection,
    pub search: SearchConfig,
    pub squares: node::Squares,
    /// Of each node; the seeds differ by the node's number.
    pub node: Options,
    /// How long a hop takes.
    pub latency: Duration,
    /// Bytes per second from one machine to another.
    pub rate: u64,
    /// What all nodes share.
    pub key: Option<[u8; 32]>,
    /// All nodes believe the first one's signatures only.
    pub configured: bool,
    /// How many seconds each node's clock is ahead; those that are not named are right.
    pub clocks: Vec<i64>,
    /// Prefixes of origins within the mesh.
    pub direct: Vec<&'static str>,
    /// Memory for what is overheard, of nodes that listen.
    pub overhear: Option<usize>,
    /// How they listen.
    pub listening: overhear::Options,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            selection: Selection::PhThcp,
            search: SearchConfig::default(),
            squares: node::Squares::default(),
            node: Options::default(),
            latency: Duration::from_millis(2),
            rate: 4_000_000,
            key: None,
            configured: false,
            clocks: Vec::new(),
            direct: Vec::new(),
            overhear: None,
            listening: overhear::Options::default(),
        }
    }
}

impl Plan {
    pub fn thcp() -> Self {
        Self { selection: Selection::Thcp, ..Self::default() }
    }

    /// All nodes can listen.
    pub fn listening() -> Self {
        Self { overhear: Some(2 << 20), ..Self::default() }
    }

    pub fn seeded(mut self, seed: u64) -> Self {
        self.node.seed = seed;
        self
    }

    pub fn options(&self, node: usize) -> Options {
        Options { seed: self.node.seed * 1000 + node as u64, ..self.node.clone() }
    }

    pub fn mesh(&self, node: usize) -> MeshConfig {
        MeshConfig {
            selection: self.selection,
            search: self.search,
            squares: self.squares.clone(),
            identity: identity(self, node),
            key: self.key,
            gateways: if self.configured { vec![public_key(self, 0)] } else { Vec::new() },
            port: PORT,
            overhear: self
                .overhear
                .map(|memory_bytes| Listening { memory_bytes, options: self.listening }),
        }
    }

    fn access(&self) -> Access {
        let direct = self.direct.iter().map(|it| it.parse().expect("a prefix")).collect();
        Access { direct, ..Access::default() }
    }

    fn config(&self, node: usize, life: u64) -> Config {
        let options = self.options(node);
        Config {
            name: format!("n{node}"),
            secret: self.key.unwrap_or(OPEN_KEY),
            // Another one at each start.
            seed: seed(options.seed ^ life << 32),
            memory_bytes: options.memory_bytes,
            profile: content::Profile::DEFAULT,
            object_bytes_max: options.object_bytes_max,
            undecided_bytes_max: options.undecided_bytes_max,
            allow: Vec::new(),
            access: self.access(),
            built: Date::from_unix(BEGIN.as_unix() - 1000),
            mesh: Some(self.mesh(node)),
            reach: options.reach.clone(),
        }
    }
}

pub fn seed(number: u64) -> [u8; 32] {
    *blake3::hash(&number.to_le_bytes()).as_bytes()
}

fn identity(plan: &Plan, node: usize) -> [u8; 32] {
    seed(plan.options(node).seed ^ 0x1de0_0000)
}

pub fn public_key(plan: &Plan, node: usize) -> PublicKey {
    let key = ed25519_dalek::SigningKey::from_bytes(&identity(plan, node));
    PublicKey(key.verifying_key().to_bytes())
}

/// What an oracle answers to a question, if it does.
pub type Oracle = Box<dyn Fn(&[u8]) -> Option<Bytes>>;

/// What runs on a machine.
pub enum Program {
    Node(Box<Node>),
    Liar(Box<Liar>),
    /// Answers datagrams, and nothing else.
    Oracle(Oracle),
    Nothing,
}

/// A machine.
pub struct Machine {
    pub plan: Plan,
    pub program: Program,
    pub disk: Option<Shelf>,
    pub table: RouteTable,
    /// Makes its scheme, if that is not the plan's.
    pub select: Option<Box<dyn Fn() -> Box<dyn Select>>>,
    /// Whether what its engine does is noted, and what it did.
    pub is_watched: bool,
    pub watched: Vec<Event>,
    /// Counts its programs: what was meant for an earlier one is not for this one.
    pub life: u64,
    number: usize,
}

impl Machine {
    pub fn new(plan: &Plan, number: usize) -> Self {
        Self {
            plan: plan.clone(),
            program: Program::Nothing,
            disk: None,
            table: RouteTable::default(),
            select: None,
            is_watched: false,
            watched: Vec::new(),
            life: 0,
            number,
        }
    }

    /// Begins a node on the disk that is there; what it is to be told first.
    pub fn start(&mut self, now: Instant) -> Vec<Input> {
        let options = self.plan.options(self.number);
        let index = match &mut self.disk {
            Some(disk) => disk.reopen(&options),
            None => {
                let (disk, index) = Shelf::open(&options);
                self.disk = Some(disk);
                index
            }
        };
        self.life += 1;
        let config = self.plan.config(self.number, self.life);
        let mesh = self.plan.mesh(self.number);
        let select = self.select.as_ref().map_or_else(|| of(&mesh, &config.seed), |make| make());
        let mut node = Node::with_select(config, index, select);
        node.events().watch(self.is_watched);
        self.program = Program::Node(Box::new(node));
        vec![Input::Clock(self.date(now)), Input::Routes(self.table.clone())]
    }

    /// Notes what its engine does from now on, also after a restart.
    pub fn watch(&mut self) {
        self.is_watched = true;
        if let Program::Node(node) = &mut self.program {
            node.events().watch(true);
        }
    }

    /// What the machine believes the date to be.
    pub fn date(&self, now: Instant) -> Date {
        let ahead = self.plan.clocks.get(self.number).copied().unwrap_or(0);
        let right = BEGIN.plus((now - Instant::ZERO).as_secs());
        Date::from_unix(right.as_unix().saturating_add_signed(ahead))
    }

    pub fn node(&self) -> &Node {
        match &self.program {
            Program::Node(node) => node,
            _ => panic!("no node runs on machine {}", self.number),
        }
    }

    pub fn report(&self) -> Option<Report> {
        match &self.program {
            Program::Node(node) => Some(node.report()),
            _ => None,
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.program {
            Program::Node(node) => node.poll_timeout().map(|(at, _)| at),
            Program::Liar(liar) => liar.poll_timeout(),
            Program::Oracle(_) | Program::Nothing => None,
        }
    }

    /// Gives an input to what runs here, and answers what is to be done.
    pub fn handle(&mut self, now: Instant, input: Input) -> Vec<Output> {
        match &mut self.program {
            Program::Node(node) => {
                node.handle_input(now, input);
                let outputs = std::iter::from_fn(|| node.poll_output()).collect();
                self.watched.extend(std::iter::from_fn(|| node.events().poll()));
                outputs
            }
            Program::Liar(liar) => {
                match input {
                    Input::Link(input) => liar.handle(now, input),
                    Input::Tick => liar.handle_timeout(now),
                    _ => {}
                }
                let link = |output: LinkOutput| Output::Link(output);
                std::iter::from_fn(|| liar.poll_output()).map(link).collect()
            }
            Program::Oracle(answer) => match input {
                Input::Datagram(from, question) => {
                    let answer = answer(&question);
                    answer.into_iter().map(|answer| Output::Datagram(from, answer)).collect()
                }
                _ => Vec::new(),
            },
            Program::Nothing => Vec::new(),
        }
    }
}

/// The table of a node that is the gateway.
pub fn gateway(node: usize) -> RouteTable {
    Exit::Gateway(Uplink {
        address: Some(address(node)),
        interface: Some(Interface { name: "eth0".into(), index: 2 }),
        source: RouteSource::Babeld,
    })
    .into()
}

/// The table of a node whose next hop and gateway are these.
pub fn via(next_hop: usize, gateway: Option<usize>, hops: u32) -> RouteTable {
    Exit::Mesh(Route {
        next_hop: address(next_hop),
        interface: Interface { name: "wl0".into(), index: 3 },
        gateway: gateway.map(address),
        metric: None,
        hops: Some(hops),
        address: None,
        source: RouteSource::Babeld,
    })
    .into()
}
