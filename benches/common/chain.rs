//! Routers in a row that are peers of their neighbours, the gateway first. What one writes to another
//! is there at once, within what the other grants.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use node::{
    Exit, Input, Interface, LinkId, LinkInput, LinkOutput, MeshConfig, Route, RouteSource,
    RouteTable, Uplink,
};
use wire::{Instant, Selection};

use super::Router;

const PORT: u16 = 4000;
/// What is written and not yet delivered, at most.
const SOCKET: u64 = 64 << 10;
/// No test takes longer, in virtual time.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One side of a link: whose it is, what comes to it, and how much of it may.
struct Side {
    router: usize,
    id: LinkId,
    granted: u64,
    coming: VecDeque<Bytes>,
    is_open: bool,
}

/// See the module.
pub struct Chain {
    pub routers: Vec<Router>,
    /// Sides of links; those of one link stand side by side, the dialling one first.
    sides: Vec<Side>,
    now: Instant,
}

impl Chain {
    /// All have met. The origin behind the gateway has this.
    pub fn new(count: usize, key: [u8; 32], body: &Bytes) -> Self {
        let router = |number| Router::new(key, body, Some(mesh(number, key)));
        let routers = (0..count).map(router).collect();
        let mut chain = Self { routers, sides: Vec::new(), now: Instant::ZERO };
        for number in 0..count {
            chain.give(number, Input::Routes(route(number)));
        }
        chain.pass(Duration::from_secs(2));
        chain
    }

    /// A client asks a router for the object: how many bytes it got.
    pub fn get(&mut self, router: usize) -> usize {
        self.routers[router].ask(self.now);
        let until = self.now + TIMEOUT;
        loop {
            self.settle();
            if let Some(got) = self.routers[router].got() {
                return got;
            }
            assert!(self.tick(until), "it takes too long");
        }
    }

    /// Lets so much time pass.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        self.settle();
        while self.tick(until) {
            self.settle();
        }
        self.now = until;
    }

    /// Lets the next timer go off, if there is one in time.
    fn tick(&mut self, until: Instant) -> bool {
        let timers = self.routers.iter().enumerate();
        let next =
            timers.filter_map(|(number, it)| Some((it.node.poll_timeout()?.0, number))).min();
        let Some((at, number)) = next.filter(|(at, _)| *at <= until) else { return false };
        self.now = self.now.max(at);
        self.give(number, Input::Tick);
        true
    }

    fn give(&mut self, router: usize, input: Input) {
        self.routers[router].give(self.now, input);
    }

    fn tell(&mut self, side: usize, what: impl FnOnce(LinkId) -> LinkInput) {
        let Side { router, id, is_open, .. } = self.sides[side];
        if is_open {
            self.give(router, Input::Link(what(id)));
        }
    }

    /// Until nothing is said any more, and nothing is on its way that may come.
    fn settle(&mut self) {
        loop {
            let mut is_quiet = true;
            for router in 0..self.routers.len() {
                for output in self.routers[router].said() {
                    is_quiet = false;
                    self.perform(router, output);
                }
            }
            for side in 0..self.sides.len() {
                is_quiet &= !self.deliver(side);
            }
            if is_quiet {
                return;
            }
        }
    }

    fn perform(&mut self, router: usize, output: LinkOutput) {
        match output {
            LinkOutput::Connect(id, to) => self.connect(router, id, to),
            LinkOutput::Write(id, bytes) => {
                if let Some(side) = self.side(router, id) {
                    self.sides[side ^ 1].coming.push_back(bytes);
                }
            }
            LinkOutput::Receive(id, bytes) => {
                if let Some(side) = self.side(router, id) {
                    self.sides[side].granted += bytes;
                }
            }
            LinkOutput::ReadThreshold(..) | LinkOutput::BulkData(_) => {}
            LinkOutput::Hangup(id) => {
                if let Some(side) = self.side(router, id) {
                    self.sides[side].is_open = false;
                    self.tell(side ^ 1, LinkInput::Closed);
                    self.sides[side ^ 1].is_open = false;
                }
            }
        }
    }

    fn side(&self, router: usize, id: LinkId) -> Option<usize> {
        let is_it = |it: &Side| it.is_open && (it.router, it.id) == (router, id);
        self.sides.iter().position(is_it)
    }

    fn connect(&mut self, router: usize, id: LinkId, to: SocketAddr) {
        let target = (0..self.routers.len()).find(|it| SocketAddr::new(address(*it), PORT) == to);
        let target = target.expect("a router is dialled");
        let here = self.sides.len();
        for (router, id) in [(router, id), (target, LinkId(here as u64 + 1))] {
            let coming = VecDeque::new();
            self.sides.push(Side { router, id, granted: 0, coming, is_open: true });
        }
        let from = SocketAddr::new(address(router), 40_000 + here as u16);
        self.tell(here + 1, |id| LinkInput::Accepted(id, from));
        self.tell(here, LinkInput::Connected);
        self.tell(here, |id| LinkInput::Room(id, SOCKET));
        self.tell(here + 1, |id| LinkInput::Room(id, SOCKET));
    }

    /// Something comes to one side, if it may.
    fn deliver(&mut self, side: usize) -> bool {
        let Side { granted, coming, is_open: true, .. } = &mut self.sides[side] else {
            return false;
        };
        let Some(bytes) = coming.front_mut().filter(|_| *granted > 0) else { return false };
        let taken = bytes.split_to(bytes.len().min(*granted as usize));
        if bytes.is_empty() {
            coming.pop_front();
        }
        let count = taken.len() as u64;
        *granted -= count;
        self.tell(side, |id| LinkInput::Received(id, taken));
        self.tell(side ^ 1, |id| LinkInput::Room(id, count));
        true
    }
}

fn address(router: usize) -> IpAddr {
    [10, 0, 0, 1 + router as u8].into()
}

fn mesh(router: usize, key: [u8; 32]) -> MeshConfig {
    MeshConfig {
        selection: Selection::PhThcp,
        search: node::SearchConfig::default(),
        squares: node::Squares::default(),
        identity: [1 + router as u8; 32],
        key: Some(key),
        gateways: Vec::new(),
        port: PORT,
        overhear: None,
    }
}

fn route(router: usize) -> RouteTable {
    let interface = Interface { name: "wl0".into(), index: 3 };
    let source = RouteSource::Babeld;
    let exit = match router.checked_sub(1) {
        None => {
            let address = Some(address(router));
            Exit::Gateway(Uplink { address, interface: Some(interface), source })
        }
        Some(next_hop) => Exit::Mesh(Route {
            next_hop: address(next_hop),
            interface,
            gateway: Some(address(0)),
            metric: None,
            hops: Some(router as u32),
            address: Some(address(router)),
            source,
        }),
    };
    exit.into()
}
