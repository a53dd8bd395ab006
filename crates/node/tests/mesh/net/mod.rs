//! A mesh in a small world of its own: several nodes, each with its disk and its clock, the
//! connections between them, origins and clients. Time is virtual; the same seed gives the same run.
//!
//! Node 0 is the gateway, unless a test says otherwise. What must always hold is checked at every
//! step: each client gets a prefix of what its origin holds, within its credit, and nothing after its
//! end; no node writes more than has room; memory stays within the budget.

mod air;
mod asker;
mod drive;
mod forge;
mod ground;
mod liar;
mod links;
mod machine;

pub use crate::common::{Call, Client, Dice, Pace, Page, judge, noise};
pub use air::Stranger;
pub use asker::{Heard, ask};
pub use forge::{Forged, chunk, cut, key_under};
pub use ground::{PORT, Port, address};
pub use liar::{Play, Relay, Said, author};
pub use machine::{Plan, gateway, via};

use crate::common::{End, Origin, Shelf, Trace, Turn};
use air::Air;
use bytes::Bytes;
use drive::{Event, What};
use ground::Ground;
use liar::Liar;
use links::{Later, Links};
use machine::{Machine, Oracle, Program, public_key, seed};
use node::select::Select;
use node::testing::Peers;
use node::{
    Access, ClientInput, Dial, ExchangeId, Exit, FetchId, Input, Overheard, Path, PublishedInfo,
    PutError, Report, Request, RouteTable, Settings,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::peer::{Connection, Hello, Message};
use wire::{Instant, NodeId, Oid, PublicKey};

/// No client may wait longer than this for its response to end.
const TIMEOUT: Duration = Duration::from_secs(180);

/// When things happened to a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    pub asked: Instant,
    pub head: Option<Instant>,
    /// The first byte of content.
    pub first: Option<Instant>,
    pub end: Option<Instant>,
}

/// The world.
pub struct Mesh {
    pub origin: Origin,
    /// When the origin could last not be reached.
    down_until: Option<Instant>,
    pub links: Links,
    /// Who hears what others send.
    pub air: Air,
    /// Addresses by name; a name that is not here has none.
    pub names: BTreeMap<String, Vec<IpAddr>>,
    /// Tunnels that were asked for, and where.
    pub tunnels: Vec<(usize, Dial)>,
    /// What nodes said to people.
    pub notices: Vec<(usize, String)>,
    /// Files that are about to be put, and what came of putting.
    files: BTreeMap<ExchangeId, Page>,
    pub published: BTreeMap<ExchangeId, Result<Oid, PutError>>,
    /// Datagrams that were broadcast, and by which machine.
    pub broadcasts: Vec<(usize, Bytes)>,
    /// Datagrams that came: from where, to which machine.
    pub datagrams: Vec<(SocketAddr, usize, Bytes)>,
    /// Every output so far.
    pub trace: Trace,
    plan: Plan,
    machines: Vec<Machine>,
    clients: Vec<Client>,
    times: Vec<Times>,
    places: Vec<usize>,
    /// When the origin last spoke of each version of a page.
    spoken: BTreeMap<String, Instant>,
    /// Requests to origins that do not come through, and since when.
    stalled: BTreeMap<(usize, FetchId), Instant>,
    now: Instant,
    queue: BTreeMap<(Instant, u64), Event>,
    events: u64,
}

impl Mesh {
    /// A chain of `count` nodes; the gateway is the first.
    pub fn chain(count: usize) -> Self {
        Self::chain_of(&Plan::default(), count)
    }

    pub fn chain_of(plan: &Plan, count: usize) -> Self {
        Self::tree_of(plan, &(0..count - 1).collect::<Vec<_>>())
    }

    /// Node 0 is the gateway; the others have these parents. Connections stand where nodes want them.
    pub fn tree_of(plan: &Plan, parents: &[usize]) -> Self {
        let mut mesh = Self::asleep(plan, parents);
        mesh.start_all();
        mesh
    }

    /// A ring: 0 is the gateway, 1 and 2 are one branch, 3 and 4 the other; 2 and 4 hear each other. All know the paths.
    pub fn ring_of(plan: &Plan) -> Self {
        let mut mesh = Self::tree_of(plan, &[0, 1, 0, 3]);
        mesh.mend(2, 4);
        mesh.chart();
        mesh
    }

    /// As [`Mesh::tree_of`], with nothing running yet.
    pub fn asleep(plan: &Plan, parents: &[usize]) -> Self {
        let ground = Ground::new(parents);
        let mut machines: Vec<_> = (0..=parents.len()).map(|it| Machine::new(plan, it)).collect();
        for (node, machine) in machines.iter_mut().enumerate() {
            machine.table = match node {
                0 => gateway(0),
                _ => {
                    let hops = ground.hops(node, 0).expect("a tree is whole");
                    via(parents[node - 1], Some(0), hops)
                }
            };
        }
        Self {
            origin: Origin::default(),
            down_until: None,
            air: Air::default(),
            links: Links::new(ground, plan.latency, plan.rate),
            names: BTreeMap::new(),
            tunnels: Vec::new(),
            notices: Vec::new(),
            files: BTreeMap::new(),
            published: BTreeMap::new(),
            datagrams: Vec::new(),
            broadcasts: Vec::new(),
            trace: Trace::default(),
            plan: plan.clone(),
            machines,
            clients: Vec::new(),
            times: Vec::new(),
            places: Vec::new(),
            spoken: BTreeMap::new(),
            stalled: BTreeMap::new(),
            now: Instant::ZERO,
            queue: BTreeMap::new(),
            events: 0,
        }
    }

    /// How a node is made that has not begun yet.
    pub fn plan(&mut self, node: usize) -> &mut Plan {
        &mut self.machines[node].plan
    }

    /// A node that has not begun yet will have the scheme that this makes.
    pub fn select(&mut self, node: usize, make: impl Fn() -> Box<dyn Select> + 'static) {
        self.machines[node].select = Some(Box::new(make));
    }

    /// All nodes begin, and have time to meet.
    pub fn start_all(&mut self) {
        (0..self.count()).for_each(|node| self.start(node));
        self.pass(Duration::from_secs(1));
    }

    /// A node begins, on the disk that it had before.
    pub fn start(&mut self, node: usize) {
        self.links.ground.power[node] = true;
        self.links.ground.ports[node] = Port::Open;
        let inputs = self.machines[node].start(self.now);
        inputs.into_iter().for_each(|input| self.feed(node, input));
        self.wake();
    }

    /// A liar takes the place of a node.
    pub fn start_liar(&mut self, node: usize, play: Play) {
        self.kill(node);
        let seed = seed(self.plan.options(node).seed ^ 0x11a8);
        let liar = Liar::new(&self.plan.mesh(node), seed, play);
        self.machines[node].program = Program::Liar(Box::new(liar));
        self.links.ground.ports[node] = Port::Open;
    }

    /// A node lies from now on.
    pub fn tamper(&mut self, node: usize, by: Box<dyn node::Tamper>) {
        match &mut self.machines[node].program {
            Program::Node(it) => it.tamper(by),
            _ => panic!("no node runs"),
        }
    }

    /// An oracle takes the place of a node.
    pub fn start_oracle(&mut self, node: usize, answer: Oracle) {
        self.kill(node);
        self.machines[node].program = Program::Oracle(answer);
        self.links.ground.ports[node] = Port::Open;
    }

    /// A daemon ends. Its machine goes on and refuses connections.
    pub fn kill(&mut self, node: usize) {
        self.machines[node].life += 1;
        self.machines[node].program = Program::Nothing;
        self.links.ground.ports[node] = Port::Refuses;
        self.origin.forget(node);
        self.stalled.retain(|(by, _), _| *by != node);
        let later = self.links.reset(node);
        self.wires(later);
        for id in 0..self.clients.len() {
            if self.places[id] == node && self.clients[id].end.is_none() {
                self.clients[id].finish(End::Broken);
                self.times[id].end = Some(self.now);
            }
        }
    }

    /// A machine loses its power: nothing is said, and nothing passes.
    pub fn power_off(&mut self, node: usize) {
        self.links.ground.power[node] = false;
        self.kill(node);
    }

    /// A daemon ends and begins again on its disk.
    pub fn restart(&mut self, node: usize) {
        self.kill(node);
        self.start(node);
    }

    /// A node begins, if nothing runs where it belongs.
    pub fn start_if_off(&mut self, node: usize) {
        if matches!(self.machines[node].program, Program::Nothing) {
            self.start(node);
        }
    }

    /// What a node had stored is gone; it must not be running.
    pub fn forget_disk(&mut self, node: usize) {
        self.machines[node].disk = None;
    }

    /// A daemon ends and begins again with an empty store.
    pub fn restart_empty(&mut self, node: usize) {
        self.kill(node);
        self.forget_disk(node);
        self.start(node);
    }

    /// The disk of a node that runs, or did.
    pub fn disk(&mut self, node: usize) -> &mut Shelf {
        self.machines[node].disk.as_mut().expect("it has begun once")
    }

    /// The writer of a node's disk goes on after it was stuck.
    pub fn unstick(&mut self, node: usize) {
        let now = self.now;
        let inputs = self.disk(node).unstick(now);
        inputs.into_iter().for_each(|input| self.feed(node, Input::Store(input)));
    }

    /// Breaks a connection between two nodes, whichever this number means, with all that is on it.
    pub fn break_link(&mut self, number: u64) {
        let later = self.links.break_one(number);
        self.wires(later);
    }

    /// Has a liar do something by itself.
    pub fn with_liar(&mut self, node: usize, what: impl FnOnce(Instant, &mut Peers)) {
        if let Program::Liar(liar) = &mut self.machines[node].program {
            what(self.now, &mut liar.peers);
        }
        self.feed(node, Input::Tick);
    }

    /// Has a liar meet a node, and say this to it.
    pub fn liar_says(&mut self, liar: usize, to: usize, messages: Vec<Message>) {
        self.with_liar(liar, |now, peers| peers.dial(now, SocketAddr::new(address(to), PORT)));
        self.pass_seconds(1);
        self.with_liar(liar, |now, peers| {
            let peer = peers.at(address(to)).expect("they have met");
            for message in &messages {
                assert!(peers.send(now, peer, message), "it cannot be said");
            }
        });
    }

    /// A node hears something, now.
    pub fn hear(&mut self, node: usize, heard: Vec<Overheard>) {
        self.feed(node, Input::Overheard(heard));
    }

    /// Whether a node has left another because of what it did.
    pub fn has_expelled(&self, node: usize, other: usize) -> bool {
        let left = format!("left the peer at {} ", address(other));
        self.notices.iter().any(|(by, line)| *by == node && line.starts_with(&left))
    }

    /// Two machines do not hear each other any more.
    pub fn cut(&mut self, one: usize, other: usize) {
        self.links.ground.set_wire(one, other, false);
    }

    /// Two machines hear each other again, or for the first time.
    pub fn mend(&mut self, one: usize, other: usize) {
        self.links.ground.set_wire(one, other, true);
        self.wake();
    }

    /// The way to the gateway of a node changes.
    pub fn route(&mut self, node: usize, table: RouteTable) {
        self.machines[node].table = table.clone();
        if matches!(self.machines[node].program, Program::Node(_)) {
            self.feed(node, Input::Routes(table));
        }
    }

    /// All nodes learn the shortest paths to all others, and by which address they are known.
    pub fn chart(&mut self) {
        for node in 0..self.count() {
            let ground = &self.links.ground;
            let path = |to: usize| {
                let hops = ground.hops(node, to).filter(|_| to != node)?;
                let mut neighbours = (0..ground.power.len()).filter(|it| {
                    ground.hops(node, *it) == Some(1) && ground.hops(*it, to) == Some(hops - 1)
                });
                let next_hop = address(neighbours.next()?);
                Some((address(to), Path { next_hop, interface: 3, metric: None, hops: Some(hops) }))
            };
            let mut table = self.machines[node].table.clone();
            table.paths = (0..self.count()).filter_map(path).collect();
            if let Exit::Mesh(route) = &mut table.exit {
                route.address = Some(address(node));
            }
            self.route(node, table);
        }
    }

    /// From now on a node believes the signatures of one other alone.
    pub fn believe(&mut self, node: usize, gateway: usize) {
        let gateways = vec![public_key(&self.machines[gateway].plan, gateway)];
        self.feed(node, Input::Settings(Settings { gateways, ..Settings::default() }));
    }

    /// Sets a node's clock this many seconds ahead of the right time.
    pub fn set_clock(&mut self, node: usize, ahead: i64) {
        let clocks = &mut self.machines[node].plan.clocks;
        clocks.resize(clocks.len().max(node + 1), 0);
        clocks[node] = ahead;
        let date = self.machines[node].date(self.now);
        self.feed(node, Input::Clock(date));
    }

    /// Explicit clients of a node may dial these private addresses.
    pub fn permit(&mut self, node: usize, prefix: &str) {
        let private = vec![prefix.parse().expect("a prefix")];
        let access = Access { private, ..Access::default() };
        self.feed(node, Input::Settings(Settings { access, ..Settings::default() }));
    }

    /// A client asks a node; what it gets is seen in [`Mesh::client`].
    pub fn call(&mut self, node: usize, call: Call) -> usize {
        let id = self.clients.len();
        let exchange = ExchangeId(id as u64);
        let request = Request {
            at_home: call.at_home,
            behind_uplink: false,
            method: call.method.clone(),
            uri: call.target(),
            version: http::Version::HTTP_11,
            headers: call.headers.clone(),
            has_body: call.has_body,
            client: call.from,
            entrance: call.entrance(),
            expected: call.mirrors.flatten(),
            binding: call.binding,
        };
        let window = call.pace.window();
        self.clients.push(Client::new(call).in_mesh());
        self.times.push(Times { asked: self.now, ..Times::default() });
        self.places.push(node);
        if matches!(self.machines[node].program, Program::Node(_)) {
            let input = Input::Client(ClientInput::Request(exchange, Box::new(request)));
            self.after(Duration::ZERO, Some(node), What::Input(Box::new(input)));
            self.after(Duration::ZERO, Some(node), What::Client(id, Turn::Open(window)));
        } else {
            self.clients[id].finish(End::Broken);
        }
        id
    }

    /// A client asks a node, and reads all it gets.
    pub fn get(&mut self, node: usize, url: &str) -> usize {
        let id = self.call(node, Call::get(url));
        self.finish();
        id
    }

    /// Puts a file at a node; the result will be in [`Mesh::published`].
    pub fn put(&mut self, node: usize, page: Page) -> ExchangeId {
        let length = page.body.len() as u64;
        self.put_as(node, page, length)
    }

    /// The same with another length announced.
    pub fn put_as(&mut self, node: usize, page: Page, length: u64) -> ExchangeId {
        self.events += 1;
        let exchange = ExchangeId(1 << 40 | self.events);
        self.files.insert(exchange, page);
        self.feed(node, Input::Client(ClientInput::Put(exchange, length)));
        exchange
    }

    /// Puts a file, and waits until it is published and known.
    pub fn publish(&mut self, node: usize, page: Page) -> Oid {
        let exchange = self.put(node, page);
        self.answered(exchange).expect("it is published")
    }

    /// Takes something back, and waits for the answer.
    pub fn withdraw(&mut self, node: usize, name: Oid) -> Result<Oid, PutError> {
        self.events += 1;
        let exchange = ExchangeId(1 << 40 | self.events);
        self.feed(node, Input::Client(ClientInput::Withdraw(exchange, name)));
        self.answered(exchange)
    }

    /// Waits for an answer, and until others may know.
    pub fn answered(&mut self, exchange: ExchangeId) -> Result<Oid, PutError> {
        let until = self.now + TIMEOUT;
        while !self.published.contains_key(&exchange) && self.step(until) {}
        self.pass_millis(200);
        self.published[&exchange]
    }

    /// What a node publishes.
    pub fn shelf(&self, node: usize) -> Vec<PublishedInfo> {
        self.machines[node].node().published().expect("the list can be read")
    }

    /// The client that puts a file disconnects.
    pub fn leave_put(&mut self, node: usize, exchange: ExchangeId) {
        self.feed(node, Input::Client(ClientInput::Gone(exchange)));
    }

    /// A client leaves, as the next thing that happens now.
    pub fn leave(&mut self, id: usize) {
        self.after(Duration::ZERO, Some(self.places[id]), What::Client(id, Turn::Leave));
    }

    /// A client that read slowly, or not at all, reads on as fast as it can.
    pub fn hurry(&mut self, id: usize) {
        self.clients[id].call.pace = Pace::Fast;
        self.after(Duration::ZERO, Some(self.places[id]), What::Client(id, Turn::Digest));
    }

    pub fn client(&self, id: usize) -> &Client {
        &self.clients[id]
    }

    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    pub fn times(&self, id: usize) -> Times {
        self.times[id]
    }

    /// How long a client waited for its end.
    pub fn took(&self, id: usize) -> Duration {
        self.times[id].end.expect("it has ended") - self.times[id].asked
    }

    /// What the caches say of a response, the one at the client last.
    pub fn cache(&self, id: usize) -> String {
        let head = self.clients[id].head.as_ref().expect("it was answered");
        let lines = head.headers.get_all("cache-status").iter();
        lines.map(|line| line.to_str().expect("ASCII")).collect::<Vec<_>>().join(", ")
    }

    /// Whether a client's own node served it out of its store.
    pub fn is_hit(&self, id: usize) -> bool {
        self.cache(id).ends_with_hit_of(&format!("n{}", self.places[id]))
    }

    /// Who a node is to its peers.
    pub fn id(&self, node: usize) -> NodeId {
        let (id, _) = self.machines[node].node().identity().expect("it is in a mesh");
        id
    }

    /// The identity of a node.
    pub fn key(&self, node: usize) -> PublicKey {
        let (_, key) = self.machines[node].node().identity().expect("it is in a mesh");
        key
    }

    /// Notes what a node does from now on.
    pub fn watch(&mut self, node: usize) {
        self.machines[node].watch();
    }

    /// What it did since this was last asked, without its timers.
    pub fn did(&mut self, node: usize) -> Vec<node::Event> {
        let mut did = std::mem::take(&mut self.machines[node].watched);
        did.retain(|event| !matches!(event, node::Event::Timer { .. }));
        did
    }

    pub fn report(&self, node: usize) -> Report {
        self.machines[node].node().report()
    }

    /// What all that happened came to.
    pub fn digest(&self) -> blake3::Hash {
        self.trace.finish_with(self.machines.iter().filter_map(Machine::report))
    }

    /// The machines whose nodes are peers of a node.
    pub fn peers(&self, node: usize) -> BTreeSet<usize> {
        let peers = self.machines[node].node().peers();
        let at = |it: &usize| peers.iter().any(|peer| peer.address == address(*it));
        (0..self.count()).filter(at).collect()
    }

    /// What another node has last told a node of itself.
    pub fn told(&self, node: usize, other: usize) -> Hello {
        let peers = self.machines[node].node().peers();
        let peer = peers.into_iter().find(|peer| peer.address == address(other));
        peer.expect("they have met").hello
    }

    pub fn count(&self) -> usize {
        self.machines.len()
    }

    /// How many bytes one node wrote to another so far.
    pub fn wrote(&self, from: usize, to: usize) -> u64 {
        self.control(from, to) + self.data(from, to)
    }

    /// Among them: in messages.
    pub fn control(&self, from: usize, to: usize) -> u64 {
        self.links.wrote(from, to, Connection::Control)
    }

    /// Among them: in chunk frames.
    pub fn data(&self, from: usize, to: usize) -> u64 {
        self.links.wrote(from, to, Connection::Data)
    }

    /// All bytes that a node sent to any other in chunk frames.
    pub fn data_out(&self, from: usize) -> u64 {
        (0..self.count()).map(|to| self.data(from, to)).sum()
    }

    /// Lets so much time pass, and all that happens in it.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
        self.check_memory();
    }

    pub fn pass_millis(&mut self, millis: u64) {
        self.pass(Duration::from_millis(millis));
    }

    pub fn pass_seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    /// Lets time pass until every client has its end, and what is abandoned or written is over.
    pub fn finish(&mut self) {
        let until = self.now + TIMEOUT;
        while self.clients.iter().any(|client| client.end.is_none()) {
            if !self.step(until) {
                break;
            }
        }
        for (id, client) in self.clients.iter().enumerate() {
            let Client { call, head, content, .. } = client;
            let got = content.len();
            assert!(client.end.is_some(), "client {id} waits: {call:?} {head:?}, {got} bytes");
        }
        self.pass_millis(100);
    }

    /// Runs until no client is served, and checks that no state is left behind.
    pub fn done(&mut self) {
        self.finish();
        self.pass_seconds(120);
        let left = |node: usize| {
            let report = self.machines[node].report()?;
            let left = (report.exchanges, report.fetches, report.pinned_bytes);
            (left != (0, 0, 0)).then_some((node, left))
        };
        let left: Vec<_> = (0..self.count()).filter_map(left).collect();
        assert!(left.is_empty(), "exchanges, transfers, bytes were left behind: {left:?}");
    }

    fn wake(&mut self) {
        let later = self.links.wake_all();
        self.wires(later);
    }

    fn wires(&mut self, later: Later) {
        later.into_iter().for_each(|(wait, wire)| self.after(wait, None, What::Wire(wire)));
    }
}

/// What is asked of a `Cache-Status`.
trait CacheStatus {
    /// Whether its last member is a hit at a cache.
    fn ends_with_hit_of(&self, cache: &str) -> bool;
}

impl CacheStatus for String {
    fn ends_with_hit_of(&self, cache: &str) -> bool {
        let last = self.rsplit(", ").next().unwrap_or_default();
        last.starts_with(&format!("{cache}; hit"))
    }
}
