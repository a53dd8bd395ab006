//! The text of our nftables table.

use node::Prefix;

use super::{
    Bridged, Error, FIRST_SEGMENT, Family, Rules, SPELLED_IPV4, TABLE_NAME, forwarded, trial,
};

/// nftables' priority of what gives packets to us (50). It is behind other programs' marks and translated destinations,
/// because both may change a packet's route; and behind checks of return paths (firewalld has one at 10), which would look
/// up the source with our mark, find it local, and drop the packet.
const PRIORITY: &str = "security";

/// The chain that redirects the first segments of clients' connections.
pub(super) const CLIENTS: &str = "clients";
/// The chain that sees all that the firewall sees.
pub(super) const INTERCEPT: &str = "intercept";

/// The set of those [`Bridged`] for one family.
pub(super) fn bridges_set(family: Family) -> String {
    format!("bridges_{}", family.nft_words().0)
}

impl Rules {
    /// The input for `nft -f -`: one transaction that replaces the daemon's table and changes
    /// nothing else.
    ///
    /// # Errors
    /// If the rules have no interface, port or mark, or an invalid interface name.
    pub fn ruleset(&self, bridged: &Bridged) -> Result<String, Error> {
        self.validate()?;
        let redirects: String = Family::ALL.iter().map(|family| self.redirect(*family)).collect();
        Ok(self.table_with(&redirects, bridged))
    }

    /// The transaction that replaces the table, with these lines for the first segments of connections. (Its first line
    /// ensures that the table exists, so that the second can delete it.)
    pub(super) fn table_with(&self, redirects: &str, bridged: &Bridged) -> String {
        let (mark, listen_port) = (self.mark_and_accept(), self.listen_port);
        let forwarded = match self.interfaces.is_empty() {
            true => String::new(),
            false => forwarded::chain(&self.interfaces, bridged),
        };
        // `socket wildcard 0`: the listener is bound to every address, so without this condition
        // forwarded packets to its port on any other machine would match it. It does not match while a
        // connection is being made, so the segment that completes the handshake has a rule of its own.
        // The `drop` rule: only intercepted connections may reach the listener, or it would be an open proxy.
        let (errors, second, local) = (self.errors(), self.second_segment(), self.unless_local());
        let [sets, pass_by, early] = bridges(bridged);
        format!(
            "add table inet {TABLE_NAME}
delete table inet {TABLE_NAME}
table inet {TABLE_NAME} {{
{sets}  chain {INTERCEPT} {{
    type filter hook prerouting priority {PRIORITY}; policy accept;
    meta l4proto tcp socket transparent 1 socket wildcard 0 {mark}
{errors}{second}    fib daddr type local tcp dport {listen_port} drop
{pass_by}    {FIRST_SEGMENT} jump {CLIENTS}
  }}
{early}  chain {CLIENTS} {{
    fib daddr type {{ local, broadcast, anycast, multicast }} return
    ip daddr {{ 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/4 }} return
    ip6 daddr {{ {SPELLED_IPV4}, fe80::/10, ff00::/8 }} return
{local}{redirects}  }}
{forwarded}}}
"
        )
    }

    /// The rules by which a connection passes us by if its packets, with our mark, would still be routed elsewhere: without
    /// the rule and the route that make them local, a redirected packet would be dropped. Who manages a network's rules may
    /// remove those that it did not set, as systemd-networkd does when it starts.
    fn unless_local(&self) -> String {
        let (mark, others) = (self.mark, !self.mark);
        format!(
            "    meta mark set meta mark | {mark:#010x}
    fib daddr . mark oif exists meta mark set meta mark & {others:#010x} return
    meta mark set meta mark & {others:#010x}\n"
        )
    }

    /// The rules for what routers and hosts say of packets that were sent to clients from a borrowed address: it is
    /// addressed to the origin, and meant for this machine. Without "too big", nothing arrives behind a narrow link.
    fn errors(&self) -> String {
        let mark = self.mark_and_accept();
        let line =
            |kinds: &str| format!("    {kinds} socket transparent 1 socket wildcard 0 {mark}\n");
        line("icmp type { destination-unreachable, time-exceeded, parameter-problem }")
            + &line(
                "icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem }",
            )
    }

    /// The rule for the client's second segment, with which a connection is made.
    pub(super) fn second_segment(&self) -> String {
        let (clients, mark) = (quoted(&self.all_interfaces()), self.mark_and_accept());
        let not_ours = format!("tcp dport != {}", self.listen_port);
        format!(
            "    iifname {clients} tcp flags & (syn | ack) == ack {not_ours} socket transparent 1 {mark}\n"
        )
    }

    /// The rules that redirect connections of one address family to the listener.
    pub(super) fn redirect(&self, family: Family) -> String {
        let (address, protocol) = family.nft_words();
        let interfaces = quoted(&self.interfaces);
        let ports = set(self.ports.iter().map(u16::to_string));
        let (listen_port, mark) = (self.listen_port, self.mark_and_accept());
        let line = |destination: String| {
            format!(
                "    iifname {interfaces} meta nfproto {protocol} {FIRST_SEGMENT} tcp dport {ports} {destination} \
                 tproxy {address} to :{listen_port} {mark}\n"
            )
        };
        let of_family = |it: &&Prefix| it.is_ipv4() == (family == Family::V4);
        let is_http = !self.interfaces.is_empty() && !self.ports.is_empty();
        let direct = self.direct.iter().filter(of_family).map(|it| format!("{address} daddr {it}"));
        // The lookup includes the mark, because policy rules may choose a packet's route by it.
        // While nothing leads out, what has no route is for the daemon, which serves what is stored. If anything does, it is
        // not: a client without IPv6 then learns at once that it has to use IPv4.
        let out = match self.out.is_empty() {
            false => format!("fib daddr . mark oifname {}", quoted(&self.out)),
            true => "fib daddr . mark oif missing".to_owned(),
        };
        let http: String = direct.chain([out]).filter(|_| is_http).map(line).collect();
        http + &self.redirect_flows(family).unwrap_or_default()
    }

    pub(super) fn mark_and_accept(&self) -> String {
        format!("meta mark set meta mark | {:#010x} accept", self.mark)
    }
}

/// What the table has for these bridges: their sets, the lines by which their first segments pass by while they are
/// frames, and the chain that redirects them when IP receives them. By then each has been seen by conntrack, and no
/// packet has that comes by the chain in another way.
fn bridges(bridged: &Bridged) -> [String; 3] {
    let [mut sets, mut pass_by, mut redirect] = [const { String::new() }; 3];
    for (family, names) in Family::ALL.into_iter().zip(bridged).filter(|(_, it)| !it.is_empty()) {
        let (name, protocol, names) = (bridges_set(family), family.nft_words().1, quoted(names));
        sets += &format!("  set {name} {{\n    type ifname\n    elements = {names}\n  }}\n");
        let line = format!("    iifname @{name} meta nfproto {protocol} {FIRST_SEGMENT}");
        pass_by += &format!("{line} return\n");
        redirect += &format!("{line} ct state != invalid jump {CLIENTS}\n");
    }
    let early = match redirect.is_empty() {
        true => redirect,
        false => format!(
            "  chain bridged {{\n    type filter hook prerouting priority {}; policy accept;\n{redirect}  }}\n",
            i32::MIN
        ),
    };
    [sets, pass_by, early]
}

/// Whether nft's listing of the table has these bridges, and no others, in the sets.
pub(super) fn has_bridges(bridged: &Bridged, listing: &str) -> bool {
    Family::ALL.into_iter().zip(bridged).all(|(family, names)| {
        let head = format!("set {} {{", bridges_set(family));
        let after = listing.split_once(&head).map_or("", |(_, after)| after);
        let elements = after.split('}').next().unwrap_or_default();
        let found = elements.split('"').skip(1).step_by(2);
        // A trial may be under way.
        let mut found: Vec<_> = found.filter(|it| *it != trial::LINK).collect();
        let mut wanted: Vec<_> = names.iter().map(String::as_str).collect();
        found.sort_unstable();
        wanted.sort_unstable();
        found == wanted
    })
}

pub(super) fn quoted(names: &[String]) -> String {
    set(names.iter().map(|name| format!("\"{name}\"")))
}

pub(super) fn set(items: impl Iterator<Item = String>) -> String {
    format!("{{ {} }}", items.collect::<Vec<_>>().join(", "))
}
