//! The uplink's pair: what has crossed the slow link once does not cross it again.
//!
//! *What it is:* two engines, without sockets, clocks, threads or files. [`Near`] runs on the gateway,
//! between the node's requests to origins and the driver; [`Far`] runs on a server beyond the uplink, and
//! asks the origins. Each of the two sends in one direction and receives in the other, and is S (sender)
//! for the one and R (receiver) for the other (Wanax §3). *Who calls it:* a driver: it gives one input,
//! drains `poll_output`, and takes bytes by `poll_transmit` whenever the connection can send some more.
//! *What it never does:* judge a response, cache one, or know a mesh key. *Where to start:* `pair.rs`, what
//! both ends do; `sender.rs` and `receiver.rs`, the two directions; `work.rs`, what a thread of its own
//! does; `near.rs` and `far.rs`.
//!
//! *Words:* a **unit** is a chunk of content, about 8 KiB. The **history** of a direction is the sequence of
//! units in the order in which they crossed; both ends keep it, and a unit's **position** counts from its
//! beginning. A **span** is a run of adjacent positions. A **batch** is the next part of a flow: spans, and
//! the **literals**, which are units that cross for the first time. What crosses **uncut** is not kept. *Sources:* Wanax (Ihm, Park, Pai 2010)
//! §3.1 for the channels; decision 0031 for what replaces the names of chunks.

pub(crate) mod codec;
pub(crate) mod control;
mod dictionary;
mod far;
mod features;
pub(crate) mod fetch;
mod halves;
mod index;
pub(crate) mod messages;
mod near;
mod pair;
mod receiver;
mod report;
mod schedule;
mod sender;
pub(crate) mod session;
pub(crate) mod tcp;
pub(crate) mod wanax;
mod work;

pub use far::{Far, FarConfig, FarInput, FarOutput};
pub use messages::Message;
pub use near::{Near, NearConfig, NearInput, NearOutput};
pub use pair::State;
pub use report::PairReport;
pub use session::{Ended, Guest, PairKeys, Refused};
pub use tcp::Reach;
pub use wanax::{Kind, Published, Unpublished};
pub use work::{Direction, Done, Job, MemoryUnits, Units, Worker};

use crate::input::FetchId;
use serde::Serialize;
use std::net::SocketAddr;

/// A TCP flow that goes by the pair; the near end's driver numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpId(pub u64);

/// Whose content a flow of the pair carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowId {
    /// A request to an origin, and its response.
    Fetch(FetchId),
    /// A client's TCP connection.
    Tcp(TcpId),
}

impl FlowId {
    /// The flow's number in messages.
    const fn number(self) -> u64 {
        match self {
            Self::Fetch(FetchId(id)) => id << 1,
            Self::Tcp(TcpId(id)) => id << 1 | 1,
        }
    }

    /// The flow of a number.
    const fn of(number: u64) -> Self {
        match number & 1 {
            0 => Self::Fetch(FetchId(number >> 1)),
            _ => Self::Tcp(TcpId(number >> 1)),
        }
    }
}

/// Adjacent positions of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The first position.
    pub first: u64,
    /// How many.
    pub count: u32,
}

impl Span {
    /// The position after the last.
    pub const fn end(self) -> u64 {
        self.first.saturating_add(self.count as u64)
    }

    /// All positions.
    pub fn positions(self) -> std::ops::Range<u64> {
        self.first..self.end()
    }
}

/// The content of a batch at most, in bytes.
const BATCH_MAX: usize = 128 * 1024;
/// The literals of a batch at most, in bytes: they are one zstd message.
const LITERALS_MAX: usize = 64 * 1024;
/// The longest unit of [`content::Profile::DEFAULT`], in bytes.
const UNIT_MAX: usize = 16 * 1024;
/// The dictionary of a batch at most, in bytes.
const DICTIONARY_MAX: usize = 256 * 1024;
/// A record of the connection at most, in bytes of plain text.
const RECORD_MAX: usize = 16 * 1024;
/// Flows of a pair at most.
const FLOWS_MAX: usize = 1024;
/// How many bytes of a flow's content the sender may be ahead of what the receiver has passed on.
const WINDOW: u64 = 4 * 1024 * 1024;

/// The first 16 bytes of BLAKE3 over the names of units: what a batch is checked against.
type Digest = [u8; 16];

/// A unit's name in the history: the first 16 bytes of its BLAKE3.
type Name = [u8; 16];

fn name_of(bytes: &[u8]) -> Name {
    short(content::name(bytes).as_bytes())
}

/// The first bytes of a name.
fn short<const N: usize>(name: &[u8; 32]) -> [u8; N] {
    let mut short = [0; N];
    short.copy_from_slice(&name[..N]);
    short
}

/// Tells servers of TCP connections apart, to find what they sent last; never zero.
fn url_of_server(to: SocketAddr) -> u64 {
    hash_of(&[to.to_string().as_bytes()])
}

/// Tells these sequences of bytes from others; never zero.
fn hash_of(parts: &[&[u8]]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    parts.iter().for_each(|part| _ = hasher.update(part));
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first).max(1)
}

/// The digest of a batch whose units have these names.
fn digest_of(names: impl IntoIterator<Item = Name>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    names.into_iter().for_each(|name| _ = hasher.update(&name));
    short(hasher.finalize().as_bytes())
}
