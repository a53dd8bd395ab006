//! Datagrams between the routers of a mesh: to one router, and to all neighbours.
//!
//! *What this is:* [`Datagrams`] has a UDP socket on each interface of the mesh, bound to that interface: what arrives
//! on any other interface is not read. Like the port for peers it follows the interfaces, which may appear late, be
//! down, and return. *Who calls it:* the daemon's driver sends; a task for each [`Receiver`] reads. *What it never
//! does:* look into a datagram. *Where to start:* [`Receiver::run`].
//!
//! A broadcast leaves each interface once: over IPv4 if the interface has an IPv4 address, else over IPv6. A
//! neighbour with both addresses has one socket for both, and would hear a broadcast over both twice.
//!
//! A flood costs little: of each interface at most 64 datagrams are read before the loop goes on, and at most
//! 1000 a second are looked at. When there are more, nothing is read for 20 ms, and the kernel drops what
//! exceeds its small buffer.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket as BlockingSocket};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::UdpSocket;
use tokio::time::Instant;
use wire::peer::Envelope;

use crate::peers::{index, plain};
use crate::routing::{Forward, addresses, forward};

/// How often the interface is checked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The most datagrams that are read in one turn of the loop.
const TURN_MAX: usize = 64;
/// The most datagrams of one interface that are looked at in a second. Twenty neighbours that pass on searches as fast
/// as they may send fewer.
const RATE: u32 = 1000;
/// The same, after a pause.
const BURST: u32 = 250;
/// Nothing is read for this long after a datagram was dropped because of [`RATE`].
const FLOOD_PAUSE: Duration = Duration::from_millis(20);
/// The kernel's buffer for datagrams that were not read, in bytes, which Linux doubles: more than [`BURST`] small ones.
const BUFFER_BYTES: usize = 128 * 1024;
/// One byte more than the longest datagram, to see that one is longer.
const READ_BYTES: usize = Envelope::LENGTH_MAX + 1;

wire::reasons! {
    /// Why a datagram was not given to the engine.
    pub enum Dropped {
        /// It was longer than any datagram of this protocol.
        TooLong = "too-long",
        /// Too many came within a second. The kernel drops further ones before it counts them here.
        Flood = "flood",
    }
}

wire::counters! {
    /// Datagrams of searches, sent to other routers and received from them.
    pub struct DatagramCounts, "datagrams_" {
        Mesh ("hearsay_datagrams_total", direction, "Datagrams of searches, exchanged with other routers. A broadcast counts once for each interface.") {
            /// Received, and given to the engine.
            received: Counter, Datagrams, "in";
            /// Sent.
            sent: Counter, Datagrams, "out";
        }
        Mesh ("hearsay_datagram_bytes_total", direction, "Bytes of the datagrams of searches, without headers of UDP and IP.") {
            /// Received.
            received_bytes: Counter, Bytes, "in";
            /// Sent.
            sent_bytes: Counter, Bytes, "out";
        }
        Mesh () {
            /// Datagrams that were received and not looked at, by reason.
            dropped: Tally<Dropped>, Datagrams;
            /// Datagrams that could not be sent: no interface of the mesh leads there, or it is down, or full.
            send_errors: Counter, Datagrams;
        }
    }
}

/// The sockets; clones share them.
#[derive(Clone, Debug)]
pub struct Datagrams(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    port: u16,
    sockets: Vec<OnInterface>,
    counts: RefCell<DatagramCounts>,
}

/// The socket on one interface.
#[derive(Debug)]
struct OnInterface {
    interface: String,
    open: RefCell<Option<Rc<Open>>>,
    /// The last problem that was logged, so that each is logged once.
    trouble: RefCell<Option<String>>,
}

#[derive(Debug)]
struct Open {
    /// The index of the interface.
    index: u32,
    /// The addresses of the interface.
    addresses: Vec<IpAddr>,
    socket: Rc<UdpSocket>,
    /// Whether the kernel knows no IPv6.
    is_ipv4: bool,
}

/// Reads on one interface.
#[derive(Debug)]
pub struct Receiver {
    datagrams: Datagrams,
    at: usize,
    pace: Pace,
    looked: Option<Instant>,
}

/// What a turn of reading left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Nothing to read.
    Empty,
    /// Perhaps more to read.
    Full,
    /// Too much was to read.
    Flooded,
}

impl Datagrams {
    /// Sockets on these interfaces, with this port, which are not open yet. Each receiver opens one.
    pub fn new(interfaces: &[String], port: u16) -> (Self, Vec<Receiver>) {
        let socket = |interface: &String| OnInterface {
            interface: interface.clone(),
            open: RefCell::default(),
            trouble: RefCell::default(),
        };
        let sockets = interfaces.iter().map(socket).collect();
        let datagrams = Self(Rc::new(Inner { port, sockets, counts: RefCell::default() }));
        let receiver = |at| Receiver {
            datagrams: datagrams.clone(),
            at,
            pace: Pace::new(Instant::now()),
            looked: None,
        };
        let receivers = (0..interfaces.len()).map(receiver).collect();
        (datagrams, receivers)
    }

    /// What was counted so far.
    pub fn counts(&self) -> DatagramCounts {
        self.0.counts.borrow().clone()
    }

    /// Sends a datagram to one router, by the interface towards it. If none of the mesh leads there, it is not sent:
    /// the address may be forged.
    pub fn send(&self, to: SocketAddr, bytes: &[u8]) {
        let towards = match to {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id()),
            _ => match forward(to.ip().to_canonical(), None) {
                Ok(Forward::Out(index)) => Some(index),
                Ok(Forward::Here | Forward::Nowhere) | Err(_) => None,
            },
        };
        let open = self.all_open().find(|open| Some(open.index) == towards);
        self.count(open.is_some_and(|open| open.send(to, bytes)), bytes);
    }

    /// Sends a datagram to all neighbours, once by each interface.
    pub fn broadcast(&self, bytes: &[u8]) {
        let port = self.0.port;
        for open in self.all_open() {
            self.count(open.all_neighbours(port).is_some_and(|to| open.send(to, bytes)), bytes);
        }
    }

    fn all_open(&self) -> impl Iterator<Item = Rc<Open>> {
        self.0.sockets.iter().filter_map(|it| it.open.borrow().clone())
    }

    fn count(&self, was_sent: bool, bytes: &[u8]) {
        let counts = &mut *self.0.counts.borrow_mut();
        counts.sent += u64::from(was_sent);
        counts.sent_bytes += if was_sent { bytes.len() as u64 } else { 0 };
        counts.send_errors += u64::from(!was_sent);
    }
}

impl Receiver {
    /// Reads datagrams, and gives each to `tell`, with its sender; never returns. The future may be dropped at any
    /// time.
    pub async fn run(mut self, mut tell: impl FnMut(SocketAddr, Bytes)) {
        loop {
            self.look();
            let Some(open) = self.here().open.borrow().clone() else {
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            };
            let readable = tokio::time::timeout(LOOK_EVERY, open.socket.readable()).await;
            match readable.map(|readable| readable.and_then(|()| self.read(&open, &mut tell))) {
                Err(_) | Ok(Ok(Turn::Empty)) => {}
                Ok(Ok(Turn::Full)) => tokio::task::yield_now().await,
                Ok(Ok(Turn::Flooded)) => tokio::time::sleep(FLOOD_PAUSE).await,
                Ok(Err(error)) => self.here().fail(self.datagrams.0.port, &error),
            }
        }
    }

    fn here(&self) -> &OnInterface {
        &self.datagrams.0.sockets[self.at]
    }

    /// Checks the interface, unless it was checked lately.
    fn look(&mut self) {
        let now = Instant::now();
        if self.looked.is_none_or(|looked| now - looked >= LOOK_EVERY) {
            self.looked = Some(now);
            self.here().follow(self.datagrams.0.port);
        }
    }

    /// Reads for one turn. What is dropped is copied into one buffer on the stack, and nowhere else.
    fn read(&mut self, open: &Open, tell: &mut impl FnMut(SocketAddr, Bytes)) -> io::Result<Turn> {
        let mut buffer = [0; READ_BYTES];
        let mut turn = Turn::Full;
        self.pace.go_on(Instant::now());
        for _ in 0..TURN_MAX {
            let (length, from) = match open.socket.try_recv_from(&mut buffer) {
                Ok((length, from)) => (length, plain(from)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(if turn == Turn::Flooded { turn } else { Turn::Empty });
                }
                Err(error) => return Err(error),
            };
            let is_over = !self.pace.take();
            turn = if is_over { Turn::Flooded } else { turn };
            // The kernel also gives us what we broadcast.
            if from.port() == self.datagrams.0.port && open.addresses.contains(&from.ip()) {
                continue;
            }
            let dropped = match length {
                _ if is_over => Some(Dropped::Flood),
                READ_BYTES.. => Some(Dropped::TooLong),
                _ => None,
            };
            let mut counts = self.datagrams.0.counts.borrow_mut();
            if let Some(dropped) = dropped {
                *counts.dropped.of(dropped) += 1;
                continue;
            }
            counts.received += 1;
            counts.received_bytes += length as u64;
            drop(counts);
            tell(from, Bytes::copy_from_slice(&buffer[..length]));
        }
        Ok(turn)
    }
}

impl OnInterface {
    /// Opens the socket, or opens it again if the interface has changed.
    fn follow(&self, port: u16) {
        let now = index(&self.interface).and_then(|index| Ok((index, addresses(index)?)));
        let same = |(index, addresses): &(u32, Vec<IpAddr>)| {
            let open = self.open.borrow();
            open.as_ref().is_some_and(|it| it.index == *index && it.addresses == *addresses)
        };
        if now.as_ref().is_ok_and(same) {
            return;
        }
        match now.and_then(|(index, addresses)| self.open(index, addresses, port)) {
            Ok(open) => {
                *self.open.borrow_mut() = Some(Rc::new(open));
                *self.trouble.borrow_mut() = None;
            }
            Err(error) => self.fail(port, &error),
        }
    }

    /// The socket, for an interface with this index and these addresses.
    fn open(&self, index: u32, addresses: Vec<IpAddr>, port: u16) -> io::Result<Open> {
        // Only the addresses have changed.
        if let Some(held) = self.open.borrow().as_ref().filter(|it| it.index == index) {
            let socket = Rc::clone(&held.socket);
            return Ok(Open { index, addresses, socket, is_ipv4: held.is_ipv4 });
        }
        let (socket, is_ipv4) = on_device(&self.interface, port)?;
        let socket = Rc::new(UdpSocket::from_std(socket)?);
        tracing::info!(interface = self.interface, port, "searches of other routers can be heard");
        Ok(Open { index, addresses, socket, is_ipv4 })
    }

    /// Closes the socket because of an error, which is logged once.
    fn fail(&self, port: u16, error: &io::Error) {
        *self.open.borrow_mut() = None;
        let interface = &self.interface;
        let next = match error.kind() {
            ErrorKind::AddrInUse => {
                format!(
                    ": stop the program that has UDP port {port}, or choose another [mesh] port, the same on all nodes"
                )
            }
            ErrorKind::PermissionDenied => {
                ": before Linux 5.7 only root, or CAP_NET_RAW, may listen on one interface"
                    .to_owned()
            }
            _ => String::new(),
        };
        let text = format!("{error}{next}");
        if self.trouble.borrow().as_ref() != Some(&text) {
            tracing::warn!(interface, port, "searches cannot be sent or heard yet: {text}");
        }
        *self.trouble.borrow_mut() = Some(text);
    }
}

impl Open {
    /// Where all neighbours listen; `None` if the interface has no address to send from.
    fn all_neighbours(&self, port: u16) -> Option<SocketAddr> {
        if self.addresses.iter().any(IpAddr::is_ipv4) {
            return Some((Ipv4Addr::BROADCAST, port).into());
        }
        let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        let to = SocketAddrV6::new(all_nodes, port, 0, self.index);
        (!self.addresses.is_empty() && !self.is_ipv4).then_some(to.into())
    }

    /// Whether the kernel took the datagram.
    fn send(&self, to: SocketAddr, bytes: &[u8]) -> bool {
        let to = match to {
            SocketAddr::V4(v4) if !self.is_ipv4 => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
            to => to,
        };
        // Past tokio: a full queue is an error like others, because what is late is of no use.
        let sent = SockRef::from(&*self.socket).send_to(bytes, &to.into());
        sent.inspect_err(|error| tracing::debug!(%to, %error, "a datagram was not sent")).is_ok()
    }
}

/// Which address of this machine a datagram to this one would come from: the one by which others there know this
/// machine. `None` if nothing leads there.
pub fn source_towards(to: IpAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // To connect a UDP socket sends nothing: the kernel only chooses its address. Any port will do.
    let socket = BlockingSocket::bind((any, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    let source = socket.local_addr().ok()?.ip();
    let is_of_link = match source {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    (!is_of_link && !source.is_unspecified()).then_some(source)
}

/// A socket that only packets of this interface reach, for both address families; and whether it is for IPv4 alone.
fn on_device(interface: &str, port: u16) -> io::Result<(BlockingSocket, bool)> {
    let open = |domain| Socket::new(domain, Type::DGRAM, Some(Protocol::UDP));
    let (socket, address): (_, IpAddr) = match open(Domain::IPV6) {
        Ok(socket) => {
            socket.set_only_v6(false)?;
            socket.set_multicast_loop_v6(false)?;
            (socket, Ipv6Addr::UNSPECIFIED.into())
        }
        // A kernel without IPv6.
        Err(_) => (open(Domain::IPV4)?, Ipv4Addr::UNSPECIFIED.into()),
    };
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.set_broadcast(true)?;
    socket.set_recv_buffer_size(BUFFER_BYTES)?;
    socket.set_nonblocking(true)?;
    // Addresses are not reused: of two sockets with one port the kernel would give datagrams to one alone.
    socket.bind(&SocketAddr::new(address, port).into())?;
    Ok((socket.into(), address.is_ipv4()))
}

/// How many datagrams are looked at: [`RATE`] a second, and up to [`BURST`] at once.
#[derive(Debug)]
struct Pace {
    left: u32,
    since: Instant,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { left: BURST, since: now }
    }

    /// Time has passed.
    fn go_on(&mut self, now: Instant) {
        let each = Duration::from_secs(1) / RATE;
        let more = u32::try_from((now - self.since).as_nanos() / each.as_nanos()).unwrap_or(BURST);
        self.left = self.left.saturating_add(more).min(BURST);
        self.since = if self.left == BURST { now } else { self.since + each * more };
    }

    /// Whether one more may be given.
    fn take(&mut self) -> bool {
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

    fn of_loopback() -> BlockingSocket {
        BlockingSocket::bind((LOOPBACK, 0)).unwrap()
    }

    /// On the loopback interface, with a port that was free a moment ago.
    fn on_loopback() -> (Datagrams, Receiver, SocketAddr) {
        let address = of_loopback().local_addr().unwrap();
        let (datagrams, mut receivers) = Datagrams::new(&["lo".to_owned()], address.port());
        (datagrams, receivers.pop().unwrap(), address)
    }

    /// Runs the receiver until `is_enough`, and returns what it gave.
    async fn given(
        receiver: Receiver,
        is_enough: impl Fn(&DatagramCounts) -> bool,
    ) -> Vec<(SocketAddr, Bytes)> {
        let given = RefCell::new(Vec::new());
        let datagrams = receiver.datagrams.clone();
        let enough = async {
            while !is_enough(&datagrams.counts()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = receiver.run(|from, bytes| given.borrow_mut().push((from, bytes))) => {}
            () = enough => {}
        }
        given.into_inner()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_short_enough_arrives_with_its_sender() {
        let (datagrams, receiver, address) = on_loopback();
        receiver.here().follow(address.port());
        let other = of_loopback();
        let longest = [7; Envelope::LENGTH_MAX];
        for bytes in [&[7; Envelope::LENGTH_MAX + 1][..], &longest, &[8; 1400], b""] {
            other.send_to(bytes, address).unwrap();
        }
        let given = given(receiver, |it| it.received == 2).await;
        let from = other.local_addr().unwrap();
        assert_eq!(given, [(from, Bytes::copy_from_slice(&longest)), (from, Bytes::new())]);
        let counts = datagrams.counts();
        assert_eq!((counts.dropped.get(Dropped::TooLong), counts.received_bytes), (2, 128));
        assert_eq!(counts.dropped.get(Dropped::Flood), 0);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn of_a_flood_few_datagrams_reach_the_engine() {
        let (datagrams, mut receiver, address) = on_loopback();
        receiver.here().follow(address.port());
        // As if no time passed: the pace over time has a test of its own.
        receiver.pace.since = Instant::now() + Duration::from_secs(3600);
        let other = of_loopback();
        let is_enough = |it: &DatagramCounts| {
            // The kernel keeps a few hundred of them.
            (0..500).for_each(|_| _ = other.send_to(b"garbage", address));
            it.dropped.get(Dropped::Flood) > 0
        };
        let given = given(receiver, is_enough).await;
        assert_eq!(given.len(), BURST as usize);
        assert_eq!(datagrams.counts().received, u64::from(BURST));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn datagrams_too_long_or_of_our_own_are_a_flood_as_well() {
        let (datagrams, mut receiver, address) = on_loopback();
        receiver.here().follow(address.port());
        receiver.pace.left = 1;
        receiver.pace.since = Instant::now() + Duration::from_secs(3600);
        let open = receiver.here().open.borrow().clone().unwrap();
        // This comes from our own address and port.
        assert!(open.send(address, b"own"));
        of_loopback().send_to(&[0; 1000], address).unwrap();
        open.socket.readable().await.unwrap();
        let turn = receiver.read(&open, &mut |_, _| panic!("nothing is given")).unwrap();
        assert_eq!(turn, Turn::Flooded);
        assert_eq!(datagrams.counts().dropped.get(Dropped::Flood), 1);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_datagram_leaves_only_by_an_interface_of_the_mesh() {
        let (datagrams, receiver, address) = on_loopback();
        let other = of_loopback();
        datagrams.send(other.local_addr().unwrap(), b"not open");
        receiver.here().follow(address.port());
        // Addresses of this machine, and those to which nothing leads.
        for to in [LOOPBACK, Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(0, 0, 0, 7)] {
            datagrams.send((to, 9).into(), b"elsewhere");
        }
        assert_eq!((datagrams.counts().sent, datagrams.counts().send_errors), (0, 4));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_port_that_is_taken_is_told_with_the_next_step_and_tried_again() {
        let (_, receiver, address) = on_loopback();
        let taken = BlockingSocket::bind(address).unwrap();
        let here = receiver.here();
        here.follow(address.port());
        let trouble = here.trouble.borrow().clone().expect("it is taken");
        assert!(
            trouble.contains(&format!("has UDP port {}, or choose", address.port())),
            "{trouble}"
        );
        drop(taken);
        here.follow(address.port());
        assert!(here.open.borrow().is_some() && here.trouble.borrow().is_none());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_interface_that_is_not_there_is_waited_for() {
        let (datagrams, mut receivers) = Datagrams::new(&["nowhere0".to_owned()], 3131);
        receivers[0].look();
        let trouble = receivers[0].here().trouble.borrow().clone();
        assert_eq!(trouble.as_deref(), Some("there is no such interface"));
        datagrams.broadcast(b"nobody");
        assert_eq!(datagrams.counts(), DatagramCounts::default());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_interface_without_addresses_cannot_broadcast() {
        let (_, receiver, address) = on_loopback();
        receiver.here().follow(address.port());
        let open = receiver.here().open.borrow().clone().unwrap();
        let to = |addresses: &[IpAddr]| {
            let (socket, index) = (Rc::clone(&open.socket), 7);
            let open = Open { index, addresses: addresses.to_vec(), socket, is_ipv4: false };
            open.all_neighbours(3131).map(|to| to.to_string())
        };
        let (v4, v6) = (LOOPBACK.into(), Ipv6Addr::LOCALHOST.into());
        assert_eq!(to(&[v6, v4]).as_deref(), Some("255.255.255.255:3131"));
        assert_eq!(to(&[v6]).as_deref(), Some("[ff02::1%7]:3131"));
        assert_eq!(to(&[]), None);
    }

    #[test]
    fn the_pace_is_kept_over_any_time() {
        let begin = Instant::now();
        let mut pace = Pace::new(begin);
        let (mut now, mut taken) = (begin, 0);
        for step in [3_u64, 700, 1, 0, 49, 12_345].into_iter().cycle().take(6_000) {
            now += Duration::from_micros(step);
            pace.go_on(now);
            taken += (0..50).filter(|_| pace.take()).count() as u64;
        }
        let most = u64::from(BURST) + (now - begin).as_millis() as u64 * u64::from(RATE) / 1000;
        assert!((most - 1..=most).contains(&taken), "{taken} of {most}");
        pace.go_on(now + Duration::from_secs(3600));
        assert_eq!((0..1_000).filter(|_| pace.take()).count(), BURST as usize);
    }

    #[test]
    fn our_address_is_the_one_that_the_kernel_would_send_from() {
        assert_eq!(source_towards(LOOPBACK.into()), Some(LOOPBACK.into()));
        // Without a scope.
        assert_eq!(source_towards(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1).into()), None);
    }
}
