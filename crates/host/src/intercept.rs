//! Transparent interception: the firewall and routing rules that redirect clients' connections to
//! the daemon.
//!
//! There are three parts. All are the daemon's own, so rules of other programs are not changed:
//!
//! 1. the nftables table `inet hearsay`: new TCP connections that arrive on a chosen interface, for
//!    a chosen port, are given to the listening socket (TPROXY) and marked; what is only forwarded for
//!    clients is counted (`intercept/forwarded.rs`). Only a connection's first segment is given to it:
//!    answers of servers behind a chosen interface, and connections that are older than the rules, pass;
//! 2. one `ip rule` per address family: marked packets are looked up in a routing table of the
//!    daemon's own;
//! 3. one route in that table: every destination is local, so marked packets reach the socket.
//!
//! Without a listener, the first part does not match, and packets are forwarded as if there were no
//! rules: a dead daemon does not interrupt clients. Read the kernel's
//! `Documentation/networking/tproxy.rst` before editing.

use std::fmt;

use node::Prefix;
use node::uplink::Reach;
use thiserror::Error;
use wire::counters::Reason as _;

use crate::routing::{Forward, forward_marked};

mod bridge;
mod command;
mod flows;
mod forwarded;
pub mod offload;
mod report;
mod ruleset;
pub mod trial;

pub use bridge::Bridged;
use command::{query, run, sysctl, words};
pub use flows::{FlowPorts, Flows};
pub use forwarded::{Forwarded, ForwardedBytes, Kind, forwarded};
pub use report::{FamilyReport, Report};
use ruleset::{has_bridges, quoted, set};

/// The nftables table with all of the daemon's firewall rules.
pub const TABLE_NAME: &str = "hearsay";

/// The priority of the `ip rule`: after the kernel's `local` table (0), but before rules that
/// choose an uplink (mwan3 1000 and up, tailscale 5210, wg-quick 32764, `main` 32766). An
/// intercepted packet must not be sent to an uplink.
pub const RULE_PRIORITY: u32 = 313;

/// IPv6 addresses that stand for IPv4 addresses, as [`node::plain`] reads them: all that are
/// compatible (and `::1`), mapped or translated, and private ones under the well-known prefixes of
/// NAT64 and 6to4.
const SPELLED_IPV4: &str = "::/96, 64:ff9b::a00:0/104, 64:ff9b::6440:0/106, 64:ff9b::7f00:0/104, \
     64:ff9b::a9fe:0/112, 64:ff9b::ac10:0/108, 64:ff9b::c0a8:0/112, ::ffff:0:0/96, ::ffff:0:0:0/96, \
     2002:a00::/24, 2002:6440::/26, 2002:7f00::/24, 2002:a9fe::/32, 2002:ac10::/28, 2002:c0a8::/32";

/// nftables' condition for the segment that begins a connection.
const FIRST_SEGMENT: &str = "tcp flags & (syn | ack) == syn";

/// The kernel's limit for the name of an interface, without the final NUL (IFNAMSIZ is 16).
const INTERFACE_NAME_MAX: usize = 15;

/// The note to the operator while nothing can be intercepted.
const NOTHING_LEADS_OUT: &str = "no interface has a default route, so nothing leads out of this site: only what has no route, \
                                 and what `[mesh] direct` covers, is intercepted, and clients get what is stored; name the \
                                 interfaces that lead out in `[access] out`, if there are any";

/// What to intercept, and the numbers to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Interfaces whose clients' HTTP is served.
    pub interfaces: Vec<String>,
    /// Destination ports of HTTP.
    pub ports: Vec<u16>,
    /// Connections of other protocols, which go by the uplink's pair; `None` without one.
    pub flows: Option<Flows>,
    /// Interfaces that lead out of the site: only packets that the kernel would route out by one of
    /// them are intercepted. All others are subject to the firewall's own rules between zones.
    pub out: Vec<String>,
    /// Destinations that are intercepted regardless of their route.
    pub direct: Vec<Prefix>,
    /// The port of the transparent listener.
    pub listen_port: u16,
    /// Bits to set in the mark of intercepted packets. Only these bits are changed and tested, so
    /// other programs can use the others.
    pub mark: u32,
    /// The number of the routing table that makes marked packets local.
    pub table: u32,
}

/// What of the rules changes while the daemon runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The interfaces that lead out of the site.
    pub out: Vec<String>,
    /// The families that the far end of the uplink reaches; none while it does not answer.
    pub reach: Reach,
}

impl Default for Rules {
    /// Port 80, listener 3130; mark bit 26, which mwan3, tailscale, wg-quick, kube-proxy and
    /// OpenWrt's pbr do not use; routing table 3130, a number that administrators are unlikely to
    /// use.
    fn default() -> Self {
        Self {
            interfaces: Vec::new(),
            ports: vec![80],
            flows: None,
            out: Vec::new(),
            direct: Vec::new(),
            listen_port: 3130,
            mark: 0x0400_0000,
            table: 3130,
        }
    }
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both, in the order of their setup.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Whether the kernel supports it in this network namespace. IPv6 may be missing from the
    /// kernel, disabled at boot, or disabled by sysctl; `lo` needs it for the route.
    #[must_use]
    pub fn is_available(self) -> bool {
        self == Self::V4 || sysctl("net/ipv6/conf/lo/disable_ipv6").as_deref() == Some("0")
    }

    fn ip_flag(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }

    /// nftables' keywords for it: of an address and of the protocol.
    fn nft_words(self) -> (&'static str, &'static str) {
        match self {
            Self::V4 => ("ip", "ipv4"),
            Self::V6 => ("ip6", "ipv6"),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

wire::reasons! {
    /// What rules lack that would intercept nothing.
    pub enum Lack {
        /// Name at least one interface (--interface).
        Interface = "interface",
        /// Name at least one port from 1 to 65535 (--dport).
        Port = "port",
        /// The mark and the routing table must not be 0.
        Mark = "mark",
    }
}

/// Why the rules could not be set, checked or removed. After an error of [`Rules::apply`], all
/// changes of that call are undone.
#[derive(Debug, Error)]
pub enum Error {
    /// An argument is invalid; nothing was changed.
    #[error(
        "{0:?} is not the name of an interface: 1 to 15 letters, digits, '.', '_' or '-', not starting with '-'; see `ip link`"
    )]
    InterfaceName(String),
    /// The rules would intercept nothing; nothing was changed.
    #[error("nothing to intercept: {}", .0.clause())]
    Empty(Lack),
    /// A program is missing; it changed nothing.
    #[error(
        "the program `{program}` is not installed: install {package} (Debian: `apt install {package}`)"
    )]
    ProgramMissing {
        /// The program.
        program: &'static str,
        /// The package that contains it.
        package: &'static str,
    },
    /// CAP_NET_ADMIN is missing.
    #[error(
        "`{command}` was not permitted: run as root, or with the ambient capability CAP_NET_ADMIN (systemd: AmbientCapabilities=CAP_NET_ADMIN)"
    )]
    NotPermitted {
        /// The command that was refused.
        command: String,
    },
    /// The kernel or nft refused the ruleset.
    #[error(
        "nft refused the rules: {message}. The kernel needs nft_tproxy, nft_socket and nft_fib_inet (OpenWrt: kmod-nft-tproxy, kmod-nft-socket, kmod-nft-fib)"
    )]
    Ruleset {
        /// The first line of nft's message.
        message: String,
    },
    /// A command failed for another reason.
    #[error("`{command}` failed: {message}")]
    Command {
        /// The command line.
        command: String,
        /// The first line of its message.
        message: String,
    },
}

/// The result of [`Rules::apply`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Notes for the operator, for example that an address family was skipped.
    pub notes: Vec<String>,
}

impl Rules {
    /// All interfaces on which something is intercepted, without repetition.
    #[must_use]
    pub fn all_interfaces(&self) -> Vec<String> {
        let mut all = self.interfaces.clone();
        let of_flows = self.flows.iter().flat_map(|flows| &flows.interfaces);
        all.extend(of_flows.filter(|it| !self.interfaces.contains(it)).cloned());
        all
    }

    /// Whether anything is intercepted.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.all_interfaces().is_empty()
    }

    /// The rules as they are to be at this moment.
    #[must_use]
    pub fn at(self, moment: &Moment) -> Self {
        let flows = self.flows.map(|flows| Flows { reach: moment.reach, ..flows });
        Self { out: moment.out.clone(), flows, ..self }
    }

    /// What they depend on, as it is now.
    #[must_use]
    pub fn moment(&self) -> Moment {
        let reach = self.flows.as_ref().map(|flows| flows.reach).unwrap_or_default();
        Moment { out: self.out.clone(), reach }
    }

    /// Puts the rules in force. Applying them again has no further effect.
    ///
    /// # Errors
    /// See [`enum@Error`]; the changes of this call are then undone.
    pub fn apply(&self) -> Result<Applied, Error> {
        let ruleset = self.ruleset(&self.bridged())?;
        let mut added = Vec::new();
        let outcome = self.apply_parts(&ruleset, &mut added);
        if outcome.is_err() {
            for undo in added.iter().rev() {
                // If undoing fails too, nothing more can be done; the first error is reported.
                let _ = run("ip", undo, None);
            }
        }
        outcome
    }

    /// Checks which rules are in force, which are missing, and what may bypass them. If `self` has
    /// no interfaces, a redirection from any interface suffices.
    ///
    /// # Errors
    /// If `nft` or `ip` is missing or fails.
    pub fn check(&self) -> Result<Report, Error> {
        let families = self.families()?;
        let mut warnings: Vec<_> = offload::flowtables()?.iter().map(bypass).collect();
        warnings.extend(self.mark_trap().into_iter().chain(self.bridge_trap()));
        let interfaces_missing = missing_interfaces(&self.all_interfaces());
        Ok(Report { families, interfaces_missing, warnings })
    }

    /// Which rules are in force, as [`check`](Self::check) finds them: IPv4, then IPv6.
    ///
    /// # Errors
    /// If `nft` or `ip` is missing or fails.
    pub fn families(&self) -> Result<Vec<FamilyReport>, Error> {
        let ruleset = query("nft", &words("list table inet hearsay"))?.unwrap_or_default();
        let has_bridges = has_bridges(&self.bridged(), &ruleset);
        let report = |family: Family| {
            let available = family.is_available();
            Ok(FamilyReport {
                family,
                available,
                redirect: has_bridges && self.is_redirected(family, &ruleset),
                rule: available && self.has_rule(family)?,
                route: available && self.has_route(family)?,
            })
        };
        Family::ALL.into_iter().map(report).collect()
    }

    /// Stops intercepting new connections; existing intercepted ones continue.
    ///
    /// # Errors
    /// See [`enum@Error`]; the rules are then unchanged.
    pub fn release(&self) -> Result<(), Error> {
        run("nft", &words("-f -"), Some(&self.table_with("", &self.bridged()))).map(drop)
    }

    /// Removes the daemon's rules, and no others. Missing rules are not an error.
    ///
    /// # Errors
    /// See [`enum@Error`]; the other parts are removed nevertheless.
    pub fn remove(&self) -> Result<(), Error> {
        let delete = format!("add table inet {TABLE_NAME}\ndelete table inet {TABLE_NAME}\n");
        let mut outcome = run("nft", &words("-f -"), Some(&delete)).map(drop);
        for family in Family::ALL {
            outcome = outcome.and(self.remove_routing(family));
        }
        outcome
    }

    /// Whether the rules would intercept something, and can be written.
    ///
    /// # Errors
    /// If the rules have no interface, port or mark, or an invalid interface name.
    pub fn validate(&self) -> Result<(), Error> {
        let of_flows = self.flows.iter().flat_map(|flows| &flows.interfaces);
        let mut names = self.interfaces.iter().chain(&self.out).chain(of_flows);
        if let Some(name) = names.find(|name| !is_interface_name(name)) {
            return Err(Error::InterfaceName(name.clone()));
        }
        let has_flows = self.flows.as_ref().is_some_and(|it| !it.interfaces.is_empty());
        if self.interfaces.is_empty() && !has_flows {
            return Err(Error::Empty(Lack::Interface));
        }
        let lacks_port = self.ports.is_empty() && !has_flows;
        if lacks_port || self.ports.contains(&0) || self.listen_port == 0 {
            return Err(Error::Empty(Lack::Port));
        }
        if self.mark == 0 || self.table == 0 {
            return Err(Error::Empty(Lack::Mark));
        }
        Ok(())
    }

    /// Routing comes first, so that no packet is marked before marked packets have a route.
    fn apply_parts(&self, ruleset: &str, added: &mut Vec<Vec<String>>) -> Result<Applied, Error> {
        let mut applied = Applied::default();
        for family in Family::ALL {
            if !family.is_available() {
                applied.notes.push(format!("{family} is off in this kernel: not intercepted"));
                continue;
            }
            if !self.has_route(family)? {
                run("ip", &self.route(family, "add"), None)?;
                added.push(self.route(family, "del"));
            }
            if !self.has_rule(family)? {
                run("ip", &self.rule(family, "add"), None)?;
                added.push(self.rule(family, "del"));
            }
        }
        run("nft", &words("-f -"), Some(ruleset))?;
        if self.out.is_empty() {
            applied.notes.push(NOTHING_LEADS_OUT.to_owned());
        }
        Ok(applied)
    }

    fn remove_routing(&self, family: Family) -> Result<(), Error> {
        if !family.is_available() {
            return Ok(());
        }
        if self.has_rule(family)? {
            run("ip", &self.rule(family, "del"), None)?;
        }
        if self.has_route(family)? {
            run("ip", &self.route(family, "del"), None)?;
        }
        Ok(())
    }

    /// Whether the kernel delivers marked packets here, so that the rule and the route of each family are in force.
    #[must_use]
    pub fn delivers_marked(&self) -> bool {
        // Addresses for documentation (RFC 5737, RFC 3849): this machine has none of them. Nothing is sent.
        let nobody = |family| match family {
            Family::V4 => [192, 0, 2, 1].into(),
            Family::V6 => [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(),
        };
        let mut families = Family::ALL.into_iter().filter(|it| it.is_available());
        families.all(|it| {
            !matches!(forward_marked(nobody(it), self.mark), Ok(Forward::Out(_) | Forward::Nowhere))
        })
    }

    fn rule(&self, family: Family, verb: &str) -> Vec<String> {
        let (flag, mark, table) = (family.ip_flag(), self.mark, self.table);
        words(&format!(
            "{flag} rule {verb} priority {RULE_PRIORITY} fwmark {mark:#x}/{mark:#x} lookup {table}"
        ))
    }

    fn route(&self, family: Family, verb: &str) -> Vec<String> {
        words(&format!(
            "{} route {verb} local default dev lo table {}",
            family.ip_flag(),
            self.table
        ))
    }

    fn has_rule(&self, family: Family) -> Result<bool, Error> {
        let shown = query("ip", &words(&format!("{} rule show", family.ip_flag())))?;
        Ok(shown.is_some_and(|text| self.is_rule_shown(&text)))
    }

    fn is_rule_shown(&self, text: &str) -> bool {
        let wanted = format!("fwmark {0:#x}/{0:#x} lookup {1}", self.mark, self.table);
        let priority = format!("{RULE_PRIORITY}:");
        text.lines().any(|line| line.starts_with(&priority) && line.trim_end().ends_with(&wanted))
    }

    fn has_route(&self, family: Family) -> Result<bool, Error> {
        // For `ip`, a table without routes does not exist, and the command fails: there is no
        // route.
        let args = words(&format!("{} route show table {}", family.ip_flag(), self.table));
        let shown = query("ip", &args)?.unwrap_or_default();
        Ok(shown.lines().any(|line| line.starts_with("local default dev lo")))
    }

    /// Whether nft's listing of the table has the shortcut for established connections, and a line
    /// that redirects every wanted interface and port of this family to the listener.
    fn is_redirected(&self, family: Family, listing: &str) -> bool {
        let target = format!("tproxy {} to :{} ", family.nft_words().0, self.listen_port);
        let mark = format!("{:#010x}", self.mark);
        let shortcut = listing.lines().any(|line| {
            line.contains("socket transparent 1") && line.contains(&mark) && line.contains("accept")
        });
        let is_out = |line: &str| line.contains("fib daddr . mark oifname");
        let is_http =
            !self.ports.is_empty() && (!self.interfaces.is_empty() || self.flows.is_none());
        let lines: Vec<_> = listing.lines().collect();
        shortcut
            && self.has_flows(family, &lines)
            && (!is_http
                || lines.iter().any(|line| {
                    let has = |word: &str| {
                        line.split([' ', ',', '\t', '{', '}', '"']).any(|found| found == word)
                    };
                    line.contains(&target)
                        && (self.out.is_empty()
                            || (is_out(line) && self.out.iter().all(|it| has(it))))
                        && has(&mark)
                        && self.interfaces.iter().all(|name| has(name))
                        && self.ports.iter().all(|port| has(&port.to_string()))
                }))
    }

    /// What to do about `src_valid_mark` (wg-quick sets it), if it is set: the kernel then also looks up the *source* of
    /// a marked packet in our table, finds it local, and drops the packet as spoofed.
    #[must_use]
    pub fn mark_trap(&self) -> Option<String> {
        let is_set = |name: &str| {
            sysctl(&format!("net/ipv4/conf/{name}/src_valid_mark")).as_deref() == Some("1")
        };
        let interfaces = self.all_interfaces();
        let name = std::iter::once("all")
            .chain(interfaces.iter().map(String::as_str))
            .find(|name| is_set(name))?;
        Some(format!(
            "net.ipv4.conf.{name}.src_valid_mark is 1 (wg-quick sets it): the kernel drops packets that are \
             intercepted. Set it to 0: `sysctl -w net.ipv4.conf.{name}.src_valid_mark=0`"
        ))
    }
}

/// The interfaces among these that do not exist now. Rules for one take effect when it appears.
#[must_use]
pub fn missing_interfaces(names: &[String]) -> Vec<String> {
    names.iter().filter(|name| crate::peers::index(name).is_err()).cloned().collect()
}

fn bypass(flowtable: &offload::Flowtable) -> String {
    format!(
        "flow offload is on ({}): connections that it already carries bypass the proxy until \
         they end, and a switch's hardware may go on. If clients are not served, turn it off",
        flowtable.name
    )
}

/// Whether a text can be the name of an interface, and has no special meaning between quotes in a
/// ruleset or after `dev`.
#[must_use]
pub fn is_interface_name(name: &str) -> bool {
    let is_allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    (1..=INTERFACE_NAME_MAX).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with('-')
        && name != "."
        && name != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(interfaces: &[&str], out: &[&str]) -> Rules {
        let owned = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect();
        Rules { interfaces: owned(interfaces), out: owned(out), ..Rules::default() }
    }

    #[test]
    fn the_ruleset_is_pinned() {
        let direct = ["10.9.0.0/16", "fd09::/16"].map(|it| it.parse().unwrap()).to_vec();
        let rules =
            Rules { ports: vec![80, 8080], direct, ..on(&["br-lan", "wl0.1"], &["wan0", "ppp0"]) };
        let expected = r#"add table inet hearsay
delete table inet hearsay
table inet hearsay {
  chain intercept {
    type filter hook prerouting priority security; policy accept;
    meta l4proto tcp socket transparent 1 socket wildcard 0 meta mark set meta mark | 0x04000000 accept
    icmp type { destination-unreachable, time-exceeded, parameter-problem } socket transparent 1 socket wildcard 0 meta mark set meta mark | 0x04000000 accept
    icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem } socket transparent 1 socket wildcard 0 meta mark set meta mark | 0x04000000 accept
    iifname { "br-lan", "wl0.1" } tcp flags & (syn | ack) == ack tcp dport != 3130 socket transparent 1 meta mark set meta mark | 0x04000000 accept
    fib daddr type local tcp dport 3130 drop
    tcp flags & (syn | ack) == syn jump clients
  }
  chain clients {
    fib daddr type { local, broadcast, anycast, multicast } return
    ip daddr { 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/4 } return
    ip6 daddr { ::/96, 64:ff9b::a00:0/104, 64:ff9b::6440:0/106, 64:ff9b::7f00:0/104, 64:ff9b::a9fe:0/112, 64:ff9b::ac10:0/108, 64:ff9b::c0a8:0/112, ::ffff:0:0/96, ::ffff:0:0:0/96, 2002:a00::/24, 2002:6440::/26, 2002:7f00::/24, 2002:a9fe::/32, 2002:ac10::/28, 2002:c0a8::/32, fe80::/10, ff00::/8 } return
    meta mark set meta mark | 0x04000000
    fib daddr . mark oif exists meta mark set meta mark & 0xfbffffff return
    meta mark set meta mark & 0xfbffffff
    iifname { "br-lan", "wl0.1" } meta nfproto ipv4 tcp flags & (syn | ack) == syn tcp dport { 80, 8080 } ip daddr 10.9.0.0/16 tproxy ip to :3130 meta mark set meta mark | 0x04000000 accept
    iifname { "br-lan", "wl0.1" } meta nfproto ipv4 tcp flags & (syn | ack) == syn tcp dport { 80, 8080 } fib daddr . mark oifname { "wan0", "ppp0" } tproxy ip to :3130 meta mark set meta mark | 0x04000000 accept
    iifname { "br-lan", "wl0.1" } meta nfproto ipv6 tcp flags & (syn | ack) == syn tcp dport { 80, 8080 } ip6 daddr fd09::/16 tproxy ip6 to :3130 meta mark set meta mark | 0x04000000 accept
    iifname { "br-lan", "wl0.1" } meta nfproto ipv6 tcp flags & (syn | ack) == syn tcp dport { 80, 8080 } fib daddr . mark oifname { "wan0", "ppp0" } tproxy ip6 to :3130 meta mark set meta mark | 0x04000000 accept
  }
  counter tls_up { }
  counter tls_down { }
  counter quic_up { }
  counter quic_down { }
  counter other_up { }
  counter other_down { }
  chain forwarded {
    type filter hook forward priority filter; policy accept;
    iifname { "br-lan", "wl0.1" } tcp dport 443 counter name tls_up return
    iifname { "br-lan", "wl0.1" } udp dport 443 counter name quic_up return
    iifname { "br-lan", "wl0.1" } counter name other_up return
    oifname { "br-lan", "wl0.1" } tcp sport 443 counter name tls_down return
    oifname { "br-lan", "wl0.1" } udp sport 443 counter name quic_down return
    oifname { "br-lan", "wl0.1" } counter name other_down return
  }
}
"#;
        assert_eq!(rules.ruleset(&Bridged::default()).unwrap(), expected);
    }

    #[test]
    fn a_bridge_whose_frames_pass_the_firewall_is_redirected_behind_it() {
        let rules = on(&["br-lan", "lan1"], &["wan0"]);
        let names = || vec!["br-lan".to_owned()];
        let text = rules.ruleset(&[names(), Vec::new()]).unwrap();
        for part in [
            "  set bridges_ip {\n    type ifname\n    elements = { \"br-lan\" }\n  }\n",
            "drop\n    iifname @bridges_ip meta nfproto ipv4 tcp flags & (syn | ack) == syn return\n",
            "  chain bridged {\n    type filter hook prerouting priority -2147483648; policy accept;\n    \
             iifname @bridges_ip meta nfproto ipv4 tcp flags & (syn | ack) == syn ct state != invalid jump clients\n  }\n",
            "policy accept;\n    iifname \"br-lan\" oifname \"br-lan\" return\n    iifname { \"br-lan\", \"lan1\" } tcp",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("bridges_ip6"), "{text}");

        // As nft lists it.
        let listing = "\tset bridges_ip {\n\t\ttype ifname\n\t\telements = { \"b2\",\n\t\t\t     \"b1\" }\n\t}\n\tchain";
        let set = |four: &[&str]| [four.iter().map(|it| (*it).to_owned()).collect(), Vec::new()];
        assert!(has_bridges(&set(&["b1", "b2"]), listing));
        assert!(!has_bridges(&set(&["b1"]), listing) && !has_bridges(&set(&[]), listing));
        assert!(has_bridges(&set(&[]), "") && !has_bridges(&set(&["b1"]), ""));
        assert!(!has_bridges(&[Vec::new(), names()], listing));
    }

    #[test]
    fn names_that_could_say_more_than_a_name_are_refused() {
        for name in [
            "",
            ".",
            "..",
            "-lan",
            "lan*",
            "a b",
            "lan0\" accept; #",
            "l\n",
            "sixteen_letters_",
            "é",
        ] {
            assert!(
                matches!(
                    on(&[name], &[]).ruleset(&Bridged::default()),
                    Err(Error::InterfaceName(_))
                ),
                "{name:?}"
            );
            assert!(
                matches!(
                    on(&["lan0"], &[name]).ruleset(&Bridged::default()),
                    Err(Error::InterfaceName(_))
                ),
                "{name:?}"
            );
        }
        for name in ["lan0", "br-lan", "eth0.100", "wl_0", "fifteen_letters"] {
            assert!(on(&[name], &[name]).ruleset(&Bridged::default()).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn rules_that_would_do_nothing_are_refused() {
        assert!(matches!(on(&[], &[]).ruleset(&Bridged::default()), Err(Error::Empty(_))));
        assert!(matches!(
            Rules { ports: vec![], ..on(&["a"], &[]) }.ruleset(&Bridged::default()),
            Err(Error::Empty(_))
        ));
        assert!(matches!(
            Rules { mark: 0, ..on(&["a"], &[]) }.ruleset(&Bridged::default()),
            Err(Error::Empty(_))
        ));
    }

    #[test]
    fn nfts_own_way_of_listing_is_understood() {
        let listing = r#"table inet hearsay {
	chain intercept {
		meta l4proto tcp socket transparent 1 socket wildcard 0 meta mark set meta mark | 0x04000000 accept
		iifname "lan0" meta nfproto ipv4 tcp dport 80 fib daddr . mark oifname "wan0" tproxy ip to :3130 meta mark set meta mark | 0x04000000 accept
		iifname { "wl1", "lan0" } meta nfproto ipv6 tcp dport { 80, 8080 } fib daddr . mark oifname { "ppp0", "wan0" } tproxy ip6 to :3130 meta mark set meta mark | 0x04000000 accept
	}
}"#;
        assert!(on(&["lan0"], &[]).is_redirected(Family::V4, listing));
        assert!(on(&[], &[]).is_redirected(Family::V4, listing));
        assert!(on(&["lan0"], &["wan0"]).is_redirected(Family::V4, listing));
        assert!(!on(&["lan0"], &["ppp0"]).is_redirected(Family::V4, listing));
        assert!(on(&["lan0"], &["wan0", "ppp0"]).is_redirected(Family::V6, listing));
        assert!(!on(&["lan"], &[]).is_redirected(Family::V4, listing));
        assert!(!on(&["wl1", "lan0"], &[]).is_redirected(Family::V4, listing));
        assert!(on(&["wl1", "lan0"], &[]).is_redirected(Family::V6, listing));
        assert!(
            !Rules { listen_port: 313, ..on(&["lan0"], &[]) }.is_redirected(Family::V4, listing),
            "another port"
        );
        assert!(!Rules { mark: 1, ..on(&["lan0"], &[]) }.is_redirected(Family::V4, listing));
        assert!(!on(&[], &[]).is_redirected(Family::V4, ""));
    }

    #[test]
    fn only_our_own_rule_counts_as_ours() {
        let ours = "313:\tfrom all fwmark 0x4000000/0x4000000 lookup 3130\n";
        assert!(on(&[], &[]).is_rule_shown(&format!("0:\tfrom all lookup local\n{ours}")));
        for other in [
            "314:\tfrom all fwmark 0x4000000/0x4000000 lookup 3130",
            "313:\tfrom all fwmark 0x4000000/0x4000000 lookup 31301",
            "313:\tfrom all fwmark 0x1/0x1 lookup 3130",
        ] {
            assert!(!on(&[], &[]).is_rule_shown(other), "{other}");
        }
    }
}
