//! A pair in virtual time: a near end, a far end, a link with a rate and a delay, origins.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use node::uplink::{
    Far, FarConfig, FarInput, FarOutput, FlowId, Guest, MemoryUnits, Near, NearConfig, NearInput,
    NearOutput, PairKeys, Published, Reach, State, TcpId, Worker,
};
use node::{Access, Caller, Crossed, Dial, Fetch, FetchError, FetchId, OriginInput, OriginOutput};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use store::{Files as _, Memory, Ring};
use wire::Instant;

/// How the link between the two ends is.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub bytes_per_second: u64,
    pub delay: Duration,
}

impl Link {
    /// 512 kbit/s, 200 ms there and back.
    pub const SLOW: Self = Self { bytes_per_second: 64_000, delay: Duration::from_millis(100) };
    /// 100 Mbit/s, 2 ms there and back.
    pub const FAST: Self = Self { bytes_per_second: 12_500_000, delay: Duration::from_millis(1) };
}

/// One direction: bytes in flight.
#[derive(Default)]
struct Wire {
    busy_until: Instant,
    flying: VecDeque<(Instant, Bytes)>,
}

/// An answer at the near end.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: Option<StatusCode>,
    pub body: Vec<u8>,
    /// Bytes of it that crossed as references, and as differences.
    pub referred: u64,
    pub differed: u64,
    pub end: Option<Result<(), FetchError>>,
    pub first_byte: Option<Instant>,
    pub ended: Option<Instant>,
}

/// What an origin sends, and how far it is.
struct Response {
    body: Bytes,
    granted: i64,
    /// A body that never ends by itself.
    stays_open: bool,
}

/// One side of a TCP connection: what it has heard, and what it still has to say.
#[derive(Debug, Default)]
pub struct Side {
    pub heard: Vec<u8>,
    /// When it heard something, and how much it had heard then.
    pub times: Vec<(Instant, usize)>,
    /// How the other side's words ended.
    pub end: Option<Result<(), FetchError>>,
    /// The connection broke off.
    pub is_broken_off: bool,
    says: VecDeque<u8>,
    /// How its words end, once it has said all.
    last: Option<Result<(), FetchError>>,
    granted: u64,
}

impl Side {
    fn hears(&mut self, now: Instant, bytes: &[u8]) {
        assert_eq!(self.end, None, "nothing after the end");
        self.heard.extend_from_slice(bytes);
        self.times.push((now, self.heard.len()));
    }

    fn ends(&mut self, result: Result<(), FetchError>) {
        // After the other side has said all, the connection may still break off.
        assert!(!self.is_broken_off && (self.end.is_none() || result.is_err()), "it ends once");
        self.end.get_or_insert(result);
        self.is_broken_off = result.is_err();
    }

    /// When it had heard this much.
    pub fn had(&self, length: usize) -> Instant {
        self.times.iter().find(|(_, heard)| *heard >= length).expect("it heard that much").0
    }

    /// What it says next within this many bytes, if it says anything.
    fn next(&mut self, room: u64) -> Option<Bytes> {
        let length = self.says.len().min(room as usize);
        (length > 0).then(|| self.says.drain(..length).collect::<Vec<_>>().into())
    }

    /// How it ends, once, when all is said.
    fn says_end(&mut self) -> Option<Result<(), FetchError>> {
        self.last.take_if(|_| self.says.is_empty())
    }
}

/// Whose connections they are, unless it is said.
pub const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
/// A port whose server refuses.
pub const CLOSED_PORT: u16 = 9;

/// Both ends, the link, origins.
pub struct Net {
    pub now: Instant,
    pub near: Near,
    pub far: Far,
    near_worker: Worker<MemoryUnits>,
    far_worker: Worker<MemoryUnits>,
    link: Link,
    down: Wire,
    up: Wire,
    is_cut: bool,
    is_connected: bool,
    pub origins: BTreeMap<String, Bytes>,
    /// Paths whose bodies do not end.
    pub open_ended: Vec<String>,
    responses: BTreeMap<FetchId, Response>,
    pub answers: BTreeMap<u64, Answer>,
    pub past: Vec<FetchId>,
    /// Requests that were said to be silent, and when.
    pub silent: Vec<(Instant, FetchId)>,
    /// How the clients' bytes crossed, by what the near end told.
    pub told: Crossed,
    pub notices: Vec<String>,
    /// Bytes that crossed: down, up.
    pub crossed: (u64, u64),
    /// How much the near end's reader takes without being asked.
    pub grant: u64,
    /// TCP connections: their clients, and their servers.
    pub clients: BTreeMap<TcpId, Side>,
    pub servers: BTreeMap<FetchId, Side>,
    /// Clients that take no bytes.
    pub deaf: Vec<TcpId>,
    /// Servers that take no bytes.
    pub deaf_servers: Vec<FetchId>,
    pub dialled: Vec<(FetchId, SocketAddr)>,
    calls: u64,
    pub reach: Reach,
    fetches: u64,
    connections: u8,
    near_units: usize,
    far_units: usize,
    scheme: Option<Published>,
    /// What a published scheme's logs have, in bytes.
    log: u64,
}

const NEAR_SEED: [u8; 32] = [1; 32];
const FAR_SEED: [u8; 32] = [2; 32];

fn keys(seed: &[u8; 32], run: u8) -> PairKeys {
    PairKeys::new(seed, &[run; 32])
}

impl Net {
    pub fn new(link: Link) -> Self {
        Self::with_histories(link, 100_000, 100_000)
    }

    /// With histories of at most this many units.
    pub fn with_histories(link: Link, near_units: usize, far_units: usize) -> Self {
        Self::with(link, (near_units, far_units), None, 64 << 20)
    }

    /// With a published scheme, whose logs have this many bytes.
    pub fn published(link: Link, scheme: &str, log: u64) -> Self {
        Self::with(link, (100_000, 100_000), Some(scheme.parse().unwrap()), log)
    }

    fn with(
        link: Link,
        (near_units, far_units): (usize, usize),
        scheme: Option<Published>,
        log: u64,
    ) -> Self {
        let (near_worker, far_worker) = (worker(9, near_units, log), worker(9, far_units, log));
        Self {
            now: Instant::from_nanos(1),
            near: near_end(&near_worker, 1, scheme),
            far: far_end(&far_worker, 1),
            near_worker,
            far_worker,
            link,
            down: Wire::default(),
            up: Wire::default(),
            is_cut: false,
            is_connected: false,
            origins: BTreeMap::new(),
            open_ended: Vec::new(),
            responses: BTreeMap::new(),
            answers: BTreeMap::new(),
            past: Vec::new(),
            silent: Vec::new(),
            told: Crossed::default(),
            notices: Vec::new(),
            crossed: (0, 0),
            grant: u64::MAX / 2,
            clients: BTreeMap::new(),
            servers: BTreeMap::new(),
            deaf: Vec::new(),
            deaf_servers: Vec::new(),
            dialled: Vec::new(),
            calls: 0,
            reach: Reach { v4: true, v6: true },
            fetches: 0,
            connections: 0,
            near_units,
            far_units,
            scheme,
            log,
        }
    }

    /// A net whose ends are connected.
    pub fn up(link: Link) -> Self {
        let mut net = Self::new(link);
        net.until(|net| net.near.is_up());
        net
    }

    pub fn origin(&mut self, path: &str, body: impl Into<Bytes>) {
        self.origins.insert(path.into(), body.into());
    }

    pub fn fetch_of(path: &str) -> Fetch {
        let mut headers = HeaderMap::new();
        headers.insert("host", HeaderValue::from_static("files.example.org"));
        headers.insert("user-agent", HeaderValue::from_static("curl/8.5.0"));
        headers.insert("accept", HeaderValue::from_static("*/*"));
        Fetch {
            dial: Dial::Name("files.example.org".into(), 80),
            tls: false,
            client: [10, 0, 0, 2].into(),
            caller: Caller::Explicit,
            method: Method::GET,
            path: path.into(),
            headers,
            exchange: None,
            binding: None,
        }
    }

    /// Begins a request, and returns its number.
    pub fn get(&mut self, path: &str) -> u64 {
        self.fetch(Self::fetch_of(path), false)
    }

    pub fn fetch(&mut self, fetch: Fetch, has_content: bool) -> u64 {
        self.fetches += 1;
        let id = FetchId(self.fetches);
        self.answers.insert(id.0, Answer::default());
        let output = OriginOutput::Fetch(id, Box::new(fetch));
        assert!(self.near.takes(&output), "the pair does not take it");
        self.near.handle_input(self.now, NearInput::Origin(output, has_content));
        if self.grant > 0 {
            self.allow(id.0, self.grant);
        }
        self.settle();
        id.0
    }

    /// The near end's reader takes this many more bytes.
    pub fn allow(&mut self, id: u64, bytes: u64) {
        let output = OriginOutput::Grant(FetchId(id), bytes);
        if self.near.takes(&output) {
            self.near.handle_input(self.now, NearInput::Origin(output, false));
        }
        self.settle();
    }

    pub fn cancel(&mut self, id: u64) {
        let output = OriginOutput::Cancel(FetchId(id));
        if self.near.takes(&output) {
            self.near.handle_input(self.now, NearInput::Origin(output, false));
        }
        self.settle();
    }

    /// Gets a path to its end; returns the bytes that crossed for it, both ways.
    pub fn get_all(&mut self, path: &str) -> (Vec<u8>, u64) {
        let before = self.crossed;
        let id = self.get(path);
        self.until(|net| net.answers[&id].end.is_some());
        // What is still to be said about it, such as credit.
        self.run_for(Duration::from_millis(1));
        let answer = &self.answers[&id];
        assert_eq!(answer.end, Some(Ok(())), "{path}");
        let crossed = self.crossed.0 - before.0 + self.crossed.1 - before.1;
        (answer.body.clone(), crossed)
    }

    /// The connection breaks; neither side hears more of the other until [`Net::mend`].
    pub fn cut(&mut self) {
        (self.is_cut, self.is_connected) = (true, false);
        (self.down, self.up) = (Wire::default(), Wire::default());
        self.near.handle_input(self.now, NearInput::Closed);
        self.far.handle_input(self.now, FarInput::Closed);
        self.settle();
    }

    /// Nothing crosses any more, and neither side is told.
    pub fn silence(&mut self) {
        (self.down, self.up) = (Wire::default(), Wire::default());
        (self.is_cut, self.is_connected) = (true, false);
    }

    pub fn mend(&mut self) {
        self.is_cut = false;
    }

    /// The far end is started again, with its history or without.
    pub fn restart_far(&mut self, keeps: bool) {
        self.cut();
        self.connections += 1;
        if !keeps {
            self.far_worker = worker(7, self.far_units, self.log);
        }
        self.responses.clear();
        // Their connections end with its process.
        self.servers.clear();
        self.dialled.clear();
        self.far = far_end(&self.far_worker, 10 + self.connections);
        self.mend();
    }

    /// The near end is started again, with its history or without.
    pub fn restart_near(&mut self, keeps: bool) {
        self.cut();
        self.connections += 1;
        if !keeps {
            self.near_worker = worker(8, self.near_units, self.log);
        }
        self.near = near_end(&self.near_worker, 10 + self.connections, self.scheme);
        self.mend();
    }

    pub fn until(&mut self, is_done: impl Fn(&Self) -> bool) {
        let limit = self.now + Duration::from_secs(3600);
        while !is_done(self) {
            assert!(self.step() && self.now < limit, "nothing happens any more at {:?}", self.now);
        }
    }

    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.next().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = end;
    }

    fn next(&self) -> Option<Instant> {
        let arrival = |wire: &Wire| wire.flying.front().map(|(at, _)| *at);
        let free = |wire: &Wire| (wire.busy_until > self.now).then_some(wire.busy_until);
        let times = [
            arrival(&self.down),
            arrival(&self.up),
            free(&self.down),
            free(&self.up),
            self.near.poll_timeout(),
            self.far.poll_timeout(),
        ];
        times.into_iter().flatten().min()
    }

    fn step(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        self.now = self.now.max(next);
        if self.near.poll_timeout().is_some_and(|at| at <= self.now) {
            self.near.handle_input(self.now, NearInput::Tick);
        }
        if self.far.poll_timeout().is_some_and(|at| at <= self.now) {
            self.far.handle_input(self.now, FarInput::Tick);
        }
        while let Some((at, bytes)) = self.up.flying.front().cloned() {
            if at > self.now {
                break;
            }
            self.up.flying.pop_front();
            self.far_receives(bytes);
        }
        while let Some((at, bytes)) = self.down.flying.front().cloned() {
            if at > self.now {
                break;
            }
            self.down.flying.pop_front();
            self.near.handle_input(self.now, NearInput::Received(bytes));
        }
        self.settle();
        true
    }

    fn far_receives(&mut self, bytes: Bytes) {
        if !self.is_connected {
            self.greet(&bytes);
        } else {
            self.far.handle_input(self.now, FarInput::Received(bytes));
        }
    }

    fn greet(&mut self, bytes: &[u8]) {
        let mut guest = GUEST.with_borrow_mut(Option::take).unwrap_or_default();
        let mut far_keys = FAR_KEYS.with_borrow_mut(|it| it.take()).unwrap_or(keys(&FAR_SEED, 77));
        let known = guest.receive(bytes, &mut far_keys).expect("a sound handshake");
        if let Some(answer) = guest.take_outbox() {
            self.send(answer, true);
        }
        match known {
            Some(key) => {
                assert_eq!(key, keys(&NEAR_SEED, 1).key());
                self.is_connected = true;
                let from = [192, 0, 2, 1].into();
                self.far.handle_input(self.now, FarInput::Connected(guest, from, self.reach));
            }
            None => GUEST.with_borrow_mut(|it| *it = Some(guest)),
        }
        FAR_KEYS.with_borrow_mut(|it| *it = Some(far_keys));
    }

    fn send(&mut self, bytes: Bytes, is_down: bool) {
        let length = bytes.len() as u64;
        let wire = if is_down { &mut self.down } else { &mut self.up };
        let nanos = length * 1_000_000_000 / self.link.bytes_per_second;
        wire.busy_until = wire.busy_until.max(self.now) + Duration::from_nanos(nanos);
        wire.flying.push_back((wire.busy_until + self.link.delay, bytes));
        match is_down {
            true => self.crossed.0 += length,
            false => self.crossed.1 += length,
        }
    }

    /// Does all that can be done now.
    fn settle(&mut self) {
        let mut goes_on = true;
        while std::mem::take(&mut goes_on) {
            while let Some(output) = self.near.poll_output() {
                goes_on = true;
                self.near_output(output);
            }
            while let Some(output) = self.far.poll_output() {
                goes_on = true;
                self.far_output(output);
            }
            self.serve();
            goes_on |= self.converse();
            while self.up.busy_until <= self.now
                && let Some(bytes) = self.near.poll_transmit(self.now)
            {
                goes_on = true;
                if !self.is_cut {
                    self.send(bytes, false);
                }
            }
            while self.down.busy_until <= self.now
                && let Some(bytes) = self.far.poll_transmit(self.now)
            {
                goes_on = true;
                if !self.is_cut {
                    self.send(bytes, true);
                }
            }
        }
    }

    fn near_output(&mut self, output: NearOutput) {
        match output {
            NearOutput::Dial if self.is_cut => {
                self.near.handle_input(self.now, NearInput::Closed);
            }
            NearOutput::Dial => {
                GUEST.with_borrow_mut(|it| *it = None);
                self.near.handle_input(self.now, NearInput::Connected);
            }
            NearOutput::Hangup => {
                self.is_connected = false;
                self.far.handle_input(self.now, FarInput::Closed);
            }
            NearOutput::Work(number, job) => {
                let done = self.near_worker.work(job);
                self.near.handle_input(self.now, NearInput::Done(number, done));
            }
            NearOutput::Origin(input) => self.answer(input),
            NearOutput::Past(id, ..) => self.past.push(id),
            NearOutput::TcpCrossed(_, it) => self.told.add(it),
            NearOutput::Notice(text) => self.notices.push(text),
            NearOutput::Tcp(id, bytes) => {
                let Some(client) = self.clients.get_mut(&id) else { return };
                client.hears(self.now, &bytes);
                if !self.deaf.contains(&id) {
                    let grant = NearInput::GrantTcp(id, bytes.len() as u64);
                    self.near.handle_input(self.now, grant);
                }
            }
            NearOutput::TcpEnd(id, result) => {
                self.clients.get_mut(&id).into_iter().for_each(|client| client.ends(result));
            }
        }
    }

    /// A client dials: its connection.
    pub fn dial(&mut self, to: &str) -> TcpId {
        self.dial_from(CLIENT, to)
    }

    pub fn dial_from(&mut self, client: IpAddr, to: &str) -> TcpId {
        let to = to.parse().expect("an address");
        assert!(self.near.may_dial(to, client), "{to}");
        self.calls += 1;
        let id = TcpId(self.calls);
        self.clients.insert(id, Side::default());
        self.near.handle_input(self.now, NearInput::Dial(id, to, client));
        if !self.deaf.contains(&id) {
            self.near.handle_input(self.now, NearInput::GrantTcp(id, 64 * 1024));
        }
        self.settle();
        id
    }

    /// The same, until its server has accepted.
    pub fn call(&mut self, to: &str) -> (TcpId, FetchId) {
        let id = self.dial(to);
        let before = self.dialled.len();
        self.until(|net| net.dialled.len() > before);
        (id, self.dialled[before].0)
    }

    /// A client says this.
    pub fn client_says(&mut self, id: TcpId, bytes: &[u8]) {
        self.clients.get_mut(&id).expect("a client").says.extend(bytes);
        self.settle();
    }

    /// A client ends its words so.
    pub fn client_ends(&mut self, id: TcpId, result: Result<(), FetchError>) {
        let client = self.clients.get_mut(&id).expect("a client");
        client.last = Some(result);
        if result.is_err() {
            client.says.clear();
        }
        self.settle();
    }

    /// A server says this.
    pub fn server_says(&mut self, id: FetchId, bytes: &[u8]) {
        self.servers.get_mut(&id).expect("a server").says.extend(bytes);
        self.settle();
    }

    /// A server ends its words so.
    pub fn server_ends(&mut self, id: FetchId, result: Result<(), FetchError>) {
        self.servers.get_mut(&id).expect("a server").last = Some(result);
        self.settle();
    }

    /// Clients and servers say what there is room for; whether any said something.
    fn converse(&mut self) -> bool {
        let mut inputs = (Vec::new(), Vec::new());
        for (id, client) in &mut self.clients {
            let id = FlowId::Tcp(*id);
            let said = client.next(self.near.room(id));
            inputs.0.extend(said.map(|bytes| NearInput::Content(id, bytes)));
            inputs.0.extend(client.says_end().map(|it| NearInput::ContentEnd(id, it)));
        }
        for (id, server) in &mut self.servers {
            let said = server.next(server.granted);
            server.granted -= said.as_ref().map_or(0, |bytes| bytes.len() as u64);
            inputs.1.extend(said.map(|bytes| OriginInput::Body(*id, bytes)));
            inputs.1.extend(server.says_end().map(|it| OriginInput::End(*id, it)));
        }
        let said = !inputs.0.is_empty() || !inputs.1.is_empty();
        inputs.0.into_iter().for_each(|it| self.near.handle_input(self.now, it));
        inputs.1.into_iter().for_each(|it| self.far.handle_input(self.now, FarInput::Origin(it)));
        said
    }

    fn answer(&mut self, input: OriginInput) {
        let now = self.now;
        match input {
            OriginInput::Interim(..) => panic!("the pair has no message for it: {input:?}"),
            OriginInput::Head(id, status, _) => {
                self.answers.entry(id.0).or_default().status = Some(status);
            }
            OriginInput::Body(id, bytes) => {
                let answer = self.answers.entry(id.0).or_default();
                assert!(answer.status.is_some(), "a head comes first");
                answer.first_byte.get_or_insert(now);
                answer.body.extend_from_slice(&bytes);
            }
            OriginInput::Crossed(id, crossed) => {
                let answer = self.answers.entry(id.0).or_default();
                answer.referred += crossed.reference;
                answer.differed += crossed.difference;
            }
            OriginInput::Silent(id) => self.silent.push((now, id)),
            OriginInput::End(id, result) => {
                let answer = self.answers.entry(id.0).or_default();
                assert_eq!(answer.end, None, "it ends once");
                (answer.end, answer.ended) = (Some(result), Some(now));
            }
        }
    }

    fn far_output(&mut self, output: FarOutput) {
        match output {
            FarOutput::Hangup => {
                self.is_connected = false;
                self.near.handle_input(self.now, NearInput::Closed);
            }
            FarOutput::Work(number, job) => {
                let done = self.far_worker.work(job);
                self.far.handle_input(self.now, FarInput::Done(number, done));
            }
            FarOutput::Origin(OriginOutput::Fetch(id, fetch), _) => self.respond(id, &fetch),
            FarOutput::Dial(id, to, _) if to.port() == CLOSED_PORT => {
                let refused = OriginInput::End(id, Err(FetchError::Unreachable));
                self.far.handle_input(self.now, FarInput::Origin(refused));
            }
            FarOutput::Dial(id, to, _) => {
                self.dialled.push((id, to));
                self.servers.insert(id, Side::default());
                self.far.accept_content(self.now, id, 64 * 1024);
            }
            FarOutput::Origin(OriginOutput::Grant(id, bytes), _) => {
                self.servers.get_mut(&id).into_iter().for_each(|it| it.granted += bytes);
                if let Some(response) = self.responses.get_mut(&id) {
                    response.granted += bytes as i64;
                }
            }
            FarOutput::Origin(OriginOutput::Cancel(id), _) => {
                self.responses.remove(&id);
                if let Some(server) = self.servers.get_mut(&id) {
                    server.end.get_or_insert(Err(FetchError::Truncated));
                }
            }
            FarOutput::Origin(OriginOutput::TakeIn(..), _) => panic!("nobody publishes here"),
            FarOutput::Content(id, bytes) if self.servers.contains_key(&id) => {
                let server = self.servers.get_mut(&id).expect("a server");
                server.hears(self.now, &bytes);
                if !self.deaf_servers.contains(&id) {
                    self.far.accept_content(self.now, id, bytes.len() as u64);
                }
            }
            FarOutput::ContentEnd(id, result) if self.servers.contains_key(&id) => {
                self.servers.get_mut(&id).expect("a server").ends(result);
                if result.is_err() {
                    // Its connection is reset.
                    let end = OriginInput::End(id, result);
                    self.far.handle_input(self.now, FarInput::Origin(end));
                }
            }
            FarOutput::Content(id, bytes) => {
                // An origin that sends back what it gets.
                self.far.accept_content(self.now, id, bytes.len() as u64);
                let echo = OriginInput::Body(id, bytes);
                self.far.handle_input(self.now, FarInput::Origin(echo));
            }
            FarOutput::ContentEnd(id, result) => {
                let end = OriginInput::End(id, result);
                self.far.handle_input(self.now, FarInput::Origin(end));
            }
        }
    }

    fn respond(&mut self, id: FetchId, fetch: &Fetch) {
        let mut headers = HeaderMap::new();
        headers.insert("server", HeaderValue::from_static("nginx/1.22.1"));
        headers.insert("content-type", HeaderValue::from_static("text/html"));
        headers.insert("last-modified", HeaderValue::from_static("Mon, 02 Nov 2026 10:00:00 GMT"));
        if fetch.method == Method::POST {
            let head = OriginInput::Head(id, StatusCode::OK, headers);
            self.far.handle_input(self.now, FarInput::Origin(head));
            return self.far.accept_content(self.now, id, 64 * 1024);
        }
        let stays_open = self.open_ended.contains(&fetch.path);
        let Some(body) = self.origins.get(&fetch.path).cloned() else {
            let end = OriginInput::End(id, Err(FetchError::Unresolved));
            return self.far.handle_input(self.now, FarInput::Origin(end));
        };
        headers.insert("content-length", HeaderValue::from(body.len()));
        let head = OriginInput::Head(id, StatusCode::OK, headers);
        self.far.handle_input(self.now, FarInput::Origin(head));
        self.responses.insert(id, Response { body, granted: 0, stays_open });
    }

    /// Origins send as a driver reads them (`driver::Grants`): whole pieces, whose last may be more than was granted.
    fn serve(&mut self) {
        let ids: Vec<_> = self.responses.keys().copied().collect();
        for id in ids {
            while let Some(response) = self.responses.get_mut(&id) {
                if response.body.is_empty() && !response.stays_open {
                    self.responses.remove(&id);
                    let end = OriginInput::End(id, Ok(()));
                    self.far.handle_input(self.now, FarInput::Origin(end));
                    break;
                }
                let piece = response.body.len().min(64 * 1024);
                if piece == 0 || response.granted <= 0 {
                    break;
                }
                response.granted -= piece as i64;
                let bytes = response.body.split_to(piece);
                let body = OriginInput::Body(id, bytes);
                self.far.handle_input(self.now, FarInput::Origin(body));
                while let Some(output) = self.far.poll_output() {
                    self.far_output(output);
                }
            }
        }
    }

    pub fn is_up(&self) -> bool {
        self.near.is_up() && self.far.state() == State::Up
    }
}

thread_local! {
    /// The connection that is being made.
    static GUEST: std::cell::RefCell<Option<Guest>> = const { std::cell::RefCell::new(None) };
    static FAR_KEYS: std::cell::RefCell<Option<PairKeys>> = const { std::cell::RefCell::new(None) };
}

fn worker(epoch: u8, units: usize, log: u64) -> Worker<MemoryUnits> {
    let history = || MemoryUnits::new([epoch; 16], units);
    let ring = Ring::new(Memory::new().create("ring").unwrap(), log, [3; 32]).unwrap();
    Worker::new(history(), history()).with_cache(ring, 1 << 20)
}

fn near_end(worker: &Worker<MemoryUnits>, run: u8, scheme: Option<Published>) -> Near {
    let config = NearConfig {
        far_key: keys(&FAR_SEED, 1).key(),
        access: Access::default(),
        held: worker.held(),
        scheme,
    };
    Near::new(config, keys(&NEAR_SEED, run), &[run; 32], std::iter::empty())
}

fn far_end(worker: &Worker<MemoryUnits>, run: u8) -> Far {
    let config =
        FarConfig { near_key: keys(&NEAR_SEED, 1).key(), units_max: 100_000, held: worker.held() };
    let marks = worker.marks();
    Far::new(config, keys(&FAR_SEED, run), &[100 + run; 32], marks.into_iter())
}
