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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    fn flow() -> Flow<()> {
        let end = |number| (Ipv4Addr::new(10, 0, 0, number), 80).into();
        Flow::new((end(1), end(2)))
    }

    #[test]
    fn data_a_window_away_from_the_flow_is_a_stray() {
        for base in [5000, u32::MAX - 5] {
            let seen = |seq: u32, end: u32, una: Option<u32>| {
                let mut flow = flow();
                assert_eq!(flow.saw(base.wrapping_sub(100), base), Seen::Ours);
                flow.una = una;
                (flow.saw(base.wrapping_add(seq), base.wrapping_add(end)), flow.sent)
            };
            let (far, back) = (WINDOW_MAX, WINDOW_MAX.wrapping_neg());
            let same = Some(base);
            assert_eq!(
                seen(far - 2, far - 1, None),
                (Seen::Ours, Some(base.wrapping_add(far - 1)))
            );
            assert_eq!(seen(far - 1, far, None), (Seen::Stray, same));
            assert_eq!(seen(back.wrapping_add(1), back.wrapping_add(2), None), (Seen::Ours, same));
            assert_eq!(seen(back, back.wrapping_add(2), None), (Seen::Stray, same));
            let una = Some(base.wrapping_sub(50));
            assert_eq!(seen(far - 51, far - 1, una).0, Seen::Ours);
            assert_eq!(seen(far - 50, far - 1, una).0, Seen::Stray);
        }
    }

    #[test]
    fn the_eighth_stray_in_a_row_is_of_another_flow() {
        let mut flow = flow();
        flow.saw(0, 100);
        let stray = |flow: &mut Flow<()>| flow.saw(1 << 30, (1 << 30) + 100);
        assert!((0..7).all(|_| stray(&mut flow) == Seen::Stray));
        assert_eq!(flow.saw(50, 99), Seen::Ours);
        assert_eq!(flow.sent, Some(100), "older data changes nothing");
        assert!((0..7).all(|_| stray(&mut flow) == Seen::Stray));
        assert!((0..300).all(|_| stray(&mut flow) == Seen::Another));
    }

    #[test]
    fn an_old_number_is_believed_the_fourth_time_in_a_row_and_the_32nd_of_any_kind() {
        let mut it = flow();
        assert!((0..3).all(|_| it.contradict(7)));
        assert!((0..3).all(|_| it.contradict(8)));
        assert!(!it.contradict(8));
        let mut it = flow();
        let believed: Vec<_> = (0..40).map(|number| !it.contradict(number)).collect();
        assert_eq!(believed.iter().position(|it| *it), Some(31));
    }

    #[test]
    fn the_receiver_has_what_ends_at_its_number() {
        let mut flow = flow();
        assert!(!flow.has_acked(0));
        flow.una = Some(100);
        assert_eq!([99, 100, 101].map(|end| flow.has_acked(end)), [true, true, false]);
    }

    #[test]
    fn a_flow_that_begins_anew_knows_its_ends_alone() {
        let mut it = flow();
        it.saw(0, 100);
        (it.counted, it.una, it.backoff) = (7, Some(50), 3);
        let key = (it.key.1, it.key.0);
        it.begin(key);
        assert_eq!((it.key, it.counted, it.sent, it.una, it.backoff), (key, 7, None, None, 0));
    }

    /// RFC 9293, section 3.4: SYN and FIN take a number each.
    #[test]
    fn a_segment_takes_numbers_for_its_bytes_and_for_syn_and_fin() {
        let mut tcp = Tcp {
            seq: 0,
            ack: 0,
            payload: 10,
            flags: Flags::ACK,
            window: 0,
            sack: crate::Sack::default(),
            stamps: None,
            has_other_options: false,
        };
        assert_eq!(length(&tcp), 10);
        tcp.flags = Flags::SYN;
        assert_eq!(length(&tcp), 11);
        tcp.flags = Flags::SYN | Flags::FIN;
        assert_eq!(length(&tcp), 12);
    }

    #[test]
    fn a_second_is_no_sample() {
        let since = Instant::from_nanos(5);
        let after = |time| sample_of(since + time, since);
        let second = Duration::from_secs(1);
        let less = second - Duration::from_nanos(1);
        assert_eq!((after(less), after(second)), (Some(less), None));
    }
}
