//! Hosts on a line: a client, a router, a server; 10 ms between neighbours.

use std::time::Duration;

use bytes::Bytes;
use wire::Instant;

use super::*;
use crate::net::Flags;

const MS: Duration = Duration::from_millis(1);
const HOP: Duration = Duration::from_millis(10);
const CLIENT: usize = 0;
const ROUTER: usize = 1;
const SERVER: usize = 2;
/// A host's interface towards the client's end of the line, and towards the server's.
const BEFORE: Interface = Interface(0);
const AFTER: Interface = Interface(1);

fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8)
}

fn at(host: usize, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address(host), port)
}

struct Line {
    now: Instant,
    hosts: Vec<Host>,
    /// Arrival time, host, interface, packet.
    carried: Vec<(Instant, usize, Interface, Packet)>,
    events: Vec<(usize, Event)>,
    cut: bool,
}

impl Line {
    fn new() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        let hosts = (0..3).map(|i| Host::new(config, &[address(i)], i as u64)).collect();
        Self { now: Instant::ZERO, hosts, carried: vec![], events: vec![], cut: false }
    }

    /// Sends a packet from a host to its next hop.
    fn carry(&mut self, from: usize, packet: Packet) {
        let to = usize::from(packet.to.ip().octets()[3]);
        let (next, by) = if to > from { (from + 1, BEFORE) } else { (from - 1, AFTER) };
        if !self.cut {
            self.carried.push((self.now + HOP, next, by, packet));
        }
    }

    fn drain(&mut self) {
        for i in 0..self.hosts.len() {
            while let Some(packet) = self.hosts[i].poll_packet() {
                self.carry(i, packet);
            }
            while let Some(event) = self.hosts[i].poll_event() {
                self.events.push((i, event));
            }
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        self.drain();
        loop {
            let arrival = self.carried.iter().map(|it| it.0).min();
            let timeout = self.hosts.iter().filter_map(Host::poll_timeout).min();
            let Some(next) = arrival.into_iter().chain(timeout).min().filter(|it| *it <= end)
            else {
                break;
            };
            self.now = next;
            if let Some(place) = self.carried.iter().position(|it| it.0 <= next) {
                let (_, host, by, packet) = self.carried.remove(place);
                if let Some(packet) = self.hosts[host].handle_packet(next, by, packet) {
                    self.carry(host, packet);
                }
            }
            for host in &mut self.hosts {
                if host.poll_timeout().is_some_and(|at| at <= next) {
                    host.handle_timeout(next);
                }
            }
            self.drain();
        }
        self.now = end;
    }

    fn events(&mut self, host: usize) -> Vec<Event> {
        let (of_host, rest) =
            std::mem::take(&mut self.events).into_iter().partition(|it| it.0 == host);
        self.events = rest;
        of_host.into_iter().map(|it| it.1).collect()
    }

    /// Opens a connection from the client to `to`. Gives the client's socket and the acceptor's.
    fn open(&mut self, to: SocketAddrV4, acceptor: usize) -> (SocketId, SocketId) {
        let id = self.hosts[CLIENT].connect(self.now, to).unwrap();
        self.run_for(100 * MS);
        assert_eq!(self.events(CLIENT), [Event::Connected(id)]);
        match self.events(acceptor)[..] {
            [Event::Accepted { id: other, .. }] => (id, other),
            ref events => panic!("{events:?}"),
        }
    }

    fn write(&mut self, host: usize, id: SocketId, data: &'static [u8]) {
        let mut data = Bytes::from_static(data);
        self.hosts[host].write(self.now, id, &mut data);
        assert!(data.is_empty());
    }

    fn read(&mut self, host: usize, id: SocketId) -> Vec<u8> {
        let (now, host) = (self.now, &mut self.hosts[host]);
        std::iter::from_fn(|| host.read(now, id, 1000)).flatten().collect()
    }
}

#[test]
fn a_connection_from_its_beginning_to_its_end() {
    let mut line = Line::new();
    line.hosts[SERVER].listen(80);
    let id = line.hosts[CLIENT].connect(line.now, at(SERVER, 80)).unwrap();
    line.run_for(100 * MS);
    assert_eq!(line.events(CLIENT), [Event::Connected(id)]);
    let (local, remote) = line.hosts[CLIENT].addresses_of(id).unwrap();
    let accepted = line.events(SERVER);
    let [Event::Accepted { id: other, .. }] = accepted[..] else { panic!("{accepted:?}") };
    let expected = Event::Accepted {
        id: other,
        local: remote,
        remote: local,
        interface: BEFORE,
        intercepted: false,
    };
    assert_eq!(accepted, [expected]);
    line.write(CLIENT, id, b"question");
    line.run_for(30 * MS);
    assert_eq!(line.events(SERVER), [Event::Readable(other)]);
    assert_eq!(line.hosts[SERVER].readable(other), 8);
    assert_eq!(line.read(SERVER, other), b"question");
    line.write(SERVER, other, b"answer");
    line.hosts[SERVER].close(line.now, other);
    line.run_for(30 * MS);
    assert_eq!(line.events(CLIENT), [Event::Readable(id), Event::PeerClosed(id)]);
    line.hosts[CLIENT].close(line.now, id);
    line.run_for(50 * MS);
    // The server's side has ended; the client's ends once everything is read.
    assert_eq!(
        line.events(SERVER),
        [Event::PeerClosed(other), Event::Closed { id: other, why: End::Done }]
    );
    assert_eq!(line.events(CLIENT), []);
    assert_eq!(line.read(CLIENT, id), b"answer");
    line.drain();
    assert_eq!(line.events(CLIENT), [Event::Closed { id, why: End::Done }]);
    line.run_for(2000 * MS);
    assert!(line.hosts.iter().all(|host| host.sockets() == 0));
    assert_eq!(line.hosts[CLIENT].connection(id).map(Connection::state), None);
    assert_eq!((line.read(CLIENT, id), line.hosts[CLIENT].writable(id)), (vec![], 0));
}

#[test]
fn nobody_listens() {
    let mut line = Line::new();
    let id = line.hosts[CLIENT].connect(line.now, at(SERVER, 80)).unwrap();
    line.run_for(100 * MS);
    assert_eq!(line.events(CLIENT), [Event::Closed { id, why: End::Refused }]);
    assert_eq!((line.events(SERVER), line.hosts[SERVER].sockets()), (vec![], 0));
    assert_eq!(line.hosts[CLIENT].sockets(), 0);
}

#[test]
fn nobody_answers() {
    let mut line = Line::new();
    line.cut = true;
    let id = line.hosts[CLIENT].connect(line.now, at(SERVER, 80)).unwrap();
    line.run_for(300_000 * MS);
    assert_eq!(line.events(CLIENT), [Event::Closed { id, why: End::TimedOut }]);
    assert_eq!((line.hosts[CLIENT].sockets(), line.hosts[CLIENT].poll_timeout()), (0, None));
}

#[test]
fn a_peer_that_vanishes_and_one_that_forgets() {
    let mut line = Line::new();
    line.hosts[SERVER].listen(80);
    let (id, other) = line.open(at(SERVER, 80), SERVER);
    line.cut = true;
    line.write(CLIENT, id, b"hello?");
    // The server resets its side, and the RST is lost.
    line.hosts[SERVER].abort(line.now, other);
    line.run_for(1000 * MS);
    assert_eq!((line.events(CLIENT), line.hosts[SERVER].sockets()), (vec![], 0));
    line.cut = false;
    line.run_for(1000 * MS);
    assert_eq!(line.events(CLIENT), [Event::Closed { id, why: End::Reset }]);

    let (id, _) = line.open(at(SERVER, 80), SERVER);
    line.cut = true;
    line.write(CLIENT, id, b"hello?");
    line.run_for(600_000 * MS);
    assert_eq!(line.events(CLIENT), [Event::Closed { id, why: End::TimedOut }]);
}

#[test]
fn a_router_forwards_with_one_hop_less_until_none_is_left() {
    let mut line = Line::new();
    let body = Body::Udp(Datagram { payload: Bytes::from_static(b"x") });
    let datagram = |ttl| Packet::new(at(CLIENT, 7), at(SERVER, 9), ttl, body.clone());
    let router = &mut line.hosts[ROUTER];
    let forwarded = router.handle_packet(line.now, BEFORE, datagram(2));
    assert_eq!(forwarded, Some(datagram(1)));
    assert_eq!(router.handle_packet(line.now, BEFORE, datagram(1)), None);
    assert_eq!((router.expired(), router.poll_packet(), router.poll_event()), (1, None, None));
}

#[test]
fn a_router_takes_connections_to_others_by_the_interfaces_that_it_was_told() {
    let mut line = Line::new();
    line.hosts[SERVER].listen(80);
    line.hosts[SERVER].listen(81);
    line.hosts[ROUTER].intercept(80, &[BEFORE]);
    let (id, taken) = line.open(at(SERVER, 80), ROUTER);
    assert_eq!(line.events(SERVER), []);
    assert_eq!(line.hosts[ROUTER].addresses_of(taken).unwrap().0, at(SERVER, 80));
    line.write(CLIENT, id, b"hello");
    line.run_for(15 * MS);
    assert_eq!(line.read(ROUTER, taken), b"hello");
    // Other ports are forwarded, and so are connections from other interfaces.
    line.events.clear();
    line.open(at(SERVER, 81), SERVER);
    line.hosts[CLIENT].listen(80);
    let back = line.hosts[SERVER].connect(line.now, at(CLIENT, 80)).unwrap();
    line.run_for(100 * MS);
    assert_eq!(line.events(SERVER), [Event::Connected(back)]);
    // Interception ends for new connections, not for open ones.
    line.hosts[ROUTER].intercept(80, &[]);
    line.events.clear();
    line.open(at(SERVER, 80), SERVER);
    line.write(CLIENT, id, b"again");
    line.run_for(15 * MS);
    assert_eq!(line.read(ROUTER, taken), b"again");
}

#[test]
fn an_accepted_interception_says_so() {
    let mut line = Line::new();
    line.hosts[ROUTER].intercept(80, &[AFTER, BEFORE]);
    line.hosts[CLIENT].connect(line.now, at(SERVER, 80)).unwrap();
    line.run_for(100 * MS);
    let events = line.events(ROUTER);
    let [Event::Accepted { interface, intercepted, local, .. }] = events[..] else { panic!() };
    assert_eq!((interface, intercepted, local), (BEFORE, true, at(SERVER, 80)));
}

#[test]
fn a_router_may_speak_in_the_name_of_a_client() {
    let mut line = Line::new();
    line.hosts[SERVER].listen(80);
    let name = at(CLIENT, 5555);
    let id = line.hosts[ROUTER].connect_from(line.now, name, at(SERVER, 80)).unwrap();
    assert_eq!(
        line.hosts[ROUTER].connect_from(line.now, name, at(SERVER, 80)),
        Err(ConnectError::NoFreePort)
    );
    line.run_for(100 * MS);
    assert_eq!(line.events(ROUTER), [Event::Connected(id)]);
    let events = line.events(SERVER);
    assert!(matches!(events[..], [Event::Accepted { remote, .. }] if remote == name));
    assert_eq!(line.events(CLIENT), []);
}

#[test]
fn datagrams_go_to_those_who_listen() {
    let mut line = Line::new();
    line.hosts[SERVER].listen_datagrams(9);
    for port in [9, 10] {
        line.hosts[CLIENT].send_datagram(line.now, 7, at(SERVER, port), Bytes::from_static(b"hi"));
    }
    line.run_for(100 * MS);
    let expected = Event::Datagram {
        from: at(CLIENT, 7),
        to: at(SERVER, 9),
        interface: BEFORE,
        payload: Bytes::from_static(b"hi"),
    };
    assert_eq!(line.events(SERVER), [expected]);
    assert_eq!(line.events, []);
}

#[test]
fn a_broadcast_is_heard_and_goes_no_further() {
    let mut line = Line::new();
    line.hosts[ROUTER].listen_datagrams(9);
    let to = SocketAddrV4::new(Ipv4Addr::BROADCAST, 9);
    let body = Body::Udp(Datagram { payload: Bytes::new() });
    let packet = Packet::new(at(CLIENT, 9), to, 1, body);
    assert_eq!(line.hosts[ROUTER].handle_packet(line.now, BEFORE, packet), None);
    assert!(matches!(line.hosts[ROUTER].poll_event(), Some(Event::Datagram { .. })));
}

#[test]
fn writing_more_than_fits_is_told_when_there_is_room() {
    let mut line = Line::new();
    line.hosts[SERVER].listen(80);
    let (id, other) = line.open(at(SERVER, 80), SERVER);
    let mut data = Bytes::from(vec![3; 200_000]);
    assert_eq!(line.hosts[CLIENT].write(line.now, id, &mut data), 131_072);
    line.run_for(40 * MS);
    assert_eq!(line.events(CLIENT), [Event::Writable(id)]);
    line.run_for(40 * MS);
    assert_eq!(line.events(CLIENT), []);
    let mut got = 0;
    for _ in 0..1000 {
        got += line.read(SERVER, other).len();
        line.hosts[CLIENT].write(line.now, id, &mut data);
        line.run_for(5 * MS);
    }
    assert_eq!(got, 200_000);
}

#[test]
fn ports_and_sockets_run_out() {
    let mut host = Host::new(Config::default(), &[address(0)], 1);
    let mut ports = std::collections::BTreeSet::new();
    for _ in 0..16_384 {
        let id = host.connect(Instant::ZERO, at(SERVER, 80)).unwrap();
        ports.insert(host.addresses_of(id).unwrap().0.port());
    }
    assert_eq!((ports.len(), ports.first(), ports.last()), (16_384, Some(&49_152), Some(&65_535)));
    assert_eq!(host.connect(Instant::ZERO, at(SERVER, 80)), Err(ConnectError::NoFreePort));
    assert!(host.connect(Instant::ZERO, at(SERVER, 81)).is_ok());

    let few = Config { sockets_max: 3, ..Config::default() };
    let mut host = Host::new(few, &[address(0)], 1);
    let ids: Vec<_> =
        (0..3).map(|_| host.connect(Instant::ZERO, at(SERVER, 80)).unwrap()).collect();
    assert_eq!(host.connect(Instant::ZERO, at(SERVER, 80)), Err(ConnectError::TooManySockets));
    host.abort(Instant::ZERO, ids[1]);
    while host.poll_packet().is_some() {}
    let new = host.connect(Instant::ZERO, at(SERVER, 80)).unwrap();
    assert!(host.connection(ids[1]).is_none() && host.connection(new).is_some());
}

#[test]
fn a_full_host_leaves_a_syn_unanswered() {
    let mut line = Line::with(Config { sockets_max: 1, ..Config::default() });
    line.hosts[SERVER].listen(80);
    let (_, other) = line.open(at(SERVER, 80), SERVER);
    let more = line.hosts[ROUTER].connect(line.now, at(SERVER, 80)).unwrap();
    line.run_for(500 * MS);
    assert_eq!((line.events(ROUTER), line.events(SERVER)), (vec![], vec![]));
    line.hosts[SERVER].abort(line.now, other);
    line.run_for(1000 * MS);
    assert_eq!(line.events(ROUTER), [Event::Connected(more)]);
}

#[test]
fn a_new_connection_takes_the_place_of_one_in_time_wait() {
    let mut line = Line::new();
    line.hosts[SERVER].listen(80);
    let from = at(CLIENT, 5000);
    let first = line.hosts[CLIENT].connect_from(line.now, from, at(SERVER, 80)).unwrap();
    line.run_for(100 * MS);
    let [Event::Accepted { id: other, .. }] = line.events(SERVER)[..] else { panic!() };
    line.hosts[SERVER].close(line.now, other);
    line.run_for(25 * MS);
    line.hosts[CLIENT].close(line.now, first);
    line.run_for(100 * MS);
    // The client's side has ended; the server's is in TIME-WAIT.
    assert_eq!((line.hosts[CLIENT].sockets(), line.hosts[SERVER].sockets()), (0, 1));
    let sequence_goes_on = |line: &Line| line.hosts[SERVER].sockets.find(at(SERVER, 80), from);
    assert!(sequence_goes_on(&line).is_some());
    line.events.clear();
    let mut syn = None;
    // An initial sequence number is ahead of the last one in half of all cases.
    while syn.is_none() {
        let id = line.hosts[CLIENT].connect_from(line.now, from, at(SERVER, 80)).unwrap();
        let packet = line.hosts[CLIENT].poll_packet().unwrap();
        line.hosts[SERVER].handle_packet(line.now, BEFORE, packet);
        syn = line.hosts[SERVER].poll_packet().filter(|it| match &it.body {
            Body::Tcp(segment) => segment.flags == Flags::SYN | Flags::ACK,
            Body::Udp(_) | Body::Link(_) => false,
        });
        if syn.is_none() {
            line.hosts[CLIENT].abort(line.now, id);
            assert_eq!(line.hosts[CLIENT].poll_packet(), None);
        }
    }
    line.carry(SERVER, syn.unwrap());
    line.run_for(100 * MS);
    assert!(matches!(line.events(CLIENT)[..], [Event::Connected(_)]));
    assert!(matches!(line.events(SERVER)[..], [Event::Accepted { .. }]));
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let run = |seed| {
        let mut host = Host::new(Config::default(), &[address(0)], seed);
        host.connect(Instant::ZERO, at(SERVER, 80)).unwrap();
        host.poll_packet()
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
