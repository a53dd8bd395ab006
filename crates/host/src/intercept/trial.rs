//! A trial of the interception, end to end: a client in a namespace of its own asks for an object that this process
//! serves, and the daemon must be between them.
//!
//! ```text
//!   namespace hearsay-doctor      this router
//!   client eth0 ───────── hsdoc0 ── our rules ── the daemon ── its connection out ── turned round to our listener
//! ```
//!
//! *What it changes, and only while it lasts:* a namespace and a veth, and a bridge if clients are behind one whose frames
//! pass the firewall; our chains get a copy of their lines for the interface; a table of its own turns the daemon's connection to [`ORIGINS`] round to loopback, in the OUTPUT hook, so that
//! nothing leaves the machine. The addresses are for documentation (RFC 5737, RFC 3849): no network has them.
//! *What it never does:* change a route, or a rule that others follow. What a killed trial left is removed by the next,
//! but for the empty directory /run/netns, which `ip netns` makes.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as LocalAddress, UnixListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::ruleset::{CLIENTS, INTERCEPT, bridges_set};
use super::{Bridged, Error, Family, Rules, TABLE_NAME, query, run, words};
use crate::routing::{Forward, forward};

/// The namespace, and the table beside it.
const NAME: &str = "hearsay-doctor";
/// The router's interface to the namespace: its end of the veth or, where clients are behind a bridge whose frames pass
/// the firewall ([`Bridged`]), such a bridge.
pub(super) const LINK: &str = "hsdoc0";
/// The router's end of the veth, if it is a port of that bridge.
const PORT: &str = "hsdoc1";
/// The addresses of the object's origin, which nobody has.
pub const ORIGINS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(203, 0, 113, 129)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0x6865, 2, 0, 0, 0, 1)),
];
/// How long one step of a client may take.
const STEP_MAX: Duration = Duration::from_secs(8);
/// How much of a head or of a response is read.
const READ_MAX: u64 = 16 * 1024;

/// What came of a trial over one address family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// The daemon served the object; whether it had stored it the second time.
    Served {
        /// Whether the second request was a hit; `None` if the object was not to be stored.
        stored: Option<bool>,
    },
    /// Nobody answered the client: why.
    Silent(String),
    /// Another answer came than the object: its first line.
    Strange(String),
    /// The kernel has this family turned off.
    Off,
    /// No route of this family leads out by an interface for which connections are intercepted.
    Unrouted,
}

/// Why a trial could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// A command failed; a right may be missing.
    #[error(transparent)]
    Command(#[from] Error),
    /// Another trial is being made.
    #[error("another `hearsay doctor` is looking: wait until it is done")]
    Busy,
    /// Our chain is not there.
    #[error("the rules are not set")]
    NoRules,
    /// The system refused something else.
    #[error("a connection of the trial's own failed: {0}")]
    Io(#[from] io::Error),
}

/// Tries it over both families, as [`Family::ALL`] has them. `may_store`: whether this node gets the object itself;
/// otherwise the request is of a kind that no other node can be asked.
///
/// # Errors
/// If no trial can be made; nothing of it remains.
pub fn attempt(rules: &Rules, may_store: bool) -> Result<[Tried; 2], TrialError> {
    rules.validate()?;
    let lock = LocalAddress::from_abstract_name(NAME)?;
    let _one = UnixListener::bind_addr(&lock).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => TrialError::Busy,
        _ => error.into(),
    })?;
    let stage = Stage::set_up(rules)?;
    let asked = Asked { port: stage.port, token: token()?, may_store };
    let tries = Family::ALL.map(|family| stage.try_by(family, &asked));
    let [four, six] = tries;
    Ok([four?, six?])
}

/// Base chains of other programs that see packets for this machine: one may refuse what the trial's interface brings.
/// The tables of the older iptables, which nft does not list, are named too.
///
/// # Errors
/// If nft is missing or not permitted.
pub fn other_input_chains() -> Result<Vec<String>, Error> {
    let mut found = input_chains(&query("nft", &words("list chains"))?.unwrap_or_default());
    // The kernel lists a table here once iptables-legacy has used it.
    for family in ["ip", "ip6"] {
        let names = std::fs::read_to_string(format!("/proc/net/{family}_tables_names"));
        found.extend(legacy_tables(family, &names.unwrap_or_default()));
    }
    Ok(found)
}

fn legacy_tables(family: &str, names: &str) -> Vec<String> {
    names.split_whitespace().map(|name| format!("{family}tables {name}")).collect()
}

fn input_chains(listing: &str) -> Vec<String> {
    let (mut table, mut chain, mut found) = ("", "", Vec::new());
    for line in listing.lines().map(|line| line.trim().trim_end_matches(" {")) {
        if let Some(rest) = line.strip_prefix("table ") {
            table = rest;
        } else if let Some(name) = line.strip_prefix("chain ") {
            chain = name;
        } else if line.contains(" hook input ") && table != format!("inet {TABLE_NAME}") {
            found.push(format!("{table} {chain}"));
        }
    }
    found
}

/// What is asked for.
struct Asked {
    port: u16,
    token: String,
    may_store: bool,
}

/// A name that nobody can have stored.
fn token() -> io::Result<String> {
    let mut bytes = [0; 12];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The namespace with its link, the lines for it, and the table that turns connections round.
struct Stage<'a> {
    rules: &'a Rules,
    /// The destination port that clients dial.
    port: u16,
    bridged: Bridged,
    origins: Vec<(Family, TcpListener)>,
}

impl<'a> Stage<'a> {
    fn set_up(rules: &'a Rules) -> Result<Self, TrialError> {
        clean();
        let port = rules.ports.first().copied().unwrap_or(80);
        let mut stage = Self { rules, port, bridged: rules.bridged(), origins: Vec::new() };
        for family in Family::ALL.into_iter().filter(|it| it.is_available()) {
            let local: IpAddr = match family {
                Family::V4 => Ipv4Addr::LOCALHOST.into(),
                Family::V6 => Ipv6Addr::LOCALHOST.into(),
            };
            stage.origins.push((family, TcpListener::bind((local, 0))?));
        }
        for line in stage.commands() {
            run("ip", &words(&line), None)?;
        }
        run("nft", &words("-f -"), Some(&stage.turn_round()?))?;
        let lines = stage.lines();
        match run("nft", &words("-f -"), Some(&lines)) {
            Err(Error::Ruleset { message }) if message.contains("No such file") => {
                Err(TrialError::NoRules)
            }
            other => Ok(other.map(|_| stage)?),
        }
    }

    /// The commands that make the namespace and the link to it.
    fn commands(&self) -> Vec<String> {
        let mut lines = vec![format!("netns add {NAME}")];
        if self.bridged == Bridged::default() {
            lines.push(format!("link add {LINK} type veth peer name eth0 netns {NAME}"));
        } else {
            let [four, six] = self.bridged.each_ref().map(|it| u8::from(!it.is_empty()));
            lines.push(format!(
                "link add {LINK} type bridge nf_call_iptables {four} nf_call_ip6tables {six}"
            ));
            lines.push(format!("link add {PORT} type veth peer name eth0 netns {NAME}"));
            lines.push(format!("link set {PORT} master {LINK} up"));
        }
        lines.push(format!("link set {LINK} up"));
        lines.push(format!("-n {NAME} link set eth0 up"));
        for (family, _) in &self.origins {
            let [here, there, gateway] = match family {
                Family::V4 => ["203.0.113.1/30", "203.0.113.2/30", "203.0.113.1"],
                Family::V6 => {
                    ["2001:db8:6865:1::1/64", "2001:db8:6865:1::2/64", "2001:db8:6865:1::1"]
                }
            };
            // Nobody else can have these addresses on this link: they need not be probed for.
            let nodad = if *family == Family::V6 { " nodad" } else { "" };
            lines.push(format!("addr add {here} dev {LINK}{nodad}"));
            lines.push(format!("-n {NAME} addr add {there} dev eth0{nodad}"));
            lines.push(format!("-n {NAME} route add default via {gateway}"));
        }
        lines
    }

    /// The table that turns the daemon's connections to the origin round, for each family.
    fn turn_round(&self) -> io::Result<String> {
        let mut text = String::new();
        for (family, listener) in &self.origins {
            let (word, to) = (family.nft_words().0, listener.local_addr()?.port());
            let (origin, port) = (ORIGINS[*family as usize], self.port);
            text += &format!(
                "table {word} {NAME} {{\n  chain output {{\n    type nat hook output priority -100; policy accept;\n    \
                 {word} daddr {origin} tcp dport {port} redirect to :{to}\n  }}\n}}\n"
            );
        }
        Ok(text)
    }

    /// What our table needs for the interface.
    fn lines(&self) -> String {
        let rules = Rules { interfaces: vec![LINK.to_owned()], flows: None, ..self.rules.clone() };
        let redirects: String = self.origins.iter().map(|it| rules.redirect(it.0)).collect();
        let second = rules.second_segment();
        let in_chain = |name, lines: &str| -> String {
            let add = |line: &str| format!("add rule inet {TABLE_NAME} {name} {}\n", line.trim());
            lines.lines().map(add).collect()
        };
        in_chain(CLIENTS, &redirects) + &in_chain(INTERCEPT, &second) + &self.elements()
    }

    /// What adds the interface to the sets of bridges.
    fn elements(&self) -> String {
        let families = Family::ALL.into_iter().zip(&self.bridged);
        let add = |(family, _)| {
            let set = bridges_set(family);
            format!("add element inet {TABLE_NAME} {set} {{ {LINK} }}\n")
        };
        families.filter(|(_, names)| !names.is_empty()).map(add).collect()
    }

    fn try_by(&self, family: Family, asked: &Asked) -> Result<Tried, TrialError> {
        let Some((_, listener)) = self.origins.iter().find(|(it, _)| *it == family) else {
            return Ok(Tried::Off);
        };
        let origin = ORIGINS[family as usize];
        if !self.leads_out(origin)? {
            return Ok(Tried::Unrouted);
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| serve(listener, asked, &is_over));
            let client = scope.spawn(|| visit(SocketAddr::new(origin, asked.port), asked));
            let tried = client.join().unwrap_or_else(|_| Err(io::Error::other("the client died")));
            is_over.store(true, Ordering::Relaxed);
            // Wakes the listener.
            drop(listener.local_addr().and_then(TcpStream::connect));
            Ok(tried?)
        })
    }

    fn leads_out(&self, to: IpAddr) -> io::Result<bool> {
        let Forward::Out(index) = forward(to, None)? else { return Ok(false) };
        Ok(self.rules.out.iter().any(|name| crate::peers::index(name).is_ok_and(|it| it == index)))
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        clean();
    }
}

/// Removes what a trial makes. What is missing is no error.
fn clean() {
    for chain in [INTERCEPT, CLIENTS] {
        let list = words(&format!("-a list chain inet {TABLE_NAME} {chain}"));
        for handle in handles(&query("nft", &list).ok().flatten().unwrap_or_default()) {
            let delete = format!("delete rule inet {TABLE_NAME} {chain} handle {handle}");
            let _ = run("nft", &words(&delete), None);
        }
    }
    for family in Family::ALL {
        let set = bridges_set(family);
        let delete = format!("delete element inet {TABLE_NAME} {set} {{ {LINK} }}");
        let _ = run("nft", &words(&delete), None);
    }
    for family in Family::ALL {
        let _ = run("nft", &words(&format!("delete table {} {NAME}", family.nft_words().0)), None);
    }
    for link in [LINK, PORT] {
        let _ = run("ip", &words(&format!("link del {link}")), None);
    }
    let _ = run("ip", &words(&format!("netns del {NAME}")), None);
}

/// The handles of lines for the link.
fn handles(listing: &str) -> Vec<u64> {
    let of_link = |line: &&str| line.contains(&format!("\"{LINK}\""));
    let handle = |line: &str| line.rsplit_once("# handle ")?.1.trim().parse().ok();
    listing.lines().filter(of_link).filter_map(handle).collect()
}

/// Serves the object to each connection until the trial is over.
fn serve(listener: &TcpListener, asked: &Asked, is_over: &AtomicBool) {
    while let Ok((mut stream, _)) = listener.accept() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let _ = stream.set_read_timeout(Some(STEP_MAX));
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && (head.len() as u64) < READ_MAX {
            match stream.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                _ => break,
            }
        }
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{}",
            asked.token.len(),
            asked.token
        );
        let _ = stream.write_all(answer.as_bytes());
    }
}

/// The client: asks once, and a second time if the object may be stored.
fn visit(origin: SocketAddr, asked: &Asked) -> io::Result<Tried> {
    let namespace = std::fs::File::open(format!("/run/netns/{NAME}"))?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    let first = match ask(origin, asked) {
        Ok(first) => first,
        Err(error) => return Ok(Tried::Silent(error.to_string())),
    };
    if !is_by_daemon(&first, &asked.token) {
        return Ok(Tried::Strange(first.lines().next().unwrap_or_default().to_owned()));
    }
    if !asked.may_store {
        return Ok(Tried::Served { stored: None });
    }
    let second = ask(origin, asked).unwrap_or_default();
    Ok(Tried::Served { stored: Some(is_hit(&second) && is_by_daemon(&second, &asked.token)) })
}

/// The response to one request.
fn ask(origin: SocketAddr, asked: &Asked) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&origin, STEP_MAX)?;
    stream.set_read_timeout(Some(STEP_MAX))?;
    // By peers and by the far end, no request goes that may change the protocol.
    let (more, connection) = match asked.may_store {
        true => ("", "close"),
        false => ("Upgrade: hearsay-doctor\r\n", "upgrade"),
    };
    let authority = match origin.port() {
        80 if origin.is_ipv4() => origin.ip().to_string(),
        80 => format!("[{}]", origin.ip()),
        _ => origin.to_string(),
    };
    let path = &asked.token;
    let request = format!(
        "GET /hearsay-doctor/{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: {connection}\r\n{more}\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    let mut limited = stream.take(READ_MAX);
    let mut piece = [0; 1024];
    // What is whole need not be waited for: the connection may stay open.
    while !response.ends_with(asked.token.as_bytes()) {
        match limited.read(&mut piece)? {
            0 => break,
            count => response.extend_from_slice(&piece[..count]),
        }
    }
    if response.is_empty() {
        return Err(io::Error::other("the connection was closed without an answer"));
    }
    Ok(String::from_utf8_lossy(&response).into_owned())
}

/// Whether a response has the object, and a proxy's name.
fn is_by_daemon(response: &str, token: &str) -> bool {
    let head = response.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
    head.starts_with("http/1.1 200") && head.contains("\r\nvia:") && response.ends_with(token)
}

fn is_hit(response: &str) -> bool {
    let mut fields = response.lines().take_while(|line| !line.is_empty());
    fields.any(|line| {
        line.to_ascii_lowercase().starts_with("cache-status:") && line.contains("; hit")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_trials_lines_are_removed() {
        let listing = "\tiifname \"lan0\" tproxy ip to :3130 accept # handle 7\n\
                       \tiifname \"hsdoc0\" tproxy ip to :3130 accept # handle 12\n\
                       \tiifname { \"hsdoc0\" } tproxy ip6 to :3130 accept # handle 13\n\
                       \tiifname \"hsdoc01\" accept # handle 14\n\tiifname \"hsdoc0\" # handle x\n";
        assert_eq!(handles(listing), [12, 13]);
    }

    #[test]
    fn other_programs_input_chains_are_found() {
        let listing = "table inet fw4 {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n\t}\n\
                       \tchain forward {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n\
                       table inet hearsay {\n\tchain intercept {\n\t\ttype filter hook prerouting priority mangle;\n\t}\n}\n";
        assert_eq!(input_chains(listing), ["inet fw4 input"]);
        assert_eq!(input_chains(""), [""; 0]);
    }

    #[test]
    fn tables_of_the_older_iptables_count_too() {
        assert_eq!(legacy_tables("ip6", "filter\nnat\n"), ["ip6tables filter", "ip6tables nat"]);
        assert_eq!(legacy_tables("ip", "\n"), [""; 0]);
    }

    #[test]
    fn an_answer_counts_only_with_the_object_and_a_proxys_name() {
        let answer = |fields: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}");
        let hit = answer("Via: 1.1 r1\r\nCache-Status: r1; hit\r\n", "abc");
        assert!(is_by_daemon(&hit, "abc") && is_hit(&hit));
        assert!(!is_by_daemon(&answer("", "abc"), "abc"), "straight");
        assert!(!is_by_daemon(&answer("Via: x\r\n", "other"), "abc"));
        assert!(!is_hit(&answer("Cache-Status: r1; fwd=miss\r\n", "cache-status: x; hit")));
    }
}
