//! Worlds whose programs do very little.

use std::net::SocketAddrV4;

use bytes::Bytes;
use radio::{LossScope, Ranges};

use super::*;
use crate::net::{self, Event};
use crate::scenario::{Metric, seed};

const PORT: u16 = 9;

/// Sends one message to another machine, and answers each message that it receives.
#[derive(Debug, Default)]
struct Talker {
    says: Option<(SocketAddrV4, &'static [u8])>,
    answers: bool,
    at: Option<Instant>,
    heard: Vec<(Instant, Bytes)>,
    /// Number of packets for others that it has received.
    overheard: usize,
}

impl Program for Talker {
    fn start(&mut self, _now: Instant, host: &mut Host) {
        host.listen_datagrams(PORT);
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        let Event::Datagram { from, payload, .. } = event else { panic!("{event:?}") };
        self.heard.push((now, payload.clone()));
        if self.answers {
            host.send_datagram(now, PORT, from, payload);
        }
    }

    fn overhear(&mut self, _now: Instant, _host: &mut Host, _packet: &Packet) {
        self.overheard += 1;
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        if self.at.is_some_and(|at| at <= now) {
            self.at = None;
            let (to, text) = self.says.expect("it has something to say");
            host.send_datagram(now, PORT, to, Bytes::from_static(text));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.at
    }
}

fn to(machine: usize) -> SocketAddrV4 {
    SocketAddrV4::new(address(machine), PORT)
}

fn talker(says: SocketAddrV4) -> Talker {
    let at = Some(Instant::from_nanos(1_000_000_000));
    Talker { says: Some((says, b"hello")), at, ..Talker::default() }
}

fn listener() -> Talker {
    Talker { answers: true, ..Talker::default() }
}

fn host(machine: usize) -> Host {
    Host::new(net::Config::default(), &[address(machine)], seed(1, machine, 0))
}

/// A chain of stations, 200 m apart.
fn chain(programs: Vec<Talker>) -> World<Talker> {
    let places: Vec<_> = (0..programs.len()).map(|it| (it as f64 * 200.0, 0.0)).collect();
    let links = Links::by_distance(&places, Ranges::default(), |_| 0.0);
    let routes = Routes::shortest(&links, Metric::Hops, LossScope::Data);
    let machines = programs.into_iter().enumerate().map(|(it, program)| (host(it), program));
    World::new(radio::Config::default(), links, routes, 1, machines.collect())
}

fn seconds(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn packets_go_hop_by_hop_and_answers_come_back() {
    let mut world = chain(vec![talker(to(3)), Talker::default(), Talker::default(), listener()]);
    assert!(!world.run(seconds(2)), "nothing is left to happen");
    let (there, back) = (&world.program(3).heard, &world.program(0).heard);
    assert_eq!((there.len(), back.len()), (1, 1));
    assert_eq!(&back[0].1[..], b"hello");
    assert!(back[0].0 > there[0].0 && there[0].0 > seconds(1));
    assert_eq!(world.counters().packets_sent, 6);
    assert_eq!(world.counters().drops, Drops::default());
    assert_eq!(world.now(), seconds(2));
}

#[test]
fn a_broadcast_reaches_all_that_hear_it_and_nobody_else() {
    let everybody = SocketAddrV4::new(std::net::Ipv4Addr::BROADCAST, PORT);
    let quiet = || Talker::default();
    let mut world = chain(vec![quiet(), talker(everybody), quiet(), quiet()]);
    let wired = world.attach(2, Wire::LAN, host(4), talker(everybody));
    world.run(seconds(2));
    let heard = |world: &World<Talker>, at: usize| world.program(at).heard.len();
    // Station 2 hears both: one over the air, and one by its wire, which goes no further.
    assert_eq!([0, 1, 2, 3, wired].map(|at| heard(&world, at)), [1, 0, 2, 0, 0]);
    assert_eq!((world.counters().packets_sent, world.carried(wired)), (1, [33, 0]));
    assert_eq!(world.counters().drops, Drops::default());
}

#[test]
fn machines_on_wires_reach_each_other_over_the_air() {
    let mut world = chain(vec![Talker::default(), Talker::default(), Talker::default()]);
    let delay = Duration::from_millis(10);
    let slow = Wire { bits_per_second: 1_000_000, delay, packets_max: 10 };
    let origin = world.attach(2, slow, host(3), listener());
    let client = world.attach(0, Wire::LAN, host(4), talker(to(origin)));
    world.run(seconds(2));
    let (there, back) = (&world.program(origin).heard, &world.program(client).heard);
    assert_eq!((there.len(), back.len()), (1, 1));
    // 33 bytes of IP at 1 Mbit/s, and the wire's delay.
    assert!(there[0].0 - seconds(1) > delay + Duration::from_micros(264));
    assert_eq!(world.counters().packets_sent, 4);
    assert_eq!(world.carried(origin), [33, 33]);
}

#[test]
fn machines_on_wires_may_have_machines_on_wires() {
    let mut world = chain(vec![Talker::default(), Talker::default()]);
    let far = world.attach(1, Wire::LAN, host(2), Talker::default());
    let origin = world.attach(far, Wire::LAN, host(3), listener());
    let other = world.attach(far, Wire::LAN, host(4), talker(to(origin)));
    let client = world.attach(0, Wire::LAN, host(5), talker(to(origin)));
    world.run(seconds(2));
    for asker in [other, client] {
        assert_eq!(world.program(asker).heard.len(), 1);
    }
    assert_eq!(world.program(origin).heard.len(), 2);
    // One of the two has passed the air and the far machine's own wire.
    assert_eq!((world.counters().packets_sent, world.carried(far)), (2, [33, 33]));
    assert_eq!((world.carried(origin), world.carried(other)), ([66, 66], [33, 33]));
}

#[test]
fn a_wire_may_differ_in_its_directions_and_lose_packets() {
    let pipe = |bits_per_second| Pipe::new(bits_per_second, Duration::ZERO, 10);
    let mut world = chain(vec![listener()]);
    let both = [pipe(264_000), pipe(132_000)];
    let client = world.attach_by(0, both, host(1), talker(to(0)));
    let lossy = [pipe(1_000_000), pipe(1_000_000).with_loss(1.0, 1)];
    let loses = world.attach_by(0, lossy, host(2), talker(to(0)));
    world.run(seconds(2));
    // 33 bytes of IP take 2 ms to the station, and 1 ms back.
    let [there, back] = [0, client].map(|it| world.program(it).heard[0].0 - seconds(1));
    assert_eq!([there, back], [2, 3].map(Duration::from_millis));
    assert_eq!((world.program(0).heard.len(), world.program(loses).heard.len()), (1, 0));
    assert_eq!((world.lost(client), world.lost(loses)), ([0, 0], [1, 0]));
    assert_eq!((world.carried(client), world.carried(loses)), ([33, 33], [0, 0]));
    assert_eq!(world.lost(0), [0, 0], "a station has no such wire");
}

#[test]
fn what_has_no_way_is_dropped_and_counted() {
    let links = Links::by_distance(&[(0.0, 0.0), (900.0, 0.0)], Ranges::default(), |_| 0.0);
    let routes = Routes::shortest(&links, Metric::Hops, LossScope::Data);
    let machines = vec![(host(0), talker(to(1))), (host(1), talker(to(7)))];
    let mut world = World::new(radio::Config::default(), links, routes, 1, machines);
    world.run(seconds(2));
    assert_eq!(world.counters().drops, Drops { no_route: 2, ..Drops::default() });
}

/// Counts the frames that stations are shown as received.
#[derive(Clone, Debug, Default)]
struct Shown(std::rc::Rc<std::cell::RefCell<[usize; 3]>>);

impl Tap for Shown {
    fn frame(&mut self, station: usize, _at: Instant, frame: &[u8]) {
        // Only data frames are as long as this.
        self.0.borrow_mut()[station] += usize::from(frame.len() > 100);
    }
}

#[test]
fn what_is_lost_above_the_mac_was_acknowledged_and_is_overheard() {
    const SENT: usize = 2_000;
    let run = |share| {
        // Station 1 sends to station 2, and station 0 hears it.
        let mut world = chain(vec![Talker::default(), Talker::default(), Talker::default()]);
        let shown = Shown::default();
        world.lose_above_mac(AboveMac::new(share, 3, 1));
        world.listen();
        world.watch(Box::new(shown.clone()));
        for packet in 1..=SENT {
            world.act(1, |now, host, _| {
                host.send_datagram(now, PORT, to(2), Bytes::from_static(&[0; 100]));
            });
            world.run(Instant::ZERO + packet as u32 * Duration::from_millis(10));
        }
        assert_eq!(world.counters().packets_sent, SENT as u64);
        assert_eq!(world.medium().total().data_frames_failed, 0, "all were acknowledged");
        assert_eq!(world.program(0).overheard, SENT);
        assert_eq!(shown.0.take(), [SENT; 3], "the sender, the receiver and the listener");
        (world.program(2).heard.len(), world.counters().drops)
    };
    let (arrived, drops) = run(0.2);
    assert_eq!(arrived as u64 + drops.above_mac, SENT as u64);
    // Three standard deviations of a binomial distribution are 54.
    assert!((346..=454).contains(&drops.above_mac), "{drops:?}");
    assert_eq!(Drops { above_mac: 0, ..drops }, Drops::default());
    assert_eq!(run(0.0), (SENT, Drops::default()));
}

#[test]
fn broadcasts_are_not_lost_above_the_mac() {
    let everybody = SocketAddrV4::new(std::net::Ipv4Addr::BROADCAST, PORT);
    let mut world = chain(vec![Talker::default(), talker(everybody), Talker::default()]);
    world.lose_above_mac(AboveMac::new(0.99, 3, 1));
    for at in 1..=100 {
        world.act(1, |now, host, _| {
            host.send_datagram(now, PORT, everybody, Bytes::from_static(b"x"));
        });
        world.run(seconds(at));
    }
    let heard = [0, 2].map(|it| world.program(it).heard.len());
    // At 1 s it has one more to say.
    assert_eq!((heard, world.counters().drops.above_mac), ([101, 101], 0));
}

#[test]
fn a_machine_reaches_itself() {
    let mut world = chain(vec![talker(to(0)), Talker::default()]);
    world.run(seconds(2));
    assert_eq!(world.program(0).heard, [(seconds(1), Bytes::from_static(b"hello"))]);
    assert_eq!(world.counters().packets_sent, 0);
}

#[test]
fn what_is_done_from_outside_takes_effect() {
    let mut world = chain(vec![Talker::default(), listener()]);
    world.run(seconds(3));
    world.act(0, |now, host, _| host.send_datagram(now, PORT, to(1), Bytes::from_static(b"x")));
    while world.step().is_some() {}
    assert_eq!(world.program(0).heard.len(), 1);
}
