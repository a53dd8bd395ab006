//! One router between a sender, router 0, and a receiver, router 9, over routers 1, 2 and 3; the engine is router 2's.

use std::time::Duration;

use wire::Instant;

use super::super::flow::Flow;
use super::super::{Config, Output, Recover};
use super::{Plain, end, packet, router, segment};
use crate::{Message, Next, Outcome, Tcp, Verdict};

pub(super) const ISS: u32 = u32::MAX - 2500;
pub(super) const MSS: u32 = 1000;

pub(super) struct Middle {
    pub(super) engine: Recover<Plain>,
    pub(super) now: Instant,
    /// Routing's next hop of data.
    pub(super) hop: usize,
    pub(super) other: Option<usize>,
    /// Routing's next hop of acknowledgements.
    pub(super) back: usize,
    /// Packets handed to the MAC.
    pub(super) left: Vec<(Plain, usize)>,
    pub(super) messages: Vec<Message>,
}

/// Where number `n` of the data begins.
pub(super) fn at(n: u32) -> u32 {
    ISS.wrapping_add(n * MSS)
}

/// Number `n` of the data.
pub(super) fn data(n: u32) -> Plain {
    packet(end(0), end(9), segment(at(n), MSS, 77))
}

/// Number `n` of the data of router 1.
pub(super) fn other(n: u32) -> Plain {
    packet(end(1), end(9), segment(at(n), MSS, 77))
}

/// An acknowledgement of the data before number `n`.
pub(super) fn ack(n: u32) -> Plain {
    packet(end(9), end(0), segment(77, 0, at(n)))
}

/// The same, which names data from one number to before another as received.
pub(super) fn ack_with(n: u32, blocks: &[(u32, u32)]) -> Plain {
    with(ack(n), |tcp| blocks.iter().for_each(|(from, to)| tcp.sack.push((at(*from), at(*to)))))
}

pub(super) fn with(base: Plain, change: impl FnOnce(&mut Tcp)) -> Plain {
    let mut tcp = *base.0.tcp().unwrap();
    change(&mut tcp);
    packet(base.0.from, base.0.to, tcp)
}

impl Middle {
    pub(super) fn new(config: Config) -> Self {
        Self {
            engine: Recover::new(router(2), config),
            now: Instant::from_nanos(1_000_000_000),
            hop: 3,
            other: None,
            back: 1,
            left: Vec::new(),
            messages: Vec::new(),
        }
    }

    pub(super) fn drain(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Send { packet, next } => {
                    let hop = (0..10).find(|it| router(*it) == next).unwrap();
                    self.left.push((packet, hop));
                }
                Output::Originate { to, message } => {
                    let Message::Notice(notice) = message else { panic!("{message:?}") };
                    assert_eq!(to, notice.from.ip());
                    self.messages.push(message);
                }
            }
        }
    }

    /// A packet comes; it goes on unless recovery says no. Returns whether it went on.
    pub(super) fn forward(&mut self, it: Plain) -> bool {
        let pass = self.engine.incoming(self.now, &it.0);
        if pass {
            let hop = if it.0.to == end(9) { self.hop } else { self.back };
            let next = Next { hop: router(hop), other: self.other.map(router) };
            self.engine.outgoing(self.now, &it.0, it, next);
        }
        self.drain();
        pass
    }

    pub(super) fn verdict(&mut self, it: Plain, hop: usize, outcome: Outcome) {
        let verdict = Verdict { outcome, tries: 1 };
        self.engine.verdict(self.now, &it.0, it, router(hop), verdict);
        self.drain();
    }

    /// Data goes on and leaves the MAC.
    pub(super) fn pass(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for n in numbers {
            assert!(self.forward(data(n)));
            self.wait(2);
            self.verdict(data(n), self.hop, Outcome::Acked);
        }
        self.left.clear();
    }

    pub(super) fn wait(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
        self.engine.handle_timeout(self.now);
        self.drain();
    }

    pub(super) fn overhear(&mut self, it: Plain, from: usize) {
        self.engine.overheard(self.now, &it.0, router(from));
        self.drain();
    }

    /// The state of the data's flow.
    pub(super) fn flow(&self) -> &Flow<Plain> {
        self.engine.table.get(self.engine.table.find((end(0), end(9))).unwrap())
    }

    /// The numbers of the data from this router that is cached.
    pub(super) fn cached(&self, from: usize) -> Vec<u32> {
        let slot = self.engine.table.find((end(from), end(9))).unwrap();
        let cache = &self.engine.table.get(slot).cache;
        cache.iter().map(|it| it.seq.wrapping_sub(ISS) / MSS).collect()
    }

    /// Takes the packets that have left since the last call.
    pub(super) fn took(&mut self) -> Vec<(Plain, usize)> {
        std::mem::take(&mut self.left)
    }
}
