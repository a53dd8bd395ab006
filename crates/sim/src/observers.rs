//! Routers that only listen: what overhearing makes of the frames that each station hears.
//!
//! *What this is:* [`Observers`], a tap that gives each station's frames to engines of its own, as the
//! paper's sniffers beside the routers did (Ditto, section 6.2). *Who calls it:* experiments: they watch
//! a world with [`Observers::tap`], and ask for [`Observers::finish`] in the end. *What it never does:*
//! change what is on the air. *Where to start:* [`Listening`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use node::overhear::{Options, Output, Overhear};
use serde::{Deserialize, Serialize};
use wire::capture::ieee80211::Mac;
use wire::capture::{Frame, Heard, Segment, pcap};
use wire::{ChunkId, Instant};

use crate::world::Tap;

/// More than what one transfer of a megabyte brings over some hops.
const BUDGET_BYTES: usize = 8 << 20;
/// What engines hash with: nobody attacks them here, and runs must be the same.
const SEED: [u8; 32] = *b"observers of a simulated medium.";
/// The end of all time.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// How observers listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// As the daemon does.
    Whole,
    /// As the paper's: of no use is what a stream brings of a chunk whose first packet was missed there.
    First,
    /// The same, and each stream for itself: no chunk is made of several.
    Alone,
}

impl Listening {
    /// All, by their places.
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

/// What one observer made of what it heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Chunks that are whole, each counted once.
    pub chunks: usize,
    /// Payload of TCP that was heard, repetitions of a frame not counted.
    pub payload_bytes: u64,
    /// Bytes that were kept, and made no chunk.
    pub unused_bytes: u64,
}

/// All stations, listening.
#[derive(Clone, Debug)]
pub struct Observers(Rc<RefCell<Vec<Observer>>>);

/// One station.
#[derive(Debug)]
struct Observer {
    /// The latest frame of each neighbour: drivers drop repetitions by its number.
    latest: BTreeMap<Mac, u16>,
    listeners: [Listener; Listening::ALL.len()],
}

/// An engine, and what it gave out.
#[derive(Debug)]
struct Listener {
    engine: Overhear,
    chunks: BTreeSet<ChunkId>,
}

impl Observers {
    /// One for each station.
    pub fn new(stations: usize) -> Self {
        let observer =
            || Observer { latest: BTreeMap::new(), listeners: Listening::ALL.map(Listener::new) };
        Self(Rc::new(RefCell::new((0..stations).map(|_| observer()).collect())))
    }

    /// For [`World::watch`](crate::world::World::watch).
    pub fn tap(&self) -> Box<dyn Tap> {
        Box::new(self.clone())
    }

    /// What each station has made of all that it heard, in each way of listening; to be asked when nothing
    /// more is on the air.
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
        // What waits for a head has waited in vain.
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
