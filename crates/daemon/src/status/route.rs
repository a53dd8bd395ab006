//! The route to the gateway in the status, and in one line for people.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use host::routing;
use node::{Exit, RouteTable};
use serde::{Deserialize, Serialize};
use wire::Date;

use crate::term;

/// The route to the gateway; [`Exit`] explains the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Interfaces to other nodes.
    pub interfaces: Vec<String>,
    /// Whether there is a route, or this node is the gateway.
    pub up: bool,
    /// Whether this node is the gateway.
    pub is_gateway: bool,
    /// The gateway's address, if it is known.
    pub gateway: Option<IpAddr>,
    /// The next hop towards the gateway.
    pub next_hop: Option<IpAddr>,
    /// The interface towards the gateway; on the gateway, the uplink.
    pub interface: Option<String>,
    /// The route's cost in the routing protocol's unit, if it is known.
    pub metric: Option<u32>,
    /// Hops to the gateway, if they are known.
    pub hops: Option<u32>,
    /// The route's source: `kernel`, `babeld` or `config`.
    pub source: Option<String>,
    /// How many other routers this one knows a path to.
    #[serde(default)]
    pub routers: u64,
    /// For how long babeld has not answered whose last routes these are; `null` if it answers, or if
    /// its routes are not used.
    #[serde(default)]
    pub babeld_silent_seconds: Option<u64>,
    /// Interfaces of the mesh that forward below IP, so that each router is one hop away.
    #[serde(default)]
    pub below_ip: Vec<BelowIp>,
    /// Why routes are not known at all.
    pub error: Option<String>,
}

/// An interface that forwards below IP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BelowIp {
    /// The interface.
    pub interface: String,
    /// The protocol that forwards: `batman-adv` or `802.11s`.
    pub by: String,
}

impl Route {
    /// The status of the routes over these interfaces.
    pub fn new(interfaces: &[String], table: &RouteTable, now: Date) -> Self {
        let exit = &table.exit;
        let mut it = Self {
            interfaces: interfaces.to_vec(),
            up: *exit != Exit::Nowhere,
            is_gateway: exit.is_gateway(),
            gateway: exit.gateway(),
            source: exit.source().map(|source| source.as_str().to_owned()),
            routers: table.paths.len() as u64,
            babeld_silent_seconds: table.stopped.map(|since| now.since(since)),
            ..Self::default()
        };
        match exit {
            Exit::Nowhere => {}
            Exit::Gateway(uplink) => {
                it.interface = uplink.interface.as_ref().map(|it| it.name.clone());
                it.hops = Some(0);
            }
            Exit::Mesh(route) => {
                it.next_hop = Some(route.next_hop);
                it.interface = Some(route.interface.name.clone());
                (it.metric, it.hops) = (route.metric, route.hops);
            }
        }
        it
    }

    /// The status if routes cannot be known.
    pub fn failed(interfaces: &[String], error: String) -> Self {
        Self { interfaces: interfaces.to_vec(), error: Some(error), ..Self::default() }
    }

    /// The same, with what forwards below IP now.
    pub fn look_below_ip(self) -> Self {
        let found = routing::below_ip(&self.interfaces).into_iter();
        let found = found.map(|(interface, by)| BelowIp { interface, by: by.as_str().into() });
        Self { below_ip: found.collect(), ..self }
    }

    /// What the operator should know of interfaces that forward below IP.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.below_ip.iter().map(|it| routing::consequence(&it.interface, &it.by))
    }

    /// A warning for the operator, if babeld has stopped.
    pub fn warning(&self) -> Option<String> {
        let age = term::duration(Duration::from_secs(self.babeld_silent_seconds?));
        Some(format!("babeld has not answered for {age}: its last routes are used"))
    }
}

/// One line.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.next_hop, self.is_gateway) {
            (_, true) => f.write_str("this is the gateway")?,
            (None, false) => return f.write_str("no route"),
            (Some(next_hop), false) => match self.gateway {
                Some(gateway) => write!(f, "gateway {gateway} over {next_hop}")?,
                None => write!(f, "over {next_hop}")?,
            },
        }
        if let Some(interface) = &self.interface {
            write!(f, " ({interface})")?;
        }
        if let Some(metric) = self.metric {
            write!(f, ", metric {metric}")?;
        }
        let source = self.source.as_deref().filter(|_| !self.is_gateway);
        source.map_or(Ok(()), |source| write!(f, ", {source}"))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use node::{Interface, RouteSource, Uplink};

    fn interface(name: &str) -> Interface {
        Interface { name: name.into(), index: 3 }
    }

    /// A route over one neighbour, as babeld announces it.
    pub fn over_one() -> Route {
        let route = node::Route {
            next_hop: "10.77.0.4".parse().unwrap(),
            interface: interface("wl0"),
            gateway: "10.77.0.8".parse().ok(),
            metric: Some(512),
            hops: None,
            address: None,
            source: RouteSource::Babeld,
        };
        Route::new(&["wl0".to_owned()], &Exit::Mesh(route).into(), Date::default())
    }

    #[test]
    fn each_state_is_one_line() {
        let line = "gateway 10.77.0.8 over 10.77.0.4 (wl0), metric 512, babeld";
        assert_eq!(over_one().to_string(), line);
        let without =
            Route { gateway: None, metric: None, source: Some("kernel".into()), ..over_one() };
        assert_eq!(without.to_string(), "over 10.77.0.4 (wl0), kernel");
        let uplink = Uplink {
            address: None,
            interface: Some(interface("wan0")),
            source: RouteSource::Kernel,
        };
        let now = Date::default();
        let gateway = Route::new(&[], &Exit::Gateway(uplink).into(), now);
        assert_eq!(gateway.to_string(), "this is the gateway (wan0)");
        assert_eq!((gateway.up, gateway.hops), (true, Some(0)));
        let nowhere = Route::new(&[], &RouteTable::default(), now);
        assert_eq!((nowhere.to_string().as_str(), nowhere.up), ("no route", false));
    }

    #[test]
    fn the_age_of_a_babeld_that_stopped_is_said() {
        let table = RouteTable { stopped: Some(Date::from_unix(1000)), ..RouteTable::default() };
        let route = |now| Route::new(&[], &table, Date::from_unix(now));
        let line = "babeld has not answered for 3 min: its last routes are used";
        assert_eq!(route(1180).warning().as_deref(), Some(line));
        assert_eq!(route(1180).babeld_silent_seconds, Some(180));
        // The clock was set back.
        assert_eq!(route(900).babeld_silent_seconds, Some(0));
        assert_eq!(over_one().warning(), None);
    }
}
