//! The CPU time of TCP, without a medium between the two ends.
//!
//! `cargo bench -p benches --bench tcp`; throughput is payload per second of CPU time.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sim::net::tcp::{self, Connection};
use sim::net::{Config, Event, Host, Interface, SocketId};
use wire::Instant;

const MEGABYTE: usize = 1_000_000;
/// After this time everything that one side has sent has arrived at the other.
const DELAY: Duration = Duration::from_micros(500);

/// Two connections; one has data to send.
struct Connections {
    now: Instant,
    from: Connection,
    to: Connection,
    data: Bytes,
}

impl Connections {
    fn open() -> Self {
        let config = tcp::Config::default();
        let now = Instant::ZERO;
        let mut from = Connection::connect(config, now, 1);
        let syn = from.poll_transmit(now).expect("it begins with a SYN");
        let to = Connection::accept(config, now, 2, &syn);
        Self { now, from, to, data: Bytes::from(vec![1; 1 << 16]) }
    }

    fn carry(&mut self, bytes: usize) {
        let mut arrived = 0;
        while arrived < bytes {
            self.now = self.now + DELAY;
            while self.from.writable() > 0 {
                self.from.write(&mut self.data.clone());
            }
            while let Some(segment) = self.from.poll_transmit(self.now) {
                self.to.handle_segment(self.now, segment);
                while let Some(piece) = self.to.read(usize::MAX) {
                    arrived += piece.len();
                }
            }
            self.now = self.now + DELAY;
            while let Some(segment) = self.to.poll_transmit(self.now) {
                self.from.handle_segment(self.now, segment);
            }
        }
    }
}

/// The same with hosts around the connections.
struct Hosts {
    now: Instant,
    from: Host,
    to: Host,
    id: SocketId,
    data: Bytes,
}

impl Hosts {
    fn open() -> Self {
        let [a, b] = [1, 2].map(|i| Ipv4Addr::new(10, 0, 0, i));
        let mut from = Host::new(Config::default(), &[a], 1);
        let mut to = Host::new(Config::default(), &[b], 2);
        to.listen(80);
        let id = from.connect(Instant::ZERO, SocketAddrV4::new(b, 80)).expect("there is room");
        Self { now: Instant::ZERO, from, to, id, data: Bytes::from(vec![1; 1 << 16]) }
    }

    fn carry(&mut self, bytes: usize) {
        let mut arrived = 0;
        while arrived < bytes {
            self.now = self.now + DELAY;
            while self.from.writable(self.id) > 0 {
                self.from.write(self.now, self.id, &mut self.data.clone());
            }
            while let Some(packet) = self.from.poll_packet() {
                self.to.handle_packet(self.now, Interface(0), packet);
                while let Some(event) = self.to.poll_event() {
                    let Event::Readable(id) = event else { continue };
                    while let Some(piece) = self.to.read(self.now, id, usize::MAX) {
                        arrived += piece.len();
                    }
                }
            }
            self.now = self.now + DELAY;
            while let Some(packet) = self.to.poll_packet() {
                self.from.handle_packet(self.now, Interface(0), packet);
                while self.from.poll_event().is_some() {}
            }
            for host in [&mut self.from, &mut self.to] {
                if host.poll_timeout().is_some_and(|at| at <= self.now) {
                    host.handle_timeout(self.now);
                }
            }
        }
    }
}

fn megabytes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tcp");
    group.throughput(Throughput::Bytes(10 * MEGABYTE as u64));
    let mut connections = Connections::open();
    group.bench_function("connections", |bencher| {
        bencher.iter(|| connections.carry(10 * MEGABYTE));
    });
    let mut hosts = Hosts::open();
    group.bench_function("hosts", |bencher| bencher.iter(|| hosts.carry(10 * MEGABYTE)));
    group.finish();
}

criterion_group!(benches, megabytes);
criterion_main!(benches);
