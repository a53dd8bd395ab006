//! One direction of a TCP connection, as far as it was heard: the positions of bytes and of chunk frames (a head and
//! the bytes of a chunk that follow it), and *strays*: bytes that no head has claimed yet.
//!
//! Positions count bytes of the stream. They start far before the first byte heard, so that earlier bytes that
//! arrive late have a position too, and they never wrap.
//!
//! *Who calls it:* `hearing.rs`. *What it never does:* accept a sequence number far from the others before a second
//! segment confirms it.

use super::limits::Meter;
use super::names::Named;
use super::runs::Runs;
use super::table::Id;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use wire::peer::ChunkHead;

/// The addresses and ports of a flow; IPv4 addresses are mapped to IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u64; 5]);

impl Key {
    /// The key of one direction of a connection.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Self {
        let halves = |address: SocketAddr| {
            let bits = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
                IpAddr::V6(ip) => ip.to_bits(),
            };
            [(bits >> 64) as u64, bits as u64]
        };
        let ([a, b], [c, d]) = (halves(from), halves(to));
        Self([a, b, c, d, u64::from(from.port()) << 16 | u64::from(to.port())])
    }
}

/// The length of a head, as positions are counted.
pub const HEAD: u64 = ChunkHead::LENGTH as u64;
/// Sequence numbers that are further apart than this do not belong to the same TCP window.
const NEAR: i64 = 16 << 20;
/// How many frames a flow remembers: at most this many if there is memory, but at least [`FRAMES_MIN`]. Only the bytes
/// among these frames can be assigned when they are retransmitted, or when a manifest lists the chunks between two
/// frames. Adjacent frames that are over count as one.
const FRAMES_MAX: usize = 256;
pub const FRAMES_MIN: usize = 32;
/// A flow's frames may use at most one part in this many of the free memory for flows.
const FRAMES_PART: usize = 8;
/// A flow without a head in more bytes than this is not a data connection. It keeps no more strays, so only heads that
/// lie within one segment are found.
const FOREIGN: u64 = 128 << 10;
/// From this many strikes on, a flow's bytes are not joined to those of other flows.
const DISTRUSTED: u8 = 4;

/// A flow.
#[derive(Debug)]
pub struct Flow {
    /// The sequence number behind the last byte heard, and its position.
    sequence: u32,
    position: u64,
    /// The end of the last segment whose sequence number was too far away to be believed.
    elsewhere: Option<u32>,
    /// Frames in order of their positions; they do not overlap.
    pub frames: VecDeque<Frame>,
    /// Bytes that no head has claimed.
    pub strays: Runs,
    /// Strays heard since the last head, or since the flow began.
    since_head: u64,
    /// Whether a head was heard or inferred.
    pub headed: bool,
    /// Whether its bytes were part of a verified chunk.
    pub proven: bool,
    /// Whether a FIN or RST was heard.
    pub closing: bool,
    /// Goes up when the flow had a part in a false version of a chunk, and down when it had a part in a verified chunk.
    pub strikes: u8,
    /// Its memory outside the table, in bytes, as last added to the memory of all flows.
    pub charged: usize,
}

/// A chunk frame in a flow, or several adjacent frames that are over.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The position of its head.
    pub begin: u64,
    /// The position of the first byte behind the head.
    pub body: u64,
    /// The position behind its last byte.
    pub end: u64,
    /// The offset in the chunk of the first byte behind the head.
    pub offset: u32,
    /// The chunk whose bytes the frame carries. If this entry stands for several frames, the chunk of the last.
    pub named: Named,
    /// The chunk's entry on the shelf; `None` if the frame is over: nothing more of it is needed.
    pub chunk: Option<Id>,
    /// Its head was not heard, but inferred from the order of chunks.
    pub guessed: bool,
    /// It stands for several adjacent frames that are over.
    pub several: bool,
}

impl Frame {
    /// The frame that a head announces.
    pub fn new(begin: u64, head: &ChunkHead) -> Self {
        let body = begin + HEAD;
        Self {
            begin,
            body,
            end: body + u64::from(head.length),
            offset: head.offset,
            named: Named { name: head.name, total: head.total },
            chunk: None,
            guessed: false,
            several: false,
        }
    }

    /// The frame of a whole chunk; its head was not heard.
    pub fn guess(begin: u64, named: Named) -> Self {
        let body = begin + HEAD;
        let end = body + u64::from(named.total);
        Self { begin, body, end, offset: 0, named, chunk: None, guessed: true, several: false }
    }

    /// Whether it carries all bytes of its chunk.
    pub fn is_whole(&self) -> bool {
        !self.several && self.offset == 0 && self.end - self.body == u64::from(self.named.total)
    }
}

/// What is at a position of a flow.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// The frame with this index.
    Frame(usize),
    /// No known frame, up to this position.
    Unknown(u64),
}

impl Flow {
    /// A flow; the first byte heard of it has this sequence number.
    pub fn new(sequence: u32) -> Self {
        Self {
            sequence,
            position: 1 << 40,
            elsewhere: None,
            frames: VecDeque::new(),
            strays: Runs::default(),
            since_head: 0,
            headed: false,
            proven: false,
            closing: false,
            strikes: 0,
            charged: 0,
        }
    }

    /// The position of a segment's first byte; `None` if its sequence number is too far from the flow's to be believed.
    /// A second segment near the first one confirms such a number, and the flow restarts there.
    pub fn locate(&mut self, sequence: u32, length: usize) -> Option<u64> {
        let distance = i64::from(sequence.wrapping_sub(self.sequence) as i32);
        let end = sequence.wrapping_add(length as u32);
        if distance.abs() > NEAR {
            let again = self.elsewhere.replace(end);
            let is_near = |it: u32| i64::from(sequence.wrapping_sub(it) as i32).abs() <= NEAR;
            return again.is_some_and(is_near).then(|| self.restart(sequence, length));
        }
        self.elsewhere = None;
        let at = self.position.checked_add_signed(distance)?;
        if at + length as u64 > self.position {
            (self.position, self.sequence) = (at + length as u64, end);
        }
        Some(at)
    }

    /// Continues the flow at a new sequence number, after a new connection began or much was missed. The new position
    /// is far behind all earlier ones, and earlier frames are forgotten.
    pub fn restart(&mut self, sequence: u32, length: usize) -> u64 {
        let at = self.position + (1 << 32);
        self.frames.clear();
        self.elsewhere = None;
        self.sequence = sequence.wrapping_add(length as u32);
        self.position = at + length as u64;
        at
    }

    /// What is at a position.
    pub fn place(&self, at: u64) -> Place {
        // Fast path: most segments continue the last frame, or begin behind it.
        if let Some(last) = self.frames.back().filter(|last| last.begin <= at) {
            let i = self.frames.len() - 1;
            return if at < last.end { Place::Frame(i) } else { Place::Unknown(u64::MAX) };
        }
        let i = self.frames.partition_point(|frame| frame.end <= at);
        match self.frames.get(i) {
            Some(frame) if frame.begin <= at => Place::Frame(i),
            Some(frame) => Place::Unknown(frame.begin),
            None => Place::Unknown(u64::MAX),
        }
    }

    /// Adds a frame and returns its index. `None` if it overlaps another frame, or if it precedes all frames and there
    /// is no memory for one more. `room` is the free memory for flows, in bytes.
    pub fn claim(&mut self, frame: Frame, room: usize) -> Option<usize> {
        let i = self.frames.partition_point(|it| it.end <= frame.begin);
        if self.frames.get(i).is_some_and(|it| it.begin < frame.end) {
            return None;
        }
        let frames_max = room / FRAMES_PART / size_of::<Frame>();
        if self.frames.len() >= frames_max.clamp(FRAMES_MIN, FRAMES_MAX) {
            // The first frame makes room; a frame before it comes too late.
            let i = i.checked_sub(1)?;
            self.frames.pop_front();
            self.frames.insert(i, frame);
            return Some(i);
        }
        self.frames.insert(i, frame);
        Some(i)
    }

    /// Marks a frame as over: nothing more is needed of its chunk. It is joined to adjacent frames that are over too.
    pub fn is_over(&mut self, i: usize) {
        if let Some(frame) = self.frames.get_mut(i) {
            frame.chunk = None;
        }
        self.join(i);
        if let Some(before) = i.checked_sub(1) {
            self.join(before);
        }
    }

    /// Joins a frame and the next one if both are over and adjacent. A frame without an adjacent predecessor is not
    /// joined to the next: its name is needed to infer the chunks before it.
    fn join(&mut self, i: usize) {
        let (Some(this), Some(next)) = (self.frames.get(i), self.frames.get(i + 1)) else { return };
        let before = i.checked_sub(1).and_then(|i| self.frames.get(i));
        if before.is_none_or(|before| before.end != this.begin) {
            return;
        }
        if this.chunk.is_some() || next.chunk.is_some() || this.end != next.begin {
            return;
        }
        let (end, named) = (next.end, next.named);
        self.frames.remove(i + 1);
        if let Some(this) = self.frames.get_mut(i) {
            (this.end, this.named, this.several) = (end, named, true);
        }
    }

    /// The chunk of the last frame.
    pub fn last_chunk(&self) -> Option<Id> {
        self.frames.back()?.chunk
    }

    /// The chunk of the last frame and the offset in a segment at which that frame ends; `None` if it ends elsewhere.
    /// The next chunk usually begins there.
    pub fn border(&self, sequence: u32, length: usize) -> Option<(Named, usize)> {
        let last = self.frames.back()?;
        let distance = i64::from(sequence.wrapping_sub(self.sequence) as i32);
        let at = self.position.checked_add_signed(distance)?;
        let border = usize::try_from(last.end.checked_sub(at)?).ok()?;
        (border <= length).then_some((last.named, border))
    }

    /// Notes that a head was heard or inferred.
    pub fn has_head(&mut self) {
        self.headed = true;
        self.since_head = 0;
    }

    /// Notes that bytes without a head were heard.
    pub fn has_stray(&mut self, bytes: usize) {
        self.since_head = self.since_head.saturating_add(bytes as u64);
    }

    /// Whether the flow is probably not a data connection between peers.
    pub fn is_foreign(&self) -> bool {
        self.since_head > FOREIGN
    }

    /// Whether its bytes may be joined to those of other flows.
    pub fn is_trusted(&self) -> bool {
        self.strikes < DISTRUSTED
    }

    /// Updates the memory of all flows by what this flow has gained or freed since the last call.
    pub fn charge(&mut self, all: &mut Meter) {
        let cost = self.cost();
        all.change(std::mem::replace(&mut self.charged, cost), cost);
    }

    /// Its memory outside the table, in bytes.
    pub fn cost(&self) -> usize {
        self.strays.cost() + self.frames.capacity() * size_of::<Frame>()
    }
}
