//! A hundred gateways of one far end, one of which may be hostile: the far end's part of `scripts/bench siege`.
//!
//! `villages keys`: the keys of all gateways, a line each.
//! `villages ATTACK FAR-ADDRESS:PORT FAR-KEY ORIGIN-ADDRESS:PORT PID SECONDS`: honest gateways, each from an address of its own
//! (10.79.0.1 and following), ask for a page a second. Meanwhile one more gateway, or strangers, attack. Prints a row of
//! a table: what the honest ones saw, and what the far end, which is the process PID, needed.
//! Without PID and SECONDS it is the attacker alone, which the call above starts as a process of low priority: attackers
//! have processors of their own, and on this machine they take what others leave.

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, Method};
use node::uplink::{
    FlowId, MemoryUnits, Near, NearConfig, NearInput, NearOutput, PairKeys, TcpId, Worker,
};
use node::{Access, Caller, Dial, Fetch, FetchError, FetchId, OriginInput, OriginOutput};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, sleep_until};
use wire::{Instant, PublicKey};

const HONEST: u16 = 99;
/// Bytes of a page, and how many different ones each gateway asks for.
const PAGE: usize = 16 * 1024;
const PAGES: u64 = 8;
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Who waits longer gives up.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the attackers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    /// Nothing: how it is without one.
    Nothing,
    /// A gateway asks for all it may of endless content, and no client of its reads.
    Unread,
    /// … and it reads nothing from its connection.
    Deaf,
    /// A gateway has TCP connections made without end.
    Calls,
    /// A gateway connects, asks, and is gone, without end.
    Churn,
    /// A gateway sends heads that are no heads.
    Heads,
    /// Strangers hold as many connections as they get, and say nothing, or nonsense.
    Door,
}

impl Attack {
    const ALL: [Self; 7] = [
        Self::Nothing,
        Self::Unread,
        Self::Deaf,
        Self::Calls,
        Self::Churn,
        Self::Heads,
        Self::Door,
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| format!("{it:?}").to_lowercase() == name)
    }
}

#[derive(Clone, Copy)]
struct Places {
    far: SocketAddr,
    far_key: PublicKey,
    origin: SocketAddr,
}

/// What the honest gateways saw.
#[derive(Default)]
struct Seen {
    times: Vec<Duration>,
    failed: usize,
    /// Connections with the far end that broke.
    breaks: usize,
    is_counting: bool,
}

fn keys(number: u16) -> PairKeys {
    let [high, low] = number.to_be_bytes();
    let mut seed = [9; 32];
    (seed[0], seed[1]) = (high, low);
    PairKeys::new(&seed, &[high ^ low; 32])
}

/// A gateway and its connection.
struct Gateway {
    near: Near,
    worker: Worker<MemoryUnits>,
    address: IpAddr,
    places: Places,
    stream: Option<TcpStream>,
    pending: Bytes,
    is_over: bool,
    began: tokio::time::Instant,
    /// Requests under way: when they were made, and how much of them came.
    asked: HashMap<FetchId, (tokio::time::Instant, usize)>,
    fetches: u64,
    seen: Rc<RefCell<Seen>>,
    reads: bool,
    buffer: Vec<u8>,
}

impl Gateway {
    fn new(number: u16, places: Places, seen: Rc<RefCell<Seen>>) -> Self {
        let history = || MemoryUnits::new([3; 16], 10_000);
        let worker = Worker::new(history(), history());
        let (far_key, access, held) = (places.far_key, Access::default(), worker.held());
        let config = NearConfig { far_key, access, held, scheme: None };
        let near = Near::new(config, keys(number), &[5; 32], std::iter::empty());
        Self {
            near,
            worker,
            address: [10, 79, 0, number as u8 + 1].into(),
            places,
            stream: None,
            pending: Bytes::new(),
            is_over: false,
            began: tokio::time::Instant::now(),
            asked: HashMap::new(),
            fetches: 0,
            seen,
            reads: true,
            buffer: vec![0; 64 * 1024],
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed() + Duration::from_nanos(1)
    }

    fn feed(&mut self, input: NearInput) {
        self.near.handle_input(self.now(), input);
    }

    /// Carries on until this time.
    async fn run_until(&mut self, end: tokio::time::Instant) {
        loop {
            self.perform().await;
            if self.pending.is_empty() {
                self.pending = self.near.poll_transmit(self.now()).unwrap_or_default();
                if self.near.has_output() {
                    continue;
                }
            }
            if self.is_over && self.pending.is_empty() {
                (self.stream, self.is_over) = (None, false);
            }
            let wanted = self.near.poll_timeout().map(|at| self.began + at.since(Instant::ZERO));
            let until = wanted.map_or(end, |at| at.min(end));
            let (may_read, has_more) =
                (self.reads && self.near.may_receive(), !self.pending.is_empty());
            let Some(stream) = &mut self.stream else {
                sleep_until(until).await;
                if until == end {
                    return;
                }
                self.feed(NearInput::Tick);
                continue;
            };
            let (mut reader, mut writer) = stream.split();
            tokio::select! {
                read = reader.read(&mut self.buffer), if may_read => match read {
                    Ok(length) if length > 0 => {
                        let bytes = Bytes::copy_from_slice(&self.buffer[..length]);
                        self.feed(NearInput::Received(bytes));
                    }
                    _ => self.lose(),
                },
                wrote = writer.write(&self.pending), if has_more => match wrote {
                    Ok(length) => self.pending.advance(length),
                    Err(_) => self.lose(),
                },
                () = sleep_until(until) => {
                    if until == end {
                        return;
                    }
                    self.feed(NearInput::Tick);
                }
            }
        }
    }

    fn lose(&mut self) {
        (self.stream, self.pending) = (None, Bytes::new());
        self.feed(NearInput::Closed);
    }

    async fn perform(&mut self) {
        while let Some(output) = self.near.poll_output() {
            match output {
                NearOutput::Dial => {
                    let made = connect(self.address, self.places.far).await;
                    self.stream = made.ok();
                    (self.pending, self.is_over) = (Bytes::new(), false);
                    self.feed(match self.stream {
                        Some(_) => NearInput::Connected,
                        None => NearInput::Closed,
                    });
                }
                NearOutput::Hangup => {
                    self.is_over = true;
                    self.count(|seen| seen.breaks += 1);
                }
                NearOutput::Work(number, job) => {
                    let done = self.worker.work(job);
                    self.feed(NearInput::Done(number, done));
                }
                NearOutput::Origin(input) => self.hear(input),
                NearOutput::Past(id, ..) => self.end(id, Err(FetchError::NoRoom)),
                NearOutput::Tcp(..)
                | NearOutput::TcpCrossed(..)
                | NearOutput::TcpEnd(..)
                | NearOutput::Notice(_) => {}
            }
        }
    }

    fn hear(&mut self, input: OriginInput) {
        match input {
            OriginInput::Body(id, bytes) => {
                self.asked.entry(id).and_modify(|(_, length)| *length += bytes.len());
            }
            OriginInput::End(id, result) => self.end(id, result),
            OriginInput::Head(..)
            | OriginInput::Interim(..)
            | OriginInput::Silent(_)
            | OriginInput::Crossed(..) => {}
        }
    }

    fn end(&mut self, id: FetchId, result: Result<(), FetchError>) {
        let Some((since, length)) = self.asked.remove(&id) else { return };
        self.count(|seen| match result {
            Ok(()) if length == PAGE => seen.times.push(since.elapsed()),
            _ => {
                if seen.failed == 0 {
                    eprintln!("the first failure: {result:?} after {length} bytes");
                }
                seen.failed += 1;
            }
        });
    }

    fn count(&self, change: impl FnOnce(&mut Seen)) {
        let seen = &mut *self.seen.borrow_mut();
        if seen.is_counting {
            change(seen);
        }
    }

    fn ask(&mut self, path: String, client: IpAddr, granted: u64) {
        self.fetches += 1;
        let id = FetchId(self.fetches);
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_str(&self.places.origin.to_string()).expect("a host");
        headers.insert("host", host);
        let fetch = Fetch {
            dial: Dial::Address(self.places.origin),
            tls: false,
            client,
            caller: Caller::Explicit,
            method: Method::GET,
            path,
            headers,
            exchange: None,
            binding: None,
        };
        let output = OriginOutput::Fetch(id, Box::new(fetch));
        self.asked.insert(id, (tokio::time::Instant::now(), 0));
        if !self.near.takes(&output) {
            return self.end(id, Err(FetchError::NoRoom));
        }
        self.feed(NearInput::Origin(output, false));
        if granted > 0 {
            self.feed(NearInput::Origin(OriginOutput::Grant(id, granted), false));
        }
    }

    /// Gives up what takes too long.
    fn give_up(&mut self) {
        let late: Vec<_> =
            self.asked.iter().filter(|(_, (since, _))| since.elapsed() > PATIENCE).collect();
        for id in late.into_iter().map(|(id, _)| *id).collect::<Vec<_>>() {
            self.feed(NearInput::Origin(OriginOutput::Cancel(id), false));
            self.end(id, Err(FetchError::TimedOut));
        }
    }
}

async fn connect(from: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(from, 0))?;
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn honest(number: u16, places: Places, seen: Rc<RefCell<Seen>>) {
    let mut gateway = Gateway::new(number, places, seen);
    let mut next = gateway.began + Duration::from_millis(u64::from(number) * 10);
    for turn in 0.. {
        gateway.run_until(next).await;
        gateway.give_up();
        let path = format!("/{}", (u64::from(number) * PAGES + turn % PAGES) % 64);
        gateway.ask(path, [192, 168, 1, 2].into(), u64::MAX / 2);
        next += ASK_EVERY;
    }
}

async fn hostile(attack: Attack, places: Places) {
    let mut gateway = Gateway::new(HONEST, places, Rc::default());
    let client = |number: u64| IpAddr::from([192, 168, (number / 250) as u8, (number % 250) as u8]);
    for turn in 0_u64.. {
        match attack {
            Attack::Unread | Attack::Deaf if gateway.near.is_up() => {
                (0..50).for_each(|it| gateway.ask("/endless".into(), client(50 * turn + it), 0));
                gateway.reads = attack != Attack::Deaf || turn < 25;
            }
            Attack::Calls if gateway.near.is_up() => {
                for call in 0..50 {
                    let client = client(50 * turn + call);
                    if gateway.near.may_dial(places.origin, client) {
                        let id = TcpId(50 * turn + call);
                        gateway.feed(NearInput::Dial(id, places.origin, client));
                        let says = Bytes::from_static(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n");
                        gateway.feed(NearInput::Content(FlowId::Tcp(id), says));
                    }
                }
            }
            Attack::Churn if gateway.near.is_up() => {
                (0..100).for_each(|it| gateway.ask("/endless".into(), client(it), 1 << 20));
                gateway.run_until(tokio::time::Instant::now() + Duration::from_millis(20)).await;
                gateway = Gateway::new(HONEST, places, Rc::default());
            }
            Attack::Heads if gateway.near.is_up() => {
                for it in 0..50 {
                    gateway.ask(format!("/ HTTP/1.1\r\ncontent-length: {it}"), client(it), 1 << 20);
                }
            }
            _ => {}
        }
        gateway.run_until(tokio::time::Instant::now() + Duration::from_millis(50)).await;
    }
}

/// Holds 16 connections from one address, and says nonsense on half of them.
async fn stranger(number: u8, places: Places) {
    let mut held = Vec::new();
    loop {
        let Ok(mut stream) = connect([10, 79, 1, number + 1].into(), places.far).await else {
            sleep(Duration::from_millis(20)).await;
            continue;
        };
        if held.len() % 2 == 0 {
            let _ = stream.write_all(&[number; 64]).await;
        }
        held.push(stream);
        if held.len() > 16 {
            held.remove(0);
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// The most that a process needed.
#[derive(Default)]
struct Peak {
    descriptors: usize,
    threads: usize,
}

impl Peak {
    async fn watch(this: Rc<RefCell<Self>>, pid: String) {
        loop {
            let count = |what: &str| {
                std::fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, Iterator::count)
            };
            {
                let peak = &mut *this.borrow_mut();
                peak.descriptors = peak.descriptors.max(count("fd"));
                peak.threads = peak.threads.max(count("task"));
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

/// A line of /proc/PID/status, in KiB; `None` if there is no such process.
fn status_of(pid: &str, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().ok()
}

async fn assault(attack: Attack, places: Places) {
    match attack {
        Attack::Nothing => {}
        Attack::Door => {
            for number in 0..8 {
                (0..4).for_each(|_| drop(tokio::task::spawn_local(stranger(number, places))));
            }
            std::future::pending().await
        }
        _ => hostile(attack, places).await,
    }
}

/// The attacker as a process of its own.
struct Attacker(Child);

impl Attacker {
    /// From this call's first four arguments.
    fn start() -> Self {
        let itself = std::env::current_exe().expect("this program");
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(itself).args(std::env::args().skip(1).take(4));
        Self(command.spawn().expect("nice"))
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

async fn siege(attack: Attack, places: Places, pid: String, time: Duration) {
    let (seen, peak) = (Rc::<RefCell<Seen>>::default(), Rc::<RefCell<Peak>>::default());
    for number in 0..HONEST {
        tokio::task::spawn_local(honest(number, places, Rc::clone(&seen)));
    }
    tokio::task::spawn_local(Peak::watch(Rc::clone(&peak), pid.clone()));
    sleep(Duration::from_secs(5)).await;
    let attacker = Attacker::start();
    seen.borrow_mut().is_counting = true;
    sleep(time).await;
    drop(attacker);
    let mut seen = seen.borrow_mut();
    seen.times.sort_unstable();
    let at = |share: f64| match seen.times.len() {
        0 => "–".to_owned(),
        all => {
            let time = seen.times[((all - 1) as f64 * share) as usize];
            format!("{:.1}", time.as_secs_f64() * 1000.0)
        }
    };
    let resident = match status_of(&pid, "VmHWM") {
        Some(kib) => format!("{:.1}", kib / 1024.0),
        None => "gone".to_owned(),
    };
    let (name, peak) = (format!("{attack:?}").to_lowercase(), peak.borrow());
    println!(
        "| {name} | {} | {} | {} | {} | {} | {} | {resident} | {} | {} |",
        seen.times.len(),
        seen.failed,
        seen.breaks,
        at(0.5),
        at(0.99),
        at(1.0),
        peak.descriptors,
        peak.threads,
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "villages keys | villages ATTACK FAR FAR-KEY ORIGIN [PID SECONDS]";
    let [attack, far, far_key, origin, watched @ ..] = &arguments[..] else {
        assert_eq!(arguments, ["keys"], "usage: {usage}");
        (0..=HONEST).for_each(|number| println!("{}", keys(number).key()));
        return;
    };
    let places = Places {
        far: far.parse().expect("the far end's address"),
        far_key: far_key.parse().expect("the far end's key"),
        origin: origin.parse().expect("the origin's address"),
    };
    let attack = Attack::named(attack).expect("an attack");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (runtime, tasks) = (runtime.expect("a runtime"), tokio::task::LocalSet::new());
    match watched {
        [] => tasks.block_on(&runtime, assault(attack, places)),
        [pid, seconds] => {
            let time = Duration::from_secs(seconds.parse().expect("seconds"));
            tasks.block_on(&runtime, siege(attack, places, pid.clone(), time));
        }
        _ => panic!("usage: {usage}"),
    }
}
