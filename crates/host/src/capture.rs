//! Captures what neighbours send to each other: TCP segments of the peers' port, in batches, for
//! the engine that overhears.
//!
//! *What this is:* a thread that reads the kernel's ring buffer block by block (`ring.rs`); a
//! filter in the kernel selects the frames (`filter.rs`). A monitor interface captures all frames
//! on the air; an Ethernet interface is made promiscuous, and captures all frames on its wire. The
//! interface may appear late, vanish, and return with another index; the thread follows it. *Who
//! calls it:* the daemon opens a [`Capture`] and takes batches from the receiver. *What it never
//! does:* send, keep a frame, or wait for the engine: batches that the engine does not take in time
//! are dropped and counted. *Where to start:* `Listener::run`.

mod batch;
mod counters;
mod filter;
mod frames;
mod ring;

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use node::Overheard;
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use socket2::Socket;
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};
use wire::capture::pcap;

use crate::peers::index;
use crate::routing::all_addresses;
use batch::SegmentFilter;
use counters::{Counters, add};
pub use counters::{Counts, Ignored, PassedOver, Report};
use ring::{BLOCKS, Ring};

/// Whether frames of this kind (linux/if_arp.h) can be read.
#[must_use]
pub fn can_read(kind: u16) -> bool {
    frames::link_type(kind).is_some()
}

/// Batches that may wait for the engine: a quarter of a second, or as many bytes as the ring holds.
const BATCHES_MAX: usize = 32;
/// How often the interface and this machine's addresses are checked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What to capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A monitor interface or an Ethernet interface.
    pub interface: String,
    /// The peers' port.
    pub port: u16,
}

/// Why capturing is impossible.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// CAP_NET_RAW is missing.
    #[error(
        "capturing needs CAP_NET_RAW: run as root, or give the program that capability (see capabilities(7))"
    )]
    Permission,
    /// The kernel lacks packet sockets.
    #[error("this kernel has no packet sockets: it needs CONFIG_PACKET")]
    Kernel,
    /// Another error.
    #[error("cannot allocate the ring buffer for capturing: {0}")]
    Ring(io::Error),
}

impl From<io::Error> for CaptureError {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::PERM | Errno::ACCESS) => Self::Permission,
            Some(Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT) => Self::Kernel,
            _ => Self::Ring(error),
        }
    }
}

/// A running capture. It ends when the receiver of its batches is dropped.
#[derive(Debug)]
pub struct Capture(Arc<Counters>);

impl Capture {
    /// Opens the socket, and starts a thread that captures. Privileges are needed only here; the
    /// interface may appear later.
    ///
    /// # Errors
    /// Without the right, or memory for the ring.
    pub fn open(settings: Settings) -> Result<(Self, Receiver<Vec<Overheard>>), CaptureError> {
        Self::on(packet_socket()?.into(), settings)
    }

    /// Starts a thread that captures with a packet socket which another process has opened.
    ///
    /// # Errors
    /// Without memory for the ring.
    pub fn on(
        socket: OwnedFd,
        settings: Settings,
    ) -> Result<(Self, Receiver<Vec<Overheard>>), CaptureError> {
        let ring = Ring::of(socket.into())?;
        let (batches, receiver) = channel(BATCHES_MAX);
        let counters = Arc::<Counters>::default();
        let mut listener = Listener {
            ring,
            interface: settings.interface,
            bound: None,
            segments: SegmentFilter { port: settings.port, own: Vec::new() },
            batches,
            counters: Arc::clone(&counters),
        };
        // If the interface exists, capturing starts before this function returns.
        listener.follow();
        thread::Builder::new().name("capture".into()).spawn(move || listener.run())?;
        Ok((Self(counters), receiver))
    }

    /// The capture's counters and state.
    pub fn report(&self) -> Report {
        self.0.report()
    }
}

/// Opens a packet socket, which receives nothing yet.
pub(crate) fn packet_socket() -> io::Result<Socket> {
    ring::open()
}

/// This thread parses bytes that any station in range may have sent, so it gives up all privileges.
/// Capturing on a new interface needs none either.
fn give_up_privileges() {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    if let Err(error) = set_capabilities(None, sets).and_then(|()| set_no_new_privs(true)) {
        tracing::warn!(%error, "the capturing thread could not give up all its privileges");
    }
}

/// The state of the thread.
struct Listener {
    ring: Ring,
    interface: String,
    /// The index of the interface that is captured on.
    bound: Option<u32>,
    segments: SegmentFilter,
    batches: Sender<Vec<Overheard>>,
    counters: Arc<Counters>,
}

impl Listener {
    /// Captures until the receiver is dropped.
    fn run(mut self) {
        give_up_privileges();
        let mut looked = Instant::now();
        while !self.batches.is_closed() {
            if let Err(error) = self.ring.wait(LOOK_EVERY) {
                self.lose(&error);
            }
            self.empty();
            if looked.elapsed() >= LOOK_EVERY {
                self.follow();
                looked = Instant::now();
            }
        }
    }

    /// Handles the blocks that the kernel has filled. It goes round the ring once at most, since
    /// the kernel may refill blocks as fast as they are emptied.
    fn empty(&mut self) {
        for _ in 0..BLOCKS {
            let Some(block) = self.ring.block() else { break };
            let (frames, room) = (frames::frames(&block), frames::used(&block));
            let batch = self.segments.batch(frames, room, &self.counters);
            drop(block);
            hand_on(&self.batches, batch, &self.counters);
        }
        let dropped = self.ring.dropped().unwrap_or(0);
        add(&self.counters.dropped_frames, dropped.into());
    }

    /// Starts capturing, or starts again if the interface has changed.
    fn follow(&mut self) {
        self.segments.own = all_addresses().unwrap_or_default();
        let index = index(&self.interface).ok();
        if index.is_some() && index == self.bound {
            return;
        }
        self.bound = None;
        match self.listen(index) {
            Ok(link) => {
                self.bound = index;
                if self.counters.set_state(Ok(link)) {
                    let interface = &self.interface;
                    tracing::info!(interface, link, "overhearing");
                }
            }
            Err(trouble) => self.complain(trouble),
        }
    }

    /// Starts capturing on an interface; returns the kind of its frames, or the reason for failure.
    fn listen(&self, index: Option<u32>) -> Result<&'static str, String> {
        let name = &self.interface;
        let index = index.ok_or_else(|| {
            format!("there is no interface {name} yet: see `ip link`, or `iw dev`")
        })?;
        let kind = self.ring.listen(index).map_err(|error| self.describe(&error))?;
        let link_type = frames::link_type(kind);
        let program = link_type.and_then(|it| Some((it, filter::program(it, self.segments.port)?)));
        let (link_type, program) = program.ok_or_else(|| {
            format!("{name} shows frames of kind {kind}: give a monitor or an Ethernet interface")
        })?;
        if link_type == pcap::LINKTYPE_ETHERNET {
            self.ring.be_promiscuous(index).map_err(|error| self.describe(&error))?;
        }
        self.ring.trouble().map_err(|error| self.describe(&error))?;
        self.ring.filter(&program).map_err(|error| self.describe(&error))?;
        Ok(match link_type {
            pcap::LINKTYPE_ETHERNET => "ethernet",
            pcap::LINKTYPE_IEEE802_11 => "802.11",
            _ => "radiotap",
        })
    }

    /// The interface is down or gone.
    fn lose(&mut self, error: &io::Error) {
        self.bound = None;
        self.complain(self.describe(error));
    }

    fn describe(&self, error: &io::Error) -> String {
        let name = &self.interface;
        match (error.kind(), Errno::from_io_error(error)) {
            (ErrorKind::NetworkDown, _) => format!("{name} is down: `ip link set {name} up`"),
            (_, Some(Errno::NODEV)) => format!("{name} is gone"),
            _ => format!("cannot capture on {name}: {error}"),
        }
    }

    fn complain(&self, trouble: String) {
        if self.counters.set_state(Err(trouble.clone())) {
            tracing::warn!("nothing is overheard: {trouble}");
        }
    }
}

fn hand_on(batches: &Sender<Vec<Overheard>>, batch: Vec<Overheard>, counters: &Counters) {
    let segments = batch.len() as u64;
    if segments == 0 {
        return;
    }
    let bytes = batch.iter().map(|it| it.payload.len() as u64).sum();
    match batches.try_send(batch) {
        Ok(()) => {
            add(&counters.segments, segments);
            add(&counters.payload_bytes, bytes);
        }
        Err(TrySendError::Full(_)) => add(&counters.dropped_segments, segments),
        Err(TrySendError::Closed(_)) => {}
    }
}
