//! A router in memory: an engine, a disk that stores all writes and is never read, and an origin that answers every
//! request with the same object.

use std::collections::VecDeque;
use std::hint::black_box;
use std::mem;
use std::net::Ipv4Addr;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use node::{
    ClientInput, ClientOutput, Config, Entrance, ExchangeId, FetchId, Input, LinkOutput, Looked,
    MeshConfig, Node, OriginInput, OriginOutput, Output, Request, StoreInput, StoreOutput,
};
use store::{Index, Location, Policy, SegmentId, Unit};
use wire::{Date, Instant};

const URL: &str = "http://o.test/a";
/// What an origin's socket gives at a time.
const PIECE: usize = 16 << 10;

/// A body of this many pseudo-random bytes.
pub fn content_of(length: usize) -> Bytes {
    let mut body = vec![0; length];
    content::cipher(&[9; 32], &mut body);
    body.into()
}

/// See the module.
pub struct Router {
    pub node: Node,
    body: Bytes,
    /// What is left to be sent of the request to the origin, and how much of it may be.
    sending: Option<(FetchId, Bytes, u64)>,
    requests: u64,
    offset: u32,
    /// Bytes that its client got of the latest object, and whether that was all.
    got: usize,
    is_done: bool,
    /// What it wants done with its links.
    said: Vec<LinkOutput>,
}

impl Router {
    /// It has nothing; its origin has this. Without a mesh key, if the secret is [`node::OPEN_KEY`].
    pub fn new(secret: [u8; 32], body: &Bytes, mesh: Option<MeshConfig>) -> Self {
        let config = Config {
            name: "n".into(),
            secret,
            seed: mesh.as_ref().map_or([1; 32], |mesh| mesh.identity),
            memory_bytes: 64 << 20,
            profile: content::Profile::DEFAULT,
            object_bytes_max: 1 << 30,
            undecided_bytes_max: u64::MAX,
            allow: Vec::new(),
            access: node::Access::default(),
            built: Date::from_unix(1_000),
            mesh,
            reach: classes::Reach::default(),
        };
        let mut router = Self {
            node: Node::new(config, Index::new(1 << 30, Policy::S3Fifo)),
            body: body.clone(),
            sending: None,
            requests: 0,
            offset: 16,
            got: 0,
            is_done: false,
            said: Vec::new(),
        };
        router.give(Instant::ZERO, Input::Clock(Date::from_unix(2_000)));
        router
    }

    /// A client asks for the object, and will take all of it.
    pub fn ask(&mut self, now: Instant) {
        self.requests += 1;
        (self.got, self.is_done) = (0, false);
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
            expected: None,
            binding: None,
        };
        self.give(now, Input::Client(ClientInput::Request(id, Box::new(request))));
        self.give(now, Input::Client(ClientInput::Credit(id, 4 << 20)));
    }

    /// How many bytes the client got, once it has all.
    pub fn got(&self) -> Option<usize> {
        self.is_done.then_some(self.got)
    }

    /// What is to be done with its links since this was asked last.
    pub fn said(&mut self) -> Vec<LinkOutput> {
        mem::take(&mut self.said)
    }

    /// Gives an input, and does what follows on this machine.
    pub fn give(&mut self, now: Instant, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.node.handle_input(now, input);
            while let Some(output) = self.node.poll_output() {
                self.perform(output, &mut inputs);
            }
        }
    }

    fn perform(&mut self, output: Output, inputs: &mut VecDeque<Input>) {
        match output {
            Output::Client(ClientOutput::Data(_, bytes)) => self.got += black_box(bytes).len(),
            Output::Client(ClientOutput::Finish(_)) => self.is_done = true,
            Output::Name(host, _) => {
                inputs.push_back(Input::Name(host, Looked::Addresses(vec![[192, 0, 2, 1].into()])));
            }
            Output::Store(StoreOutput::Lookup(key)) => {
                inputs.push_back(Input::Store(StoreInput::Row(key, None)))
            }
            Output::Origin(OriginOutput::Fetch(id, _)) => inputs.push_back(self.begin(id)),
            Output::Origin(OriginOutput::Grant(_, bytes)) => self.send(bytes, inputs),
            Output::Store(StoreOutput::Append(ticket, units)) => {
                let places = units.iter().map(|unit| self.place(unit)).collect();
                inputs.push_back(Input::Store(StoreInput::Appended(ticket, Some(places))));
            }
            Output::Store(StoreOutput::Change(ticket, _)) => {
                inputs.push_back(Input::Store(StoreInput::Changed(ticket, true)))
            }
            Output::Store(StoreOutput::Sync) => {
                inputs.push_back(Input::Store(StoreInput::Synced(true)))
            }
            Output::Link(output) => self.said.push(output),
            Output::Store(StoreOutput::Read(..)) | Output::Store(StoreOutput::ReadSegment(..)) => {
                panic!("not all of it is in memory")
            }
            Output::Client(ClientOutput::Abort(_)) => panic!("the client is not served"),
            _ => {}
        }
    }

    fn begin(&mut self, id: FetchId) -> Input {
        self.sending = Some((id, self.body.clone(), 0));
        let headers = HeaderMap::from_iter([
            (header::CACHE_CONTROL, HeaderValue::from_static("max-age=9000")),
            (header::CONTENT_LENGTH, HeaderValue::from(self.body.len())),
        ]);
        Input::Origin(OriginInput::Head(id, StatusCode::OK, headers))
    }

    /// The origin sends what it may.
    fn send(&mut self, bytes: u64, inputs: &mut VecDeque<Input>) {
        let Some((id, rest, granted)) = &mut self.sending else { return };
        *granted += bytes;
        while *granted > 0 && !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE).min(*granted as usize));
            *granted -= piece.len() as u64;
            inputs.push_back(Input::Origin(OriginInput::Body(*id, piece)));
        }
        if rest.is_empty() {
            inputs.push_back(Input::Origin(OriginInput::End(*id, Ok(()))));
            self.sending = None;
        }
    }

    fn place(&mut self, unit: &Unit) -> Location {
        let at = Location { segment: SegmentId(1), offset: self.offset };
        self.offset += (unit.bytes.len() as u32 + 64).next_multiple_of(16);
        at
    }
}
