//! A gateway of somebody else at a far end: the engine of a near end, which asks whatever a test makes it ask.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use bytes::Bytes;
use node::uplink::{
    FlowId, MemoryUnits, Near, NearConfig, NearInput, NearOutput, PairKeys, Worker,
};
use node::{Access, Fetch, FetchError, FetchId, OriginInput, OriginOutput};

use super::TIMEOUT;

/// More than any answer in a test has.
const CREDIT: u64 = 1 << 20;

/// Content of a request, and how it ends; `None`: the request is given up.
pub type Upload<'a> = (&'a [u8], Option<Result<(), FetchError>>);

/// One connection with a far end.
pub struct Tenant {
    near: Near,
    worker: Worker<MemoryUnits>,
    stream: TcpStream,
    begun: Instant,
    fetches: u64,
    answers: Vec<OriginInput>,
}

impl Tenant {
    /// The key of the tenant with this seed.
    pub fn key(seed: u8) -> String {
        keys(seed).key().to_string()
    }

    /// Connects to the far end that printed these lines, and waits until it answers.
    pub fn connect(seed: u8, lines: &str) -> Self {
        let value = |name: &str| {
            let line = lines.lines().find_map(|line| line.strip_prefix(name));
            line.expect("it was printed").trim_matches([' ', '=', '"']).to_owned()
        };
        let stream = TcpStream::connect(value("far ")).expect("it accepts connections");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        let history = || MemoryUnits::new([9; 16], 4000);
        let worker = Worker::new(history(), history());
        let config = NearConfig {
            far_key: value("far-key ").parse().expect("a key"),
            access: Access::default(),
            held: worker.held(),
            scheme: None,
        };
        let near = Near::new(config, keys(seed), &[3; 32], std::iter::empty());
        let (begun, answers) = (Instant::now(), Vec::new());
        let mut tenant = Self { near, worker, stream, begun, fetches: 0, answers };
        tenant.feed(NearInput::Connected);
        while !tenant.near.is_up() {
            tenant.read();
        }
        tenant
    }

    /// Asks for something, with this content, if any. Returns the answer's content; `None` if it did not come whole.
    pub fn ask(&mut self, fetch: Fetch, content: Option<Upload<'_>>) -> Option<Vec<u8>> {
        self.fetches += 1;
        let id = FetchId(self.fetches);
        let output = OriginOutput::Fetch(id, Box::new(fetch));
        if !self.near.takes(&output) {
            return None;
        }
        self.feed(NearInput::Origin(output, content.is_some()));
        self.feed(NearInput::Origin(OriginOutput::Grant(id, CREDIT), false));
        if let Some((bytes, end)) = content {
            let flow = FlowId::Fetch(id);
            while self.near.carries(flow) && self.near.room(flow) < bytes.len() as u64 {
                self.read();
            }
            if self.near.carries(flow) {
                self.feed(NearInput::Content(flow, Bytes::copy_from_slice(bytes)));
            }
            let Some(end) = end else {
                self.feed(NearInput::Origin(OriginOutput::Cancel(id), false));
                return None;
            };
            if self.near.carries(flow) {
                self.feed(NearInput::ContentEnd(flow, end));
            }
        }
        self.answer(id)
    }

    fn answer(&mut self, id: FetchId) -> Option<Vec<u8>> {
        let (mut body, asked) = (Vec::new(), Instant::now());
        loop {
            assert!(asked.elapsed() < TIMEOUT, "the far end does not answer");
            for input in std::mem::take(&mut self.answers) {
                match input {
                    OriginInput::Body(of, bytes) if of == id => body.extend_from_slice(&bytes),
                    OriginInput::End(of, result) if of == id => {
                        return result.is_ok().then_some(body);
                    }
                    _ => {}
                }
            }
            self.read();
        }
    }

    fn read(&mut self) {
        let mut buffer = [0; 16 * 1024];
        let count = self.stream.read(&mut buffer).expect("the far end says something");
        assert!(count > 0, "the far end has hung up");
        self.feed(NearInput::Received(Bytes::copy_from_slice(&buffer[..count])));
    }

    fn feed(&mut self, input: NearInput) {
        self.near.handle_input(self.now(), input);
        loop {
            while let Some(output) = self.near.poll_output() {
                match output {
                    NearOutput::Work(number, job) => {
                        let done = self.worker.work(job);
                        self.near.handle_input(self.now(), NearInput::Done(number, done));
                    }
                    NearOutput::Origin(input) => self.answers.push(input),
                    NearOutput::Past(id, ..) => {
                        self.answers.push(OriginInput::End(id, Err(FetchError::Unreachable)));
                    }
                    _ => {}
                }
            }
            let Some(bytes) = self.near.poll_transmit(self.now()) else { return };
            self.stream.write_all(&bytes).expect("the far end takes it");
        }
    }

    fn now(&self) -> wire::Instant {
        wire::Instant::ZERO + self.begun.elapsed()
    }
}

fn keys(seed: u8) -> PairKeys {
    PairKeys::new(&[seed; 32], &[seed; 32])
}
