//! Checks of the daemon's process: whether it runs, who has its ports, and its rights.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::view::View;
use crate::exit::Failure;
use crate::status::{Check, Finding, Rights, Status};
use crate::term;

/// The state of a listening socket in /proc/net/tcp (`TCP_LISTEN`).
const LISTENS: &str = "0A";
/// Capabilities that the daemon may have reason for, by their numbers (linux/capability.h).
const CAPABILITIES: [(u32, &str); 4] =
    [(7, "setuid"), (10, "net_bind_service"), (12, "net_admin"), (13, "net_raw")];

/// Judges whether the daemon runs.
pub fn running(status: Result<&Status, &Failure>, process: Option<u32>) -> Finding {
    match status {
        Ok(status) => {
            let (ours, theirs) = (env!("CARGO_PKG_VERSION"), &status.version);
            let process = process.map_or(String::new(), |it| format!(", process {it}"));
            let uptime = term::duration(status.process.uptime());
            let found = Finding::fine(
                Check::Daemon,
                format!("hearsay {theirs} runs as {}{process}, for {uptime}", status.name),
            );
            match theirs == ours {
                true => found,
                false => {
                    found.advise(format!("this program is {ours}: restart the daemon to run it"))
                }
            }
        }
        Err(failure) if failure.message.contains("you may not use it") => {
            Finding::unknown(Check::Daemon, failure.message.clone(), "run `hearsay doctor` as root")
        }
        Err(failure) => {
            let text = failure.message.lines().next().unwrap_or_default();
            let text = text.split(": is `hearsay run`").next().unwrap_or_default();
            Finding::broken(
                Check::Daemon,
                text,
                "start it: `systemctl start hearsay`, or `hearsay run` to see why it ends",
            )
        }
    }
}

/// A listening socket, and the process that has it if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Where it listens.
    pub address: SocketAddr,
    /// The process, and its name.
    pub owner: Option<(u32, String)>,
}

/// The check of the ports.
pub fn ports(view: &View) -> Finding {
    let listening = listening();
    if listening.is_empty() && view.status.is_some() {
        return Finding::unknown(Check::Ports, "/proc/net does not show them", "mount /proc");
    }
    judge_ports(&view.addresses(), &listening, view.status.is_some(), view.process)
}

/// Judges who has the ports. `ours`: the daemon's process.
pub fn judge_ports(
    wanted: &[(&str, SocketAddr)],
    listening: &[Listening],
    runs: bool,
    ours: Option<u32>,
) -> Finding {
    for (key, address) in wanted {
        let Some(it) = listening.iter().find(|it| collides(it.address, *address)) else { continue };
        let who = match &it.owner {
            // Without rights nobody sees whose a socket is: if the daemon runs, it is the daemon's.
            None if runs => continue,
            Some((process, _)) if Some(*process) == ours => continue,
            Some((_, name)) if runs && ours.is_none() && name == "hearsay" => continue,
            Some((process, name)) => format!("{name} (process {process})"),
            None => "another program".to_owned(),
        };
        let text = format!("{} is needed (`{key}`), and {who} has it", it.address);
        return Finding::broken(Check::Ports, text, "stop that program, or choose another port");
    }
    let mut ports: Vec<_> = wanted.iter().map(|(_, address)| address.port()).collect();
    ports.dedup();
    let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
    let whose = if runs { "the daemon's own" } else { "free" };
    Finding::fine(Check::Ports, format!("{}: {whose}", ports.join(", ")))
}

/// Whether two sockets cannot listen at these addresses together.
fn collides(one: SocketAddr, other: SocketAddr) -> bool {
    let (a, b) = (one.ip().to_canonical(), other.ip().to_canonical());
    one.port() == other.port() && (a == b || a.is_unspecified() || b.is_unspecified())
}

/// All listening sockets of this network namespace.
fn listening() -> Vec<Listening> {
    let sockets = ["/proc/net/tcp", "/proc/net/tcp6"]
        .map(|path| fs::read_to_string(path).unwrap_or_default());
    let sockets: Vec<_> = sockets.iter().flat_map(|text| text.lines().filter_map(socket)).collect();
    let owners = owners();
    let of = |(address, inode)| Listening { address, owner: owners.get(&inode).cloned() };
    sockets.into_iter().map(of).collect()
}

/// The address and the inode of a listening socket, in a line of /proc/net/tcp (proc_net(5)).
fn socket(line: &str) -> Option<(SocketAddr, u64)> {
    let mut words = line.split_whitespace();
    let local = words.nth(1)?;
    if words.nth(1)? != LISTENS {
        return None;
    }
    let (address, port) = local.split_once(':')?;
    // Each word of four bytes is a number in the machine's order.
    let word = |at: usize| {
        u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes)
    };
    let ip: IpAddr = match address.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let bytes = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()
        }
        _ => return None,
    };
    let inode = words.nth(5)?.parse().ok()?;
    Some((SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?), inode))
}

/// The processes that have sockets, by the sockets' inodes; without rights, only this user's.
fn owners() -> BTreeMap<u64, (u32, String)> {
    let mut owners = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|it| it.parse().ok()) else {
            continue;
        };
        let path = entry.path();
        let name = || fs::read_to_string(path.join("comm")).unwrap_or_default().trim().to_owned();
        for file in fs::read_dir(path.join("fd")).into_iter().flatten().flatten() {
            if let Some(inode) = socket_inode(&file.path()) {
                owners.insert(inode, (process, name()));
            }
        }
    }
    owners
}

fn socket_inode(file: &Path) -> Option<u64> {
    let target = fs::read_link(file).ok()?;
    target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The check of the rights in force.
pub fn rights(view: &View) -> Finding {
    let process = if view.is_daemon() {
        Some("self".to_owned())
    } else {
        view.process.map(|it| it.to_string())
    };
    let Some(process) = process else {
        return match &view.status {
            None => Finding::off(Check::Rights, "no daemon runs"),
            Some(_) => Finding::unknown(
                Check::Rights,
                "the daemon's process is not seen from here",
                "look in its own namespace",
            ),
        };
    };
    let told = view.status.as_ref().and_then(|it| it.rights.as_ref());
    match fs::read_to_string(format!("/proc/{process}/status")) {
        Ok(text) => judge_rights(&text, told),
        Err(error) => Finding::unknown(
            Check::Rights,
            format!("/proc/{process}/status: {error}"),
            "run `hearsay doctor` as root",
        ),
    }
}

/// Judges the rights of a process, by its `/proc/PROCESS/status` (proc_pid_status(5)) and its own word.
pub fn judge_rights(text: &str, told: Option<&Rights>) -> Finding {
    if told.is_some_and(|it| it.helper == Some(false)) {
        return Finding::broken(
            Check::Rights,
            "the daemon's helper process has ended: no rule can change",
            "restart the daemon; its log may say why the helper ended",
        );
    }
    if told.is_some_and(|it| it.helper_silent) {
        return Finding::broken(
            Check::Rights,
            "the daemon's helper process does not answer: no rule changes",
            "see whether `nft list ruleset` hangs; if not, restart the daemon",
        );
    }
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let Some(held) = field("CapEff").and_then(|it| u64::from_str_radix(it, 16).ok()) else {
        return Finding::unknown(
            Check::Rights,
            "the kernel does not tell its capabilities",
            "see capabilities(7)",
        );
    };
    let user = field("Uid").and_then(|it| it.split_whitespace().nth(1)).unwrap_or("?");
    let named: Vec<_> = CAPABILITIES
        .iter()
        .filter(|(bit, _)| held >> bit & 1 == 1)
        .map(|(_, name)| *name)
        .collect();
    let capabilities = match held.count_ones() as usize {
        0 => "no capabilities".to_owned(),
        count if count == named.len() => format!("capabilities {}", named.join(", ")),
        count => format!("{count} capabilities"),
    };
    let is_on = |name| if field(name).is_some_and(|it| it != "0") { "on" } else { "off" };
    let (privileges, filter) = (is_on("NoNewPrivs"), is_on("Seccomp"));
    let files = told.filter(|it| it.limits.landlock).map_or("", |_| ", landlock");
    let found = Finding::fine(
        Check::Rights,
        format!("user {user}, {capabilities}, no_new_privs {privileges}, seccomp {filter}{files}"),
    );
    match told.and_then(|it| it.limits.skipped.first()) {
        Some(skipped) => found.advise(skipped.clone()),
        None => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::status::Verdict;
    use crate::status::tests::busy;

    #[test]
    fn a_daemon_runs_or_the_way_to_start_it_is_told() {
        let status = Status { version: env!("CARGO_PKG_VERSION").into(), ..busy() };
        let fine = running(Ok(&status), Some(7));
        assert!(
            fine.verdict == Verdict::Fine && fine.next.is_none() && fine.text.contains("process 7"),
            "{fine}"
        );
        let other = Status { version: "9.9.9".into(), ..busy() };
        assert!(running(Ok(&other), None).next.unwrap().contains("restart"));
        let none = Failure::unreachable(
            "no hearsay answers at /a: is `hearsay run` running? (--control PATH)",
        );
        let none = running(Err(&none), None);
        assert_eq!(
            (none.verdict, none.text.as_str()),
            (Verdict::Broken, "no hearsay answers at /a")
        );
        let closed = Failure {
            exit: Exit::Unreachable,
            message: "/a is there, but you may not use it: ask as root".into(),
        };
        assert_eq!(running(Err(&closed), None).verdict, Verdict::Unknown);
    }

    #[test]
    fn sockets_are_read_as_the_kernel_lists_them() {
        let line = "   0: 0100007F:0C38 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 0 100";
        let (expected, inode) = ("127.0.0.1:3128".parse().unwrap(), 12345);
        if cfg!(target_endian = "little") {
            assert_eq!(socket(line), Some((expected, inode)));
            let six = line.replace("0100007F", "00000000000000000000000001000000");
            assert_eq!(socket(&six).map(|it| it.0), "[::1]:3128".parse().ok());
        }
        assert_eq!(socket(&line.replace(" 0A ", " 01 ")), None, "connected, not listening");
        for odd in
            ["", "sl local_address rem_address st", "0: zz:1 0 0A", "0: 01:0C38 0 0A 0 0 0 0 0 7"]
        {
            assert_eq!(socket(odd), None, "{odd}");
        }
    }

    #[test]
    fn another_program_on_a_port_is_named() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let wanted = [("listen", at("127.0.0.1:3128")), ("[intercept] port", at("[::]:3130"))];
        let of = |address: &str, owner: Option<(u32, &str)>| Listening {
            address: at(address),
            owner: owner.map(|(process, name)| (process, name.to_owned())),
        };
        let judge = |it: Listening, runs, ours| judge_ports(&wanted, &[it], runs, ours);
        let squid = judge(of("0.0.0.0:3128", Some((9, "squid"))), false, None);
        assert_eq!(squid.verdict, Verdict::Broken);
        assert!(
            squid.text.contains("`listen`") && squid.text.contains("squid (process 9)"),
            "{squid}"
        );
        assert_eq!(
            judge(of("10.0.0.1:3130", Some((9, "x"))), true, Some(5)).verdict,
            Verdict::Broken
        );
        assert_eq!(
            judge(of("0.0.0.0:3128", Some((5, "hearsay"))), true, Some(5)).verdict,
            Verdict::Fine
        );
        assert_eq!(judge(of("0.0.0.0:3128", None), true, None).verdict, Verdict::Fine);
        assert_eq!(judge(of("0.0.0.0:3128", None), false, None).verdict, Verdict::Broken);
        assert_eq!(
            judge(of("10.0.0.1:3128", None), false, None).verdict,
            Verdict::Fine,
            "another address"
        );
    }

    #[test]
    fn rights_are_told_in_words() {
        let of = |capabilities: &str| {
            judge_rights(&format!("Name:\thearsay\nUid:\t0\t977\t0\t0\nCapEff:\t{capabilities}\nNoNewPrivs:\t1\nSeccomp:\t2\n"), None).text
        };
        assert_eq!(
            of("0000000000000000"),
            "user 977, no capabilities, no_new_privs on, seccomp on"
        );
        assert_eq!(
            of("0000000000003000"),
            "user 977, capabilities net_admin, net_raw, no_new_privs on, seccomp on"
        );
        assert!(of("000001ffffffffff").contains("41 capabilities"));
        assert_eq!(judge_rights("", None).verdict, Verdict::Unknown);
    }

    #[test]
    fn our_own_socket_is_found_with_its_owner() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let found = listening().into_iter().find(|it| it.address == address).expect("it listens");
        assert_eq!(found.owner.map(|it| it.0), Some(std::process::id()));
    }
}
