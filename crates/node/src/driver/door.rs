//! Who stands at the far end's door: which connection is dropped for another while it is not known who is there.
//!
//! A newcomer is never refused. Where there is no room, the oldest is dropped: of the same prefix if that has too many,
//! else of a prefix that has most. So who keeps many idle connections loses its own, and a gateway, which needs one or two
//! round trips, is through before its turn comes (decision 0039).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;
use wire::Instant;

/// How long a connection may take to prove that it knows the far end's key: one segment, lost once or twice.
pub const UNPROVEN: Duration = Duration::from_secs(5);
/// How long it may take from there to prove its own key.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long who is refused may take to read why.
pub const PARTING: Duration = Duration::from_secs(2);
/// What was counted is told this often at most.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It has shown nothing yet.
    Unproven,
    /// It knows the far end's key.
    Proven,
    /// It is refused, and may read why.
    Parting,
}

impl Stage {
    /// How many connections may be at this stage, and how many of them of one prefix.
    const fn bounds(self) -> (usize, usize) {
        match self {
            Self::Unproven => (256, 32),
            Self::Proven => (64, 8),
            Self::Parting => (32, 4),
        }
    }
}

/// A connection's number. They count up, so the smallest is the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestId(u64);

/// Addresses that count as one sender: an IPv4 address, or an IPv6 /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Prefix(IpAddr);

impl Prefix {
    fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        })
    }
}

/// The connections at one stage.
#[derive(Debug, Default)]
struct Crowd {
    by_prefix: BTreeMap<Prefix, BTreeSet<GuestId>>,
    len: usize,
}

impl Crowd {
    fn add(&mut self, id: GuestId, prefix: Prefix) {
        self.len += usize::from(self.by_prefix.entry(prefix).or_default().insert(id));
    }

    fn remove(&mut self, id: GuestId, prefix: Prefix) {
        let Some(guests) = self.by_prefix.get_mut(&prefix) else { return };
        self.len -= usize::from(guests.remove(&id));
        if guests.is_empty() {
            self.by_prefix.remove(&prefix);
        }
    }

    /// Who is dropped, with its prefix, so that one more of this prefix has room.
    fn surplus(&self, prefix: Prefix, (all, each): (usize, usize)) -> Option<(GuestId, Prefix)> {
        let own = self.by_prefix.get(&prefix).filter(|guests| guests.len() >= each);
        if let Some(oldest) = own.and_then(BTreeSet::first) {
            return Some((*oldest, prefix));
        }
        if self.len < all {
            return None;
        }
        let most = self.by_prefix.values().map(BTreeSet::len).max()?;
        let fullest = self.by_prefix.iter().filter(|(_, guests)| guests.len() == most);
        fullest.filter_map(|(prefix, guests)| Some((*guests.first()?, *prefix))).min()
    }
}

wire::counters! {
    /// What happened at the door.
    #[derive(Copy)]
    pub struct DoorReport, "far_" {
        Far () {
            /// Connections at the far end's port: of gateways, and of others.
            entered: Counter, Connections;
        }
        Far ("hearsay_far_refused_total", reason, "Connections at the far end's port that were refused, by why.") {
            /// Dropped for others.
            dropped: Counter, Connections, "dropped";
            /// They took too long.
            late: Counter, Connections, "late";
            /// They did not know the far end's key.
            unproven: Counter, Connections, "unproven";
            /// Of another version, or another protocol.
            version: Counter, Connections, "version";
            /// They knew the far end's key, and broke the protocol.
            broken: Counter, Connections, "broken";
            /// With a key that no gateway has.
            strangers: Counter, Connections, "strangers";
        }
    }
}

impl DoorReport {
    fn refused(&self) -> u64 {
        self.dropped + self.late + self.unproven + self.version + self.broken + self.strangers
    }

    /// What has happened since.
    fn since(&self, before: &Self) -> Self {
        Self {
            entered: self.entered - before.entered,
            dropped: self.dropped - before.dropped,
            late: self.late - before.late,
            unproven: self.unproven - before.unproven,
            version: self.version - before.version,
            broken: self.broken - before.broken,
            strangers: self.strangers - before.strangers,
        }
    }
}

/// All connections of which it is not known who is there.
#[derive(Debug, Default)]
pub struct Door {
    guests: u64,
    stages: BTreeMap<GuestId, (Stage, Prefix)>,
    crowds: [Crowd; 3],
    /// What is counted; the driver adds what it sees.
    pub report: DoorReport,
    told: DoorReport,
    /// When that was.
    told_at: Option<Instant>,
}

impl Door {
    /// A connection has been accepted. If another one has to go for it, that one is out already.
    pub fn enter(&mut self, address: IpAddr) -> (GuestId, Option<GuestId>) {
        self.guests += 1;
        self.report.entered += 1;
        let id = GuestId(self.guests);
        (id, self.put(id, Stage::Unproven, Prefix::of(address)))
    }

    /// A connection has come to this stage. If another one has to go for it, that one is out already.
    pub fn advance(&mut self, id: GuestId, stage: Stage) -> Option<GuestId> {
        let prefix = self.take(id)?;
        self.put(id, stage, prefix)
    }

    /// A connection is out: it has ended, or it is a gateway's.
    pub fn leave(&mut self, id: GuestId) {
        self.take(id);
    }

    /// Connections at this stage.
    pub fn at(&self, stage: Stage) -> usize {
        self.crowds[stage as usize].len
    }

    /// What is to be told now: what has happened since it was told last, if anybody was refused.
    pub fn tell(&mut self, now: Instant) -> Option<DoorReport> {
        if self.poll_timeout()? > now {
            return None;
        }
        let news = self.report.since(&self.told);
        (self.told, self.told_at) = (self.report, Some(now));
        Some(news)
    }

    /// When there is something to [`Door::tell`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let is_news = self.report.refused() != self.told.refused();
        is_news.then(|| self.told_at.map_or(Instant::ZERO, |at| at + TELL_EVERY))
    }

    fn put(&mut self, id: GuestId, stage: Stage, prefix: Prefix) -> Option<GuestId> {
        let dropped = self.crowds[stage as usize].surplus(prefix, stage.bounds());
        if let Some((dropped, of)) = dropped {
            self.stages.remove(&dropped);
            self.crowds[stage as usize].remove(dropped, of);
            self.report.dropped += 1;
        }
        self.crowds[stage as usize].add(id, prefix);
        self.stages.insert(id, (stage, prefix));
        dropped.map(|(id, _)| id)
    }

    fn take(&mut self, id: GuestId) -> Option<Prefix> {
        let (stage, prefix) = self.stages.remove(&id)?;
        self.crowds[stage as usize].remove(id, prefix);
        Some(prefix)
    }
}

#[cfg(test)]
mod tests;
