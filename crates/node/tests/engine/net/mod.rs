//! A node in a small world of its own: virtual time, scripted origins, a real store in memory, and
//! clients that read as they are told. The same seed gives the same run.
//!
//! Everything that happens is an event at a time; [`Net::settle`] lets events happen until there are
//! none, [`Net::pass`] lets time pass besides. What must always hold is checked at every step: each
//! client gets a prefix of what its origin holds, within its credit, and nothing after its end;
//! memory stays within the budget.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

pub use crate::common::{
    BEGIN, Call, Client, Dice, End, Options, Origin, Pace, Page, Shelf, judge, noise,
};

use crate::common::{Answer, OriginEvent, Trace, Turn, check_memory};
use node::{
    Access, Audience, ClientInput, ClientOutput, Config, ExchangeId, FetchId, Input, Looked, Node,
    OPEN_KEY, OriginInput, OriginOutput, Output, Report, Request, Settings, StoreInput, Target,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use wire::{Date, Instant};

/// No test needs more events than this: one that does goes round in circles.
const EVENTS_MAX: u64 = 1_000_000;
enum Event {
    Input(Input),
    Client(usize, Turn),
    Origin(FetchId, OriginEvent),
    Disk(Answer),
}

/// The world.
pub struct Net {
    pub node: Node,
    pub origin: Origin,
    pub disk: Shelf,
    /// Addresses by name; a name that is not here has none.
    pub names: BTreeMap<String, Vec<IpAddr>>,
    /// Lookups end without an answer.
    pub resolver_is_silent: bool,
    /// What the operator was told.
    pub notices: Vec<String>,
    /// How often an origin was dialled to see whether that is possible.
    pub probes: usize,
    /// Tunnels that were asked for.
    pub tunnels: Vec<node::Dial>,
    /// Requests whose clients' connections were joined with their origins'.
    pub relays: Vec<node::Fetch>,
    /// Every output so far.
    pub trace: Trace,
    /// Every event since [`Net::watch`].
    pub watched: Vec<node::Event>,
    clients: Vec<Client>,
    now: Instant,
    /// What date it was at the instant zero.
    begin: Date,
    queue: BTreeMap<(Instant, u64), Event>,
    events: u64,
    memory_bytes: u64,
}

impl Net {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        let (disk, index) = Shelf::open(&options);
        let mut net = Self {
            node: Node::new(config(&options), index),
            origin: Origin::default(),
            disk,
            names: BTreeMap::new(),
            resolver_is_silent: false,
            notices: Vec::new(),
            probes: 0,
            tunnels: Vec::new(),
            relays: Vec::new(),
            trace: Trace::default(),
            watched: Vec::new(),
            clients: Vec::new(),
            now: Instant::ZERO,
            begin: BEGIN,
            queue: BTreeMap::new(),
            events: 0,
            memory_bytes: options.memory_bytes,
        };
        net.feed(Input::Clock(BEGIN));
        net
    }

    /// Notes what the engine does from now on.
    pub fn watch(&mut self) {
        self.node.events().watch(true);
    }

    /// What it did since this was last asked, without its timers.
    pub fn did(&mut self) -> Vec<node::Event> {
        let mut did = std::mem::take(&mut self.watched);
        did.retain(|event| !matches!(event, node::Event::Timer { .. }));
        did
    }

    /// The driver says that nothing has come yet of what is asked for.
    pub fn say_silent(&mut self) {
        for id in self.origin.pending(0) {
            self.feed(Input::Origin(OriginInput::Silent(id)));
        }
    }

    /// The daemon ends and begins again on the same disk.
    pub fn restart(&mut self, options: &Options) {
        let index = self.disk.reopen(options);
        self.node = Node::new(config(options), index);
        self.queue.clear();
        self.feed(Input::Clock(self.date()));
    }

    /// As [`Net::restart`], on a disk that has become slow.
    pub fn restart_slowly(&mut self, options: &Options) {
        self.restart(options);
        self.disk.slow_down(options.disk_delay);
    }

    /// A client asks; what it gets is seen in [`Net::client`].
    pub fn call(&mut self, call: Call) -> usize {
        let id = self.clients.len();
        let exchange = ExchangeId(id as u64);
        let request = Request {
            at_home: call.at_home,
            behind_uplink: false,
            method: call.method.clone(),
            uri: call.target(),
            version: call.version,
            headers: call.headers.clone(),
            has_body: call.has_body,
            client: call.from,
            entrance: call.entrance(),
            expected: call.mirrors.flatten(),
            binding: call.binding,
        };
        let window = call.pace.window();
        self.clients.push(Client::new(call));
        self.after(
            Duration::ZERO,
            Event::Input(Input::Client(ClientInput::Request(exchange, Box::new(request)))),
        );
        self.after(Duration::ZERO, Event::Client(id, Turn::Open(window)));
        id
    }

    /// A client asks and reads all it gets.
    pub fn get(&mut self, url: &str) -> usize {
        let id = self.call(Call::get(url));
        self.settle();
        id
    }

    /// A client leaves.
    pub fn leave(&mut self, id: usize) {
        self.leave_soon(id);
        self.settle();
    }

    /// A client leaves, as the next thing that happens now.
    pub fn leave_soon(&mut self, id: usize) {
        self.after(Duration::ZERO, Event::Client(id, Turn::Leave));
    }

    /// A client that read slowly, or not at all, reads on as fast as it can.
    pub fn hurry(&mut self, id: usize) {
        self.clients[id].call.pace = Pace::Fast;
        self.after(Duration::ZERO, Event::Client(id, Turn::Digest));
        self.settle();
    }

    pub fn client(&self, id: usize) -> &Client {
        &self.clients[id]
    }

    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    pub fn report(&self) -> Report {
        self.node.report()
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    pub fn date(&self) -> Date {
        self.begin.plus((self.now - Instant::ZERO).as_secs())
    }

    /// Sets the clock.
    pub fn set_clock(&mut self, date: Date) {
        let passed = (self.now - Instant::ZERO).as_secs();
        self.begin = Date::from_unix(date.as_unix().saturating_sub(passed));
        self.feed(Input::Clock(date));
    }

    /// An operator removes what is stored for a URL.
    pub fn purge(&mut self, url: &str) {
        let target = Target::read(&url.parse().expect("a URL")).expect("of HTTP");
        let key = |audience| target.key(&OPEN_KEY, audience);
        self.feed(Input::Purge(Audience::ALL.map(key).to_vec()));
    }

    /// Other settings hold from now on.
    pub fn set(&mut self, settings: Settings) {
        self.feed(Input::Settings(settings));
    }

    /// The disk's writer goes on after it was stuck.
    pub fn unstick(&mut self) {
        for input in self.disk.unstick(self.now) {
            self.feed(Input::Store(input));
        }
        self.settle();
    }

    /// The disk says that nothing can be made durable.
    pub fn say_unsynced(&mut self) {
        self.feed(Input::Store(StoreInput::Synced(false)));
    }

    /// Lets everything happen that is under way.
    pub fn settle(&mut self) {
        while self.step(None) {}
        self.check_memory();
    }

    /// Lets so much time pass, and all that happens in it.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(Some(until)) {}
        self.now = until;
        self.check_memory();
    }

    /// Lets seconds pass.
    pub fn pass_seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    /// Runs until no client is served, and checks that no state is left behind.
    pub fn done(&mut self) {
        self.settle();
        let report = self.report();
        assert_eq!((report.exchanges, report.fetches), (0, 0), "something was left behind");
        assert_eq!(report.pinned_bytes, 0, "units were left in memory");
        for (id, client) in self.clients.iter().enumerate() {
            assert!(client.end.is_some(), "client {id} never got an end: {client:?}");
        }
    }

    fn after(&mut self, wait: Duration, event: Event) {
        self.events += 1;
        self.queue.insert((self.now + wait, self.events), event);
    }

    /// Lets the next thing happen, if there is one in time; timers go off only where time may pass.
    fn step(&mut self, until: Option<Instant>) -> bool {
        assert!(self.events < EVENTS_MAX, "it goes round in circles");
        let next = self.queue.first_key_value().map(|(at, _)| *at);
        let timer = self.node.poll_timeout().filter(|(at, _)| until.is_some_and(|it| *at <= it));
        if let Some((at, _)) = timer
            && next.is_none_or(|(next, _)| at <= next)
        {
            self.now = self.now.max(at);
            self.events += 1;
            self.feed(Input::Tick);
            return true;
        }
        match next {
            Some(at) if until.is_none_or(|until| at.0 <= until) => {
                let event = self.queue.remove(&at).expect("it was just seen");
                self.now = at.0;
                self.happen(event);
                true
            }
            _ => false,
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Input(input) => self.feed(input),
            Event::Client(id, turn) => self.turn(id, turn),
            Event::Origin(fetch, event) => {
                let (inputs, next) = self.origin.happen(self.now, (0, fetch), event);
                if let Some((wait, event)) = next {
                    self.after(wait, Event::Origin(fetch, event));
                }
                inputs.into_iter().for_each(|input| self.feed(input));
            }
            Event::Disk(answer) => {
                let (inputs, later) = self.disk.happen(self.now, answer);
                later.into_iter().for_each(|(wait, answer)| self.after(wait, Event::Disk(answer)));
                inputs.into_iter().for_each(|input| self.feed(Input::Store(input)));
            }
        }
    }

    fn turn(&mut self, id: usize, turn: Turn) {
        let (input, next) = self.clients[id].turn(ExchangeId(id as u64), turn);
        if let Some((wait, turn)) = next {
            self.after(wait, Event::Client(id, turn));
        }
        input.into_iter().for_each(|input| self.feed(input));
    }

    fn feed(&mut self, input: Input) {
        self.node.handle_input(self.now, input);
        while let Some(output) = self.node.poll_output() {
            self.trace.note(self.now, 0, &output);
            self.perform(output);
        }
        self.watched.extend(std::iter::from_fn(|| self.node.events().poll()));
        if self.events.is_multiple_of(32) {
            self.check_memory();
        }
    }

    fn perform(&mut self, output: Output) {
        match output {
            Output::Client(output) => self.for_client(output),
            Output::Origin(output) => self.at_origin(output),
            Output::Store(output) => {
                if let Some((wait, answer)) = self.disk.perform(output, self.now) {
                    self.after(wait, Event::Disk(answer));
                }
            }
            Output::Name(host, _) if self.resolver_is_silent => {
                let input = Input::Name(host, Looked::Unanswered);
                self.after(Duration::from_secs(2), Event::Input(input));
            }
            Output::Name(host, _) => {
                let addresses = self.names.get(&host).cloned().unwrap_or_default();
                let input = Input::Name(host, Looked::Addresses(addresses));
                self.after(Duration::ZERO, Event::Input(input));
            }
            Output::Probe(..) => {
                self.probes += 1;
                let reached = self.origin.down.is_none();
                self.after(Duration::from_millis(10), Event::Input(Input::Probed(reached)));
            }
            Output::Notice(line) => self.notices.push(line),
            Output::Link(_) | Output::Datagram(..) | Output::Broadcast(_) => {
                panic!("it is in no mesh: {output:?}")
            }
        }
    }

    fn for_client(&mut self, output: ClientOutput) {
        match output {
            ClientOutput::Respond(id, head) => {
                let expected = self.origin.expected(&head);
                self.clients[id.0 as usize].respond(*head, expected);
            }
            ClientOutput::Interim(id, status, headers) => {
                self.clients[id.0 as usize].interim(status, headers);
            }
            ClientOutput::Data(id, bytes) => {
                if let Some((wait, turn)) = self.clients[id.0 as usize].take(&bytes) {
                    self.after(wait, Event::Client(id.0 as usize, turn));
                }
            }
            ClientOutput::Finish(id) => self.clients[id.0 as usize].finish(End::Finished),
            ClientOutput::Abort(id) => self.clients[id.0 as usize].finish(End::Broken),
            ClientOutput::Tunnel(id, dial, ..) => {
                self.tunnels.push(dial);
                self.clients[id.0 as usize].finish(End::Tunnelled);
            }
            ClientOutput::Relay(id, fetch) => {
                self.relays.push(*fetch);
                self.clients[id.0 as usize].finish(End::Tunnelled);
            }
            ClientOutput::Published(..) => panic!("nobody publishes: {output:?}"),
        }
    }

    fn at_origin(&mut self, output: OriginOutput) {
        match output {
            OriginOutput::Fetch(id, fetch) => {
                let (wait, event) = self.origin.ask((0, id), *fetch);
                self.after(wait, Event::Origin(id, event));
            }
            OriginOutput::Grant(id, bytes) => {
                if let Some((wait, event)) = self.origin.grant(self.now, (0, id), bytes) {
                    self.after(wait, Event::Origin(id, event));
                }
            }
            OriginOutput::Cancel(id) => {
                self.origin.cancel((0, id));
            }
            OriginOutput::TakeIn(..) => panic!("nobody publishes: {output:?}"),
        }
    }

    fn check_memory(&self) {
        check_memory(&self.report(), self.memory_bytes);
    }
}

fn config(options: &Options) -> Config {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&options.seed.to_le_bytes());
    Config {
        name: "hearsay".into(),
        secret: OPEN_KEY,
        seed,
        memory_bytes: options.memory_bytes,
        profile: content::Profile::DEFAULT,
        object_bytes_max: options.object_bytes_max,
        undecided_bytes_max: options.undecided_bytes_max,
        allow: vec!["192.0.2.0/24".parse().expect("a prefix")],
        access: Access::default(),
        built: Date::from_unix(BEGIN.as_unix() - 1000),
        mesh: None,
        reach: options.reach.clone(),
    }
}
