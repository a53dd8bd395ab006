//! The state of one connected peer.

use super::PeerInfo;
use super::connecting::Them;
use crate::input::LinkId;
use crate::noise::RunKey;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::peer::Hello;
use wire::{Instant, NodeId, Token};

/// The most tokens kept for one peer, in each direction. One more makes the oldest void.
const TOKENS_MAX: usize = 4;
/// The most addresses kept for one peer. One more replaces the oldest, but never that of the control
/// connection.
const ADDRESSES_MAX: usize = 8;

/// A peer: what it has said, its connections and its counters.
pub struct Peer {
    pub run_key: RunKey,
    pub hello: Hello,
    /// The control connection.
    pub control: LinkId,
    /// The address of the control connection's other end.
    pub address: SocketAddr,
    /// The address at which the peer accepts connections.
    pub listens: SocketAddr,
    /// All known addresses of the peer, in canonical form; the control connection's is the first.
    pub addresses: Vec<IpAddr>,
    pub since: Instant,
    /// When bytes last arrived from the peer.
    pub heard: Instant,
    /// When the peer last sent a message that is for the caller, or bytes of a chunk frame.
    pub gave: Instant,
    /// When a message was sent that the peer must react to, if it has been silent since.
    pub asked: Option<Instant>,
    /// When the peer was pinged, if it has been silent since.
    pub pinged: Option<Instant>,
    /// When [`Peers::doubt`](super::Peers::doubt) pinged the peer, if it has been silent since.
    pub doubted: Option<Instant>,
    /// The number of the oldest ping without a pong, and when the ping was sent.
    pub ping: Option<(u64, Instant)>,
    /// The recent round-trip time of pings; zero before the first pong.
    pub answers_in: Duration,
    /// Tokens with which we may open data connections to the peer.
    pub tokens: Tokens,
    /// The token of the last dial, until a chunk arrives over its connection. It may be used again if
    /// there is no other: had the peer received it, the peer would have sent a new one.
    pub tried: Option<Token>,
    /// Tokens with which the peer may open data connections to us.
    pub issued: Tokens,
    /// The data connection over which the peer sends chunks, or our dial for it.
    pub data_in: Option<LinkId>,
    /// That data connection is wanted, but its dial must wait for `data_pause` or for a token.
    pub data_wanted: bool,
    /// Until this time, no data connection is dialled.
    pub data_pause: Option<Instant>,
    /// The data connection over which we send chunks to the peer.
    pub data_out: Option<LinkId>,
    /// Whether the caller waits for room on `data_out`.
    pub starved: bool,
    /// When the peer last sent bytes of a unit.
    pub gave_unit: Option<Instant>,
    /// When the peer was last sent an answer, or bytes of a unit.
    pub took: Option<Instant>,
    pub units_in: u64,
    pub units_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl Peer {
    /// A peer whose control connection has just been accepted by both sides.
    pub fn new(
        now: Instant,
        them: Them,
        control: LinkId,
        (address, listens): (SocketAddr, SocketAddr),
        issued: Token,
    ) -> Self {
        let (mut tokens, mut ours) = (Tokens::default(), Tokens::default());
        tokens.add(them.token);
        ours.add(issued);
        Self {
            run_key: them.run_key,
            hello: them.hello,
            control,
            address,
            listens,
            addresses: vec![address.ip().to_canonical()],
            since: now,
            heard: now,
            gave: now,
            asked: None,
            pinged: None,
            doubted: None,
            ping: None,
            answers_in: Duration::ZERO,
            tokens,
            tried: None,
            issued: ours,
            data_in: None,
            data_wanted: false,
            data_pause: None,
            data_out: None,
            starved: false,
            gave_unit: None,
            took: None,
            units_in: 0,
            units_out: 0,
            bytes_in: 0,
            bytes_out: 0,
        }
    }

    /// Adds an address of the peer.
    pub fn is_also_at(&mut self, address: IpAddr) {
        let address = address.to_canonical();
        if !self.addresses.contains(&address) {
            if self.addresses.len() == ADDRESSES_MAX {
                self.addresses.remove(1);
            }
            self.addresses.push(address);
        }
    }

    /// Bytes have arrived from the peer, so it is alive.
    pub fn is_heard(&mut self, now: Instant) {
        self.heard = now;
        self.asked = None;
        self.pinged = None;
        self.doubted = None;
    }

    /// What people are shown of the peer.
    pub fn info(&self, id: NodeId, now: Instant) -> PeerInfo {
        PeerInfo {
            id,
            address: self.address.ip().to_canonical(),
            hello: self.hello.clone(),
            units_in_bytes: self.units_in,
            units_out_bytes: self.units_out,
            in_bytes: self.bytes_in,
            out_bytes: self.bytes_out,
            since_seconds: (now - self.since).as_secs(),
        }
    }
}

/// A few tokens, the oldest first.
#[derive(Default)]
pub struct Tokens(VecDeque<Token>);

impl Tokens {
    /// Adds a token; if there are too many, the oldest is dropped.
    pub fn add(&mut self, token: Token) {
        if self.0.len() == TOKENS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(token);
    }

    /// Takes the oldest token.
    pub fn draw(&mut self) -> Option<Token> {
        self.0.pop_front()
    }

    /// Whether the token is one of these; if so, it is removed, because it opens one connection only.
    pub fn redeem(&mut self, token: &Token) -> bool {
        let place = self.0.iter().position(|it| it == token);
        place.is_some_and(|place| self.0.remove(place).is_some())
    }
}
