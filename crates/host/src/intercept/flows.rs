//! Connections of any protocol that are intercepted for the uplink's pair, besides those of HTTP.

use std::fmt;

use node::uplink::Reach;
use serde::{Deserialize, Serialize};

use super::{FIRST_SEGMENT, Family, Rules, quoted, set};

/// What is intercepted besides HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// Interfaces whose clients are served.
    pub interfaces: Vec<String>,
    /// Destination ports.
    pub ports: FlowPorts,
    /// The families that the far end reaches now; the others are not intercepted.
    pub reach: Reach,
}

/// Destination ports of connections of any protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowPorts {
    /// These.
    Only(Vec<u16>),
    /// All but these.
    AllBut(Vec<u16>),
}

impl Default for FlowPorts {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

impl FlowPorts {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These and others.
    #[must_use]
    pub fn with(self, others: &[u16]) -> Self {
        match self {
            Self::Only(ports) => {
                let mut all = [&ports, others].concat();
                all.sort_unstable();
                all.dedup();
                Self::Only(all)
            }
            Self::AllBut(mut ports) => {
                ports.retain(|port| !others.contains(port));
                Self::AllBut(ports)
            }
        }
    }

    /// Whether a port is one of them.
    #[must_use]
    pub fn has(&self, port: u16) -> bool {
        match self {
            Self::Only(ports) => ports.contains(&port),
            Self::AllBut(ports) => !ports.contains(&port),
        }
    }

    fn condition(&self) -> String {
        let (not, ports) = match self {
            Self::Only(ports) => ("", ports),
            Self::AllBut(ports) => ("!= ", ports),
        };
        format!("tcp dport {not}{}", set(ports.iter().map(u16::to_string)))
    }
}

/// Words for people: `25 5432`, `all but 22 443`.
impl fmt::Display for FlowPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, ports) = match self {
            Self::Only(ports) => ("", ports),
            Self::AllBut(ports) => ("all but ", ports),
        };
        let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
        write!(f, "{words}{}", ports.join(" "))
    }
}

impl Flows {
    /// Whether connections of this family are intercepted now.
    #[must_use]
    pub fn covers(&self, family: Family) -> bool {
        match family {
            Family::V4 => self.reach.v4,
            Family::V6 => self.reach.v6,
        }
    }
}

impl Rules {
    /// The rule that redirects these connections of one family. Private destinations are not the far end's.
    pub(super) fn redirect_flows(&self, family: Family) -> Option<String> {
        let flows = self.flows.as_ref().filter(|it| it.covers(family) && !self.out.is_empty())?;
        // Its address also tells the family.
        let (address, _) = family.nft_words();
        let (interfaces, ports) = (quoted(&flows.interfaces), flows.ports.condition());
        let (out, listen_port, mark) =
            (quoted(&self.out), self.listen_port, self.mark_and_accept());
        let private = match family {
            Family::V4 => "10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16",
            Family::V6 => "64:ff9b:1::/48, fc00::/7",
        };
        Some(format!(
            "    iifname {interfaces} {FIRST_SEGMENT} {ports} {address} daddr != {{ {private} }} \
             fib daddr . mark oifname {out} tproxy {address} to :{listen_port} {mark}\n"
        ))
    }

    /// Whether nft's listing has that rule, if it is wanted.
    pub(super) fn has_flows(&self, family: Family, lines: &[&str]) -> bool {
        let Some(wanted) = self.redirect_flows(family) else { return true };
        // nft writes the names of a set in an order of its own, and a single one without braces.
        let sorted = |line: &str| {
            // nft has two ways of writing it.
            let line = line.replace(FIRST_SEGMENT, "").replace("tcp flags syn / syn,ack", "");
            let separators = [' ', ',', '\t', '{', '}'];
            let mut words: Vec<_> = line
                .trim()
                .split(separators)
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
                .collect();
            words.sort_unstable();
            words
        };
        let wanted = sorted(&wanted);
        lines.iter().any(|line| sorted(line) == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(ports: FlowPorts, reach: Reach) -> Rules {
        let flows = Flows { interfaces: vec!["lan0".into(), "wl0".into()], ports, reach };
        Rules { flows: Some(flows), out: vec!["wan0".into()], ..Rules::default() }
    }

    #[test]
    fn only_families_that_the_far_end_reaches_are_redirected() {
        let ports = FlowPorts::AllBut(vec![22, 443]);
        let it = rules(ports, Reach { v4: true, v6: false });
        assert_eq!(
            it.redirect_flows(Family::V4).unwrap(),
            "    iifname { \"lan0\", \"wl0\" } tcp flags & (syn | ack) == syn tcp dport != { 22, 443 } \
             ip daddr != { 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16 } \
             fib daddr . mark oifname { \"wan0\" } tproxy ip to :3130 \
             meta mark set meta mark | 0x04000000 accept\n"
        );
        assert_eq!(it.redirect_flows(Family::V6), None);
        assert!(it.has_flows(Family::V6, &[]), "none is wanted");
        assert!(!it.has_flows(Family::V4, &[]));
    }

    #[test]
    fn nfts_own_way_of_listing_is_understood() {
        let it = rules(FlowPorts::Only(vec![5432]), Reach { v4: false, v6: true });
        let listed = "\t\tiifname { \"wl0\", \"lan0\" } tcp flags syn / syn,ack tcp dport 5432 ip6 daddr != \
                      { 64:ff9b:1::/48, fc00::/7 } fib daddr . mark oifname \"wan0\" tproxy ip6 to :3130 \
                      meta mark set meta mark | 0x04000000 accept";
        assert!(it.has_flows(Family::V6, &[listed]));
        assert!(!it.has_flows(Family::V6, &[&listed.replace("5432", "5433")]));
        assert!(!it.has_flows(Family::V6, &[&listed.replace("wan0", "wan1")]));
    }

    #[test]
    fn a_port_is_in_a_list_or_out_of_it() {
        let (only, but) = (FlowPorts::Only(vec![25]), FlowPorts::AllBut(vec![25]));
        assert!(only.has(25) && !only.has(26) && !but.has(25) && but.has(26));
        assert!(FlowPorts::default().is_empty() && !only.is_empty() && !but.is_empty());
        assert_eq!((only.to_string(), but.to_string()), ("25".into(), "all but 25".into()));
    }
}
