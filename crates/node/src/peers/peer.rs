//! One peer that is there.

use super::PeerInfo;
use super::connecting::Them;
use super::noise::RunKey;
use crate::input::LinkId;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::peer::Hello;
use wire::{Instant, NodeId, Token};

/// The most tokens of one peer, on either side; then the oldest is void.
const TOKENS_MAX: usize = 4;
/// The most addresses that one peer is known by; then the oldest but the connection's is forgotten.
const ADDRESSES_MAX: usize = 8;

/// What is known of a peer, and its connections.
pub struct Peer {
    pub run_key: RunKey,
    pub hello: Hello,
    /// The control connection.
    pub control: LinkId,
    /// The other end of it.
    pub address: SocketAddr,
    /// Where its port for peers is.
    pub listens: SocketAddr,
    /// Where it is, in canonical form; first the control connection's.
    pub addresses: Vec<IpAddr>,
    pub since: Instant,
    /// When something came from it last.
    pub heard: Instant,
    /// When it last said something for the caller, or sent anything of a chunk frame.
    pub gave: Instant,
    /// Since when it has had something to answer, if it has not been heard since.
    pub asked: Option<Instant>,
    /// When it was pinged, if it has not been heard since.
    pub pinged: Option<Instant>,
    /// When it was asked for a sign of life because somebody waits for it, if it has not been heard since.
    pub doubted: Option<Instant>,
    /// The ping whose answer is waited for, and when it was said.
    pub ping: Option<(u64, Instant)>,
    /// How long answers to pings take, lately; nothing, if none was answered yet.
    pub answers_in: Duration,
    /// What we may open data connections with.
    pub tokens: Tokens,
    /// The token that was tried last, until a chunk has come for it. It may be tried again when there
    /// is no other: if it had arrived, there would be.
    pub tried: Option<Token>,
    /// What it may open data connections with.
    pub issued: Tokens,
    /// The data connection by which chunks come, or a dial for it.
    pub data_in: Option<LinkId>,
    /// One is wanted, and cannot be dialled before `data_pause` or a token.
    pub data_wanted: bool,
    /// None is dialled before this.
    pub data_pause: Option<Instant>,
    /// The data connection that chunks go to.
    pub data_out: Option<LinkId>,
    /// The caller waits for room on it.
    pub starved: bool,
    /// When it last gave bytes of a unit.
    pub gave_unit: Option<Instant>,
    /// When it was last given an answer, or bytes of a unit.
    pub took: Option<Instant>,
    pub units_in: u64,
    pub units_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl Peer {
    /// One that has just proven who it is, on a link to there.
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

    /// It is known by this address too.
    pub fn is_also_at(&mut self, address: IpAddr) {
        let address = address.to_canonical();
        if !self.addresses.contains(&address) {
            if self.addresses.len() == ADDRESSES_MAX {
                self.addresses.remove(1);
            }
            self.addresses.push(address);
        }
    }

    /// Something has come from it.
    pub fn is_heard(&mut self, now: Instant) {
        self.heard = now;
        self.asked = None;
        self.pinged = None;
        self.doubted = None;
    }

    /// For people.
    pub fn info(&self, id: NodeId, now: Instant) -> PeerInfo {
        PeerInfo {
            id,
            name: self.hello.name.clone(),
            address: self.address.ip().to_canonical(),
            gateway: self.hello.gateway,
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
    /// Adds one; the oldest goes if there are too many.
    pub fn add(&mut self, token: Token) {
        if self.0.len() == TOKENS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(token);
    }

    /// The oldest, which is void from now on.
    pub fn draw(&mut self) -> Option<Token> {
        self.0.pop_front()
    }

    /// Whether it is one of them; if so, it is void from now on.
    pub fn redeem(&mut self, token: &Token) -> bool {
        let place = self.0.iter().position(|it| it == token);
        place.is_some_and(|place| self.0.remove(place).is_some())
    }
}
