//! The helper's side: it takes requests until the daemon has ended, and then removes the rules.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::net::sockopt::socket_type;
use rustix::net::{AddressFamily, SocketType};
use socket2::SockRef;

use super::lock::Lock;
use super::message::{ANSWER_BYTES, Answer, FamilyState, Outcome, REQUEST_BYTES, Request};
use super::message::{receive, send};
use crate::intercept::offload::{Flowtable, flowtables};
use crate::intercept::{Applied, Error, Moment, Rules, forwarded};
use crate::rights::{Limits, NETWORK, Places};
use crate::{capture, listen};

/// What the configuration lets the helper do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The rules, but for the interfaces that lead out; without interfaces, none may be set.
    pub rules: Rules,
    /// The interface on which may be captured.
    pub capture: Option<String>,
    /// The file that the helper locks while it has rules; only that of the start counts.
    pub lock: Option<PathBuf>,
}

/// Serves as the helper of the daemon at the other end of standard input, until it has ended. `read` reads the
/// configuration; it is called once before the first request, and at each reload.
///
/// # Errors
/// If standard input is no such socket, or the configuration is wrong at the start.
pub fn serve(mut read: impl FnMut() -> Result<Charge, String>) -> Result<(), String> {
    let standard = io::stdin();
    let is_ours = matches!(socket_type(&standard), Ok(SocketType::SEQPACKET));
    if !is_ours {
        return Err("the helper is started by the daemon, not by hand".to_owned());
    }
    let socket = rustix::io::dup(&standard).map_err(|error| error.to_string())?;
    let _ = rustix::thread::set_name(c"hearsay-helper");
    ignore_signals().map_err(|error| error.to_string())?;
    // With the rights of the start, as the daemon read it.
    let charge = read()?;
    // The limits forbid to open it later.
    let lock = open_lock(&charge);
    let mut server = Server { charge, lock, applied: None };
    for sentence in limits().impose().skipped {
        tracing::debug!("helper: {sentence}");
    }
    loop {
        let mut bytes = [0; REQUEST_BYTES];
        let Ok((length @ 1.., passed)) = receive(&socket, &mut bytes) else { break };
        let (number, request) = Request::decode(&bytes);
        let request = request.filter(|_| length == REQUEST_BYTES);
        let (mut answer, socket_back) = match request {
            Some(Request::Reload) => server.reload(&mut read),
            Some(request) => server.answer(request, passed),
            None => refused("that is no request of this program"),
        };
        answer.number = number;
        let bytes: [u8; ANSWER_BYTES] = answer.encode();
        if send(&socket, &bytes, socket_back.as_ref()).is_err() {
            break;
        }
    }
    server.end();
    Ok(())
}

/// The helper keeps what the network's rules need. It reads programs and their libraries, and writes no file.
fn limits() -> Limits {
    let places = Places { execute: vec!["/".into()], ..Places::default() };
    Limits { keeps: NETWORK, places }
}

/// The lock, which is not worth a daemon that does not start.
fn open_lock(charge: &Charge) -> Lock {
    let Some(path) = &charge.lock else { return Lock::default() };
    Lock::open(path).unwrap_or_else(|error| {
        let path = path.display();
        tracing::warn!(%path, %error, "the helper goes on without its lock: a predecessor may remove its rules");
        Lock::default()
    })
}

/// Service managers send signals to all processes of a service. This one ends when the daemon has ended, not before.
fn ignore_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGTERM};
    // systemd's watchdog sends SIGABRT.
    for signal in [SIGABRT, SIGHUP, SIGINT, SIGTERM] {
        // A handler that does nothing of use: unlike signals that are ignored, it is not passed on to `nft` and `ip`.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

struct Server {
    charge: Charge,
    /// Held from the first rules on.
    lock: Lock,
    /// The rules that are set.
    applied: Option<Rules>,
}

type Reply = (Answer, Option<OwnedFd>);

impl Server {
    fn reload(&mut self, read: &mut impl FnMut() -> Result<Charge, String>) -> Reply {
        match read() {
            Ok(new) => {
                // The port, the mark and the table hold as long as the daemon.
                let rules = Rules { listen_port: self.charge.rules.listen_port, ..new.rules };
                self.charge.rules = rules;
                done(Vec::new())
            }
            Err(error) => refused(&error),
        }
    }

    fn answer(&mut self, request: Request, passed: Option<OwnedFd>) -> Reply {
        match request {
            Request::Apply(moment) => self.apply(&moment).map_or_else(failed, |it| done(it.notes)),
            Request::Check(moment) => self.check(&moment),
            Request::Release => {
                self.applied.as_ref().map_or(done(Vec::new()), |it| nothing(it.release()))
            }
            Request::Remove => self.remove(),
            Request::Counters => match forwarded() {
                Ok(forwarded) => (Answer { forwarded, ..Answer::default() }, None),
                Err(error) => failed(error),
            },
            Request::FlowTables => flowtables()
                .map_or_else(failed, |all| done(all.iter().map(Flowtable::line).collect())),
            Request::Capture(names) => self.capture(&names),
            Request::Transparent if self.charge.rules.all_interfaces().is_empty() => {
                refused("the configuration intercepts on no interface")
            }
            Request::Transparent => {
                opened(listen::transparent_socket(self.charge.rules.listen_port))
            }
            Request::SetBbr => with_tcp(passed, |it| it.set_tcp_congestion(b"bbr")),
            Request::Unbind => with_tcp(passed, |it| it.bind_device(None)),
            Request::Reload => refused("it is handled before"),
        }
    }

    fn rules(&self, moment: &Moment) -> Rules {
        self.charge.rules.clone().at(moment)
    }

    fn apply(&mut self, moment: &Moment) -> Result<Applied, Error> {
        self.lock.take();
        let rules = self.rules(moment);
        let applied = rules.apply()?;
        self.applied = Some(rules);
        Ok(applied)
    }

    fn check(&self, moment: &Moment) -> Reply {
        match self.rules(moment).families() {
            Ok(families) => {
                let mut answer = Answer::default();
                for (state, report) in answer.families.iter_mut().zip(&families) {
                    *state = FamilyState::from(report);
                }
                (answer, None)
            }
            Err(error) => failed(error),
        }
    }

    fn remove(&mut self) -> Reply {
        let removed = self
            .applied
            .take()
            .map_or(Ok(()), |rules| rules.remove().inspect_err(|_| self.applied = Some(rules)));
        nothing(removed)
    }

    fn capture(&self, names: &[String]) -> Reply {
        match (names, &self.charge.capture) {
            ([name], Some(configured)) if name == configured => opened(capture::packet_socket()),
            _ => refused("the configuration does not name this interface for overhearing"),
        }
    }

    /// The daemon has ended. If it could not do so itself, as when it was killed, its rules are removed.
    fn end(self) {
        let Some(rules) = self.applied else { return };
        match rules.remove() {
            Ok(()) => {
                tracing::warn!("the daemon has ended without removing its rules: they are removed")
            }
            Err(error) => {
                tracing::warn!(%error, "cannot remove the rules of a dead daemon: run `hearsay intercept remove`");
            }
        }
    }
}

fn done(lines: Vec<String>) -> Reply {
    (Answer { lines, ..Answer::default() }, None)
}

fn refused(why: &str) -> Reply {
    (Answer { outcome: Outcome::Refused, lines: vec![why.to_owned()], ..Answer::default() }, None)
}

fn failed(error: Error) -> Reply {
    refused(&error.to_string())
}

fn nothing(outcome: Result<(), Error>) -> Reply {
    outcome.map_or_else(failed, |()| done(Vec::new()))
}

/// The kernel's answer about a socket.
fn kernel(error: &io::Error) -> Reply {
    match error.raw_os_error() {
        Some(errno) => (Answer { outcome: Outcome::Errno(errno), ..Answer::default() }, None),
        None => refused(&error.to_string()),
    }
}

fn opened(socket: io::Result<socket2::Socket>) -> Reply {
    socket.map_or_else(|error| kernel(&error), |it| (Answer::default(), Some(it.into())))
}

/// Does something with the TCP socket that was passed.
fn with_tcp(passed: Option<OwnedFd>, act: impl FnOnce(SockRef<'_>) -> io::Result<()>) -> Reply {
    let is_tcp = |it: &OwnedFd| {
        use rustix::net::ipproto;
        use rustix::net::sockopt::{socket_domain, socket_protocol};
        let domain = socket_domain(it);
        matches!(domain, Ok(AddressFamily::INET | AddressFamily::INET6))
            && socket_protocol(it) == Ok(Some(ipproto::TCP))
    };
    match passed.filter(is_tcp) {
        Some(socket) => match act(SockRef::from(&socket)) {
            Ok(()) => done(Vec::new()),
            Err(error) => kernel(&error),
        },
        None => refused("that takes a TCP socket"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_configuration_names_is_opened() {
        let charge = Charge { capture: Some("mon0".into()), ..Charge::default() };
        let mut server = Server { charge, lock: Lock::default(), applied: None };
        let mut ask = |request| server.answer(request, None).0.outcome;
        assert_eq!(ask(Request::Capture(vec!["mon1".into()])), Outcome::Refused);
        assert_eq!(ask(Request::Transparent), Outcome::Refused);
        assert_eq!(ask(Request::SetBbr), Outcome::Refused, "no socket");
        assert_eq!(ask(Request::Apply(Moment::default())), Outcome::Refused, "no interface");
        assert_eq!(server.applied, None);
    }

    #[test]
    fn only_tcp_sockets_are_changed() {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        assert_eq!(with_tcp(Some(udp.into()), |_| Ok(())).0.outcome, Outcome::Refused);
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        assert_eq!(with_tcp(Some(tcp.into()), |_| Ok(())).0.outcome, Outcome::Done);
    }

    #[test]
    fn a_reload_keeps_the_port_and_a_wrong_one_keeps_all() {
        let rules = Rules { interfaces: vec!["lan0".into()], listen_port: 7, ..Rules::default() };
        let mut server = Server {
            charge: Charge { rules: rules.clone(), ..Charge::default() },
            lock: Lock::default(),
            applied: None,
        };
        let answer = server.reload(&mut || Err("line 1: wrong".to_owned())).0;
        assert_eq!(
            (answer.outcome, &answer.lines[..]),
            (Outcome::Refused, &["line 1: wrong".to_owned()][..])
        );
        assert_eq!(server.charge.rules, rules);
        let new = Rules { interfaces: vec!["lan1".into()], listen_port: 8, ..Rules::default() };
        let charge = Charge { rules: new.clone(), capture: Some("mon0".into()), lock: None };
        assert_eq!(server.reload(&mut || Ok(charge.clone())).0.outcome, Outcome::Done);
        assert_eq!(server.charge.rules, Rules { listen_port: 7, ..new });
        assert_eq!(server.charge.capture, None, "as with the daemon, that takes a restart");
    }
}
