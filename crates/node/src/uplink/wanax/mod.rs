//! Wanax as published: chunks of several sizes, named by their content (Ihm, Park, Pai 2010, §3 and §5).
//!
//! *What it is:* the two directions of a pair as the paper has them, in the place of [`super::sender::Sender`] and
//! [`super::receiver::Receiver`], for experiments that compare. *Who calls it:* [`super::pair::Pair`], if the near end
//! was told so. *What it never does:* compress; refer to positions.
//!
//! S, the sender, cuts a flow into **roots** of 64 KiB on average, and each of them into a tree of smaller chunks
//! (`content::nested`). It lists a root as a pruned tree ([`listing`]): a chunk whose name is in its table of *hints*
//! ([`hints`]) is a name and nothing below it; of the others, the largest subtree that is missing whole is a name and
//! its content (§3.2). R, the receiver, reads by name what it has, asks S by name for what is missing all the same,
//! checks each chunk against its name, passes the content on, and stores what it had not ([`assemble`]).
//!
//! The worker's thread has the tables, the index and the log ([`cache`]); the engines know flows only
//! ([`sender`], [`receiver`]). So jobs that are done in order always see what the earlier ones have stored.
//!
//! *Departures:* names are the first 20 bytes of BLAKE3 and not SHA-1; the rolling hash is the product's and not
//! Rabin's; each root is cut as if nothing were before it, so that equal roots have equal trees. Names cross with the
//! content, as a part of the payload: a list of them may be longer than a control message. R's table of hints is its
//! index, since HashCache, too, keeps both as one.

mod assemble;
mod cache;
mod hints;
mod index;
mod listing;
mod prune;
mod published;
pub mod receiver;
pub mod sender;
#[cfg(test)]
mod tests;

pub use assemble::Parts;
pub use cache::Cache;
pub use listing::{Entry, Listing};
pub use published::{Kind, Published, Unpublished};

use super::short;
use bytes::Bytes;
use std::sync::Arc;
use wire::Instant;

/// A chunk's name: the first 20 bytes of its BLAKE3, as long as the paper's SHA-1.
pub type ChunkName = [u8; NAME];

/// The length of a name in bytes.
const NAME: usize = 20;
/// The average length of roots in bytes (§4.1).
const ROOT_AVERAGE: u32 = 64 * 1024;
/// The greatest length of roots in bytes.
pub const ROOT_MAX: usize = (ROOT_AVERAGE * content::nested::LONGEST) as usize;
/// A root ends when it has this many chunks of the smallest size: what bounds its list of names.
const LEAVES_MAX: usize = 8192;
/// Bytes that are cut before the chunks are counted.
const STEP: usize = 4096;
/// The chunks that a list has at most.
pub const ENTRIES_MAX: usize = LEAVES_MAX + STEP;
/// The payload of a root at most: a list, and all of the content.
pub const PAYLOAD_MAX: usize = ENTRIES_MAX * (NAME + 3) + ROOT_MAX;
/// Roots that are not acknowledged at most, each with its content and its payload, in bytes: what S keeps for R.
pub const UNACKED_MAX: usize = 16 * 1024 * 1024;
/// Roots that are not acknowledged at most: each takes something besides its bytes.
pub const ROOTS_MAX: usize = 64 * 1024;
/// How many bytes of a flow's content S may be ahead of what R has passed on.
pub const WINDOW: u64 = 1024 * 1024;
/// Names in one request at most.
pub const NAMES_MAX: usize = 64;
/// Requests that are not answered at most.
pub const REQUESTS_MAX: usize = 512;

/// Something for the worker's thread.
#[derive(Clone, Debug)]
pub enum Job {
    /// A connection begins that works like this: the tables are kept if the last one did, too → [`Done::Begun`].
    Begin(Published),
    /// Lists a root that is to be sent → [`Done::Listed`].
    List {
        /// Against which hints are held.
        now: Instant,
        /// The content.
        root: Bytes,
        /// The ends of its chunks, level by level.
        ends: Vec<Vec<u32>>,
    },
    /// Puts a root together → [`Done::Assembled`], `Lacking` or `False`.
    Assemble(Parts),
}

/// What a job led to.
#[derive(Clone, Debug)]
pub enum Done {
    /// The tables are there.
    Begun,
    /// The list, and the payload, which begins with it.
    Listed(Arc<Listing>, Bytes),
    /// The content, checked, and counts.
    Assembled(Bytes, Counts),
    /// These chunks are not stored.
    Lacking(Vec<ChunkName>),
    /// The other end has sent content that is not what its name says.
    False,
}

/// What R's store has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Chunks that were read.
    pub reads: u64,
    /// Times that chunks were written, those of a root together.
    pub writes: u64,
    /// Bytes that were written.
    pub written: u64,
    /// Chunks in the index.
    pub entries: u64,
}

/// The name of a chunk.
fn name_of(chunk: &[u8]) -> ChunkName {
    short(content::name(chunk).as_bytes())
}

/// The names of chunks: faster than one by one.
fn names_of(chunks: &[&[u8]]) -> Vec<ChunkName> {
    let mut names = Vec::with_capacity(chunks.len());
    content::names(chunks, &mut names);
    names.iter().map(|name| short(name.as_bytes())).collect()
}
