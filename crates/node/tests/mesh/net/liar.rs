//! A peer that speaks the protocol well and says what is not so.

use super::ground::{PORT, address};
use bytes::Bytes;
use node::testing::{Event, Peers};
use node::{LinkInput, LinkOutput, MeshConfig};
use std::collections::VecDeque;
use std::net::SocketAddr;
use wire::peer::{ChunkHead, Gateway, Hello, Message};
use wire::{Instant, NodeId};

/// What a liar does with what it hears.
pub type Play = Box<dyn FnMut(Instant, &mut Peers, Event)>;

/// Speaks with peers as nodes do, and leaves the rest to a play.
pub struct Liar {
    pub peers: Peers,
    play: Play,
}

impl Liar {
    pub fn new(config: &MeshConfig, seed: [u8; 32], play: Play) -> Self {
        let profile = content::Profile::DEFAULT.id;
        let name = "liar".into();
        let hello = Hello { name, profile, gateway: Gateway::At(address(0)), ..Hello::default() };
        Self { peers: Peers::new(config, hello, seed), play }
    }

    pub fn handle(&mut self, now: Instant, input: LinkInput) {
        self.peers.handle(now, input);
        self.act(now);
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.peers.handle_timeout(now);
        self.act(now);
    }

    fn act(&mut self, now: Instant) {
        while let Some(event) = self.peers.poll_event() {
            (self.play)(now, &mut self.peers, event);
        }
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.peers.poll_timeout()
    }

    pub fn poll_output(&mut self) -> Option<LinkOutput> {
        self.peers.poll_output()
    }
}

/// One thing that is said.
#[derive(Clone, Debug)]
pub enum Said {
    Message(Message),
    Chunk(ChunkHead, Bytes),
}

/// What is to be said to one asker: chunks wait for room.
#[derive(Default)]
struct Down {
    asker: Option<NodeId>,
    chunks: VecDeque<(ChunkHead, Bytes)>,
}

impl Down {
    fn say(&mut self, now: Instant, peers: &mut Peers, said: Vec<Said>) {
        let Some(asker) = self.asker else { return };
        for said in said {
            match said {
                Said::Message(message) => {
                    peers.send(now, asker, &message);
                }
                Said::Chunk(head, bytes) => self.chunks.push_back((head, bytes)),
            }
        }
        while peers.chunk_room(asker) > 0
            && let Some((head, bytes)) = self.chunks.pop_front()
        {
            peers.send_chunk(now, asker, head, bytes);
        }
    }
}

/// Stands between one asker and the gateway, and gives on what each says to the other; both may be
/// changed, kept back, or added to.
pub struct Relay<U, T> {
    /// What goes up instead of a message.
    up: U,
    /// What comes down instead of what the gateway said.
    tamper: T,
    gateway: Option<NodeId>,
    /// For the gateway, until it is there.
    waiting: Vec<Message>,
    down: Down,
}

impl<T: FnMut(Said) -> Vec<Said> + 'static> Relay<fn(Message) -> Vec<Message>, T> {
    pub fn play(tamper: T) -> Play {
        Relay::both(|message| vec![message], tamper)
    }
}

impl<U, T> Relay<U, T>
where
    U: FnMut(Message) -> Vec<Message> + 'static,
    T: FnMut(Said) -> Vec<Said> + 'static,
{
    pub fn both(up: U, tamper: T) -> Play {
        let (waiting, down) = (Vec::new(), Down::default());
        let mut relay = Self { up, tamper, gateway: None, waiting, down };
        Box::new(move |now, peers, event| relay.hear(now, peers, event))
    }

    fn hear(&mut self, now: Instant, peers: &mut Peers, event: Event) {
        let mut said = Vec::new();
        match event {
            Event::Up { peer, dialled: Some(_) } => {
                self.gateway = Some(peer);
                peers.open_data(now, peer);
                for message in self.waiting.drain(..) {
                    peers.send(now, peer, &message);
                }
            }
            Event::Message(peer, message) if self.gateway == Some(peer) => {
                said = (self.tamper)(Said::Message(message));
            }
            Event::Message(peer, message) => {
                self.down.asker = Some(peer);
                self.give_up(now, peers, message);
            }
            Event::Chunk(_, head, bytes) => said = (self.tamper)(Said::Chunk(head, bytes)),
            Event::Down(peer, _) if self.gateway == Some(peer) => self.gateway = None,
            _ => {}
        }
        self.down.say(now, peers, said);
    }

    /// Gives a message on to the gateway.
    fn give_up(&mut self, now: Instant, peers: &mut Peers, mut message: Message) {
        if let Message::Get(ask) = &mut message {
            ask.visited.push(peers.own_id());
            ask.hops = ask.hops.saturating_sub(1);
        }
        for message in (self.up)(message) {
            if let Some(gateway) = self.gateway {
                peers.send(now, gateway, &message);
            } else {
                self.waiting.push(message);
                peers.dial(now, SocketAddr::new(address(0), PORT));
            }
        }
    }
}

/// Answers by itself what it is asked: to each message, and the peers that sign for it, this is said.
pub fn author(mut answer: impl FnMut(&Peers, Message) -> Vec<Said> + 'static) -> Play {
    let mut down = Down::default();
    Box::new(move |now, peers, event| {
        let mut said = Vec::new();
        if let Event::Message(peer, message) = event {
            down.asker = Some(peer);
            said = answer(peers, message);
        }
        down.say(now, peers, said);
    })
}
