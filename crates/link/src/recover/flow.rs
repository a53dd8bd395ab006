//! One direction of a connection: the data that one end sends, and the other's acknowledgements of it.

use std::net::SocketAddr;

use wire::Instant;

use super::ack::LastAck;
use super::cache::Cache;
use super::estimate::Estimate;
use crate::header::before;
use crate::{Flags, Next, Tcp};

/// The ends of a flow: who sends its data, and who receives it.
pub(super) type Key = (SocketAddr, SocketAddr);

/// Sequence numbers farther apart belong to no one flow. Windows may be 64 times as large (RFC 7323, section 2.3), but on
/// no mesh; the smaller this is, the fewer forged numbers fit.
const WINDOW_MAX: u32 = 1 << 24;

/// After this many packets in a row from nowhere, the flow is another one on the same ports.
const STRAYS_MAX: u8 = 8;

/// What comes this often in a row is true, whatever was acknowledged.
const CONTRADICTIONS_MAX: u8 = 4;

/// The same for old numbers of any kind since the last new acknowledgement, which repetitions alone do not reach.
const OLD_MAX: u8 = 32;

/// What is known of a flow.
#[derive(Debug)]
pub(super) struct Flow<P> {
    /// Its ends.
    pub(super) key: Key,
    /// How many bytes of its cache the table has counted.
    pub(super) counted: u32,
    /// Its data that may have to be sent again.
    pub(super) cache: Cache<P>,
    /// The sequence number after all data seen.
    pub(super) sent: Option<u32>,
    /// The receiver has all before this number: it said so, and the data was seen before.
    pub(super) una: Option<u32>,
    /// The window with the last acknowledgement.
    pub(super) window: u32,
    /// How often the last acknowledgement was repeated since data was last sent again.
    pub(super) duplicates: u32,
    /// The end of the highest data that was acknowledged selectively, and its rank.
    pub(super) sacked: Option<(u32, u64)>,
    /// The highest rank among packets that were acknowledged.
    pub(super) acked_order: u64,
    /// Where routing sends its data.
    pub(super) next: Option<Next>,
    /// The rank of the next packet that leaves the MAC.
    pub(super) order: u64,
    /// From a packet's leaving the MAC to its acknowledgement.
    pub(super) rtt: Estimate,
    /// When the next hop was last heard forwarding data.
    pub(super) heard_at: Instant,
    /// The same for acknowledgements.
    pub(super) heard_ack_at: Instant,
    /// How long the next hop takes to forward a packet once it has it and has forwarded the one before.
    pub(super) forwarding: Estimate,
    /// The same for acknowledgements.
    pub(super) forwarding_acks: Estimate,
    /// From an acknowledgement of everything to the next data.
    pub(super) idle: Estimate,
    /// How many hops the receiver is away.
    pub(super) hops: u8,
    /// How often its timer has expired since an acknowledgement came.
    pub(super) backoff: u8,
    /// The last acknowledgement that left here.
    pub(super) ack: Option<LastAck<P>>,
    strays: u8,
    /// What was last found old, data or an acknowledgement, and how often in a row.
    contradicted: (u32, u8),
    /// How often anything was found old since `una` moved.
    pub(super) old: u8,
}

impl<P> Flow<P> {
    /// A flow of which nothing was seen.
    pub(super) fn new(key: Key) -> Self {
        Self {
            key,
            counted: 0,
            cache: Cache::default(),
            sent: None,
            una: None,
            window: 0,
            duplicates: 0,
            sacked: None,
            acked_order: 0,
            next: None,
            order: 1,
            rtt: Estimate::default(),
            heard_at: Instant::ZERO,
            heard_ack_at: Instant::ZERO,
            forwarding: Estimate::default(),
            forwarding_acks: Estimate::default(),
            idle: Estimate::default(),
            hops: 1,
            backoff: 0,
            ack: None,
            strays: 0,
            contradicted: (0, 0),
            old: 0,
        }
    }

    /// Forgets everything, and keeps the memory; its cache must be empty.
    pub(super) fn begin(&mut self, key: Key) {
        let cache = std::mem::take(&mut self.cache);
        debug_assert!(cache.len() == 0);
        *self = Self { cache, counted: self.counted, ..Self::new(key) };
    }

    /// Takes note of data, and returns whether it can belong to the flow.
    pub(super) fn saw(&mut self, seq: u32, end: u32) -> Seen {
        let Some(sent) = self.sent else {
            self.sent = Some(end);
            return Seen::Ours;
        };
        let distance = |a: u32, b: u32| a.wrapping_sub(b).min(b.wrapping_sub(a));
        let base = self.una.unwrap_or(sent);
        if distance(end, sent) >= WINDOW_MAX || distance(seq, base) >= WINDOW_MAX {
            self.strays = self.strays.saturating_add(1);
            return if self.strays < STRAYS_MAX { Seen::Stray } else { Seen::Another };
        }
        self.strays = 0;
        if before(sent, end) {
            self.sent = Some(end);
        }
        Seen::Ours
    }

    /// Something old has come: data before `una`, or an acknowledgement before it, with this number. Returns
    /// whether `una` can still be believed: ends that insist know better.
    pub(super) fn contradict(&mut self, number: u32) -> bool {
        let (last, count) = self.contradicted;
        let count = if last == number { count.saturating_add(1) } else { 1 };
        self.contradicted = (number, count);
        self.old = self.old.saturating_add(1);
        count < CONTRADICTIONS_MAX && self.old < OLD_MAX
    }

    /// Whether the receiver has all data before `end`.
    pub(super) fn has_acked(&self, end: u32) -> bool {
        self.una.is_some_and(|una| !before(una, end))
    }

    /// The data that the receiver waits for, if it is cached: its place in the cache.
    pub(super) fn hole(&self) -> Option<usize> {
        match self.una {
            Some(una) => self.cache.holder(una),
            None => (self.cache.len() > 0).then_some(0),
        }
    }

    /// Whether its data goes straight to its receiver from here.
    pub(super) fn is_next_to_receiver(&self) -> bool {
        self.next.is_some_and(|next| next.hop == self.key.1.ip())
    }

    /// The rank of a packet that leaves the MAC now.
    pub(super) fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }
}

/// What [`Flow::saw`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The data fits.
    Ours,
    /// It lies too far away.
    Stray,
    /// Too many in a row have: the flow must begin anew.
    Another,
}

/// How many sequence numbers a segment takes.
pub(super) fn length(tcp: &Tcp) -> u32 {
    let bit = |flag: Flags| u32::from(tcp.flags.has(flag));
    tcp.payload.saturating_add(bit(Flags::SYN) + bit(Flags::FIN))
}

/// The moment from which an estimate may be taken: none is longer than a second.
pub(super) fn sample_of(now: Instant, since: Instant) -> Option<std::time::Duration> {
    let time = now.since(since);
    (time < std::time::Duration::from_secs(1)).then_some(time)
}
