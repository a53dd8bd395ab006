//! Checks of what is beyond this machine: the resolver, origins and their TLS, the uplink's far end.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, UNIX_EPOCH};

use host::peers::index;
use host::tls::Tls;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::machine::Theirs;
use super::view::View;
use super::words;
use crate::entropy;
use crate::status::{Check, Finding, UplinkLine};

/// The origin that is asked for its date and its certificate, and for nothing else: the first that our content classes
/// know, which speaks HTTP and HTTPS.
pub const UPSTREAM: &str = "deb.debian.org";
/// How long a resolver may take to answer.
const RESOLVER_MAX: Duration = Duration::from_secs(3);
/// How long a connection may take.
const DIAL_MAX: Duration = Duration::from_secs(5);
/// Resolvers that the C library asks, at most (resolv.conf(5)).
const RESOLVERS_MAX: usize = 3;
/// The longest head of a response that is read.
const HEAD_MAX: usize = 16 * 1024;
/// A question for the name servers of the root, which every resolver knows: it tells no one what we look for. A header
/// without its id (RFC 1035 §4.1.1: recursion desired, one question), the root's name, NS, IN.
const QUESTION: [u8; 15] = [1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];

/// A resolver, as it is written in resolv.conf, and what it came to: the code of its answer, or why there was none.
pub type Resolved = (String, Result<u8, String>);

/// The check of the resolver.
pub fn dns() -> Finding {
    let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let mut servers = resolvers(&text);
    if servers.is_empty() {
        // As the C library does.
        servers.push("127.0.0.1");
    }
    let ask = |server: &str| {
        let answer = socket_address(server).and_then(ask).map_err(|error| words(&error));
        (server.to_owned(), answer)
    };
    judge_dns(&servers.into_iter().map(ask).collect::<Vec<_>>())
}

/// The addresses of resolvers, with their scopes.
fn resolvers(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    let words = lines.filter_map(|rest| rest.trim().split([' ', '\t', '#']).next());
    let is_address = |word: &&str| match word.split_once('%') {
        Some((address, scope)) => address.parse::<Ipv6Addr>().is_ok() && !scope.is_empty(),
        None => word.parse::<IpAddr>().is_ok(),
    };
    words.filter(is_address).take(RESOLVERS_MAX).collect()
}

/// Where to ask a resolver. The scope of a link-local address is an interface, by its name or its number (RFC 4007 §11).
fn socket_address(server: &str) -> io::Result<SocketAddr> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let Some((address, scope)) = server.split_once('%') else {
        return Ok(SocketAddr::new(server.parse().map_err(invalid)?, 53));
    };
    let scope = scope.parse().or_else(|_| index(scope))?;
    Ok(SocketAddrV6::new(address.parse().map_err(invalid)?, 53, 0, scope).into())
}

/// The code of a resolver's answer (RFC 1035 §4.1.1).
fn ask(server: SocketAddr) -> io::Result<u8> {
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_read_timeout(Some(RESOLVER_MAX))?;
    socket.connect(server)?;
    let id = entropy::bytes::<2>();
    let question: Vec<u8> = id.iter().chain(&QUESTION).copied().collect();
    socket.send(&question)?;
    let mut answer = [0; 512];
    let begun = std::time::Instant::now();
    // Others may send to this port too, but not for ever.
    while begun.elapsed() < RESOLVER_MAX {
        let length = socket.recv(&mut answer).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        })?;
        if let Some(code) = code(&answer[..length], id) {
            return Ok(code);
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// The code of an answer with this id.
fn code(answer: &[u8], id: [u8; 2]) -> Option<u8> {
    let &[a, b, flags, more, ..] = answer else { return None };
    ([a, b] == id && flags & 0x80 != 0).then_some(more & 0xf)
}

/// Judges resolvers.
pub fn judge_dns(asked: &[Resolved]) -> Finding {
    const SERVFAIL: u8 = 2;
    let next =
        "see /etc/resolv.conf; does the resolver run (`ss -ulpn`), and does it reach its own?";
    let answers = |(_, answer): &&Resolved| matches!(answer, Ok(code) if *code != SERVFAIL);
    let words = |(server, answer): &Resolved| match answer {
        Ok(SERVFAIL) => format!("{server} fails: it does not reach its own resolver"),
        Ok(_) => format!("{server} answers"),
        Err(why) => format!("{server} does not answer: {why}"),
    };
    let text = asked.iter().map(words).collect::<Vec<_>>().join("; ");
    match asked.iter().filter(answers).count() {
        0 => Finding::broken(Check::Dns, text, next),
        count if count < asked.len() => Finding::fine(Check::Dns, text).advise(next),
        _ => Finding::fine(Check::Dns, text),
    }
}

/// What was found at [`UPSTREAM`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upstream {
    /// Its date, in seconds since 1970; or why it could not be reached by HTTP.
    pub date: Option<Result<u64, String>>,
    /// Whether it proved its name by TLS; or why not.
    pub tls: Option<Result<(), String>>,
    /// Why this machine cannot verify anybody.
    pub roots: Option<String>,
}

impl Upstream {
    /// The clock by it.
    pub fn clock(&self) -> Theirs {
        let date = self.date.as_ref()?.as_ref().ok()?;
        Some((UPSTREAM.to_owned(), *date))
    }
}

/// Asks [`UPSTREAM`]; nothing is asked where other nodes ask origins for this one.
pub async fn look(view: &View) -> Upstream {
    if !view.asks_origins() {
        return Upstream::default();
    }
    let date = date().await.map_err(|error| words(&error));
    let (tls, roots) = match Tls::new(None) {
        Err(error) => (None, Some(error.to_string())),
        Ok(tls) => (Some(greet(&tls).await), None),
    };
    Upstream { date: Some(date), tls, roots }
}

async fn greet(tls: &Tls) -> Result<(), String> {
    let stream = dial(443).await.map_err(|error| words(&error))?;
    tls.greet(UPSTREAM, stream).await
}

async fn dial(port: u16) -> io::Result<TcpStream> {
    timeout(DIAL_MAX, TcpStream::connect((UPSTREAM, port)))
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// The date in the head of a response.
async fn date() -> io::Result<u64> {
    let mut stream = dial(80).await?;
    let request = format!("HEAD / HTTP/1.1\r\nHost: {UPSTREAM}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let (mut head, mut piece) = (Vec::new(), [0; 1024]);
    while head.len() < HEAD_MAX && !head.windows(4).any(|it| it == b"\r\n\r\n") {
        match timeout(DIAL_MAX, stream.read(&mut piece)).await {
            Ok(Ok(0)) => break,
            Ok(Ok(count)) => head.extend_from_slice(&piece[..count]),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
    date_in(&String::from_utf8_lossy(&head))
        .ok_or_else(|| io::Error::other("its answer has no date"))
}

fn date_in(head: &str) -> Option<u64> {
    let line = head
        .lines()
        .find(|line| line.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("date:")))?;
    let date = httpdate::parse_http_date(line.get(5..)?.trim()).ok()?;
    date.duration_since(UNIX_EPOCH).ok().map(|it| it.as_secs())
}

/// Judges what was found upstream.
pub fn judge_upstream(it: &Upstream) -> Finding {
    let check = Check::Upstream;
    match (&it.date, &it.tls, &it.roots) {
        (None, ..) => Finding::off(check, "other nodes ask origins for this one"),
        (Some(Err(why)), tls, _) if !matches!(tls, Some(Ok(()))) => {
            let text = format!("{UPSTREAM} cannot be reached: {why}");
            Finding::broken(check, text, "see the checks `route` and `dns`; is the uplink up?")
        }
        (_, _, Some(why)) => Finding::broken(
            check,
            why.clone(),
            "Debian: `apt install ca-certificates`; OpenWrt: `ca-bundle`",
        ),
        (_, Some(Err(why)), _) => {
            let text = format!("{UPSTREAM} cannot be verified by TLS: {why}");
            let next = "is the clock right (check `clock`), and ca-certificates current? A portal that one must log in to looks so, too";
            Finding::broken(check, text, next)
        }
        _ => Finding::fine(check, format!("{UPSTREAM} is reached, and proves its name by TLS")),
    }
}

/// The check of the far end.
pub fn far_end(view: &View) -> Finding {
    match &view.status {
        Some(status) => judge_far(status.uplink.as_ref()),
        None => match &view.config.uplink.far {
            None => judge_far(None),
            Some(_) => Finding::unknown(
                Check::FarEnd,
                "no daemon answers",
                "start the daemon, then look again",
            ),
        },
    }
}

/// Judges the far end by what the daemon says.
pub fn judge_far(uplink: Option<&UplinkLine>) -> Finding {
    let Some(it) = uplink else {
        return Finding::off(Check::FarEnd, "none: requests go straight to origins");
    };
    if it.state == "up" {
        return Finding::fine(
            Check::FarEnd,
            format!("{} is connected, {} ms away", it.far, it.round_trip_ms),
        );
    }
    let text = format!("{} is not connected ({}): requests go past it", it.far, it.state);
    let next = "does `hearsay far` run there, with this node's key (`hearsay uplink --key`), and is its port open?";
    Finding::broken(Check::FarEnd, text, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Verdict;

    #[test]
    fn resolvers_are_read_as_the_c_library_reads_them() {
        let text = "# nameserver 10.0.0.9\nsearch lan\nnameserver 10.0.0.1\n nameserver fe80::1%br-lan\nnameserver x\n\
                    nameserver ::1 # local\nnameserver 10.0.0.4\n";
        assert_eq!(resolvers(text), ["10.0.0.1", "fe80::1%br-lan", "::1"]);
        assert_eq!(resolvers("nameserver 10.0.0.1%br-lan\nnameserver fe80::1%\n"), [""; 0]);
    }

    #[test]
    fn a_link_local_resolver_is_asked_on_its_interface() {
        let scoped =
            |scope| SocketAddr::from(SocketAddrV6::new("fe80::1".parse().unwrap(), 53, 0, scope));
        // The loopback interface is always the first.
        assert_eq!(socket_address("fe80::1%lo").unwrap(), scoped(1));
        assert_eq!(socket_address("fe80::1%7").unwrap(), scoped(7));
        assert_eq!(socket_address("10.0.0.1").unwrap(), "10.0.0.1:53".parse().unwrap());
        let missing = socket_address("fe80::1%nowhere0").unwrap_err();
        assert_eq!(words(&missing), "there is no such interface");
    }

    #[test]
    fn only_an_answer_to_the_question_counts() {
        assert_eq!(code(&[1, 2, 0x81, 0x80, 0, 1], [1, 2]), Some(0));
        assert_eq!(code(&[1, 2, 0x81, 0x82], [1, 2]), Some(2));
        for other in [&[1, 3, 0x81, 0x80][..], &[1, 2, 0x01, 0], &[1, 2, 0x81], &[]] {
            assert_eq!(code(other, [1, 2]), None);
        }
    }

    #[test]
    fn one_resolver_that_answers_is_enough() {
        let [a, b] = ["10.0.0.1", "10.0.0.2"].map(str::to_owned);
        let dead = || Err("timed out".to_owned());
        assert_eq!(judge_dns(&[(a.clone(), Ok(0))]), Finding::fine(Check::Dns, "10.0.0.1 answers"));
        // It refuses this question, but it answers.
        assert_eq!(judge_dns(&[(a.clone(), Ok(5))]).verdict, Verdict::Fine);
        let half = judge_dns(&[(a.clone(), dead()), (b, Ok(0))]);
        assert!(half.verdict == Verdict::Fine && half.next.is_some(), "{half}");
        for answer in [dead(), Ok(2)] {
            assert_eq!(judge_dns(&[(a.clone(), answer)]).verdict, Verdict::Broken);
        }
    }

    #[test]
    fn upstream_is_reached_and_verified_or_not() {
        let fine = Upstream { date: Some(Ok(5)), tls: Some(Ok(())), roots: None };
        assert_eq!(judge_upstream(&fine).verdict, Verdict::Fine);
        assert_eq!(fine.clock(), Some((UPSTREAM.to_owned(), 5)));
        assert_eq!(judge_upstream(&Upstream::default()).verdict, Verdict::Off);
        let error = || Some(Err("refused".to_owned()));
        let dead = Upstream { date: Some(Err("timed out".into())), tls: error(), roots: None };
        assert!(judge_upstream(&dead).text.contains("cannot be reached: timed out"));
        let odd = Upstream { tls: error(), ..fine.clone() };
        assert!(judge_upstream(&odd).text.contains("cannot be verified by TLS: refused"));
        let bare = Upstream { tls: None, roots: Some("no list".into()), ..fine };
        assert_eq!(
            (judge_upstream(&bare).verdict, judge_upstream(&bare).text),
            (Verdict::Broken, "no list".into())
        );
    }

    #[test]
    fn dates_are_found_in_heads() {
        let head = "HTTP/1.1 200 OK\r\nServer: x\r\nDATE: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
        assert_eq!(date_in(head), Some(784_111_777));
        for head in ["", "date", "Date: soon", "HTTP/1.1 200 OK\r\nédate: x"] {
            assert_eq!(date_in(head), None, "{head}");
        }
    }

    #[test]
    fn a_far_end_is_connected_or_not() {
        let line = |state: &str| UplinkLine {
            far: "far.test:3144".into(),
            state: state.into(),
            ..UplinkLine::default()
        };
        assert_eq!(judge_far(None).verdict, Verdict::Off);
        assert_eq!(judge_far(Some(&line("up"))).verdict, Verdict::Fine);
        let down = judge_far(Some(&line("connecting")));
        assert!(
            down.verdict == Verdict::Broken && down.text.contains("far.test:3144 is not connected")
        );
    }
}
