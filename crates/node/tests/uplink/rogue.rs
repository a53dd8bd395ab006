//! Ends that say what a test makes them say, each against a real other end.

use crate::net::{Answer, Net};
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use node::testing::{Asked, Batch, Coding, Heard, Hello, Literals, PairEnd, uplink_proven};
use node::uplink::{
    Far, FarConfig, FarInput, FarOutput, Guest, Job, MemoryUnits, Message, Near, NearConfig,
    NearInput, NearOutput, PairKeys, Published, Refused, Span, State, TcpId, Worker,
};
use node::{Access, Dial, Fetch, FetchError, FetchId, OriginInput, OriginOutput};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use store::{Files as _, HistoryState, Memory, Ring};
use wire::Instant;

pub fn keys(seed: u8) -> PairKeys {
    PairKeys::new(&[seed; 32], &[seed; 32])
}

pub fn worker() -> Worker<MemoryUnits> {
    let history = || MemoryUnits::new([9; 16], 100_000);
    let ring = Ring::new(Memory::new().create("ring").unwrap(), 1 << 20, [3; 32]).unwrap();
    Worker::new(history(), history()).with_cache(ring, 10_000)
}

/// A hello of an end that holds nothing.
pub fn hello() -> Message {
    let nothing = HistoryState::default();
    Message::Hello(Hello {
        out: nothing,
        within: nothing,
        fresh: [5; 16],
        reach: node::uplink::Reach::default(),
        scheme: None,
    })
}

/// The number of a request's flow.
pub const fn number(id: u64) -> u64 {
    id << 1
}

/// The head of the answer to a request.
pub fn head(flow: u64) -> Message {
    Message::Head(number(flow), StatusCode::OK, HeaderMap::new())
}

/// A request, with content or without.
pub fn open(id: u64, has_content: bool) -> Message {
    let method = if has_content { Method::POST } else { Method::GET };
    let dial = Dial::Name("files.example.org".into(), 80);
    let host = (HOST, HeaderValue::from_static("files.example.org"));
    let (path, headers) = ("/".into(), HeaderMap::from_iter([host]));
    let asked = Asked { dial, tls: false, client: id, method, path, headers, has_content };
    Message::Open(number(id), Box::new(asked))
}

/// A batch of a reference to these positions, which have this content.
pub fn reference(flow: u64, first: u64, units: &[&[u8]]) -> Batch {
    let mut hasher = blake3::Hasher::new();
    units.iter().for_each(|unit| _ = hasher.update(&content::name(unit).as_bytes()[..16]));
    let length = units.iter().map(|unit| unit.len() as u32).sum();
    let spans = vec![Span { first, count: units.len() as u32 }];
    let digest = *hasher.finalize().as_bytes().first_chunk().unwrap();
    Batch { flow: number(flow), length, spans, digest, literals: None }
}

/// The same, with its units as literals, and their payload.
pub fn literals(flow: u64, first: u64, units: &[&[u8]]) -> (Batch, Vec<u8>) {
    let batch = reference(flow, first, units);
    let lengths = units.iter().map(|unit| unit.len() as u32).collect();
    let payload = units.concat();
    let (coding, length) = (Coding::Plain, payload.len() as u32);
    let literals = Literals { first, lengths, dictionary: Vec::new(), coding, payload: length };
    (Batch { literals: Some(literals), ..batch }, payload)
}

/// What a client of TCP was sent, and how its connection ended.
pub type Said = (Vec<u8>, Option<Result<(), FetchError>>);

/// A far end of a test's own, and a real near end.
pub struct AgainstNear {
    pub now: Instant,
    pub near: Near,
    pub worker: Worker<MemoryUnits>,
    pub end: PairEnd,
    pub heard: Vec<Message>,
    /// The number of messages in each record.
    pub records: Vec<usize>,
    pub known: bool,
    pub answers: BTreeMap<u64, Answer>,
    /// What clients of TCP were sent, and how their connections ended.
    pub tcp: BTreeMap<TcpId, Said>,
    pub past: Vec<u64>,
    pub notices: Vec<String>,
    pub dials: Vec<Instant>,
    pub hangups: usize,
    /// Jobs are kept here instead of done.
    pub kept: Option<VecDeque<(u64, Job)>>,
}

impl AgainstNear {
    /// Neither side has sent anything.
    pub fn dialled(far_key: u8) -> Self {
        Self::dialled_with(far_key, None)
    }

    /// Both sides are up, and the near end uses a published scheme.
    pub fn published(scheme: &str) -> Self {
        let mut it = Self::dialled_with(2, Some(scheme.parse().unwrap()));
        it.say(&[hello()]);
        assert!(it.near.is_up());
        it
    }

    fn dialled_with(far_key: u8, scheme: Option<Published>) -> Self {
        let mut it = Self::dialling(far_key, scheme);
        it.connect();
        it
    }

    /// The near end waits for its connection with the far end that has this key.
    pub fn dialling(far_key: u8, scheme: Option<Published>) -> Self {
        let worker = worker();
        let access = Access::default();
        let config =
            NearConfig { far_key: keys(far_key).key(), access, held: worker.held(), scheme };
        let mut it = Self {
            now: Instant::from_nanos(1),
            near: Near::new(config, keys(1), &[3; 32], std::iter::empty()),
            worker,
            end: PairEnd::far(keys(2)),
            heard: Vec::new(),
            records: Vec::new(),
            known: false,
            answers: BTreeMap::new(),
            tcp: BTreeMap::new(),
            past: Vec::new(),
            notices: Vec::new(),
            dials: Vec::new(),
            hangups: 0,
            kept: None,
        };
        it.near.handle_input(it.now, NearInput::Tick);
        it
    }

    /// A new connection.
    pub fn connect(&mut self) {
        (self.end, self.known) = (PairEnd::far(keys(2)), false);
        self.near.handle_input(self.now, NearInput::Connected);
        self.settle();
    }

    /// A new connection, of which the other end reads nothing.
    pub fn connect_unheard(&mut self) {
        self.near.handle_input(self.now, NearInput::Connected);
        while self.near.poll_transmit(self.now).is_some() {}
    }

    /// Both sides are up.
    pub fn up() -> Self {
        let mut it = Self::dialled(2);
        it.say(&[hello()]);
        assert!(it.near.is_up());
        it
    }

    /// Up, with requests of these numbers, which are answered and of which all is read.
    pub fn with_requests(ids: std::ops::Range<u64>) -> Self {
        let mut it = Self::up();
        for id in ids {
            it.get(id, u64::MAX / 2);
            it.say(&[head(id)]);
        }
        it
    }

    pub fn get(&mut self, id: u64, granted: u64) {
        let fetch = OriginOutput::Fetch(FetchId(id), Box::new(Net::fetch_of("/")));
        self.near.handle_input(self.now, NearInput::Origin(fetch, false));
        let grant = OriginOutput::Grant(FetchId(id), granted);
        self.near.handle_input(self.now, NearInput::Origin(grant, false));
        self.settle();
    }

    pub fn cancel(&mut self, id: u64) {
        let cancel = OriginOutput::Cancel(FetchId(id));
        self.near.handle_input(self.now, NearInput::Origin(cancel, false));
        self.settle();
    }

    pub fn receive(&mut self, bytes: impl Into<Bytes>) {
        self.near.handle_input(self.now, NearInput::Received(bytes.into()));
        self.settle();
    }

    pub fn say(&mut self, messages: &[Message]) {
        self.say_with(messages, &[]);
    }

    pub fn say_with(&mut self, messages: &[Message], parts: &[(u64, &[u8])]) {
        let record = self.end.say(messages, parts).expect("a record");
        self.receive(record);
    }

    /// Says a batch whose payload this is.
    pub fn give(&mut self, (batch, payload): (Batch, Vec<u8>)) {
        let parts: Vec<_> = payload.chunks(16 * 1024).map(|part| (1, part)).collect();
        self.say_with(&[Message::Batch(batch)], &parts[..1]);
        parts[1..].iter().for_each(|part| self.say_with(&[], &[*part]));
    }

    pub fn after(&mut self, time: Duration) {
        self.now = self.now + time;
        self.near.handle_input(self.now, NearInput::Tick);
        self.settle();
    }

    /// Runs until the next dial.
    pub fn until_dial(&mut self) -> Instant {
        let before = self.dials.len();
        while self.dials.len() == before {
            self.now = self.now.max(self.near.poll_timeout().expect("it will dial"));
            self.after(Duration::ZERO);
        }
        self.now
    }

    pub fn settle(&mut self) {
        loop {
            while let Some(output) = self.near.poll_output() {
                self.output(output);
            }
            let Some(bytes) = self.near.poll_transmit(self.now) else { return };
            // This end answers also those that meant another far end.
            let is_first = bytes.starts_with(b"HSUP");
            match is_first.then(|| uplink_proven(&bytes, &keys(2).key())).flatten() {
                Some(proven) => self.end.receive(&proven),
                None => self.end.receive(&bytes),
            }
            self.hear();
        }
    }

    fn hear(&mut self) {
        loop {
            match self.end.poll() {
                Heard::Known(_) => {
                    self.known = true;
                    self.end.accept();
                }
                Heard::Messages(messages) => {
                    self.records.push(messages.len());
                    self.heard.extend(messages);
                }
                Heard::Nothing | Heard::Refused(_) | Heard::Broken => break,
            }
        }
        while let Some(bytes) = self.end.take_outbox() {
            self.near.handle_input(self.now, NearInput::Received(bytes));
        }
    }

    fn output(&mut self, output: NearOutput) {
        match output {
            NearOutput::Dial => self.dials.push(self.now),
            NearOutput::Hangup => self.hangups += 1,
            NearOutput::Work(number, job) => match &mut self.kept {
                Some(kept) => kept.push_back((number, job)),
                None => {
                    let done = self.worker.work(job);
                    self.near.handle_input(self.now, NearInput::Done(number, done));
                }
            },
            NearOutput::Origin(OriginInput::Head(id, status, _)) => {
                let answer = self.answers.entry(id.0).or_default();
                assert_eq!(answer.status.replace(status), None, "one head");
            }
            NearOutput::Origin(OriginInput::Body(id, bytes)) => {
                let answer = self.answers.entry(id.0).or_default();
                assert!(answer.status.is_some(), "content after a head");
                answer.body.extend_from_slice(&bytes);
            }
            NearOutput::Origin(
                OriginInput::Crossed(..) | OriginInput::Interim(..) | OriginInput::Silent(_),
            )
            | NearOutput::TcpCrossed(..) => {}
            NearOutput::Origin(OriginInput::End(id, result)) => self.ended(id.0, result),
            NearOutput::Past(id, ..) => self.past.push(id.0),
            NearOutput::Notice(text) => self.notices.push(text),
            NearOutput::Tcp(id, bytes) => {
                self.tcp.entry(id).or_default().0.extend_from_slice(&bytes);
            }
            NearOutput::TcpEnd(id, result) => {
                let end = &mut self.tcp.entry(id).or_default().1;
                assert_eq!(end.replace(result), None, "it ends once");
            }
        }
    }

    fn ended(&mut self, id: u64, result: Result<(), FetchError>) {
        let answer = self.answers.entry(id).or_default();
        assert_eq!(answer.end.replace(result), None, "it ends once");
    }

    /// The connection has ended, and nothing was delivered.
    pub fn is_broken(&self) -> bool {
        self.hangups > 0 && self.answers.values().all(|answer| answer.body.is_empty())
    }
}

/// What has come of a request's content, and its end.
type Content = (Vec<u8>, Option<Result<(), FetchError>>);

/// A near end of a test's own, and a real far end.
pub struct AgainstFar {
    pub now: Instant,
    pub far: Far,
    pub worker: Worker<MemoryUnits>,
    pub end: PairEnd,
    pub heard: Vec<Message>,
    pub refused: Option<Refused>,
    /// Requests that go to origins.
    pub asked: BTreeMap<FetchId, Fetch>,
    pub cancelled: Vec<FetchId>,
    /// What requests' content is, and how it ended.
    pub content: BTreeMap<FetchId, Content>,
    pub is_over: bool,
    /// Jobs that were given.
    pub supplies: usize,
    pub sent: usize,
    /// Whether what the far end sends is taken.
    pub reads: bool,
}

impl AgainstFar {
    /// A far end with what this worker holds; it knows the marks of all of it, or has lost them.
    pub fn new(worker: Worker<MemoryUnits>, knows: bool) -> Self {
        let config = FarConfig { near_key: keys(1).key(), units_max: 1000, held: worker.held() };
        let marks = if knows { worker.marks() } else { Vec::new() };
        Self {
            now: Instant::from_nanos(1),
            far: Far::new(config, keys(2), &[4; 32], marks.into_iter()),
            worker,
            end: PairEnd::near(keys(1), &keys(2).key()),
            heard: Vec::new(),
            refused: None,
            asked: BTreeMap::new(),
            cancelled: Vec::new(),
            content: BTreeMap::new(),
            is_over: false,
            supplies: 0,
            sent: 0,
            reads: true,
        }
    }

    pub fn up() -> Self {
        let mut it = Self::new(worker(), true);
        it.connect();
        it.say(&[hello()]);
        assert_eq!(it.far.state(), State::Up);
        it
    }

    /// A new connection, after the handshake.
    pub fn connect(&mut self) {
        (self.end, self.is_over) = (PairEnd::near(keys(1), &keys(2).key()), false);
        let (mut guest, mut far_keys) = (Guest::default(), keys(2));
        while let Some(sent) = self.end.take_outbox() {
            let known = guest.receive(&sent, &mut far_keys).expect("a sound handshake");
            guest.take_outbox().iter().for_each(|bytes| self.end.receive(bytes));
            if known.is_some() {
                break;
            }
            assert!(matches!(self.end.poll(), Heard::Known(_)));
        }
        let from = [192, 0, 2, 1].into();
        self.far.handle_input(
            self.now,
            FarInput::Connected(guest, from, node::uplink::Reach::default()),
        );
        self.settle();
    }

    pub fn say(&mut self, messages: &[Message]) {
        self.say_with(messages, &[]);
    }

    pub fn say_with(&mut self, messages: &[Message], parts: &[(u64, &[u8])]) {
        let record = self.end.say(messages, parts).expect("a record");
        self.receive(record);
    }

    pub fn receive(&mut self, bytes: impl Into<Bytes>) {
        self.far.handle_input(self.now, FarInput::Received(bytes.into()));
        self.settle();
    }

    /// An origin answers.
    pub fn origin(&mut self, input: OriginInput) {
        self.far.handle_input(self.now, FarInput::Origin(input));
        self.settle();
    }

    pub fn settle(&mut self) {
        loop {
            while let Some(output) = self.far.poll_output() {
                self.output(output);
            }
            if !self.reads {
                return;
            }
            let Some(bytes) = self.far.poll_transmit(self.now) else { return };
            self.sent += bytes.len();
            self.end.receive(&bytes);
            loop {
                match self.end.poll() {
                    Heard::Messages(messages) => self.heard.extend(messages),
                    Heard::Refused(why) => self.refused = Some(why),
                    Heard::Nothing | Heard::Broken | Heard::Known(_) => break,
                }
            }
        }
    }

    fn output(&mut self, output: FarOutput) {
        match output {
            FarOutput::Dial(..) => {}
            FarOutput::Hangup => self.is_over = true,
            FarOutput::Work(number, job) => {
                self.supplies += usize::from(matches!(job, Job::Supply(_)));
                let done = self.worker.work(job);
                self.far.handle_input(self.now, FarInput::Done(number, done));
            }
            FarOutput::Origin(OriginOutput::Fetch(id, fetch), has_content) => {
                self.asked.insert(id, *fetch);
                if has_content {
                    self.far.accept_content(self.now, id, 1 << 20);
                }
            }
            FarOutput::Origin(OriginOutput::Cancel(id), _) => self.cancelled.push(id),
            FarOutput::Origin(..) => {}
            FarOutput::Content(id, bytes) => {
                self.content.entry(id).or_default().0.extend_from_slice(&bytes);
            }
            FarOutput::ContentEnd(id, result) => {
                let end = &mut self.content.entry(id).or_default().1;
                assert_eq!(end.replace(result), None, "it ends once");
            }
        }
    }
}
