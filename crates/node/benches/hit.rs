//! What the engine spends on a warm hit, without a mesh key and with one, on one core: from the request to
//! the last byte handed out, all units in memory.
//!
//! `cargo bench -p node --bench hit`. Of 64 KiB and of 1 MiB; beside it the cipher alone over as many bytes,
//! and the cipher with the check of what comes out.

use std::hint::black_box;
use std::net::Ipv4Addr;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use node::{Config, Entrance, ExchangeId, Input, Node, OPEN_KEY, Output, Request};
use store::{Index, Location, Policy, SegmentId};
use wire::{Date, Instant};

const URL: &str = "http://o.test/a";
const SIZES: [usize; 2] = [64 << 10, 1 << 20];

/// A node with an object in its memory, and a disk that takes everything and is never asked.
struct Hit {
    node: Node,
    length: usize,
    requests: u64,
    offset: u32,
}

impl Hit {
    fn new(secret: [u8; 32], length: usize) -> Self {
        let config = Config {
            name: "n".into(),
            secret,
            seed: [1; 32],
            memory_bytes: 64 << 20,
            profile: content::Profile::DEFAULT,
            object_bytes_max: 1 << 30,
            allow: Vec::new(),
            access: node::Access::default(),
            built: Date::from_unix(1_000),
            mesh: None,
        };
        let mut hit = Self {
            node: Node::new(config, Index::new(1 << 30, Policy::S3Fifo)),
            length,
            requests: 0,
            offset: 16,
        };
        hit.feed(Input::Clock(Date::from_unix(2_000)));
        // The first brings it, the second reads its row.
        (0..2).for_each(|_| assert_eq!(hit.get(), length));
        hit
    }

    /// Asks for the object, and takes all of it: answers how much that was.
    #[inline(never)]
    fn get(&mut self) -> usize {
        self.requests += 1;
        let id = ExchangeId(self.requests);
        let request = Request {
            method: Method::GET,
            uri: URL.parse().expect("a URL"),
            version: Version::HTTP_11,
            headers: HeaderMap::new(),
            has_body: false,
            client: Ipv4Addr::LOCALHOST.into(),
            at_home: false,
            behind_uplink: false,
            entrance: Entrance::Explicit,
        };
        self.feed(Input::Request(id, Box::new(request))) + self.feed(Input::Credit(id, 4 << 20))
    }

    /// Gives an input, and does what follows; answers how many bytes a client got.
    fn feed(&mut self, input: Input) -> usize {
        let (mut inputs, mut got) = (vec![input], 0);
        while !inputs.is_empty() {
            self.node.handle_input(Instant::ZERO, inputs.remove(0));
            while let Some(output) = self.node.poll_output() {
                match output {
                    Output::Data(_, bytes) => got += black_box(bytes).len(),
                    output => inputs.extend(self.answer(output)),
                }
            }
        }
        got
    }

    fn answer(&mut self, output: Output) -> Vec<Input> {
        match output {
            Output::Resolve(host, _) => {
                vec![Input::Resolved(host, Some(vec![[192, 0, 2, 1].into()]))]
            }
            Output::Lookup(key) => vec![Input::Row(key, None)],
            Output::Fetch(id, _) => {
                let control = HeaderValue::from_static("max-age=9000");
                let headers = HeaderMap::from_iter([
                    (header::CACHE_CONTROL, control),
                    (header::CONTENT_LENGTH, HeaderValue::from(self.length)),
                ]);
                let mut body = vec![0; self.length];
                content::cipher(&[9; 32], &mut body);
                vec![
                    Input::Head(id, StatusCode::OK, headers),
                    Input::Body(id, Bytes::from(body)),
                    Input::End(id, Ok(())),
                ]
            }
            Output::Append(ticket, units) => {
                let places = units.iter().map(|unit| {
                    let at = Location { segment: SegmentId(1), offset: self.offset };
                    self.offset += (unit.bytes.len() as u32 + 64).next_multiple_of(16);
                    at
                });
                vec![Input::Appended(ticket, Some(places.collect()))]
            }
            Output::Change(ticket, _) => vec![Input::Changed(ticket, true)],
            Output::Sync => vec![Input::Synced(true)],
            Output::Read(..) | Output::ReadSegment(..) => panic!("not all of it is in memory"),
            _ => Vec::new(),
        }
    }
}

fn hits(criterion: &mut Criterion) {
    for length in SIZES {
        let mut group = criterion.benchmark_group(format!("a hit of {} KiB", length >> 10));
        group.throughput(Throughput::Bytes(length as u64));
        for (name, secret) in [("without a key", OPEN_KEY), ("with a key", [7; 32])] {
            let mut hit = Hit::new(secret, length);
            group.bench_function(name, |b| b.iter(|| assert_eq!(hit.get(), length)));
        }
        let sealer = content::Sealer::new(&[7; 32]);
        let mut units = vec![vec![0; 8192]; length / 8192];
        let keys: Vec<_> = units.iter_mut().map(|unit| sealer.seal(unit)).collect();
        group.bench_function("the cipher alone", |b| {
            b.iter(|| {
                for (unit, key) in units.iter_mut().zip(&keys) {
                    content::cipher(key, black_box(unit));
                }
            });
        });
        let clear = vec![0; 8192];
        group.bench_function("the check alone", |b| {
            b.iter(|| {
                for _ in &keys {
                    black_box(content::name(black_box(&clear)));
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, hits);
criterion_main!(benches);
