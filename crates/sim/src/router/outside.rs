//! The machines beyond the uplink: the origin, and the far end before it if the scenario has one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use super::far::{FAR_PORT, Far};
use super::mesh::Member;
use super::{FarPlace, HTTP_PORT, keys};
use crate::net::Host;
use crate::scenario::{FarEnd, Scenario};
use crate::world::{Wire, World, address, outside};

/// The wire between the far end and the origin.
const CABLE: Wire = Wire::LAN;

/// Their numbers. All machines are in this order: stations, the far end, the origin, clients.
pub(super) struct Outside<'a> {
    scenario: &'a Scenario,
    far: Option<usize>,
    origin: usize,
}

impl<'a> Outside<'a> {
    /// Those of a scenario.
    pub fn of(scenario: &'a Scenario) -> Self {
        let count = scenario.routers.len();
        match scenario.far {
            FarEnd::None => Self { scenario, far: None, origin: count },
            FarEnd::Pair => Self { scenario, far: Some(count), origin: count + 1 },
        }
    }

    /// The machine at the uplink's outer end.
    pub fn outer(&self) -> usize {
        self.far.unwrap_or(self.origin)
    }

    /// The number of the first client.
    pub fn end(&self) -> usize {
        self.origin + 1
    }

    /// A machine's address. Behind a far end the origin has a public one: private addresses are the site's own.
    pub fn address_of(&self, machine: usize) -> Ipv4Addr {
        let is_outside = self.far.is_some() && machine == self.origin;
        if is_outside { outside(machine) } else { address(machine) }
    }

    /// The origin's address and port.
    pub fn server(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.address_of(self.origin), HTTP_PORT)
    }

    /// The origin's address by its name.
    pub fn names(&self) -> BTreeMap<String, IpAddr> {
        let address = IpAddr::V4(self.address_of(self.origin));
        BTreeMap::from([(self.scenario.far.origin_name().to_owned(), address)])
    }

    /// What the gateway knows of the far end. `seed` gives a machine's own.
    pub fn far_place(&self, seed: impl Fn(usize) -> u64) -> Option<FarPlace> {
        self.far.map(|far| FarPlace {
            to: SocketAddrV4::new(address(far), FAR_PORT),
            key: keys(seed(far)).key(),
            scheme: self.scenario.published,
        })
    }

    /// Attaches them to the gateway, by the uplink of a run of this seed.
    pub fn attach(
        &self,
        world: &mut World<Member>,
        run: u64,
        seed: impl Fn(usize) -> u64,
        host: impl Fn(usize) -> Host,
        server: Member,
    ) {
        let Scenario { gateway, uplink, .. } = *self.scenario;
        let uplink = uplink.pipes(run);
        if let Some(far) = self.far {
            let near = keys(seed(gateway)).key();
            let member = Member::Far(Box::new(Far::new(near, seed(far), self.names())));
            world.attach_by(gateway, uplink, host(far), member);
            world.attach(far, CABLE, host(self.origin), server);
        } else {
            world.attach_by(gateway, uplink, host(self.origin), server);
        }
    }
}
