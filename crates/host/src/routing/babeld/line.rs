//! The lines of babeld's local socket, as types.
//!
//! A line has the form `verb kind key`, followed by pairs of a name and a value. Unknown names are
//! ignored, because every version of babeld adds some. The format is that of babeld 1.12; see its
//! `local.c`.

use std::net::IpAddr;

use crate::routing::net::Net;

/// An infinite metric or cost: there is no route (RFC 8966 §2.5).
pub const INFINITY: u32 = 0xffff;

/// The greatest length of an interface's name (`IFNAMSIZ` with a zero byte).
const NAME_MAX: usize = 15;

/// Eight bytes that a router chooses for itself.
pub type RouterId = [u8; 8];

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The first line: the protocol's major version.
    Greeting(u32),
    /// The end of a response.
    Ok,
    /// A request was refused or not understood.
    Refused,
    /// An item was added or changed.
    Is(Thing),
    /// An item was removed.
    Gone(Key),
    /// A line that is not needed here.
    Other,
}

/// The item of a line. The numbers are babeld's handles, valid while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Route(u64),
    Neighbour(u64),
    Exported(Net),
}

/// An item with its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thing {
    Route(u64, Route),
    Neighbour(u64, Neighbour),
    /// A prefix that this router itself announces.
    Exported(Net),
}

/// A route learnt from a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub to: Net,
    pub is_installed: bool,
    /// The router that originated it.
    pub id: RouterId,
    /// `None` if it is 0: each link costs something (RFC 8966 §3.5.2), so nobody can know better.
    pub metric: Option<u32>,
    /// The neighbour from which it was learnt.
    pub via: IpAddr,
    pub interface: String,
}

/// A neighbouring router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    pub address: IpAddr,
    pub interface: String,
    /// Which of its latest hellos were received, one bit each; multicast and unicast.
    pub reach: (u16, u16),
    /// The link's cost of reception here, and the one that the neighbour reports.
    pub costs: (u32, u32),
}

impl Route {
    /// Whether it leads anywhere.
    pub fn is_finite(&self) -> bool {
        self.metric.is_none_or(|metric| metric < INFINITY)
    }
}

impl Neighbour {
    /// Whether both receive each other.
    pub fn is_bidirectional(&self) -> bool {
        self.reach != (0, 0) && self.costs.0 < INFINITY && self.costs.1 < INFINITY
    }
}

/// Parses a line; `None` if it is malformed.
pub fn parse(line: &str) -> Option<Line> {
    let mut words = line.split_ascii_whitespace();
    let Some(verb) = words.next() else { return Some(Line::Other) };
    let is_there = match verb {
        "BABEL" => return words.next()?.split('.').next()?.parse().ok().map(Line::Greeting),
        "ok" => return Some(Line::Ok),
        "no" | "bad" => return Some(Line::Refused),
        "add" | "change" => true,
        "flush" => false,
        _ => return Some(Line::Other),
    };
    let (kind, name) = (words.next()?, words.next()?);
    let pairs = Pairs(words.collect());
    if !matches!(kind, "route" | "xroute" | "neighbour") || !pairs.is_for_any_source() {
        return Some(Line::Other);
    }
    if is_there { thing(kind, name, &pairs).map(Line::Is) } else { gone(kind, name, &pairs) }
}

fn thing(kind: &str, name: &str, pairs: &Pairs<'_>) -> Option<Thing> {
    match kind {
        "route" => Some(Thing::Route(number(name)?, route(pairs)?)),
        "xroute" => Some(Thing::Exported(pairs.get("prefix")?.parse().ok()?)),
        _ => Some(Thing::Neighbour(number(name)?, neighbour(pairs)?)),
    }
}

fn gone(kind: &str, name: &str, pairs: &Pairs<'_>) -> Option<Line> {
    let key = match kind {
        "route" => Key::Route(number(name)?),
        "xroute" => Key::Exported(pairs.get("prefix")?.parse().ok()?),
        _ => Key::Neighbour(number(name)?),
    };
    Some(Line::Gone(key))
}

fn route(pairs: &Pairs<'_>) -> Option<Route> {
    let metric: u32 = pairs.get("metric")?.parse().ok()?;
    Some(Route {
        to: pairs.get("prefix")?.parse().ok()?,
        is_installed: pairs.get("installed")? == "yes",
        id: router_id(pairs.get("id")?)?,
        metric: (metric != 0).then_some(metric),
        via: pairs.get("via")?.parse().ok()?,
        interface: interface(pairs)?,
    })
}

fn interface(pairs: &Pairs<'_>) -> Option<String> {
    pairs.get("if").filter(|name| name.len() <= NAME_MAX).map(ToOwned::to_owned)
}

fn neighbour(pairs: &Pairs<'_>) -> Option<Neighbour> {
    let reach = |name| u16::from_str_radix(pairs.get(name).unwrap_or("0"), 16).ok();
    let cost = |name| pairs.get(name)?.parse().ok();
    Some(Neighbour {
        address: pairs.get("address")?.parse().ok()?,
        interface: interface(pairs)?,
        reach: (reach("reach")?, reach("ureach")?),
        costs: (cost("rxcost")?, cost("txcost")?),
    })
}

struct Pairs<'a>(Vec<&'a str>);

impl<'a> Pairs<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1])
    }

    /// Whether it applies to packets from any source; source-specific routes are ignored.
    fn is_for_any_source(&self) -> bool {
        self.get("from").is_none_or(|from| from.ends_with("/0"))
    }
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn router_id(text: &str) -> Option<RouterId> {
    let mut id = RouterId::default();
    let mut parts = text.split(':');
    for byte in &mut id {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_babeld_says_is_understood() {
        let line = "change route 5617093ad6e0 prefix 0.0.0.0/0 from 0.0.0.0/0 installed yes \
            id 40:d3:c5:cd:65:31:90:49 metric 650 refmetric 394 via fe80::8cae:f2ff:fece:46a3 if wl0";
        let route = Route {
            to: "0.0.0.0/0".parse().unwrap(),
            is_installed: true,
            id: [0x40, 0xd3, 0xc5, 0xcd, 0x65, 0x31, 0x90, 0x49],
            metric: Some(650),
            via: "fe80::8cae:f2ff:fece:46a3".parse().unwrap(),
            interface: "wl0".into(),
        };
        assert_eq!(parse(line), Some(Line::Is(Thing::Route(0x5617_093a_d6e0, route))));
        let line = "add neighbour 5617093abf80 address fe80::8cae:f2ff:fece:46a3 if wl0 \
            reach ffc0 ureach 0000 rxcost 256 txcost 65535 rtt 1.3 cost 65535";
        let neighbour = Neighbour {
            address: "fe80::8cae:f2ff:fece:46a3".parse().unwrap(),
            interface: "wl0".into(),
            reach: (0xffc0, 0),
            costs: (256, INFINITY),
        };
        assert!(!neighbour.is_bidirectional());
        assert!(Neighbour { costs: (256, 264), ..neighbour.clone() }.is_bidirectional());
        assert_eq!(parse(line), Some(Line::Is(Thing::Neighbour(0x5617_093a_bf80, neighbour))));
        let line =
            "flush xroute 10.77.0.3/32-0.0.0.0/0 prefix 10.77.0.3/32 from 0.0.0.0/0 metric 0";
        let net = "10.77.0.3/32".parse().unwrap();
        assert_eq!(parse(line), Some(Line::Gone(Key::Exported(net))));
    }

    #[test]
    fn other_lines_are_passed_over_and_broken_ones_are_told_apart() {
        for (line, expected) in [
            ("BABEL 1.0", Some(Line::Greeting(1))),
            ("ok", Some(Line::Ok)),
            ("bad", Some(Line::Refused)),
            ("no such thing", Some(Line::Refused)),
            ("version babeld-1.12.1", Some(Line::Other)),
            ("", Some(Line::Other)),
            ("add interface wl0 up true ipv4 10.77.0.1", Some(Line::Other)),
            ("add route 1 prefix 0.0.0.0/0 from 10.0.0.0/8 installed yes", Some(Line::Other)),
            ("flush route 1", Some(Line::Gone(Key::Route(1)))),
            ("add", None),
            ("add route x", None),
            ("add route 1 prefix 0.0.0.0/33", None),
            ("add neighbour 1 address fe80::1 if wl0 reach ffff rxcost 256", None),
            ("BABEL", None),
            ("add neighbour 1 address fe80::1 if sixteen_letters0 rxcost 1 txcost 1", None),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_can_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn no_words_can_make_it_panic(
            words in proptest::collection::vec(
                "add|change|flush|route|xroute|neighbour|prefix|from|id|via|if|reach|metric|installed\
                |yes|0.0.0.0/0|::/0|10.0.0.1/32|fe80::1|ffff|256|40:d3:c5:cd:65:31:90:49|[^ ]{1,4}",
                0..24,
            )
        ) {
            let _ = parse(&words.join(" "));
        }
    }
}
