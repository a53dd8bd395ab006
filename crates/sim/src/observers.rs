//! Stations that only listen: what the overhearing engine makes of the frames that each station receives.
//!
//! *What this is:* [`Observers`], a tap that gives each station's frames to engines of its own, like the
//! paper's sniffers beside the routers (Ditto, section 6.2). *Who calls it:* experiments: they watch a world
//! through [`Observers::tap`], and call [`Observers::finish`] at the end. *What it never does:* change what
//! is on the air. *Where to start:* [`Listening`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use node::overhear::{Options, Output, Overhear};
use serde::{Deserialize, Serialize};
use wire::capture::ieee80211::Mac;
use wire::capture::{Frame, Heard, Segment, pcap};
use wire::{ChunkId, Instant};

use crate::world::Tap;

/// More than one transfer of a megabyte adds over several hops.
const BUDGET_BYTES: usize = 8 << 20;
/// The key of the engines' hash tables. It is fixed because runs must repeat, and no attacker sends traffic
/// here.
const SEED: [u8; 32] = *b"observers of a simulated medium.";
/// Later than any event.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// How an observer reassembles chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// Like the daemon.
    Whole,
    /// Like the paper's observers: if the first packet of a chunk was missed in a TCP stream, the rest of
    /// that chunk in that stream is not used.
    First,
    /// Like `First`, and no chunk is joined from several streams.
    Alone,
}

impl Listening {
    /// All ways, in the order of the results.
    pub const ALL: [Self; 3] = [Self::Whole, Self::First, Self::Alone];

    fn options(self) -> Options {
        match self {
            Self::Whole => Options::default(),
            Self::First => Options { guesses_heads: false, ..Options::default() },
            Self::Alone => {
                Options { joins_streams: false, guesses_heads: false, ..Options::default() }
            }
        }
    }
}

/// What one observer has reconstructed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Complete chunks, each counted once.
    pub chunks: usize,
    /// TCP payload received, without repeated frames.
    pub payload_bytes: u64,
    /// Bytes that were kept but completed no chunk.
    pub unused_bytes: u64,
}

/// The observers of all stations.
#[derive(Clone, Debug)]
pub struct Observers(Rc<RefCell<Vec<Observer>>>);

/// The observer of one station.
#[derive(Debug)]
struct Observer {
    /// The sequence number of each neighbour's latest frame. As drivers do, a repeated frame is dropped by
    /// it.
    latest: BTreeMap<Mac, u16>,
    listeners: [Listener; Listening::ALL.len()],
}

/// An engine, and the chunks that it has reconstructed.
#[derive(Debug)]
struct Listener {
    engine: Overhear,
    chunks: BTreeSet<ChunkId>,
}

impl Observers {
    /// Observers for this many stations.
    pub fn new(stations: usize) -> Self {
        let observer =
            || Observer { latest: BTreeMap::new(), listeners: Listening::ALL.map(Listener::new) };
        Self(Rc::new(RefCell::new((0..stations).map(|_| observer()).collect())))
    }

    /// The tap for [`World::watch`](crate::world::World::watch).
    pub fn tap(&self) -> Box<dyn Tap> {
        Box::new(self.clone())
    }

    /// What each station has reconstructed, in each way of listening. Call it when nothing more is on the
    /// air.
    pub fn finish(&self) -> Vec<[Made; Listening::ALL.len()]> {
        let mut observers = self.0.borrow_mut();
        observers.iter_mut().map(|it| it.listeners.each_mut().map(Listener::made)).collect()
    }
}

impl Tap for Observers {
    fn frame(&mut self, station: usize, at: Instant, frame: &[u8]) {
        let link_type = pcap::LINKTYPE_IEEE802_11_RADIOTAP;
        let frame = Frame { link_type, bytes: frame, length: frame.len() };
        self.0.borrow_mut()[station].hear(at, Heard::new(frame));
    }
}

impl Observer {
    fn hear(&mut self, at: Instant, heard: Heard<'_>) {
        let Some(header) = &heard.header else { return };
        let latest = self.latest.insert(header.transmitter, header.sequence);
        if latest == Some(header.sequence) {
            return;
        }
        for segment in heard.flatten() {
            self.listeners.iter_mut().for_each(|it| it.hear(at, &segment));
        }
    }
}

impl Listener {
    fn new(listening: Listening) -> Self {
        let engine = Overhear::with_options(BUDGET_BYTES, &SEED, listening.options());
        Self { engine, chunks: BTreeSet::new() }
    }

    fn hear(&mut self, at: Instant, segment: &Segment<'_>) {
        if self.engine.poll_timeout().is_some_and(|due| due <= at) {
            self.engine.handle_timeout(at);
        }
        self.engine.handle_segment(at, segment);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            if let Output::Chunk { name, .. } = output {
                self.chunks.insert(name);
            }
        }
    }

    fn made(&mut self) -> Made {
        // Lets the engine give up what still waits for a chunk's head.
        self.engine.handle_timeout(NEVER);
        self.drain();
        let it = self.engine.counters();
        Made {
            chunks: self.chunks.len(),
            payload_bytes: it.payload_bytes,
            unused_bytes: it.unused_bytes() - it.duplicate_bytes,
        }
    }
}
