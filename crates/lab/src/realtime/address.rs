//! Names and addresses. Routers are counted from 0 in the scenario's order.

use std::net::Ipv4Addr;

use sim::monitor;
use sim::scenario::{FarEnd, Scenario};
use wire::capture::ieee80211::Mac;

/// The namespace of the origin, and its name in the namespaces' `/etc/hosts`.
pub const ORIGIN: &str = "origin";

/// The namespace of the far end, and its name in the namespaces' `/etc/hosts`.
pub const FAR: &str = "far";

/// The port of the far end.
pub const FAR_PORT: u16 = 3144;

/// The gateway's end of the uplink.
pub const UPLINK_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);

/// The outer end of the uplink: the far end's if there is one, else the origin's.
pub const OUTER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

/// The far end's address towards the origin.
pub const FAR_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// The origin's address behind a far end: of a network for tests (RFC 2544). To a far end private addresses
/// are the site's own, which the gateway reaches itself.
const PUBLIC_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// The networks of all routers, of all clients, and of the uplink, as the origin routes them.
pub const MESH_NET: &str = "10.77.0.0/16";
pub const CLIENTS_NET: &str = "10.78.0.0/16";
pub const UPLINK_NET: &str = "10.79.0.0/30";

/// The origin's address.
pub fn origin(scenario: &Scenario) -> Ipv4Addr {
    match scenario.far {
        FarEnd::None => OUTER_ADDRESS,
        FarEnd::Pair => PUBLIC_ADDRESS,
    }
}

/// The namespace of a router.
pub fn router(scenario: &Scenario, router: usize) -> String {
    format!("router-{}", scenario.routers[router].name)
}

/// The namespace of the client that is wired to a router.
pub fn client(scenario: &Scenario, router: usize) -> String {
    format!("client-{}", scenario.routers[router].name)
}

/// A router's address on the mesh.
pub fn mesh(router: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number(router))
}

/// A router's address on its client's network.
pub fn lan(router: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, number(router), 1)
}

/// The network between a router and its client.
pub fn lan_net(router: usize) -> String {
    format!("{}/24", lan_net_address(router))
}

/// That network's own address.
pub fn lan_net_address(router: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, number(router), 0)
}

/// The address of a router's client.
pub fn lan_client(router: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, number(router), 2)
}

/// A router's MAC address on the mesh.
pub fn mac(router: usize) -> Mac {
    monitor::mac(router)
}

/// The router with this MAC address.
pub fn router_of(mac: &[u8], routers: usize) -> Option<usize> {
    let [0x02, 0x68, 0x65, 0x61, 0x72, number] = *mac else { return None };
    usize::from(number).checked_sub(1).filter(|router| *router < routers)
}

/// A MAC address in the format that `ip` reads.
pub fn mac_text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn number(router: usize) -> u8 {
    u8::try_from(router + 1).expect("scenarios have at most 200 routers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_is_found_by_its_address_on_the_air() {
        assert_eq!(router_of(&mac(7), 8), Some(7));
        for stranger in [&mac(8)[..], &monitor::BSSID, &[0xff; 6], &[]] {
            assert_eq!(router_of(stranger, 8), None, "{stranger:?}");
        }
    }
}
