//! What stands where: which machines have power, who hears whom, who has a way out of the mesh, and
//! what answers at each machine's port for peers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// The port for peers, on all nodes.
pub const PORT: u16 = 4711;

/// How a machine's port for peers answers a dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    Open,
    /// The connection is refused.
    Refuses,
    /// The dial gets no answer.
    Hole,
}

/// The address of a machine.
pub fn address(node: usize) -> IpAddr {
    [10, 0, 0, node as u8 + 1].into()
}

/// The machines and what joins them.
#[derive(Debug)]
pub struct Ground {
    pub ports: Vec<Port>,
    pub power: Vec<bool>,
    /// Machines with a way out of the mesh.
    pub uplinks: BTreeSet<usize>,
    wires: BTreeMap<(usize, usize), bool>,
}

impl Ground {
    /// Machines that hear their parents; the first has none, and the way out.
    pub fn new(parents: &[usize]) -> Self {
        let count = parents.len() + 1;
        let wire = |(child, parent): (usize, &usize)| (pair(child + 1, *parent), true);
        Self {
            ports: vec![Port::Open; count],
            power: vec![true; count],
            uplinks: BTreeSet::from([0]),
            wires: parents.iter().enumerate().map(wire).collect(),
        }
    }

    /// Whether two machines hear each other from now on.
    pub fn set_wire(&mut self, one: usize, other: usize, whole: bool) {
        self.wires.insert(pair(one, other), whole);
    }

    /// The machine at an address, if it is meant for peers.
    pub fn at(&self, to: SocketAddr) -> Option<usize> {
        (0..self.power.len()).find(|node| address(*node) == to.ip() && to.port() == PORT)
    }

    /// How many hops there are from one to the other; `None` if nothing passes.
    pub fn hops(&self, from: usize, to: usize) -> Option<u32> {
        if !self.power[from] || !self.power[to] {
            return None;
        }
        let mut seen = BTreeMap::from([(from, 0)]);
        let mut next = VecDeque::from([from]);
        while let Some(here) = next.pop_front() {
            if here == to {
                return Some(seen[&to]);
            }
            for there in 0..self.power.len() {
                let joined = self.wires.get(&pair(here, there)) == Some(&true);
                if joined && self.power[there] && !seen.contains_key(&there) {
                    seen.insert(there, seen[&here] + 1);
                    next.push_back(there);
                }
            }
        }
        None
    }

    /// How many hops there are from a machine to the nearest way out, if there is one.
    pub fn hops_out(&self, from: usize) -> Option<u32> {
        self.uplinks.iter().filter_map(|uplink| self.hops(from, *uplink)).min()
    }
}

fn pair(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}
