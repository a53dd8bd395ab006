//! S and R, each with its cache, and the records between them.

use crate::input::FetchError;
use crate::uplink::codec::Fields;
use crate::uplink::messages::{self, Context, Message, Skipped};
use crate::uplink::receiver::{Broken, Event};
use crate::uplink::sender::Record;
use crate::uplink::tcp::Kind;
use crate::uplink::wanax::receiver::Receiver;
use crate::uplink::wanax::sender::Sender;
use crate::uplink::wanax::{Cache, Job, Published};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use store::{Files as _, Memory, Ring};
use wire::Instant;

/// What R has passed on of a flow.
#[derive(Default)]
pub struct Passed {
    pub bytes: Vec<u8>,
    pub end: Option<Result<(), FetchError>>,
}

/// A record's messages, and its parts of payloads.
type Encoded = (Vec<u8>, Vec<(u64, Bytes)>);

/// Both ends. Nothing happens by itself.
pub struct Ends {
    pub now: Instant,
    pub sender: Sender,
    pub s_cache: Cache,
    pub receiver: Receiver,
    pub r_cache: Cache,
    flows: u64,
    jobs: u64,
    pub passed: BTreeMap<u64, Passed>,
    /// Records on their way to R, encoded, and messages on their way to S.
    down: VecDeque<Encoded>,
    up: VecDeque<Vec<u8>>,
    contexts: [Context; 4],
}

fn cache(scheme: Published, bytes: u64, entries_max: usize) -> Cache {
    let file = Memory::new().create("ring").unwrap();
    let mut cache = Cache::new(Ring::new(file, bytes, [1; 32]).unwrap(), entries_max);
    cache.work(Job::Begin(scheme));
    cache
}

fn decoded(cx: &mut Context, fields: &mut Fields<'_>) -> Message {
    messages::decode(cx, fields, &mut Skipped::default()).unwrap().unwrap()
}

impl Ends {
    /// Ends whose logs have this many bytes, and whose tables have this many entries.
    pub fn new(scheme: Published, bytes: u64, entries_max: usize) -> Self {
        let mut sender = Sender::default();
        sender.begin(scheme);
        Self {
            now: Instant::from_nanos(1),
            sender,
            s_cache: cache(scheme, bytes, entries_max),
            receiver: Receiver::default(),
            r_cache: cache(scheme, bytes, entries_max),
            flows: 0,
            jobs: 0,
            passed: BTreeMap::new(),
            down: VecDeque::new(),
            up: VecDeque::new(),
            contexts: [Context::default(); 4],
        }
    }

    /// Bytes of names and of content that S has sent, except what was asked for.
    pub fn sent(&self) -> [u64; 2] {
        [self.sender.name_bytes, self.sender.as_new]
    }

    pub fn open(&mut self) -> u64 {
        self.flows += 1;
        self.receiver.open(self.flows);
        self.sender.open(self.now, self.flows, self.flows % 3, Kind::Http);
        self.passed.insert(self.flows, Passed::default());
        self.flows
    }

    pub fn push(&mut self, flow: u64, bytes: &[u8]) {
        self.sender.push(self.now, flow, bytes);
    }

    pub fn grant(&mut self, flow: u64, bytes: u64) {
        self.receiver.grant(flow, bytes);
    }

    pub fn received(&self, flow: u64) -> &[u8] {
        &self.passed[&flow].bytes
    }

    pub fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        if self.sender.poll_timeout().is_some_and(|at| at <= self.now) {
            self.sender.handle_timeout(self.now);
        }
    }

    /// The connection breaks; all flows are over.
    pub fn cut(&mut self) {
        self.sender.drop_flows();
        self.receiver.drop_flows();
        self.down.clear();
        self.up.clear();
        self.contexts = [Context::default(); 4];
        self.hear_receiver().unwrap();
    }

    /// One flow with this content, to its end; what arrives.
    pub fn cross(&mut self, content: &[u8]) -> Vec<u8> {
        let flow = self.open();
        self.grant(flow, u64::MAX / 4);
        let mut rest = content;
        loop {
            let room = (self.sender.room(flow) as usize).min(rest.len());
            let (piece, others) = rest.split_at(room);
            self.push(flow, piece);
            rest = others;
            if rest.is_empty() {
                break;
            }
            self.settle();
        }
        self.sender.finish(flow, Ok(()));
        self.settle();
        let passed = self.passed.remove(&flow).unwrap();
        assert_eq!(passed.end, Some(Ok(())));
        assert!(!self.sender.has(flow) && self.sender.waiting() == 0);
        passed.bytes
    }

    /// S does what it can do, and sends a record.
    pub fn send(&mut self) -> bool {
        for (flow, job) in self.sender.prepare(self.now) {
            self.jobs += 1;
            self.sender.is_listing(self.jobs, flow);
            let done = self.s_cache.work(job);
            self.sender.done(self.jobs, done);
        }
        let mut record = Record::default();
        self.sender.fill(16 * 1024, &mut record);
        let mut encoded = Vec::new();
        for message in &record.messages {
            messages::encode(&mut self.contexts[0], message, &mut encoded);
        }
        let is_some = !record.messages.is_empty() || !record.data.is_empty();
        if is_some {
            self.down.push_back((encoded, record.data));
        }
        is_some
    }

    /// R gets the next record.
    pub fn deliver(&mut self) -> bool {
        let Some((control, data)) = self.down.pop_front() else { return false };
        let mut fields = Fields(&control);
        while !fields.0.is_empty() {
            let message = decoded(&mut self.contexts[1], &mut fields);
            self.tell_receiver(message).unwrap();
        }
        for (number, bytes) in data {
            self.receiver.data(number, &bytes).unwrap();
        }
        self.hear_receiver().unwrap();
        true
    }

    pub fn tell_receiver(&mut self, message: Message) -> Result<(), Broken> {
        match message {
            Message::Root { flow, length, listing, payload } => {
                self.receiver.root(flow, [length, listing, payload])?;
            }
            Message::Chunks(lengths) => self.receiver.chunks(lengths)?,
            Message::Finish(flow, result) => self.receiver.finish(flow, result),
            other => panic!("S does not say {other:?}"),
        }
        Ok(())
    }

    /// Does what R wants done.
    pub fn hear_receiver(&mut self) -> Result<(), Broken> {
        while let Some(event) = self.receiver.poll() {
            match event {
                Event::Content(flow, bytes) => {
                    let passed = self.passed.get_mut(&flow).unwrap();
                    assert_eq!(passed.end, None);
                    passed.bytes.extend_from_slice(&bytes);
                }
                Event::Crossed(..) => {}
                Event::End(flow, result) => {
                    let end = &mut self.passed.get_mut(&flow).unwrap().end;
                    assert_eq!(end.replace(result), None, "it ends once");
                }
                Event::Say(message) => {
                    let mut encoded = Vec::new();
                    messages::encode(&mut self.contexts[2], &message, &mut encoded);
                    self.up.push_back(encoded);
                }
                Event::Work(number, job) => {
                    let crate::uplink::Job::Published(job) = job else { panic!("{job:?}") };
                    let done = self.r_cache.work(job);
                    self.receiver.done(number, done)?;
                }
            }
        }
        Ok(())
    }

    /// S gets the next message.
    pub fn answer(&mut self) -> bool {
        let Some(encoded) = self.up.pop_front() else { return false };
        let message = decoded(&mut self.contexts[3], &mut Fields(&encoded));
        match message {
            Message::Acknowledge(number) => self.sender.acknowledged(number),
            Message::Request(number, names) => self.sender.requested(number, &names).unwrap(),
            Message::Credit(flow, bytes) => self.sender.credit(flow, bytes),
            Message::Cancel(flow) => self.sender.cancel(flow),
            other => panic!("R does not say {other:?}"),
        }
        true
    }

    /// Everything that can happen without waiting happens.
    pub fn settle(&mut self) {
        self.hear_receiver().unwrap();
        while self.send() | self.deliver() | self.answer() {}
    }
}
