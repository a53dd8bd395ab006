//! Peers that ask all they may: the attack of `scripts/bench siege` on a router's port for peers.
//!
//! `strangers ADDRESS:PORT URL`: 64 nodes, each with an identity of its own, dial from eight addresses
//! (10.77.1.2 and following). The even ones ask for 128 objects below URL, which no origin serves, with as
//! many bytes of header fields as they may; they ask anew for what is refused. The odd ones ask for 128
//! objects that the router has or can have, want all units of them, and take none. Runs until it is ended.

use node::testing::{Event, Peers};
use node::{LinkId, LinkInput, LinkOutput, MeshConfig};
use std::collections::HashMap;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::sleep;
use wire::peer::{Get, Hello, Message, Request, Want};
use wire::{Instant, NodeId};

const STRANGERS: u8 = 64;
const REQUESTS: u32 = 128;
/// What a socket takes at one time.
const ROOM: u64 = 64 * 1024;

struct Stranger {
    number: u8,
    peers: Peers,
    links: HashMap<LinkId, Link>,
    victim: SocketAddr,
    url: String,
    began: std::time::Instant,
    asked: u32,
}

struct Link {
    stream: TcpStream,
    queue: VecDeque<bytes::Bytes>,
    granted: u64,
    is_control: bool,
}

impl Stranger {
    fn new(number: u8, victim: SocketAddr, url: String) -> Self {
        let config = MeshConfig {
            selection: wire::Selection::PhThcp,
            search: node::SearchConfig::default(),
            squares: node::Squares::default(),
            identity: [number + 1; 32],
            key: None,
            gateways: Vec::new(),
            port: victim.port(),
            overhear: None,
        };
        let profile = content::Profile::DEFAULT.id;
        let hello = Hello { name: format!("stranger-{number}"), profile, ..Hello::default() };
        let peers = Peers::new(&config, hello, [number + 101; 32]);
        let began = std::time::Instant::now();
        Self { number, peers, links: HashMap::new(), victim, url, began, asked: 0 }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed()
    }

    async fn run(mut self) {
        let dials = Duration::from_secs(1);
        let mut dialled = None;
        loop {
            let now = self.now();
            if self.peers.count() == 0 && dialled.is_none_or(|at| now - at > dials) {
                dialled = Some(now);
                self.peers.dial(now, self.victim);
            }
            self.peers.handle_timeout(now);
            self.read_and_write();
            while let Some(event) = self.peers.poll_event() {
                self.hear(event);
            }
            while let Some(output) = self.peers.poll_output() {
                self.perform(output).await;
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn perform(&mut self, output: LinkOutput) {
        match output {
            LinkOutput::Connect(id, to) => {
                let is_control = self.links.is_empty();
                let input = match self.connect(to).await {
                    Ok(stream) => {
                        let (queue, granted) = (VecDeque::new(), 0);
                        self.links.insert(id, Link { stream, queue, granted, is_control });
                        LinkInput::Connected(id)
                    }
                    Err(_) => LinkInput::Closed(id),
                };
                self.peers.handle(self.now(), input);
                self.peers.handle(self.now(), LinkInput::Room(id, ROOM));
            }
            LinkOutput::Write(id, bytes) => {
                self.links.entry(id).and_modify(|link| link.queue.push_back(bytes));
            }
            LinkOutput::Receive(id, bytes) => {
                self.links.entry(id).and_modify(|link| link.granted += bytes);
            }
            LinkOutput::ReadThreshold(..) | LinkOutput::BulkData(_) => {}
            LinkOutput::Hangup(id) => drop(self.links.remove(&id)),
        }
    }

    async fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new([10, 77, 1, 2 + self.number % 8].into(), 0))?;
        socket.connect(to).await
    }

    /// Odd ones read nothing of what comes for units.
    fn read_and_write(&mut self) {
        let mut inputs = Vec::new();
        for (id, link) in &mut self.links {
            while let Some(front) = link.queue.front_mut() {
                let Ok(written) = link.stream.try_write(front) else { break };
                inputs.push(LinkInput::Room(*id, written as u64));
                let _ = front.split_to(written);
                if front.is_empty() {
                    link.queue.pop_front();
                }
            }
            if link.granted == 0 || (!link.is_control && self.number % 2 == 1) {
                continue;
            }
            let mut buffer = vec![0; usize::try_from(link.granted.min(ROOM)).unwrap_or(0)];
            match link.stream.try_read(&mut buffer) {
                Ok(0) => inputs.push(LinkInput::Closed(*id)),
                Ok(length) => {
                    link.granted -= length as u64;
                    buffer.truncate(length);
                    inputs.push(LinkInput::Received(*id, buffer.into()));
                }
                Err(_) => {}
            }
        }
        for input in inputs {
            if let LinkInput::Closed(id) = input {
                self.links.remove(&id);
            }
            self.peers.handle(self.now(), input);
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Up { peer, .. } => {
                self.peers.open_data(self.now(), peer);
                (0..REQUESTS).for_each(|_| self.ask(peer));
            }
            Event::Message(peer, Message::End(..)) => self.ask(peer),
            Event::Message(peer, Message::Segment(request, _, bytes)) => {
                let Ok(segment) = content::Segment::decode(&bytes) else { return };
                let want = |it: &content::Entry| Want {
                    name: it.id,
                    length: it.length,
                    missing: Vec::new(),
                };
                let wants: Vec<Want> = segment.entries.iter().map(want).collect();
                for wants in wants.chunks(Message::WANTS_MAX) {
                    let want = Message::Want(request, wants.to_vec());
                    self.peers.send(self.now(), peer, &want);
                }
            }
            _ => {}
        }
    }

    fn ask(&mut self, peer: NodeId) {
        // As fast as what is said can be taken, and no faster.
        if self.peers.backlog(peer) > 512 * 1024 {
            return;
        }
        self.asked += 1;
        let (is_even, number) = (self.number.is_multiple_of(2), self.asked);
        let value = vec![b'x'; if is_even { 5000 } else { 10 }];
        let fields = (0..3).map(|it| (format!("x-{it}"), value.clone())).collect();
        let uri = match is_even {
            true => format!("{}/never/{}/{number}", self.url, self.number),
            false => format!("{}/{}", self.url, number % REQUESTS),
        };
        let ask = Get {
            request: Request(number),
            hops: 8,
            merge: true,
            per_hop: true,
            manifest_credit: 1 << 30,
            credit: 64 * 1024,
            uri,
            fields,
            ..Get::default()
        };
        self.peers.send(self.now(), peer, &Message::Get(Box::new(ask)));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [victim, url] = &arguments[..] else { panic!("strangers ADDRESS:PORT URL") };
    let victim = victim.parse().expect("an address and a port");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let local = tokio::task::LocalSet::new();
    for number in 0..STRANGERS {
        local.spawn_local(Stranger::new(number, victim, url.clone()).run());
    }
    local.block_on(&runtime.expect("a runtime"), std::future::pending::<()>());
}
