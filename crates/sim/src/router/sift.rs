//! Overhearing without repair, to compare with: a router is told of chunks that were heard whole, and of
//! nothing else.
//!
//! *Who calls it:* the router, where a scheme says so. *What it never does:* decide what becomes of a chunk:
//! the node hears it as one segment of a stream that brings nothing but whole chunks.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use bytes::Bytes;
use node::Overheard;
use node::overhear::{Output, Overhear};
use wire::Instant;
use wire::peer::{ChunkHead, Source};

/// Where the stream of whole chunks says that it is from and to: no machine has these addresses.
const FROM: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 1);
const TO: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), 1);

/// What stands before a node that shall not know of halves.
#[derive(Debug)]
pub struct Sift {
    engine: Overhear,
    seq: u32,
}

impl Sift {
    /// With so many bytes for what is not complete.
    pub fn new(budget_bytes: usize, seed: &[u8; 32]) -> Self {
        Self { engine: Overhear::new(budget_bytes, seed), seq: 0 }
    }

    /// A segment was heard: what the node is to hear instead.
    pub fn hear(&mut self, now: Instant, heard: &Overheard) -> Vec<Overheard> {
        if self.engine.poll_timeout().is_some_and(|due| due <= now) {
            self.engine.handle_timeout(now);
        }
        self.engine.handle_segment(now, &heard.as_heard());
        let mut whole = Vec::new();
        while let Some(output) = self.engine.poll_output() {
            let Output::Chunk { name, bytes } = output else { continue };
            let length = bytes.len() as u32;
            let head = ChunkHead { name, total: length, offset: 0, length, source: Source::Held };
            let payload = Bytes::from([&head.encode()[..], &bytes].concat());
            whole.push(self.segment(payload));
        }
        whole
    }

    fn segment(&mut self, payload: Bytes) -> Overheard {
        let seq = self.seq;
        self.seq = seq.wrapping_add(payload.len() as u32);
        let (from, to) = (SocketAddr::V4(FROM), SocketAddr::V4(TO));
        Overheard { from, to, seq, syn: false, fin: false, rst: false, payload }
    }
}
